"""One open Kafka transaction: records are sent at once, and a pre-commit waits until the broker has acknowledged all.

The broker cannot distinguish a pre-committed transaction from an open one, and aborts each of them after its timeout,
which starts with the first record. `KafkaStore` commits and aborts.
"""

from collections.abc import Sequence

from kafka import KafkaProducer, errors
from kafka.producer.future import FutureRecordMetadata

from labkit.core.errors import InvalidInput, JobFailed, LabError
from labkit.core.records import Observation
from labkit.stores.contract import Handle
from labkit.stores.kafka.journal import Journal, Vote
from labkit.stores.kafka.reader import Owner
from labkit.stores.kafka.topic import Topic
from labkit.stores.kafka.transaction import explained, flush, hang_up, producer_of

CHUNK = 1_000
"""The number of records after which a writer checks the acknowledgements that have arrived."""


class KafkaTransaction:
    """One open Kafka transaction with its own transactional id and its own producer."""

    def __init__(self, topic: Topic, journal: Journal, handle: Handle) -> None:
        self.handle = handle
        self._topic, self._journal = topic, journal
        self._note = journal.begin(handle)
        self._writer = topic.writer(topic.transactional_id(handle))
        self._sent: list[FutureRecordMetadata] = []
        self._rows = 0
        self._is_open = True
        try:
            with explained(topic.address):
                initialise(self._writer, topic.timeout)
                # If recovery aborted this name before this line, the check fails; a later abort fences this writer.
                journal.refuse_fenced(handle.query, handle.incarnation)
                self._writer.begin_transaction()
        except LabError:
            self.close()
            raise
        self._owner = Owner(str(handle), producer_of(self._writer))

    def write(self, row: Observation) -> None:
        """Send one row as a record. Raises `JobFailed` if the transaction is no longer open."""
        self._refuse_closed()
        if len(self._sent) >= CHUNK:
            # Checked between writes, so that a transaction that Kafka has aborted fails early.
            self._check([future for future in self._sent if future.is_done])
            self._sent = [future for future in self._sent if not future.is_done]
        with explained(self._topic.address):
            try:
                self._sent.append(self._topic.send(self._writer, row, self._owner))
            except errors.KafkaError as error:
                if type(error) not in (errors.IllegalStateError, errors.KafkaError):
                    raise
                # After a refused record the client accepts no more records in this transaction.
                raise self._aborted(" ".join(str(error).split())) from error
        self._rows += 1

    def flush(self) -> None:
        """Wait until the broker has all rows written so far. Raises `JobFailed` if the transaction is not open."""
        self._refuse_closed()
        with explained(self._topic.address):
            flush(self._writer)
        self._check(self._sent)

    def prepare(self) -> None:
        """Wait until the broker has all rows, then record the pre-commit in the journal.

        Raises `JobFailed` if the transaction was aborted.
        """
        self._refuse_closed()
        with self._journal.changing(), explained(self._topic.address):
            # Under the journal's lock: an earlier abort has deleted the file `.open`, a later one will find the vote.
            if self._journal.note(self.handle) != self._note:
                raise self._aborted("another process has aborted the transaction")
            flush(self._writer)
            self._check(self._sent)
            # After some errors (KIP-360) the client raises its epoch, which aborts the transaction.
            if producer_of(self._writer) != self._owner.producer:
                raise self._aborted("after an error, the Kafka client began a new epoch, which aborts the transaction")
            self._journal.prepare(self.handle, Vote(self._owner.producer, self._rows))
        self.close()

    def close(self) -> None:
        """Accept no more rows and close the producer.

        An open transaction is not aborted, whereas closing a producer of Kafka's Java client would abort it.
        """
        self._is_open = False
        self.hang_up()

    def hang_up(self) -> None:
        """Close the producer's connection. An open transaction is not aborted."""
        hang_up(self._writer)

    def _check(self, futures: Sequence[FutureRecordMetadata]) -> None:
        for future in futures:
            if not future.succeeded():
                raise self._aborted(type(future.exception).__name__)

    def _aborted(self, why: str) -> JobFailed:
        self.close()
        return JobFailed(f"The transaction {self.handle} was aborted while it was open ({why}); begin another.")

    def _refuse_closed(self) -> None:
        if not self._is_open:
            raise JobFailed(f"The transaction {self.handle} is not open any more; begin another.")


def initialise(writer: KafkaProducer, timeout: float) -> None:
    """Initialise a transactional producer. Raises `InvalidInput` if the broker does not allow `timeout` (seconds)."""
    try:
        writer.init_transactions()
    except errors.KafkaError as error:
        if errors.InvalidTransactionTimeoutError.__name__ in repr(error):
            raise too_long(timeout) from error
        raise


def too_long(timeout: float, maximum: float | None = None) -> InvalidInput:
    """Return the error for a transaction timeout that is above the broker's maximum.

    Both times are in seconds; `maximum` is None if it is unknown.
    """
    bound = "" if maximum is None else f" of {maximum:g} s"
    return InvalidInput(
        f"a transaction timeout of {timeout:g} s is more than the broker's maximum{bound}: shorten it, "
        "or raise transaction.max.timeout.ms there."
    )
