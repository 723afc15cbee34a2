"""The checkpoint directory of a query, with Spark's logs and the lab's own subdirectory, and the lock of its driver.

`offsets/N` and `commits/N` are Spark's (OffsetSeqLog, CommitLog), and the lab never writes them. `labkit/` holds the
query's identity, its driver's lock, and the sink's own files.
"""

import fcntl
import json
import os
import uuid
from dataclasses import dataclass
from pathlib import Path

from labkit.core.errors import InvalidInput, JobFailed
from labkit.core.records import PlannedBatch
from labkit.host import durable
from labkit.host.processes.sessions import session_members


@dataclass(frozen=True)
class Identity:
    """The settings of a checkpoint's query that must be the same in every driver of the query.

    `query` is the query's name in the store. A new checkpoint needs a new name, because its batch numbers begin at 0
    again.
    """

    query: str
    strategy: str
    store: str
    location: str
    order: str
    source: str


class Checkpoint:
    """The checkpoint directory of one Spark query. Its subdirectory `labkit` contains the files of the lab's sink."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.log = folder / "labkit"

    def offset_log(self) -> list[int]:
        """Return the numbers of the batches that Spark has planned (files `offsets/N`), the lowest first."""
        return _numbers(self.folder / "offsets")

    def commit_log(self) -> list[int]:
        """Return the numbers of the batches that Spark has finished (files `commits/N`), the lowest first."""
        return _numbers(self.folder / "commits")

    def decided(self) -> int | None:
        """Return the number of the last batch that Spark has finished (the highest file `commits/N`), or None."""
        return max(self.commit_log(), default=None)

    def incarnation(self) -> int:
        """Return how many drivers have run the query so far."""
        path = self.log / "query.json"
        return _read_identity(path)[1] if path.exists() else 0

    def check(self) -> None:
        """Raise `InvalidInput` if a file in `offsets` or `commits` is damaged."""
        for name, batches in (("offsets", self.offset_log()), ("commits", self.commit_log())):
            for batch in batches:
                _check_entry(self.folder / name / str(batch))

    def planned_batches(self) -> list[PlannedBatch]:
        """Return the batches that Spark has planned, each with its range of offsets.

        Raises `JobFailed` if a file `offsets/N` does not have the form that the lab's own sources write.
        """
        ends = [(batch, self._end(batch)) for batch in self.offset_log()]
        starts = [0, *(end for _, end in ends)]
        return [PlannedBatch(batch, start, end) for start, (batch, end) in zip(starts, ends, strict=False)]

    def files(self) -> list[str]:
        """Return the paths, relative to the checkpoint, of all files that determine what a recovery does."""
        kept = ("offsets", "commits", "labkit/handles", "labkit/wal")
        return [
            f"{name}/{path.name}"
            for name in kept
            if (self.folder / name).is_dir()
            for path in sorted((self.folder / name).iterdir())
            # Hidden files are checksums and temporary files, which recovery ignores.
            if not path.name.startswith(".")
        ]

    def state_files(self) -> list[str]:
        """Return the paths, relative to the checkpoint, of the state store's files (deltas, snapshots, zip files)."""
        state = self.folder / "state"
        paths = (path for path in sorted(state.rglob("*")) if path.is_file() and not path.name.startswith("."))
        return [str(path.relative_to(self.folder)) for path in paths]

    def _end(self, batch: int) -> int:
        path = self.folder / "offsets" / str(batch)
        try:
            return int(json.loads(path.read_text(encoding="utf-8").splitlines()[-1])["offset"])
        except (ValueError, KeyError, TypeError, IndexError) as error:
            raise JobFailed(
                f"{path}: this is not an offset that labkit's Spark source wrote ({error}); restore a backup."
            ) from None


def _check_entry(path: Path) -> None:
    try:
        version, *lines = path.read_text(encoding="utf-8").splitlines()
        for line in lines:
            json.loads(line)
        if version != "v1" or not lines:
            raise ValueError("the file's first line is not v1, or there is no second line")
    except ValueError as error:
        raise InvalidInput(
            f"{path}: this file is damaged ({error}); restore it, or start a new query in a new folder. The new "
            "query reads all input again."
        ) from None


def _numbers(folder: Path) -> list[int]:
    if not folder.is_dir():
        return []
    return sorted(int(path.name) for path in folder.iterdir() if path.name.isdigit())


class DriverLock:
    """The lock on a checkpoint, which keeps two drivers from running its query at the same time.

    Creating the object takes the lock, which lasts until `release` or the end of the process. Raises `InvalidInput` if
    another driver holds the lock, or if processes of a dead driver still run.
    """

    def __init__(self, checkpoint: Checkpoint) -> None:
        self._path = checkpoint.log / "driver.lock"
        self._path.parent.mkdir(parents=True, exist_ok=True)
        self._descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            # The kernel releases this lock however its holder dies, so nobody has to remove a killed driver's lock.
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self._refuse_leftovers()
        except BlockingIOError:
            holder = self._read()
            os.close(self._descriptor)
            raise InvalidInput(
                f"{checkpoint.folder}: driver process {holder.get('pid', '?')} is still running this query; "
                "stop it first, or use another folder."
            ) from None
        except InvalidInput:
            os.close(self._descriptor)
            raise
        self._claim()
        self._is_held = True

    def release(self) -> None:
        """Release the lock. A second call does nothing."""
        if self._is_held:
            self._is_held = False
            os.close(self._descriptor)

    def _refuse_leftovers(self) -> None:
        # The worker processes of a dead driver may still write.
        session = self._read().get("session")
        living = [] if session in (None, os.getsid(0)) else session_members(int(session))
        if living:
            raise InvalidInput(
                f"{self._path.parent.parent}: the driver is dead, but {len(living)} of its processes are still "
                f"running (first: {living[0]}); wait until they end, or kill them."
            )

    def _claim(self) -> None:
        content = json.dumps({"pid": os.getpid(), "session": os.getsid(0)}).encode()
        # Written through the descriptor that holds the lock, because a rename would replace the locked file by an
        # unlocked one.
        os.ftruncate(self._descriptor, 0)
        os.pwrite(self._descriptor, content, 0)

    def _read(self) -> dict[str, int]:
        try:
            # The holder truncates the file before it writes, so a reader in between may find nothing, or a part.
            content = json.loads(self._path.read_text(encoding="utf-8") or "{}")
        except ValueError:
            return {}
        return content if isinstance(content, dict) else {}


def enter(checkpoint: Checkpoint, wanted: Identity) -> tuple[Identity, int]:
    """Register this driver in the checkpoint; return (settings of the query, number of the driver, from 1).

    The caller must hold the checkpoint's `DriverLock`. Raises `InvalidInput` if the checkpoint was created with
    settings other than `wanted`, or not by the lab.
    """
    path = checkpoint.log / "query.json"
    if not path.exists():
        # Another program stored no names of pre-committed transactions, so recovery could not finish them.
        if checkpoint.offset_log():
            raise InvalidInput(f"{checkpoint.folder}: labkit did not create this checkpoint; use another folder.")
        identity, incarnation = wanted, 0
    else:
        identity, incarnation = _read_identity(path)
        _refuse_other(checkpoint, identity, wanted)
    path.parent.mkdir(parents=True, exist_ok=True)
    durable.replace(path, json.dumps({**identity.__dict__, "incarnation": incarnation + 1}))
    return identity, incarnation + 1


def new_query() -> str:
    """Return a new random name for a query."""
    return "q" + uuid.uuid4().hex[:12]


def _read_identity(path: Path) -> tuple[Identity, int]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        incarnation = int(content.pop("incarnation"))
        return Identity(**content), incarnation
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise InvalidInput(
            f"{path}: this file is damaged ({error}); restore it, or start a new query in a new folder."
        ) from None


def _refuse_other(checkpoint: Checkpoint, identity: Identity, wanted: Identity) -> None:
    for name in ("strategy", "store", "location", "order", "source"):
        stored, expected = getattr(identity, name), getattr(wanted, name)
        if stored != expected:
            raise InvalidInput(
                f"{checkpoint.folder}: this checkpoint belongs to another query, whose {name} is {stored!r} and not "
                f"{expected!r}; use the same {name}, or a new folder."
            )
