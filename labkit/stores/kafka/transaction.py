"""The private names of kafka-python, and what the lab asks Kafka's transaction coordinator directly.

A transaction is finished from another process by sending EndTxn with its (transactional.id, producer id, epoch),
without a producer: InitProducerId would abort what is to be committed (KIP-98). Sending the request ourselves needs
two private names and gives the broker's own error code; resuming a KafkaProducer, as Flink's connector does by
reflection (FlinkKafkaInternalProducer.resumeTransaction), needs four, waits without a limit, and turns several codes
into one. EndTxn goes out in version 3, the one that kafka-python's producer speaks (transaction version 1): there,
committing twice under one epoch is answered without an error. This module must not know of stores or handles.
"""

import logging
import socket
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from enum import StrEnum
from importlib.metadata import version
from typing import Any, NamedTuple, TypeVar

from kafka import KafkaAdminClient, KafkaProducer, TopicPartition, errors
from kafka.admin import ConfigResource, ConfigResourceType, OffsetSpec
from kafka.protocol.metadata import CoordinatorType
from kafka.protocol.producer import EndTxnRequest, InitProducerIdRequest
from kafka.structs import OffsetAndMetadata

from labkit.core.errors import JobFailed, LabError, ServiceUnavailable

PINNED = "3.0.12"
"""The version of kafka-python whose private names are used here; tests run them against a real broker."""

PATIENCE = 30.0
"""Seconds in which a coordinator must settle a transaction."""

DELIVERY = 30
"""Seconds in which a record must be delivered (delivery.timeout.ms)."""

AnswerT = TypeVar("AnswerT")

_END_TXN, _INIT_PRODUCER_ID = 3, 4
_MAXIMUM = "transaction.max.timeout.ms"
_PAUSE = 0.01

logging.getLogger("kafka").addHandler(logging.NullHandler())  # what matters is raised, as one sentence


class Producer(NamedTuple):
    """The identity by which a coordinator knows a writer: the id, and the epoch that fences all earlier ones."""

    id: int
    epoch: int


class Stage(StrEnum):
    """How far a transaction has come, under the names of Kafka's TransactionState."""

    EMPTY = "Empty"
    ONGOING = "Ongoing"
    PREPARE_COMMIT = "PrepareCommit"
    PREPARE_ABORT = "PrepareAbort"
    COMPLETE_COMMIT = "CompleteCommit"
    COMPLETE_ABORT = "CompleteAbort"
    DEAD = "Dead"
    PREPARE_EPOCH_FENCE = "PrepareEpochFence"
    UNKNOWN = "Unknown"


UNFINISHED = (Stage.ONGOING, Stage.PREPARE_COMMIT, Stage.PREPARE_ABORT, Stage.PREPARE_EPOCH_FENCE)
ABORTED = (Stage.PREPARE_ABORT, Stage.COMPLETE_ABORT, Stage.PREPARE_EPOCH_FENCE)


class TransactionDescription(NamedTuple):
    """What a coordinator says of a transactional id. `started` is in seconds since 1970, 0 when nothing is open."""

    name: str
    stage: Stage
    producer: Producer
    timeout: float
    started: float


def check_version() -> None:
    """Raises `ServiceUnavailable` for another kafka-python than the one whose private names were tried."""
    installed = version("kafka-python")
    if installed != PINNED:
        raise ServiceUnavailable(
            f"kafka-python {installed} is installed, and transactions are resumed by private names of {PINNED}: "
            f"run pip install kafka-python=={PINNED}."
        )


def probe(address: str) -> None:
    """Raises `ServiceUnavailable` at once where nobody listens: a client would try for seconds, and leave a thread."""
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=5).close()
    except (OSError, ValueError) as error:
        raise unavailable(address) from error


def unavailable(address: str) -> ServiceUnavailable:
    """The error for a broker that does not answer, with the remedy."""
    remedy = "look at it with labkit services status kafka, or at LABKIT_KAFKA"
    return ServiceUnavailable(f"{address}: the Kafka broker does not answer; {remedy}.")


def producer_of(writer: KafkaProducer) -> Producer:
    """Id and epoch of a producer; after an epoch bump (KIP-360) its open transaction is gone, so compare them."""
    identity = writer._transaction_manager.producer_id_and_epoch  # noqa: SLF001 - no public name
    return Producer(identity.producer_id, identity.epoch)


def flush(writer: KafkaProducer) -> None:
    """Waits until every record has its answer. Raises `KafkaTimeoutError` where that takes longer than a delivery may.

    The client's own flush waits for ever for a broker that refused a record and then went away: its records never
    expire while it waits for a new producer id.
    """
    writer.flush(timeout=DELIVERY + 10)


def hang_up(writer: KafkaProducer, seconds: float = 1) -> bool:
    """Closes a producer, by force where it has records that nobody takes; says whether force was needed.

    The client's own close would then raise, and leave its thread behind.
    """
    try:
        writer.close(timeout=seconds)
    except errors.KafkaError:
        writer._sender.force_close()  # noqa: SLF001 - no public name
        return True
    return False


def add_offsets(writer: KafkaProducer, offsets: Mapping[TopicPartition, OffsetAndMetadata], group: str) -> None:
    """Adds offsets of a group to the open transaction; the public way waits for ever for a broker that is gone."""
    result = writer._transaction_manager.send_offsets_to_transaction(offsets, group)  # noqa: SLF001 - no public name
    # The sender sleeps until somebody wakes it; the public call does so, too.
    writer._sender.wakeup()  # noqa: SLF001 - no public name
    if not result.wait(timeout_ms=PATIENCE * 1000):
        raise errors.KafkaTimeoutError(f"no answer within {PATIENCE:.0f} s")


@contextmanager
def explained(address: str) -> Iterator[None]:
    """Turns an error of Kafka into one sentence: the broker does not answer, or it refused."""
    try:
        yield
    except LabError:
        raise
    except (errors.KafkaConnectionError, errors.KafkaTimeoutError, errors.NodeNotReadyError, TimeoutError) as error:
        raise unavailable(address) from error
    except errors.KafkaError as error:
        raise JobFailed(
            f"{address}: Kafka refused ({type(error).__name__}: {' '.join(str(error).split())})."
        ) from error


def open_transactions(address: str) -> list[TransactionDescription]:
    """Every transaction of a cluster that is neither committed nor aborted, whoever began it, the oldest first."""
    coordinators = Coordinators(address)
    try:
        descriptions = [coordinators.describe(name) for name in coordinators.unfinished()]
    finally:
        coordinators.close()
    return sorted((each for each in descriptions if each and each.stage in UNFINISHED), key=lambda each: each.started)


class Coordinators:
    """The transaction coordinators of a cluster."""

    def __init__(self, address: str) -> None:
        check_version()
        probe(address)
        self._address = address
        with explained(address):
            self._admin = KafkaAdminClient(
                bootstrap_servers=address, client_id="labkit", bootstrap_timeout_ms=10_000, request_timeout_ms=10_000
            )

    @property
    def admin(self) -> KafkaAdminClient:
        """The public client that the requests go through."""
        return self._admin

    def close(self) -> None:
        """Closes the connection to the cluster."""
        self._admin.close()

    def longest_timeout(self) -> float | None:
        """The broker's maximum for a transaction's timeout, in seconds; None where this user may not ask."""
        with explained(self._address), suppress(errors.AuthorizationError):
            # The configuration is a broker's, so its number comes first; versions of
            # the protocol differ in what they call it.
            brokers = self._admin.describe_cluster()["brokers"]
            number = str(next(broker[key] for broker in brokers for key in ("broker_id", "node_id") if key in broker))
            wanted = ConfigResource(ConfigResourceType.BROKER, number, {_MAXIMUM: None})
            configuration = self._admin.describe_configs([wanted], config_filter="all")
            return float(configuration["broker"][number][_MAXIMUM]["value"]) / 1000
        return None

    def delete_groups(self, prefix: str) -> None:
        """Deletes every consumer group with this prefix."""
        with explained(self._address):
            names = [group["group_id"] for group in self._admin.list_groups()]
            if mine := [name for name in names if name.startswith(prefix)]:
                self._admin.delete_groups(mine)

    def describe(self, name: str) -> TransactionDescription | None:
        """Asks the id's coordinator for stage, producer and times; None where it knows nothing of the id."""

        def ask() -> TransactionDescription | None:
            try:
                answer = self._admin.describe_transactions([name])[name]
            except errors.TransactionalIdNotFoundError:
                return None
            producer = Producer(answer.producer_id, answer.producer_epoch)
            times = (answer.transaction_timeout_ms / 1000, max(answer.transaction_start_time_ms, 0) / 1000)
            return TransactionDescription(name, Stage(answer.state.value), producer, *times)

        with explained(self._address):
            return self._patiently(ask)

    def settled(self, name: str) -> TransactionDescription | None:
        """Describes an id like `describe`, but waits until all markers of a decision that was made are written.

        Raises `ServiceUnavailable` when that takes longer than `PATIENCE` seconds.
        """
        deadline = time.monotonic() + PATIENCE
        while (
            (description := self.describe(name))
            and description.stage in UNFINISHED
            and description.stage is not Stage.ONGOING
        ):
            if time.monotonic() > deadline:
                raise ServiceUnavailable(f"{self._address}: {name} stayed {description.stage} for {PATIENCE:.0f} s.")
            time.sleep(_PAUSE)
        return description

    def unfinished(self, prefix: str = "") -> list[str]:
        """Every transactional id with this prefix whose transaction is neither committed nor aborted, sorted."""
        with explained(self._address):
            answers = self._patiently(lambda: self._admin.list_transactions(state_filters=list(UNFINISHED)))
        names = (listing.transactional_id for listings in answers.values() for listing in listings)
        return sorted(name for name in names if name.startswith(prefix))

    def end(self, name: str, producer: Producer, *, commit: bool) -> type[errors.KafkaError]:
        """Asks to commit or abort; gives the coordinator's answer, `errors.NoError` when the decision is logged."""
        with explained(self._address):
            answer = self._ask(
                name,
                lambda: EndTxnRequest(
                    transactional_id=name,
                    producer_id=producer.id,
                    producer_epoch=producer.epoch,
                    committed=commit,
                    max_version=_END_TXN,
                ),
            )
        return answer[0]

    def fence(self, name: str, timeout: float) -> None:
        """Aborts what is open under the id, and raises its epoch, so that whoever wrote it can write no more.

        When this returns, the markers are written.
        """
        with explained(self._address):
            error, _ = self._ask(
                name,
                lambda: InitProducerIdRequest(
                    transactional_id=name,
                    transaction_timeout_ms=int(timeout * 1000),
                    # -1 for both asks for the next epoch, whoever holds the id now.
                    producer_id=-1,
                    producer_epoch=-1,
                    max_version=_INIT_PRODUCER_ID,
                    min_version=2,
                ),
            )
            if error is not errors.NoError:
                raise error(f"InitProducerId of {name}")
        self.settled(name)

    def has_offset(self, group: str) -> bool:
        """Whether a consumer group has committed any offset."""
        return bool(self.group_offsets(group))

    def group_offsets(self, group: str) -> dict[TopicPartition, int]:
        """What a consumer group has committed: for each partition the next offset to read."""

        def ask() -> dict[TopicPartition, int]:
            try:
                positions = self._admin.list_group_offsets([group])[group]
            except errors.GroupIdNotFoundError:
                return {}
            return {place: position.offset for place, position in positions.items() if position.offset >= 0}

        with explained(self._address):
            return self._patiently(ask)

    def commit_offsets(self, group: str, offsets: Mapping[TopicPartition, int]) -> None:
        """Commits offsets of a group that has no members; nobody checks whether anything was read."""
        wanted = {place: OffsetAndMetadata(offset, "", -1) for place, offset in offsets.items()}

        def ask() -> None:
            for error in self._admin.alter_group_offsets(group, wanted).values():
                if error is not errors.NoError:
                    raise error(f"OffsetCommit of {group}")

        with explained(self._address):
            self._patiently(ask)

    def ends(self, topic: str) -> dict[TopicPartition, int]:
        """Every partition of a topic, with the offset that the next record there will get."""
        with explained(self._address):
            [description] = self._admin.describe_topics([topic])
            places = [TopicPartition(topic, each["partition_index"]) for each in description["partitions"]]
            latest = self._admin.list_partition_offsets(dict.fromkeys(places, OffsetSpec.LATEST))
        return {place: latest[place].offset for place in sorted(places)}

    def _ask(self, name: str, request: Callable[[], Any]) -> tuple[type[errors.KafkaError], Any]:
        """The answer of the id's coordinator, asked again while it is busy with the id or not there yet."""

        async def send() -> Any:
            node = await self._admin._find_coordinator_id(  # noqa: SLF001 - no public name
                name, key_type=CoordinatorType.TRANSACTION
            )
            return await self._admin._manager.send(request(), node_id=node)  # noqa: SLF001 - no public name

        def once() -> tuple[type[errors.KafkaError], Any]:
            answer = self._admin._manager.run(send)  # noqa: SLF001 - no public name
            error = errors.for_code(answer.error_code)
            # The answer for "not yet": the coordinator is still writing the markers of
            # the transaction before, or has moved.
            if error is errors.ConcurrentTransactionsError or issubclass(error, _ELSEWHERE):
                raise error
            return error, answer

        return self._patiently(once)

    def _patiently(self, ask: Callable[[], AnswerT]) -> AnswerT:
        """Asks again while the coordinator starts, moves, or is busy with the markers of the id's last transaction."""
        deadline = time.monotonic() + PATIENCE
        while True:
            try:
                return ask()
            except (errors.ConcurrentTransactionsError, *_ELSEWHERE):
                if time.monotonic() > deadline:
                    raise
            time.sleep(_PAUSE)


_ELSEWHERE = (errors.CoordinatorLoadInProgressError, errors.CoordinatorNotAvailableError, errors.NotCoordinatorError)
