"""A Kafka topic as a store: rows are records, and Kafka's own transactions outlive their writer until a timeout.

    topic, timeout    files with the topic's name, and how many seconds its transactions may stay open
    transactions/     the lab's files about transactions, see `journal`

The store is Appendable, Atomic, Transactional and Fencing. It is not Keyed: compaction removes older records of
a key some time later, and until then every reader sees all of them, so a record never replaces another.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, suppress
from enum import StrEnum
from pathlib import Path

from kafka import KafkaProducer

from labkit.core.errors import InvalidInput, JobFailed
from labkit.core.exposure import Span
from labkit.core.records import Observation, Visibility
from labkit.stores.contract import Handle, LostTransaction, Shown, Tell, not_prepared
from labkit.stores.kafka.journal import COMMITTED, LOST, Journal, Vote
from labkit.stores.kafka.marker import has_marker, marked
from labkit.stores.kafka.reader import READ_COMMITTED, READ_UNCOMMITTED, Entry, Owner, Reader
from labkit.stores.kafka.topic import Topic
from labkit.stores.kafka.transaction import ABORTED, Producer, Stage, TransactionDescription, explained, flush, hang_up
from labkit.stores.kafka.writer import KafkaTransaction, too_long


class Outcome(StrEnum):
    """The result of `KafkaStore.finish`: what became of a pre-committed transaction."""

    COMMITTED = "committed"
    ALREADY_COMMITTED = "already committed"
    LOST = "lost"
    """Kafka had aborted the transaction already: its timeout expired, or somebody initialised its id again."""
    UNKNOWN = "unknown"
    """The coordinator no longer knows the transaction's id, and the log does not contain its rows."""


class KafkaStore:
    """A Kafka topic as a store: each row is one record. The first write creates the topic.

    It supports appending, batches with a marker, two-phase commit and fencing (`Appendable`, `Atomic`, `Transactional`,
    `Fencing`).
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.topic = Topic(folder)
        self.journal = Journal(folder / "transactions")
        self._appender: KafkaProducer | None = None
        self._open: list[KafkaTransaction] = []

    def history(self) -> Iterator[Observation]:
        """Yield the rows that a reader at read_committed receives, in the order of the log.

        The rows also became visible in this order, because a reader at read_committed receives no record before all
        earlier transactions have ended.
        """
        return self.clocked_history(lambda _: None)

    def clocked_history(self, tell: Tell) -> Iterator[Observation]:
        """Yield the rows of `history`, and before each row call `tell` with the row's times, as far as they are known.

        For a row in a transaction, only the time at which its producer sent it is known. Kafka stores the time of the
        commit in a control record, which consumers do not receive.
        """
        for entry in self._entries(READ_COMMITTED):
            sent = None if entry.sent is None else Span.exactly(entry.sent)
            tell(Shown(sent, at_once=True) if entry.owner is None else Shown(ready=sent))
            yield entry.row

    def waiting(self) -> Iterator[tuple[Observation, Span]]:
        """Yield each hidden row with the time of its write; Kafka does not tell which hidden rows are pre-committed."""
        for entry in self._undecided():
            if entry.sent is not None:
                yield entry.row, Span.exactly(entry.sent)

    def hidden(self) -> Iterator[Observation]:
        """Yield the rows after the last stable offset, except those of aborted transactions.

        The transactions of these rows are open, or they are committed but an open transaction comes before them in the
        log.
        """
        yield from (entry.row for entry in self._undecided())

    def uncommitted(self) -> Iterator[Observation]:
        """Yield every row that a reader at read_uncommitted receives, including rows of open and aborted transactions.

        The field `visibility` of a row in a transaction is `ABORTED` if the transaction was aborted, and otherwise
        `PRECOMMITTED`.
        """
        # A reader at read_uncommitted cannot know which rows will be aborted, so compare with the final log.
        kept = {entry.position for entry in (*self._entries(READ_COMMITTED), *self._undecided())}
        for entry in self._entries(READ_UNCOMMITTED):
            early = Visibility.PRECOMMITTED if entry.position in kept else Visibility.ABORTED
            yield entry.row if entry.owner is None else entry.row._replace(visibility=early)

    def close(self) -> None:
        """Close all producers and the connection to the broker. A transaction that is still open is not aborted."""
        for transaction in self._open:
            transaction.close()
        self._open.clear()
        appender, self._appender = self._appender, None
        if appender is not None:
            hang_up(appender, 10)
        self.topic.close()

    def append(self, *rows: Observation) -> None:
        """Append the rows without a transaction, with an idempotent producer, and wait until the broker has the rows.

        The broker drops repeated requests of this producer (KIP-98), but not the same rows from another producer.
        """
        with explained(self.topic.address):
            if self._appender is None:
                self._appender = self.topic.writer()
            sent = [self.topic.send(self._appender, row, None) for row in rows]
            flush(self._appender)
            for future in sent:
                future.get(timeout=1)

    def has_marker(self, query: str, batch: int) -> bool:
        return has_marker(self.topic, query, batch)

    def transaction(self, handle: Handle) -> AbstractContextManager[Callable[[Observation], None]]:
        """Open one transaction for a batch's rows and its marker, as `Atomic` says.

        If the writer dies inside the `with` block, the transaction stays open until the query's next writer or the
        timeout aborts it. Until then, readers at read_committed receive neither its rows nor any later record.
        """
        return marked(self.topic, handle, self.journal.refuse_fenced)

    def begin(self, handle: Handle) -> KafkaTransaction:
        """Open a transaction with its own producer and transactional id."""
        transaction = KafkaTransaction(self.topic, self.journal, handle)
        self._open.append(transaction)
        return transaction

    def commit(self, handle: Handle) -> None:
        """Commit a prepared transaction, and wait until readers can see the rows.

        Raises the errors of `Transactional.commit`, and also `JobFailed` if Kafka has forgotten the transaction.
        """
        outcome = self.finish(handle)
        if outcome is Outcome.LOST:
            raise LostTransaction(
                f"Kafka aborted the transaction {handle} before its commit, so its rows are lost: its timeout of "
                f"{self.topic.timeout:g} s was over, or another writer took over its transactional id."
            )
        if outcome is Outcome.UNKNOWN:
            raise JobFailed(
                f"{self.folder}: Kafka has forgotten the transaction {handle}, so nobody knows whether it was "
                "committed; look for its rows in the topic."
            )

    def finish(self, handle: Handle) -> Outcome:
        """Try to commit a prepared transaction; return what became of it. Raises `JobFailed` if it is not prepared."""
        if not self.folder.is_dir():
            raise not_prepared(self.folder, handle)
        with self.journal.changing():
            if self.journal.has(COMMITTED, handle):
                return Outcome.ALREADY_COMMITTED
            # Looked up before Kafka is asked, because Kafka forgets the transaction when its id is initialised again.
            if self.journal.has(LOST, handle):
                return Outcome.LOST
            vote = self.journal.vote(handle)
            if vote is None:
                raise not_prepared(self.folder, handle)
            # Kafka opens a transaction with its first record, so without a record there is nothing to end.
            outcome = self._finish(handle, vote) if vote.rows else Outcome.COMMITTED
            if outcome is Outcome.LOST:
                self.journal.become(LOST, handle)
            # Recorded only now: if this process dies before, the next one finds the vote and asks Kafka again.
            elif outcome is not Outcome.UNKNOWN:
                self.journal.become(COMMITTED, handle)
            return outcome

    def abort(self, handle: Handle) -> None:
        """Abort a transaction and fence its writer; do nothing if the transaction is committed."""
        if self.topic.find() is None:
            return
        with self.journal.changing():
            if self.journal.has(COMMITTED, handle):
                return
            # A local producer would continue sending, and would fail only when the broker refuses its epoch.
            for transaction in [each for each in self._open if each.handle == handle]:
                transaction.hang_up()
            description = self.topic.coordinators.settled(self.topic.transactional_id(handle))
            vote = self.journal.vote(handle)
            if vote is not None and _is(description, Stage.COMPLETE_COMMIT, vote.producer):
                self.journal.become(COMMITTED, handle)  # the process that committed it died before it could record that
                return
            if description is not None:  # in any stage, because a record may still be in flight
                self._fence(description.name)
            # Last, because the name may be used again only after its writer is fenced.
            self.journal.forget(handle)

    def prepared(self, query: str) -> list[Handle]:
        """Return the handles of the query's unfinished transactions, which the local journal or Kafka lists."""
        handles = self.journal.unfinished()
        for described in self.transactions():
            with suppress(InvalidInput):
                handles.add(Handle.parse(described.name.partition(".")[2]))
        return sorted(handle for handle in handles if handle.query == query)

    def fence(self, query: str, incarnation: int) -> None:
        self.journal.fence(query, incarnation)

    def expire_after(self, seconds: float) -> None:
        """Set the timeout (seconds) of later transactions, here and in processes that open the store later."""
        self.topic.expire_after(seconds)

    def unfinished(self) -> list[str]:
        return [described.name for described in self.transactions()]

    def expired(self) -> list[str]:
        names = [self.topic.transactional_id(handle) for handle in sorted(self.journal.unfinished())]
        descriptions = [self.topic.coordinators.describe(name) for name in names]
        return [described.name for described in descriptions if described is not None and described.stage in ABORTED]

    def transactions(self) -> list[TransactionDescription]:
        """Return Kafka's descriptions of this store's unfinished transactions, sorted by transactional id."""
        if (topic := self.topic.find()) is None:
            return []
        names = self.topic.coordinators.unfinished(f"{topic}.")
        return [described for name in names if (described := self.topic.coordinators.describe(name))]

    def last_stable_offset(self) -> int:
        """Return the offset of the first open transaction, or the log's end; read_committed readers stop there."""
        return self._reader(READ_COMMITTED).end() if self.topic.find() is not None else 0

    def check(self, capability: str) -> None:
        """Raise a `LabError` if the broker does not answer, or does not allow the transaction timeout of this store.

        The check is the same for every `capability`.
        """
        # Checked before the run, because Kafka would refuse the first transaction only after the JVM has started.
        maximum = self.topic.coordinators.longest_timeout()
        if maximum is not None and self.topic.timeout > maximum:
            raise too_long(self.topic.timeout, maximum)

    def destroy(self) -> None:
        """Abort the store's unfinished transactions, whichever process began them; delete topic and consumer groups."""
        if self.topic.find() is None:
            return
        for described in self.transactions():
            self._fence(described.name)
        self.topic.delete()

    def _reader(self, isolation: str) -> Reader:
        return Reader(self.topic.address, self.topic.name(), isolation)

    def _entries(self, isolation: str, start: int = 0) -> Iterator[Entry]:
        # Before the first write there is no topic, and reading must not choose its name.
        if self.topic.find() is not None:
            yield from self._reader(isolation).read(start)

    def _finish(self, handle: Handle, vote: Vote) -> Outcome:
        name, coordinators = (self.topic.transactional_id(handle), self.topic.coordinators)
        description = coordinators.settled(name)
        # The open transaction under this name may belong to another writer; then this method must not commit it.
        is_ongoing = _is(description, Stage.ONGOING, vote.producer)
        if is_ongoing:
            coordinators.end(name, vote.producer, commit=True)
            description = coordinators.settled(name)
        if _is(description, Stage.COMPLETE_COMMIT, vote.producer):
            return Outcome.COMMITTED if is_ongoing else Outcome.ALREADY_COMMITTED
        if description is not None and description.stage in ABORTED:
            return Outcome.LOST
        return self._outcome_in_topic(Owner(str(handle), vote.producer))

    def _outcome_in_topic(self, owner: Owner) -> Outcome:
        """Find out from the topic's rows how the transaction `owner` ended, after Kafka has forgotten it."""
        if any(entry.owner == owner for entry in self._entries(READ_COMMITTED)):
            return Outcome.ALREADY_COMMITTED
        # Before the last stable offset every transaction is decided, so a row missing at read_committed was aborted.
        stable = self.last_stable_offset()
        rows = self._entries(READ_UNCOMMITTED)
        is_aborted = any(entry.owner == owner and entry.position < stable for entry in rows)
        return Outcome.LOST if is_aborted else Outcome.UNKNOWN

    def _undecided(self) -> list[Entry]:
        entries = list(self._entries(READ_UNCOMMITTED, self.last_stable_offset()))
        dead = {owner for owner in {entry.owner for entry in entries} if owner and self._is_aborted(owner)}
        return [entry for entry in entries if entry.owner not in dead]

    def _is_aborted(self, owner: Owner) -> bool:
        description = self.topic.coordinators.describe(f"{self.topic.name()}.{owner.name}")
        return description is None or description.stage in ABORTED or description.producer != owner.producer

    def _fence(self, name: str) -> None:
        self.topic.coordinators.fence(name, self.topic.timeout)


def _is(description: TransactionDescription | None, stage: Stage, producer: Producer) -> bool:
    return description is not None and description.stage is stage and description.producer == producer
