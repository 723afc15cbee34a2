"""Rows and a batch marker in one Kafka transaction: the marker is a committed offset of a group without members.

A Kafka transaction can contain records and offsets of groups (KIP-98, KIP-447). So each batch has its own consumer
group, and the transaction also commits an offset for that group, which marks the batch as done. One transactional id
serves all batches of a query: the next writer initialises it, which aborts a dead writer's open transaction and fences
a writer that only seemed dead.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from kafka import KafkaProducer, TopicPartition
from kafka.producer.future import FutureRecordMetadata
from kafka.structs import OffsetAndMetadata

from labkit.core.errors import JobFailed, LabError
from labkit.core.records import Observation
from labkit.stores.contract import Handle, already_committed
from labkit.stores.kafka.reader import PARTITION, Owner
from labkit.stores.kafka.topic import Topic
from labkit.stores.kafka.transaction import Stage, add_offsets, explained, flush, hang_up, producer_of
from labkit.stores.kafka.writer import initialise


def has_marker(topic: Topic, query: str, batch: int) -> bool:
    """Return whether the batch is committed; if a commit of the query is in progress, wait for its end first."""
    if (name := topic.find()) is None:
        return False
    # Kafka answers EndTxn before it has written the end of the transaction into the partitions. Without this wait, a
    # commit in progress would look like no commit.
    topic.coordinators.settled(transactional_id(topic, query))
    return bool(topic.coordinators.group_offsets(_group(name, query, batch)))


def transactional_id(topic: Topic, query: str) -> str:
    """Return the transactional id of the query. All its batches with a marker share this id."""
    return f"{topic.name()}.{query}-marked"


@contextmanager
def marked(
    topic: Topic, handle: Handle, refuse_fenced: Callable[[str, int], None]
) -> Iterator[Callable[[Observation], None]]:
    """Open one transaction for a batch's rows and its marker, as `labkit.stores.contract.Atomic` says.

    `refuse_fenced` is called with the query and this driver's number. It raises an error if a later driver has replaced
    this driver.
    """
    refuse_fenced(handle.query, handle.incarnation)
    name = transactional_id(topic, handle.query)
    writer = topic.writer(name)
    try:
        with explained(topic.address):
            initialise(writer, topic.timeout)
        refuse_fenced(handle.query, handle.incarnation)
        # Checked only now, because initialising the id has ended any transaction of an earlier writer.
        if has_marker(topic, handle.query, handle.batch):
            raise already_committed(handle)
        with explained(topic.address):
            writer.begin_transaction()
        producer, sent = producer_of(writer), list[FutureRecordMetadata]()
        owner = Owner(name.partition(".")[2], producer)

        def write(row: Observation) -> None:
            with explained(topic.address):
                sent.append(topic.send(writer, row, owner))

        yield write
        _commit(topic, writer, handle, sent)
    # Without this abort, the open transaction would block every read_committed reader until its timeout.
    except BaseException:
        with suppress(LabError):
            topic.coordinators.fence(name, topic.timeout)  # which also aborts the transaction
        raise
    finally:
        hang_up(writer)


def _commit(topic: Topic, writer: KafkaProducer, handle: Handle, sent: list[FutureRecordMetadata]) -> None:
    name, producer = transactional_id(topic, handle.query), producer_of(writer)
    with explained(topic.address):
        flush(writer)
        # The flush returns when the broker has answered every record; each answer may be a refusal.
        for future in sent:
            future.get(timeout=1)
        offsets = {TopicPartition(topic.name(), PARTITION): OffsetAndMetadata(handle.batch, "", -1)}
        add_offsets(writer, offsets, _group(topic.name(), handle.query, handle.batch))
    # The answer may be lost after the coordinator has decided, so its description of the transaction counts instead.
    topic.coordinators.end(name, producer, commit=True)
    description = topic.coordinators.settled(name)
    if description is None or (description.stage, description.producer) != (Stage.COMPLETE_COMMIT, producer):
        raise JobFailed(
            f"Kafka aborted the transaction of batch {handle.batch} of the query {handle.query} before its commit, so "
            "none of its rows are visible; start the query again."
        )


def _group(topic: str, query: str, batch: int) -> str:
    return f"{topic}.{query}-b{batch}"
