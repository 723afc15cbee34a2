"""Read a topic as an outside reader does, at each isolation level, in the order of the log.

A reader at read_committed receives records of committed transactions up to the last stable offset, which is where the
first open transaction begins: later committed records wait. A reader at read_uncommitted, the default of Java clients,
also receives the records of open and aborted transactions, until retention or compaction removes their segment.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

import msgspec
from kafka import KafkaConsumer, TopicPartition
from kafka.consumer.fetcher import ConsumerRecord

from labkit.core.errors import InvalidInput, ServiceUnavailable
from labkit.core.records import Observation
from labkit.stores.files import Line
from labkit.stores.kafka.transaction import Producer, explained, probe

READ_COMMITTED, READ_UNCOMMITTED = "read_committed", "read_uncommitted"

PARTITION = 0
"""The only partition of a store's topic; with one partition, all records of the topic have one order."""

OWNER = "transaction"
"""The record header that names the transaction."""

_PATIENCE = 30.0
_decoder = msgspec.json.Decoder(Line)


class Owner(NamedTuple):
    """The identity of the transaction that wrote a record: its name, and the id and epoch of its producer."""

    name: str
    producer: Producer

    def encode(self) -> bytes:
        """Return the identity of the transaction as bytes, for the header of a record."""
        return f"{self.name} {self.producer.id} {self.producer.epoch}".encode()

    @classmethod
    def decode(cls, raw: bytes) -> "Owner":
        """Return the identity of a transaction from the bytes that `encode` returned for it."""
        name, identity, epoch = raw.decode().split(" ")
        return cls(name, Producer(int(identity), int(epoch)))


class Entry(NamedTuple):
    """One record of a store's topic: its Kafka offset (`position`), its row, and its transaction (if any)."""

    position: int
    row: Observation
    owner: Owner | None
    sent: float | None = None
    """When the record's producer created it, in seconds since 1970; None if unknown."""


class Reader:
    """Reads a Kafka topic at an isolation level, `read_committed` or `read_uncommitted`, without a consumer group."""

    def __init__(self, address: str, topic: str, isolation: str) -> None:
        self._address, self._topic, self._isolation = address, topic, isolation
        self._partition = TopicPartition(topic, PARTITION)

    def read(self, start: int = 0) -> Iterator[Entry]:
        """Yield every record from offset `start` to the topic's present end, or nothing if the topic does not exist."""
        with explained(self._address), self._consumer() as consumer:
            if not consumer.partitions_for_topic(self._topic):
                return
            # The end offset is requested first, so that a reader of a growing topic ends.
            end = consumer.end_offsets([self._partition])[self._partition]
            consumer.assign([self._partition])
            consumer.seek(self._partition, start)
            yield from self._up_to(consumer, end)

    def follow(self, patience: float) -> Iterator[Entry]:
        """Yield all records, then wait for new records; return when no record has arrived for `patience` seconds."""
        with explained(self._address), self._consumer() as consumer:
            consumer.assign([self._partition])
            consumer.seek(self._partition, 0)
            deadline = time.monotonic() + patience
            while time.monotonic() < deadline:
                for record in consumer.poll(timeout_ms=200).get(self._partition, []):
                    deadline = time.monotonic() + patience
                    yield self._entry(record)

    def end(self) -> int:
        """Return the offset at which reading stops: the last stable offset (read_committed) or the log's end."""
        with explained(self._address), self._consumer() as consumer:
            if not consumer.partitions_for_topic(self._topic):
                return 0
            end: int = consumer.end_offsets([self._partition])[self._partition]
            return end

    def _up_to(self, consumer: KafkaConsumer, end: int) -> Iterator[Entry]:
        deadline = time.monotonic() + _PATIENCE
        # Not the last record's offset: markers and aborted records use offsets too, but no reader receives them.
        while (position := consumer.position(self._partition)) < end:
            for record in consumer.poll(timeout_ms=200).get(self._partition, []):
                if record.offset >= end:
                    return
                yield self._entry(record)
            if consumer.position(self._partition) > position:
                deadline = time.monotonic() + _PATIENCE
            elif time.monotonic() > deadline:
                raise ServiceUnavailable(
                    f"{self._address}: labkit could read the topic {self._topic} only up to offset {position} of "
                    f"{end}; check whether the broker is running."
                )

    def _entry(self, record: ConsumerRecord) -> Entry:
        position, owner = record.offset, dict(record.headers).get(OWNER)
        try:
            line = _decoder.decode(record.value)
        except msgspec.DecodeError as error:
            raise InvalidInput(
                f"topic {self._topic}, offset {position}: this record is not a row that the lab wrote ({error}); use a "
                "topic that nobody else writes to."
            ) from None
        row = Observation(line.offset, line.key, line.value, line.batch, line.attempt)
        writer = None if owner is None else Owner.decode(owner)
        return Entry(position, row, writer, record.timestamp / 1000)

    @contextmanager
    def _consumer(self) -> Iterator[KafkaConsumer]:
        probe(self._address)
        consumer = KafkaConsumer(
            bootstrap_servers=self._address,
            client_id="labkit-reader",
            isolation_level=self._isolation,
            # The reader leaves no trace: it has no group, and commits no offset.
            enable_auto_commit=False,
            auto_offset_reset="earliest",
            # A request for a missing topic must not create it.
            allow_auto_create_topics=False,
            max_poll_records=10_000,
            fetch_max_wait_ms=100,
            bootstrap_timeout_ms=10_000,
            request_timeout_ms=20_000,
            metrics_enabled=False,
        )
        try:
            yield consumer
        finally:
            consumer.close(autocommit=False)
