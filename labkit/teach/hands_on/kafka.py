"""Kafka by hand: topics with named transactions, and what a reader at each isolation level gets at this moment.

The verbs are those of the store, with the broker's answers in words.
"""

import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory

from labkit.core.errors import InvalidInput, LabError, ServiceUnavailable
from labkit.core.records import Observation
from labkit.core.words import columns
from labkit.host import addresses
from labkit.host.servers.tethered import tethered_kafka
from labkit.stores.contract import Handle, Transaction
from labkit.stores.kafka.reader import READ_COMMITTED, READ_UNCOMMITTED, Entry, Reader
from labkit.stores.kafka.store import KafkaStore
from labkit.stores.kafka.writer import KafkaTransaction
from labkit.teach.hands_on import private
from labkit.teach.hands_on.answers import Said, said
from labkit.view.card import Html, para, table

PATIENCE = 60.0
"""Seconds in which a broker must have aborted what is older than its timeout."""

HEAD = ("", "can read up to", "gets")
"""Of a look."""


@dataclass(frozen=True)
class Look:
    """What there is at one moment: the words that either reader gets, how far it can read, and what is open."""

    uncommitted: list[str]
    committed: list[str]
    end: int
    stable: int
    open: list[str]

    def __str__(self) -> str:
        """The two readers side by side, and the open transactions by their names."""
        return f"{columns([HEAD, *self._rows()])}\n{self._open()}"

    __repr__ = __str__

    def parts(self) -> Sequence[Html]:
        """The same as a table and a line."""
        return [table(HEAD, self._rows()), para(self._open())]

    def _repr_mimebundle_(self, **_: object) -> dict[str, str]:
        return said(self)._repr_mimebundle_()

    def _rows(self) -> list[tuple[str, str, str]]:
        return [
            (READ_UNCOMMITTED, f"{self.end}, the end", " ".join(self.uncommitted) or "-"),
            (READ_COMMITTED, f"{self.stable}, the last stable offset", " ".join(self.committed) or "-"),
        ]

    def _open(self) -> str:
        return f"open transactions: {', '.join(self.open) or 'none'}"


class Topic:
    """One topic of one partition, and the transactions that were begun for it here."""

    def __init__(self, folder: Path, timeout: float | None = None) -> None:
        self.store = KafkaStore(folder)
        if timeout is not None:
            self.store.expire_after(timeout)
        self._numbers, self._open = count(), dict[str, Transaction]()

    @property
    def name(self) -> str:
        """The topic's name on the broker, for clients of your own; from now on the topic is there."""
        self.store.topic.writer().close()
        return self.store.topic.name()

    def begin(self, name: str) -> Said:
        """Initialises a producer under this name (lower-case letters, digits, _) and begins its transaction."""
        try:
            self._open[name] = self.store.begin(_handle(name))
        except LabError as refusal:
            return Said(f"{name}: refused, {refusal}")
        return Said(f"{name}: begun")

    def write(self, name: str, *words: str) -> Said:
        """Writes records into an open transaction and waits for the broker's answer, which may be a refusal."""
        transaction = self._transaction(name)
        try:
            for word in words:
                transaction.write(Observation(next(self._numbers), word, 1, 0, 1))
            transaction.flush()
        except LabError as refusal:
            return Said(f"{name}: refused, {refusal}")
        return Said(f"{name}: written")

    def pre_commit(self, name: str) -> Said:
        """Waits until the broker has every record, and stores the handle: transactional.id, producer id and epoch."""
        try:
            self._transaction(name).prepare()
        except LabError as refusal:
            return Said(f"{name}: refused, {refusal}")
        return Said(f"{name}: pre-committed")

    def commit(self, name: str) -> Said:
        """Commits by the stored handle, as any process could; says what came of it."""
        return Said(f"{name}: {self.store.finish(_handle(name))}")

    def ask_to_commit(self, name: str) -> Said:
        """Sends the request to commit, and gives the coordinator's own answer, whatever the store remembers.

        The answer comes once the decision is in the coordinator's log; the topic gets its marker a moment later.
        """
        return Said(f"{name}: the coordinator answers {self.request_commit(_handle(name))}")

    def request_commit(self, handle: Handle) -> str:
        """Sends the request to commit a handle, and returns the name of the coordinator's answer.

        Raises `InvalidInput` for a handle without a vote.
        """
        vote = self.store.journal.vote(handle)
        if vote is None:
            raise InvalidInput(f"{_name(str(handle))}: it is not pre-committed, so there is no handle to commit by.")
        name = self.store.topic.transactional_id(handle)
        return self.store.topic.coordinators.end(name, vote.producer, commit=True).__name__

    def abort(self, name: str) -> Said:
        """Aborts by initialising the id, which also fences the writer."""
        self.store.abort(_handle(name))
        return Said(f"{name}: aborted")

    def hang_up(self, name: str) -> Said:
        """Closes the writer without a word, which is all that a broker notices of its death."""
        transaction = self._transaction(name)
        transaction.close()
        return Said(f"{name}: its writer is gone")

    def plain(self, *words: str) -> Said:
        """Writes records without a transaction."""
        self.store.append(*(Observation(next(self._numbers), word, 1, 0, 1) for word in words))
        return Said("written without a transaction")

    def look(self) -> Look:
        """Looks at the topic: what two readers get, one at each isolation level, that begin at the first record now."""
        early, late = self.entries(READ_UNCOMMITTED), self.entries(READ_COMMITTED)
        opened = [described.name.partition(".")[2] for described in self.store.transactions()]
        end = Reader(self.store.topic.address, self.store.topic.name(), READ_UNCOMMITTED).end()
        words = [[entry.row.key for entry in entries] for entries in (early, late)]
        return Look(words[0], words[1], end, self.store.last_stable_offset(), [_name(each) for each in opened])

    def entries(self, isolation: str, start: int = 0) -> list[Entry]:
        """The records from an offset on that a reader at this level gets now."""
        return list(Reader(self.store.topic.address, self.store.topic.name(), isolation).read(start))

    def wait_until_aborted(self, *names: str) -> Said:
        """Asks the coordinator until it has aborted these by itself; raises `ServiceUnavailable` after `PATIENCE`."""
        ids = [self.store.topic.transactional_id(_handle(name)) for name in names]
        deadline = time.monotonic() + PATIENCE
        while missing := [each for each in ids if each not in self.store.expired()]:
            if time.monotonic() > deadline:
                raise ServiceUnavailable(f"waited {PATIENCE:g} s until Kafka aborts {missing[0]}")
            time.sleep(0.1)
        return Said(f"{', '.join(names)}: aborted by the coordinator, whose time was over")

    def destroy(self) -> None:
        """Ends every transaction and deletes the topic."""
        with suppress(LabError):
            self.store.destroy()
        self.store.close()

    def _transaction(self, name: str) -> KafkaTransaction:
        transaction = self._open.get(name)
        if not isinstance(transaction, KafkaTransaction):
            raise InvalidInput(f"{name}: no such transaction was begun; topic.begin({name!r}) comes first.")
        return transaction


class Kafka:
    """One broker."""

    def __init__(self, server: private.Server) -> None:
        self.address = server.address
        self._places = _places(server)
        self._topics: list[Topic] = []

    def topic(self, timeout: float | None = None) -> Topic:
        """A new topic; its transactions may be open for so many seconds, or for as long as the broker allows."""
        self._topics.append(Topic(next(self._places), timeout))
        return self._topics[-1]

    def folder(self) -> Path:
        """A new place for files that are to be gone when this process ends."""
        return next(self._places)

    def clean(self) -> None:
        """Deletes every topic that was made here."""
        for topic in self._topics:
            topic.destroy()
        self._topics.clear()


_last: list[Kafka] = []


def kafka() -> Kafka:
    """The user's Kafka broker, or a private one, with nothing of an earlier call left. Raises `ServiceUnavailable`."""
    for earlier in _last:
        earlier.clean()
    _last.clear()
    server = private.find(addresses.KAFKA, tethered_kafka)
    client = Kafka(server)
    if server.folder is None:
        private.at_end(client.clean)
    _last.append(client)
    return client


def _places(server: private.Server) -> Iterator[Path]:
    """New folders: in that of the private server, which is removed with it, or among the temporary ones."""
    base = server.folder
    if base is None:
        temporary = TemporaryDirectory(prefix="labkit-notebook-")
        private.at_end(temporary.cleanup)
        base = Path(temporary.name)
    return (base / f"notebook-{number}" for number in _numbers)


_numbers = count(1)


def _handle(name: str) -> Handle:
    return Handle.parse(f"{name}-b0-p0-i1-a1")


def _name(transaction: str) -> str:
    """The name of a transaction as a person gave it, or its number where a job has numbered it."""
    with suppress(InvalidInput):
        handle = Handle.parse(transaction)
        return str(handle.batch) if handle.query == "copy" else handle.query
    return transaction
