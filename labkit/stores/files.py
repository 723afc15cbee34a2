"""A folder of plain files as a store: an append file, and transactions that one rename makes visible.

    appended.jsonl                   rows that were visible at once, in order
    staging/HANDLE.open              a transaction that is being written
    staging/HANDLE.prepared          a transaction that waits for its commit
    staging/HANDLE.atomic            a batch with a marker; if its writer dies, nobody can commit it
    committed/NUMBER-HANDLE.jsonl    a visible transaction; the numbers give the order of visibility

The files are also the history of what readers could see. A lock on `staging` lets one process at a time rename files;
the kernel releases the lock when the process dies. Whatever another process needs is in the files, not in memory. A
folder of files cannot upsert.
"""

import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path

import msgspec

from labkit.core.errors import InvalidInput, JobFailed
from labkit.core.exposure import Span
from labkit.core.records import Observation
from labkit.host import durable
from labkit.stores.contract import Handle, Shown, Tell, Transaction, already_committed, exists_already, not_prepared

OPEN, PREPARED, ATOMIC = ".open", ".prepared", ".atomic"
_COMMITTED = re.compile(r"\d{8}-[^.]+\.jsonl")


class Line(msgspec.Struct, forbid_unknown_fields=True):
    """The fields of one row in JSON. A row is one line of a file, or the value of a Kafka record."""

    offset: int
    key: str
    value: int
    batch: int
    attempt: int


_decoder = msgspec.json.Decoder(Line)


def encode(row: Observation) -> bytes:
    """Return a row as one line of JSON, without the newline at the end."""
    return msgspec.json.encode(Line(row.offset, row.key, row.value, row.batch, row.incarnation))


def read_rows(path: Path) -> Iterator[Observation]:
    """Yield the rows of a file, or nothing if the file is missing. Raises `InvalidInput` for a malformed line."""
    for number, raw in durable.read_lines(path):
        try:
            line = _decoder.decode(raw)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise InvalidInput(
                f"{path}, line {number}: this row is damaged ({error}); restore the file, or delete the store and run "
                "again."
            ) from None
        yield Observation(line.offset, line.key, line.value, line.batch, line.attempt)


def names(folder: Path) -> list[str]:
    """Return the names of the files in a folder, or an empty list if the folder is missing."""
    try:
        return [path.name for path in folder.iterdir()]
    except FileNotFoundError:
        return []


class StagedFile:
    """A transaction in progress, as a file in the folder `staging`. Readers do not open files in this folder."""

    def __init__(self, handle: Handle, path: Path) -> None:
        self.handle, self.path = handle, path
        # `x` fails if the file exists: of two writers with one name, one must fail.
        self._file = path.open("xb")

    @property
    def is_closed(self) -> bool:
        """Whether the file is closed, so that no more rows can be written."""
        return self._file.closed

    def write(self, row: Observation) -> None:
        """Write one row into the file's buffer. Raises `JobFailed` if the file is closed."""
        self._refuse_closed()
        with durable.explained(self.path):
            self._file.write(encode(row) + b"\n")

    def prepare(self) -> None:
        """Pre-commit: write the rows to disk (fsync), and rename the file.

        Raises `JobFailed` if the transaction was aborted.
        """
        self.seal()
        with durable.explained(self.path), durable.locked(self.path.parent):
            # Under the lock, so that no abort happens between the check and the rename.
            self.rename(self.path.with_suffix(PREPARED))
            durable.sync_folder(self.path.parent)

    def seal(self) -> None:
        """Write all buffered rows to disk (fsync)."""
        self._refuse_closed()
        with durable.explained(self.path):
            self._file.flush()
            # The rows must be durable before the rename: otherwise the new name could survive a power cut without them.
            os.fsync(self._file.fileno())

    def rename(self, target: Path) -> None:
        """Rename the file, whose rows `seal` must have synced before. The caller holds the lock on the folder.

        Raises `JobFailed` if an abort has removed the file.
        """
        if not self._is_there():
            raise JobFailed(
                f"{self.path}: the transaction {self.handle} cannot continue, because a recovery or another writer has "
                "aborted it; begin another."
            )
        # The descriptor is closed after the rename: until then it keeps the inode alive that `_is_there` compares.
        self.path.rename(target)
        self._file.close()

    def drop(self) -> None:
        """Close the file, and delete it unless its path now belongs to another file.

        The caller holds the lock on the folder.
        """
        if not self.is_closed and self._is_there():
            self.path.unlink()
        self.close()

    def close(self) -> None:
        """Close the file. Errors are ignored, because a transaction without a pre-commit may lose its rows anyway."""
        with suppress(OSError):
            self._file.close()

    def _refuse_closed(self) -> None:
        if self.is_closed:
            raise JobFailed(f"{self.path}: the transaction {self.handle} is not open any more; begin another.")

    def _is_there(self) -> bool:
        try:
            # An abort may have removed the file, and another writer may have used its name again, so the inode decides
            # whether the file is still our own.
            return os.path.samestat(os.fstat(self._file.fileno()), self.path.stat())
        except FileNotFoundError:
            return False


class FilesStore:
    """A folder as a store: one file holds all appended rows, and each transaction has a file of its own (JSON Lines).

    The store supports appending, batches with a marker, and two-phase commit (`Appendable`, `Atomic`, `Transactional`).
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._log = folder / "appended.jsonl"
        self._staging = folder / "staging"
        self._committed = folder / "committed"
        self._descriptor: int | None = None
        self._staged: list[StagedFile] = []

    def history(self) -> Iterator[Observation]:
        """Yield the appended rows, then the rows of each committed transaction in the order of the commits."""
        return self.clocked_history(lambda _: None)

    def clocked_history(self, tell: Tell) -> Iterator[Observation]:
        """Yield the rows of `history`, and call `tell` with the times of each group of rows before the group begins.

        The first group is the rows that were appended without a transaction; their times are unknown. Each committed
        transaction is another group. Its rows were complete at the last write to the transaction's file (mtime), and
        became visible when this file was renamed (ctime).
        """
        with durable.explained(self.folder):
            tell(Shown(at_once=True))
            yield from read_rows(self._log)
            for name in self._committed_names():
                path = self._committed / name
                facts = path.stat()
                at, ready = map(Span.exactly, (facts.st_ctime, facts.st_mtime))
                tell(Shown(at, ready))
                yield from read_rows(path)

    def waiting(self) -> Iterator[tuple[Observation, Span]]:
        """Yield each row of a prepared transaction with the time of the last write to the transaction's file."""
        with durable.explained(self.folder):
            for path in sorted(self._staged_paths(PREPARED)):
                ready = Span.exactly(path.stat().st_mtime)
                for row in read_rows(path):
                    yield row, ready

    def hidden(self) -> Iterator[Observation]:
        """Yield the rows of open and prepared transactions, except rows that are only in a writer's buffer."""
        with durable.explained(self.folder):
            for handle in sorted(self._unfinished()):
                for suffix in (OPEN, PREPARED):
                    yield from read_rows(self._path(handle, suffix))

    def close(self) -> None:
        """Fsync the appended rows and close all files. The file of an open transaction stays in `staging`."""
        for staged in self._staged:
            staged.close()
        # Cleared first: after a failed fsync the descriptor is closed, and its number may belong to another file.
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            with durable.explained(self._log):
                durable.sync_and_close(descriptor)

    def append(self, *rows: Observation) -> None:
        """Append the rows with one write, without fsync, so that they survive a power cut only after `close`."""
        with durable.explained(self._log):
            if self._descriptor is None:
                durable.make_folder(self.folder)
                self._descriptor = durable.open_for_append(self._log)
            durable.append_line(self._descriptor, b"\n".join(map(encode, rows)))

    def has_marker(self, query: str, batch: int) -> bool:
        with durable.explained(self.folder):
            return self._is_marked(query, batch)

    @contextmanager
    def transaction(self, handle: Handle) -> Iterator[Callable[[Observation], None]]:
        """Open a file for one batch. If an earlier writer of the batch has left a file, delete that file first.

        Raises `JobFailed` if the batch is already committed, or if a later writer has deleted this writer's file.
        """
        with self._changing():
            self._refuse_marked(handle)
            # An earlier writer of this batch may still live; then its rename finds its file missing and fails.
            for path in self._staged_paths(ATOMIC):
                if Handle.parse(path.stem)[:2] == handle[:2]:
                    path.unlink()
            staged = self._stage(handle, ATOMIC)
        try:
            yield staged.write
            # The fsync is outside of the lock, because it may take long, and other writers need the lock meanwhile.
            staged.seal()
            with self._changing():
                # Another writer of the batch may have committed while this one wrote.
                self._refuse_marked(handle)
                staged.rename(self._next_path(handle))
                self._sync()
        except BaseException:
            with self._changing():
                staged.drop()
            raise

    def begin(self, handle: Handle) -> Transaction:
        with self._changing():
            if handle in self._unfinished() or self._is_committed(handle):
                raise exists_already(self.folder, handle)
            return self._stage(handle, OPEN)

    def commit(self, handle: Handle) -> None:
        prepared = self._path(handle, PREPARED)
        with self._changing_what_is_there():
            if prepared.exists():
                # The number is drawn under the lock, so that the names are in the order of visibility.
                prepared.rename(self._next_path(handle))
            elif not self._is_committed(handle):
                raise not_prepared(self.folder, handle)
            # Also if another process renamed the file, because that process may have died before it synced the folders.
            self._sync()

    def abort(self, handle: Handle) -> None:
        with self._changing_what_is_there():
            for suffix in (OPEN, PREPARED):
                self._path(handle, suffix).unlink(missing_ok=True)

    def prepared(self, query: str) -> list[Handle]:
        with durable.explained(self.folder):
            return sorted(handle for handle in self._unfinished() if handle.query == query)

    @contextmanager
    def _changing(self) -> Iterator[None]:
        with durable.explained(self.folder):
            durable.make_folder(self._staging)
            durable.make_folder(self._committed)
            with durable.locked(self._staging):
                yield

    @contextmanager
    # A commit or abort must not create a missing store, and without a folder there is nothing to lock.
    def _changing_what_is_there(self) -> Iterator[None]:
        with durable.explained(self.folder), durable.locked(self._staging) if self._staging.is_dir() else nullcontext():
            yield

    def _sync(self) -> None:
        # The folder that gained the file is synced first. After a power cut between the two syncs the file may be in
        # both folders, and a second commit would find it; in the other order it could be in neither.
        durable.sync_folder(self._committed)
        durable.sync_folder(self._staging)

    def _path(self, handle: Handle, suffix: str) -> Path:
        return self._staging / f"{handle}{suffix}"

    def _stage(self, handle: Handle, suffix: str) -> StagedFile:
        # A store may live as long as its driver, so finished transactions are forgotten.
        self._staged = [staged for staged in self._staged if not staged.is_closed]
        staged = StagedFile(handle, self._path(handle, suffix))
        self._staged.append(staged)
        return staged

    def _unfinished(self) -> set[Handle]:
        return {Handle.parse(path.stem) for path in self._staged_paths(OPEN, PREPARED)}

    def _staged_paths(self, *suffixes: str) -> list[Path]:
        return [self._staging / name for name in names(self._staging) if name.endswith(suffixes)]

    def _committed_names(self) -> list[str]:
        return sorted(filter(_COMMITTED.fullmatch, names(self._committed)))

    def _next_path(self, handle: Handle) -> Path:
        last = max(self._committed_names(), default="0-")
        return self._committed / f"{int(last.partition('-')[0]) + 1:08}-{handle}.jsonl"

    def _is_committed(self, handle: Handle) -> bool:
        return any(name.endswith(f"-{handle}.jsonl") for name in self._committed_names())

    def _is_marked(self, query: str, batch: int) -> bool:
        return any(name.partition("-")[2].startswith(f"{query}-b{batch}-") for name in self._committed_names())

    def _refuse_marked(self, handle: Handle) -> None:
        if self._is_marked(handle.query, handle.batch):
            raise already_committed(handle)
