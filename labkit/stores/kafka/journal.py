"""The lab's own files about Kafka transactions: which names are used, and which transactions are pre-committed.

NAME.open        begun; the name can be used again only after an abort
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
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from labkit.core.errors import InvalidInput
from labkit.host import durable
from labkit.stores.contract import Handle, exists_already, fenced
from labkit.stores.kafka.transaction import Producer

OPEN, PREPARED, COMMITTED, LOST, EPOCH = (".open", ".prepared", ".committed", ".lost", ".epoch")


class Vote(NamedTuple):
    """The data with which any process can commit a pre-committed Kafka transaction: its producer and row count.

    For 0 rows Kafka has opened no transaction, so there is nothing to commit.
    """

    producer: Producer
    rows: int


class Journal:
    """Local files that record the state of each transaction of a Kafka store, because Kafka records no pre-commits."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @contextmanager
    def changing(self) -> Iterator[None]:
        """Hold the lock on the journal during a `with` block, so that one process at a time changes the journal."""
        with durable.explained(self._folder):
            durable.make_folder(self._folder)
            with durable.locked(self._folder):
                yield

    def fence(self, query: str, incarnation: int) -> None:
        """Reject earlier drivers from now on. Raises `JobFailed` if a later driver has called this method before."""
        with self.changing():
            self.refuse_fenced(query, incarnation)
            durable.replace(self._epoch(query), str(incarnation))

    def refuse_fenced(self, query: str, incarnation: int) -> None:
        """Raise `JobFailed` if a driver of the query with a number above `incarnation` has called `fence`."""
        path = self._epoch(query)
        try:
            latest = int(path.read_text(encoding="ascii"))
        except FileNotFoundError:
            return
        except ValueError:
            raise InvalidInput(
                f"{path}: this file is damaged; replace its content by the number of the query's latest driver (1 for "
                "the first driver, one more after each restart)."
            ) from None
        if incarnation < latest:
            raise fenced(query, incarnation)

    def begin(self, handle: Handle) -> tuple[int, int]:
        """Record a new transaction as the file `NAME.open`; return this file's inode and modification time (ns).

        As long as the transaction is open, `note` returns the same pair. Raises `JobFailed` if a transaction with this
        name is recorded already, or if a later driver of the query has called `fence`.
        """
        with self.changing():
            self.refuse_fenced(handle.query, handle.incarnation)
            # To initialise a used transactional.id would abort the open transaction of its first user.
            if any(self._path(handle, suffix).exists() for suffix in (OPEN, PREPARED, COMMITTED, LOST)):
                raise exists_already(self._folder, handle)
            # `x` fails if the file exists: of two attempts with one name, one must fail.
            with self._path(handle, OPEN).open("xb"):
                pass
            durable.sync_folder(self._folder)
            note = self.note(handle)
            assert note is not None
            return note

    def note(self, handle: Handle) -> tuple[int, int] | None:
        """Return inode and modification time (ns) of the transaction's file `NAME.open`; None if the file is missing.

        A writer compares the result with the pair from its own `begin`. If the two differ, the writer's transaction was
        aborted; if the result is not None, another transaction has the same name now.
        """
        try:
            status = self._path(handle, OPEN).stat()
        except FileNotFoundError:
            return None
        # Inode numbers are reused, so the time is part of the identity.
        return status.st_ino, status.st_mtime_ns

    def prepare(self, handle: Handle, vote: Vote) -> None:
        """Record the pre-commit: write `vote` to disk and delete the file `NAME.open`. The caller holds the lock."""
        content = {"id": vote.producer.id, "epoch": vote.producer.epoch, "rows": vote.rows}
        # The vote is durable before `NAME.open` is deleted: a crash in between leaves both files, and the vote counts.
        durable.replace(self._path(handle, PREPARED), json.dumps(content))
        self._path(handle, OPEN).unlink()
        durable.sync_folder(self._folder)

    def vote(self, handle: Handle) -> Vote | None:
        """Return the data with which any process can commit this transaction, or None if it is not pre-committed."""
        path = self._path(handle, PREPARED)
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
            return Vote(Producer(int(content["id"]), int(content["epoch"])), int(content["rows"]))
        except FileNotFoundError:
            return None
        except (ValueError, KeyError, TypeError) as error:
            raise InvalidInput(
                f"{path}: this file, which is needed to commit a Kafka transaction, is damaged ({error}); restore it, "
                "or abort the transaction."
            ) from None

    def has(self, state: str, handle: Handle) -> bool:
        """Return whether the journal records this state, `COMMITTED` or `LOST`, for a transaction."""
        return self._path(handle, state).exists()

    def become(self, state: str, handle: Handle) -> None:
        """Record that a pre-committed transaction is `COMMITTED`, or that Kafka aborted it, so that it is `LOST`."""
        # A rename, so that a transaction has exactly one state at any moment, whatever crashes.
        self._path(handle, PREPARED).replace(self._path(handle, state))
        durable.sync_folder(self._folder)

    def forget(self, handle: Handle) -> None:
        """Record the abort of a transaction by deleting its files. Its name may then be used again."""
        if not self._folder.is_dir():
            return
        for suffix in (OPEN, PREPARED):
            self._path(handle, suffix).unlink(missing_ok=True)
        durable.sync_folder(self._folder)

    def unfinished(self) -> set[Handle]:
        """Return the handles of all transactions that the journal records as open or pre-committed."""
        with durable.explained(self._folder):
            try:
                names = [path for path in self._folder.iterdir() if path.suffix in {OPEN, PREPARED}]
            except FileNotFoundError:
                return set()
        return {Handle.parse(path.stem) for path in names if not durable.is_temporary(path)}

    def _epoch(self, query: str) -> Path:
        return self._folder / f"{query}{EPOCH}"

    def _path(self, handle: Handle, suffix: str) -> Path:
        return self._folder / f"{handle}{suffix}"
