"""The Kafka topic of one store: its name, its broker, and the producers that write to it.

    topic            the name, chosen by the first writer
    timeout          how many seconds a transaction may stay open; without this file, `TIMEOUT` seconds

Both files lie in the store's folder, so that every process that opens the store finds them. The topic has one
partition, so that all its records have one order.
"""

import os
import uuid
from contextlib import suppress
from functools import cached_property
from pathlib import Path

from kafka import KafkaProducer, TopicPartition, errors
from kafka.producer.future import FutureRecordMetadata

from labkit.core.errors import InvalidInput
from labkit.core.records import Observation
from labkit.host import addresses, durable
from labkit.stores.contract import Handle
from labkit.stores.files import encode
from labkit.stores.kafka.reader import OWNER, PARTITION, Owner
from labkit.stores.kafka.transaction import DELIVERY, Coordinators, explained, probe

TIMEOUT = 900.0
"""The transaction timeout in seconds, unless the store sets one: the longest that a broker allows by default.

A producer's own default of one minute is too short: a driver may be down for longer, and Kafka would meanwhile abort
transactions that recovery must commit.
"""


class Topic:
    """The Kafka topic with the rows of one store. Files in `folder` contain the topic's name and its timeout."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._coordinators: Coordinators | None = None
        self._exists = False

    @cached_property
    def address(self) -> str:
        """The broker's address as host:port. Raises `ServiceUnavailable` if no broker is known."""
        return addresses.kafka()

    @cached_property
    def timeout(self) -> float:
        """The seconds after which Kafka aborts an open transaction (transaction.timeout.ms)."""
        path = self.folder / "timeout"
        try:
            return float(path.read_text(encoding="ascii"))
        except FileNotFoundError:
            return TIMEOUT
        except ValueError:
            raise InvalidInput(
                f"{path}: this file, which contains the transaction timeout, is damaged; start the run again."
            ) from None

    def expire_after(self, seconds: float) -> None:
        """Set the timeout (seconds) of later transactions, here and in processes that open the store later."""
        with durable.explained(self.folder):
            durable.make_folder(self.folder)
            durable.replace(self.folder / "timeout", f"{seconds:g}")
        self.__dict__["timeout"] = seconds

    def find(self) -> str | None:
        """Return the topic's name, or None before the first write."""
        with durable.explained(self.folder):
            try:
                return (self.folder / "topic").read_text(encoding="ascii")
            except FileNotFoundError:
                return None

    def name(self) -> str:
        """Return the topic's name. If there is none yet, choose one and write it to the store's folder."""
        if (name := self.find()) is None:
            with durable.explained(self.folder):
                self._choose()
            name = self.find()
            assert name is not None
        return name

    def transactional_id(self, handle: Handle) -> str:
        """Return a transaction's transactional id: topic name and handle, which together are unique in the cluster."""
        return f"{self.name()}.{handle}"

    @property
    def coordinators(self) -> Coordinators:
        """The client for requests about transactions. The first access connects the client to the broker."""
        if self._coordinators is None:
            self._coordinators = Coordinators(self.address)
        return self._coordinators

    def close(self) -> None:
        coordinators, self._coordinators = self._coordinators, None
        if coordinators is not None:
            coordinators.close()

    def writer(self, transactional_id: str | None = None) -> KafkaProducer:
        """Return a new producer for the topic, and create the topic if it is missing.

        With a transactional id, the caller must initialise the producer. Without an id, the producer is idempotent.
        """
        probe(self.address)
        self._make()
        with explained(self.address):
            return KafkaProducer(
                bootstrap_servers=self.address,
                client_id="labkit-writer",
                transactional_id=transactional_id,
                transaction_timeout_ms=int(self.timeout * 1000),
                # The broker would create the topic with its default number of partitions, but the lab needs one.
                allow_auto_create_topics=False,
                bootstrap_timeout_ms=10_000,
                request_timeout_ms=10_000,
                delivery_timeout_ms=DELIVERY * 1000,
                max_block_ms=30_000,
                metrics_enabled=False,
            )

    def send(self, writer: KafkaProducer, row: Observation, owner: Owner | None) -> FutureRecordMetadata:
        """Send a row to the topic, and return the future of the broker's acknowledgement.

        `owner` is the row's transaction, or None for a row without a transaction.
        """
        headers = [] if owner is None else [(OWNER, owner.encode())]
        return writer.send(self.name(), encode(row), key=row.key.encode(), headers=headers, partition=PARTITION)

    def delete(self) -> None:
        """Delete the topic, its consumer groups, and the file in the store's folder that contains the topic's name."""
        self.coordinators.delete_groups(f"{self.name()}.")
        with explained(self.address), suppress(errors.UnknownTopicOrPartitionError):
            self.coordinators.admin.delete_topics([self.name()])
        # The name is deleted last: while it exists, a second call finds what the first has left.
        (self.folder / "topic").unlink(missing_ok=True)
        self._exists = False

    def _choose(self) -> None:
        """Choose the topic's name and write it to a file, unless another process has done so first."""
        durable.make_folder(self.folder)
        draft = durable.temporary(self.folder / "topic")
        try:
            draft.write_text(f"labkit-{uuid.uuid4().hex[:16]}", encoding="ascii")
            with suppress(FileExistsError):
                # A link fails if the name exists; a rename would replace the name that another process uses already.
                os.link(draft, self.folder / "topic")
        finally:
            draft.unlink(missing_ok=True)
        durable.sync_folder(self.folder)

    def _make(self) -> None:
        if self._exists:
            return
        with explained(self.address), suppress(errors.TopicAlreadyExistsError):
            # -1 is the broker's own default, because a user's cluster may require more than one copy.
            topics = {self.name(): {"num_partitions": 1, "replication_factor": -1}}
            self.coordinators.admin.create_topics(topics, wait_for_metadata=True)
        self._exists = True


class Group:
    """A Kafka consumer group without members, whose committed offset for a topic can be read and set.

    A job that starts from its checkpoint ignores this offset, which serves only monitoring and experiments. The group's
    name begins with the topic's name, so that deleting the topic can also delete the group.
    """

    def __init__(self, topic: Topic, name: str) -> None:
        self._topic, self._name = topic, f"{topic.name()}.{name}"
        self._partition = TopicPartition(topic.name(), PARTITION)

    def offset(self) -> int | None:
        """Return the group's committed offset (the offset of the next record to read), or None if there is none."""
        return self._topic.coordinators.group_offsets(self._name).get(self._partition)

    def commit(self, offset: int) -> None:
        """Commit this offset for the group. It may be smaller than the group's present offset."""
        self._topic.coordinators.commit_offsets(self._name, {self._partition: offset})
