"""Use Kafka by hand: begin, write and end named transactions, and see what a reader at each isolation level gets.

The operations are those of the lab's Kafka store; the broker's answers appear as text.
"""

from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from tempfile import gettempdir

from labkit.core.errors import InvalidInput, LabError
from labkit.core.records import Observation
from labkit.core.words import columns
from labkit.host import addresses, durable
from labkit.host.servers.tethered import tethered_kafka
from labkit.stores.contract import Handle, Transaction
from labkit.stores.kafka.reader import READ_COMMITTED, READ_UNCOMMITTED, Entry, Reader
from labkit.stores.kafka.store import KafkaStore
from labkit.stores.kafka.writer import KafkaTransaction
from labkit.teach.hands_on import private
from labkit.teach.hands_on.answers import Answered, ServerAnswer
from labkit.view.card import Html, para, table

HEAD = ("", "can read up to", "gets")
"""The headings of the table that compares the two readers."""


@dataclass(frozen=True, repr=False)
class Look(Answered):
    """The content of a Kafka topic at one moment: the records at both isolation levels, and the open transactions.

    `end` is the end offset of the log, and `stable` is the last stable offset.
    """

    uncommitted: list[str]
    committed: list[str]
    end: int
    stable: int
    open: list[str]

    def __str__(self) -> str:
        """Return text: a table of the records that readers get at both isolation levels, and the open transactions."""
        return f"{columns([HEAD, *self._rows()])}\n{self._open()}"

    def parts(self) -> Sequence[Html]:
        """Return HTML: a table of the records that readers get at both isolation levels, and the open transactions."""
        return [table(HEAD, self._rows()), para(self._open())]

    def _rows(self) -> list[tuple[str, str, str]]:
        return [
            (READ_UNCOMMITTED, f"{self.end}, the end", " ".join(self.uncommitted) or "-"),
            (READ_COMMITTED, f"{self.stable}, the last stable offset", " ".join(self.committed) or "-"),
        ]

    def _open(self) -> str:
        return f"open transactions: {', '.join(self.open) or 'none'}"


class Topic:
    """A Kafka topic with one partition, and the transactions that this process began in it."""

    def __init__(self, folder: Path, timeout: float | None = None) -> None:
        self.store = KafkaStore(folder)
        if timeout is not None:
            self.store.expire_after(timeout)
        self._numbers, self._open = count(), dict[str, Transaction]()

    @property
    def name(self) -> str:
        """The topic's name on the broker, for your own Kafka clients. The topic is created if it does not exist yet."""
        self.store.topic.writer().close()
        return self.store.topic.name()

    def begin(self, name: str) -> ServerAnswer:
        """Begin a transaction with this name (lower-case letters, digits, _), in a producer of its own."""
        return _tried(name, "begun", lambda: self._open.update({name: self.store.begin(_handle(name))}))

    def write(self, name: str, *words: str) -> ServerAnswer:
        """Write one record for each word into an open transaction.

        Returns the broker's answer, which may be a refusal.
        """
        transaction = self._transaction(name)

        def write() -> None:
            for word in words:
                transaction.write(Observation(next(self._numbers), word, 1, 0, 1))
            transaction.flush()

        return _tried(name, "written", write)

    def pre_commit(self, name: str) -> ServerAnswer:
        """Flush a transaction's records to the broker, and store its transactional.id, producer id and epoch.

        With the stored values, any process can commit the transaction later.
        """
        return _tried(name, "pre-committed", lambda: self._transaction(name).prepare())

    def commit(self, name: str) -> ServerAnswer:
        """Commit a pre-committed transaction, and return the result as text.

        This needs only the stored producer id and epoch, so any process could do it. Repeating the call does no harm.
        """
        return ServerAnswer(f"{name}: {self.store.finish(_handle(name))}")

    def ask_to_commit(self, name: str) -> ServerAnswer:
        """Send the request to commit a transaction, and return the answer of Kafka's transaction coordinator.

        For a transaction that is already finished, `commit` sends no request, but this method still does. The
        coordinator answers as soon as its own log contains the decision, a moment before the commit marker is in the
        topic.
        """
        return ServerAnswer(f"{name}: the coordinator answers {self.request_commit(_handle(name))}")

    def request_commit(self, handle: Handle) -> str:
        """Send the request to commit a transaction, and return the name of the error in the answer, or NoError.

        Raises `InvalidInput` if `pre_commit` was not called for this transaction.
        """
        vote = self.store.journal.vote(handle)
        if vote is None:
            raise InvalidInput(
                f"{_name(str(handle))}: this transaction is not pre-committed, so it cannot be committed; "
                "call topic.pre_commit() first."
            )
        name = self.store.topic.transactional_id(handle)
        return self.store.topic.coordinators.end(name, vote.producer, commit=True).__name__

    def abort(self, name: str) -> ServerAnswer:
        """Abort a transaction with InitProducerId for its transactional id, which also fences its producer."""
        self.store.abort(_handle(name))
        return ServerAnswer(f"{name}: aborted")

    def hang_up(self, name: str) -> ServerAnswer:
        """Disconnect a transaction's producer without ending the transaction, as if its process had died."""
        transaction = self._transaction(name)
        transaction.close()
        return ServerAnswer(f"{name}: its writer is gone")

    def plain(self, *words: str) -> ServerAnswer:
        """Write one record for each word outside of any transaction."""
        self.store.append(*(Observation(next(self._numbers), word, 1, 0, 1) for word in words))
        return ServerAnswer("written without a transaction")

    def look(self) -> Look:
        """Read the whole topic at both isolation levels, and return what readers get now."""
        levels = (READ_UNCOMMITTED, READ_COMMITTED)
        uncommitted, committed = ([each.row.key for each in self.entries(level)] for level in levels)
        opened = [described.name.partition(".")[2] for described in self.store.transactions()]
        end = Reader(self.store.topic.address, self.store.topic.name(), READ_UNCOMMITTED).end()
        return Look(uncommitted, committed, end, self.store.last_stable_offset(), [_name(each) for each in opened])

    def entries(self, isolation: str, start: int = 0) -> list[Entry]:
        """Return the records, from offset `start` onwards, that a reader at this isolation level would get now."""
        return list(Reader(self.store.topic.address, self.store.topic.name(), isolation).read(start))

    def destroy(self) -> None:
        """Abort the topic's open transactions and delete the topic."""
        with suppress(LabError):
            self.store.destroy()
        self.store.close()

    def _transaction(self, name: str) -> KafkaTransaction:
        transaction = self._open.get(name)
        if not isinstance(transaction, KafkaTransaction):
            raise InvalidInput(f"{name}: there is no transaction with this name; call topic.begin({name!r}) first.")
        return transaction


class Kafka:
    """A Kafka broker for experiments by hand; `topic()` creates a topic on it."""

    def __init__(self, server: private.Server) -> None:
        self.address = server.address
        self._base = server.folder
        """The folder for the client's files; None until a client of a user's own server needs a temporary one."""
        self._ending = ExitStack()
        self._topics: list[Topic] = []

    def topic(self, timeout: float | None = None) -> Topic:
        """Create a topic; its transactions may stay open for `timeout` seconds (None: as long as the broker allows)."""
        self._topics.append(Topic(self.folder(), timeout))
        return self._topics[-1]

    def folder(self) -> Path:
        """Return a new path that nothing uses yet, for a folder of files.

        A private broker removes the folder when it ends; for a broker of your own, `clean` removes the folder.
        """
        base = self._base
        if base is None:
            # Not a TemporaryDirectory, which would remain on the disk if the kernel were killed.
            base = self._base = self._ending.enter_context(durable.own_folder(Path(gettempdir()), "labkit-notebook-"))
            self._ending.callback(setattr, self, "_base", None)
        return base / f"notebook-{next(_numbers)}"

    def clean(self) -> None:
        """Delete every topic that the method `topic` created and, if the broker is your own, the client's files."""
        for topic in self._topics:
            topic.destroy()
        self._topics.clear()
        self._ending.close()


def kafka() -> Kafka:
    """Return the Kafka broker that the environment variable LABKIT_KAFKA names, or start a private one.

    Deletes the topics of an earlier call. Raises `ServiceUnavailable` if no broker can be started.
    """
    return private.client(addresses.KAFKA, tethered_kafka, Kafka)


_numbers = count(1)


def _tried(name: str, done: str, act: Callable[[], object]) -> ServerAnswer:
    try:
        act()
    except LabError as refusal:
        return ServerAnswer(f"{name}: refused, {refusal}")
    return ServerAnswer(f"{name}: {done}")


def _handle(name: str) -> Handle:
    return Handle.parse(f"{name}-b0-p0-i1-a1")


def _name(transaction: str) -> str:
    with suppress(InvalidInput):
        handle = Handle.parse(transaction)
        return str(handle.batch) if handle.query == "copy" else handle.query
    return transaction
