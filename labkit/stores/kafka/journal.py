"""The lab's own files about Kafka transactions: which names are used, and which transactions are pre-committed.

NAME.open        begun; a name is never used twice
NAME.prepared    {"id", "epoch", "rows"}: the vote, with which any process can commit
NAME.committed   the coordinator has confirmed the commit
NAME.lost        the coordinator aborted a pre-committed transaction
QUERY.epoch      the number of a query's latest driver; earlier drivers may begin no transaction

Kafka has no prepared state: to the coordinator, an open transaction and a pre-committed one look alike (KIP-939 would
change that). So the vote is a file, just as Flink keeps its committable in the checkpoint. The journal consists of
files only and never asks Kafka.
"""

import json
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import NamedTuple

from labkit.core.errors import InvalidInput, JobFailed
from labkit.host import durable
from labkit.stores.contract import Handle, fenced
from labkit.stores.kafka.transaction import Producer

OPEN, PREPARED, COMMITTED, LOST, EPOCH = (".open", ".prepared", ".committed", ".lost", ".epoch")


class Vote(NamedTuple):
    """The data with which any process can commit a pre-committed transaction: producer id, epoch, number of rows.

    With 0 rows Kafka has no transaction, so there is nothing to commit.
    """

    producer: Producer
    rows: int


class Journal:
    """The files about one store's transactions. Nothing is created before the first transaction."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @contextmanager
    def changing(self) -> Iterator[None]:
        """Hold, during a `with` block, the lock under which one process at a time begins or finishes transactions."""
        with durable.explained(self._folder):
            durable.make_folder(self._folder)
            with durable.locked(self._folder):
                yield

    def explained(self) -> AbstractContextManager[None]:
        """Return a context manager that turns an `OSError` inside it into a `LabError` of one sentence."""
        return durable.explained(self._folder)

    def fence(self, query: str, incarnation: int) -> None:
        """Refuse from now on all transactions that earlier drivers of the query begin.

        Raises `JobFailed` if a later driver has replaced this one.
        """
        with self.changing():
            self.refuse_fenced(query, incarnation)
            durable.replace(self._epoch(query), str(incarnation))

    def refuse_fenced(self, query: str, incarnation: int) -> None:
        """Raise `JobFailed` if a later driver of the query has fenced this one."""
        try:
            latest = int(self._epoch(query).read_text(encoding="ascii"))
        except FileNotFoundError:
            return
        except ValueError:
            raise InvalidInput(
                f"{self._epoch(query)}: damaged; write the number of the query's latest driver into it."
            ) from None
        if incarnation < latest:
            raise fenced(query, incarnation)

    def begin(self, handle: Handle) -> tuple[int, int]:
        """Create the file `NAME.open` and return its identity (see `note`), by which the writer recognises it later.

        Raises `JobFailed` if the name was used before, or if a later driver has fenced this one. The call and `fence`
        take the same lock, so a replaced driver's transaction is either recorded before the fence, or refused.
        """
        with self.changing():
            self.refuse_fenced(handle.query, handle.incarnation)
            # Starting under a used name would initialise its transactional.id, which aborts the open transaction of the
            # first user.
            if any(self._path(handle, suffix).exists() for suffix in (OPEN, PREPARED, COMMITTED, LOST)):
                raise JobFailed(f"{self._folder}: the transaction {handle} exists already; use a new name.")
            # `x` fails if the file exists: of two attempts with one name, one must fail.
            with self._path(handle, OPEN).open("xb"):
                pass
            durable.sync_folder(self._folder)
            note = self.note(handle)
            assert note is not None
            return note

    def note(self, handle: Handle) -> tuple[int, int] | None:
        """Return the inode and modification time (ns) of the file `NAME.open`, or None if it is missing.

        Other values than `begin` returned mean that another writer has created the file again.
        """
        try:
            status = self._path(handle, OPEN).stat()
        except FileNotFoundError:
            return None
        # Inode numbers are reused, so the time is part of the identity.
        return status.st_ino, status.st_mtime_ns

    def prepare(self, handle: Handle, vote: Vote) -> None:
        """Store the vote durably in place of `NAME.open`. The caller holds the lock and has checked that file."""
        content = {"id": vote.producer.id, "epoch": vote.producer.epoch, "rows": vote.rows}
        # The vote is durable before `NAME.open` is deleted: a crash in between leaves both files, and the vote counts.
        durable.replace(self._path(handle, PREPARED), json.dumps(content))
        self._path(handle, OPEN).unlink()
        durable.sync_folder(self._folder)

    def vote(self, handle: Handle) -> Vote | None:
        """Return the vote of a transaction that is pre-committed and not yet recorded as committed; otherwise None."""
        path = self._path(handle, PREPARED)
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
            return Vote(Producer(int(content["id"]), int(content["epoch"])), int(content["rows"]))
        except FileNotFoundError:
            return None
        except (ValueError, KeyError, TypeError) as error:
            raise InvalidInput(f"{path}: damaged ({error}); restore the file, or abort the transaction.") from None

    def is_committed(self, handle: Handle) -> bool:
        """Return whether the coordinator has confirmed the commit."""
        return self._path(handle, COMMITTED).exists()

    def is_lost(self, handle: Handle) -> bool:
        """Return whether a pre-committed transaction turned out to be aborted."""
        return self._path(handle, LOST).exists()

    def commit(self, handle: Handle) -> None:
        """Record that the coordinator has confirmed the commit."""
        self._become(handle, COMMITTED)

    def lose(self, handle: Handle) -> None:
        """Record that the coordinator aborted the pre-committed transaction."""
        self._become(handle, LOST)

    def _become(self, handle: Handle, suffix: str) -> None:
        # A rename, so that a transaction has exactly one state at any moment, whatever crashes.
        self._path(handle, PREPARED).replace(self._path(handle, suffix))
        durable.sync_folder(self._folder)

    def forget(self, handle: Handle) -> None:
        """Record an abort by deleting the transaction's files, so that its name may be used again."""
        if not self._folder.is_dir():
            return
        for suffix in (OPEN, PREPARED):
            self._path(handle, suffix).unlink(missing_ok=True)
        durable.sync_folder(self._folder)

    def unfinished(self) -> set[Handle]:
        """Return every transaction that was begun and is not recorded as committed, aborted or lost."""
        try:
            names = [path for path in self._folder.iterdir() if path.suffix in {OPEN, PREPARED}]
        except FileNotFoundError:
            return set()
        return {Handle.parse(path.stem) for path in names if not durable.is_temporary(path)}

    def _epoch(self, query: str) -> Path:
        return self._folder / f"{query}{EPOCH}"

    def _path(self, handle: Handle, suffix: str) -> Path:
        return self._folder / f"{handle}{suffix}"
