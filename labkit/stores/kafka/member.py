"""Be a member of a Kafka consumer group whose topic has one partition, and prepare such a topic for an experiment."""

from collections.abc import Iterable
from contextlib import ExitStack, closing, suppress
from typing import Any

from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.errors import KafkaTimeoutError

from labkit.stores.kafka.reader import PARTITION
from labkit.stores.kafka.transaction import DELIVERY, Coordinators, await_metadata, explained, hang_up, join, probe

ANSWER = 10_000
"""The milliseconds in which Kafka must answer a consumer that commits or leaves; kafka-python waits for minutes."""

BROKERS_LEAST_SESSION = 6_000
"""Kafka's default of `group.min.session.timeout.ms`, the least session timeout that a broker allows."""


class Member:
    """A consumer that has subscribed to a topic as a member of a group.

    `settings` are arguments of kafka-python's `KafkaConsumer`. Raises `KafkaTimeoutError` if the client does not learn
    the topic's partition in time.
    """

    def __init__(self, broker: str, topic: str, group: str, **settings: Any) -> None:
        self._partition = TopicPartition(topic, PARTITION)
        self._consumer: Any = KafkaConsumer(
            bootstrap_servers=broker, group_id=group, auto_offset_reset="earliest", **settings
        )
        with ExitStack() as failed:
            failed.callback(self.close)
            self._consumer.subscribe([topic])
            await_metadata(self._consumer, self._partition)
            failed.pop_all()

    def poll(self) -> list[int]:
        """Join the group if necessary, then wait up to 0.2 s for records, and return their offsets.

        The join waits at most `PATIENCE` seconds for the end of a rebalance. If it fails, the result is empty.
        """
        if not join(self._consumer):
            return []
        found = self._consumer.poll(timeout_ms=200)
        return [record.offset for records in found.values() for record in records]

    def has_read(self, records: int) -> bool:
        """Return whether this member owns the partition and has read its first `records` records."""
        with suppress(KafkaTimeoutError):  # its position is not known yet
            mine = self._partition in self._consumer.assignment()
            return mine and (self._consumer.position(self._partition, timeout_ms=1_000) or 0) >= records
        return False

    @property
    def generation(self) -> int:
        """The number of the group's generation, as this consumer knows it. Each rebalance begins a new generation."""
        return int(self._consumer.group_metadata().generation_id)

    def commit(self) -> None:
        """Commit the offset that follows the polled records, and wait for Kafka's answer.

        Raises `CommitFailedError` if this consumer is no longer a member of the group's present generation.
        """
        self._consumer.commit(timeout_ms=ANSWER)

    def close(self) -> None:
        """Leave the group. If auto-commit is on, first commit the offset that this consumer has reached."""
        self._consumer.close(timeout_ms=ANSWER)


def least_session(broker: str) -> int:
    """Return the broker's shortest session timeout in ms, or Kafka's default if the broker does not tell it."""
    with closing(Coordinators(broker)) as coordinators:
        return int(coordinators.setting("group.min.session.timeout.ms") or BROKERS_LEAST_SESSION)


def fill(broker: str, topic: str, values: Iterable[str]) -> None:
    """Write one record for each text in `values`, and wait for all replicas. Raises a `LabError` if Kafka fails."""
    probe(broker)
    with explained(broker):
        producer = KafkaProducer(
            bootstrap_servers=broker, acks="all", bootstrap_timeout_ms=10_000, request_timeout_ms=10_000,
            delivery_timeout_ms=DELIVERY * 1000, max_block_ms=30_000,
        )  # fmt: skip
        try:
            # Not `flush`: it passes over failed records, and raises `UnknownError` if the client has split a batch.
            for written in [producer.send(topic, value.encode()) for value in values]:
                written.get(timeout=DELIVERY + 10)  # raises the error of a record that was not written
        finally:
            hang_up(producer)
