"""The private names of kafka-python that the lab uses, and its direct requests to Kafka's transaction coordinator.

Another process finishes a transaction by sending EndTxn with its (transactional.id, producer id, epoch). It
needs no producer: InitProducerId would abort the transaction that is to be committed (KIP-98). Sending the
request ourselves takes two private names and returns the broker's own error code. The alternative, resuming a
KafkaProducer as Flink's connector does by reflection (FlinkKafkaInternalProducer.resumeTransaction), takes
four, waits without a limit, and merges several codes. EndTxn is sent in version 3, which kafka-python's
producer uses (transaction version 1); that version answers a second commit under the same epoch without an
error.
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
"""The version of kafka-python whose private names this module uses; tests run them against a real broker."""

PATIENCE = 30.0
"""Seconds within which a coordinator must settle a transaction."""

DELIVERY = 30
"""Seconds within which a record must be delivered (delivery.timeout.ms)."""

AnswerT = TypeVar("AnswerT")

_END_TXN, _INIT_PRODUCER_ID = 3, 4
_MAXIMUM = "transaction.max.timeout.ms"
_PAUSE = 0.01

logging.getLogger("kafka").addHandler(logging.NullHandler())  # important errors are raised, as one sentence


class Producer(NamedTuple):
    """The identity of a writer at the coordinator: the producer id, and the epoch that fences all earlier ones."""

    id: int
    epoch: int


class Stage(StrEnum):
    """The state of a transaction, under the names of Kafka's TransactionState."""

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
    """A coordinator's description of a transactional id. `started` is in seconds since 1970, 0 if nothing is open."""

    name: str
    stage: Stage
    producer: Producer
    timeout: float
    started: float


def check_version() -> None:
    """Raise `ServiceUnavailable` for a version of kafka-python whose private names nobody has tried."""
    installed = version("kafka-python")
    if installed != PINNED:
        raise ServiceUnavailable(
            f"kafka-python {installed} is installed, but the lab resumes transactions through private names of "
            f"{PINNED}: run pip install kafka-python=={PINNED}."
        )


def probe(address: str) -> None:
    """Raise `ServiceUnavailable` at once if nothing listens at the address.

    A client would try for seconds and leave a thread behind.
    """
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=5).close()
    except (OSError, ValueError) as error:
        raise unavailable(address) from error


def unavailable(address: str) -> ServiceUnavailable:
    """Return the error for a broker that does not answer, with the remedy."""
    remedy = "run `labkit services status kafka`, or check LABKIT_KAFKA"
    return ServiceUnavailable(f"{address}: the Kafka broker does not answer; {remedy}.")


def producer_of(writer: KafkaProducer) -> Producer:
    """Return id and epoch of a producer.

    A changed epoch (KIP-360) means that its open transaction is gone.
    """
    identity = writer._transaction_manager.producer_id_and_epoch  # noqa: SLF001 - no public name
    return Producer(identity.producer_id, identity.epoch)


def flush(writer: KafkaProducer) -> None:
    """Wait until every record is acknowledged. Raises `KafkaTimeoutError` if that takes longer than a delivery may.

    The client's own flush waits forever for a broker that refused a record and then went away, because its
    records do not expire while it waits for a new producer id.
    """
    writer.flush(timeout=DELIVERY + 10)


def hang_up(writer: KafkaProducer, seconds: float = 1) -> bool:
    """Close a producer, by force if it holds records that no broker accepts; return whether force was needed.

    In that case the client's own close would raise and leave its thread behind.
    """
    try:
        writer.close(timeout=seconds)
    except errors.KafkaError:
        writer._sender.force_close()  # noqa: SLF001 - no public name
        return True
    return False


def add_offsets(writer: KafkaProducer, offsets: Mapping[TopicPartition, OffsetAndMetadata], group: str) -> None:
    """Add a group's offsets to the open transaction.

    The client's public method would wait forever for a broker that is gone.
    """
    result = writer._transaction_manager.send_offsets_to_transaction(offsets, group)  # noqa: SLF001 - no public name
    # The sender sleeps until it is woken up, as the public call does.
    writer._sender.wakeup()  # noqa: SLF001 - no public name
    if not result.wait(timeout_ms=PATIENCE * 1000):
        raise errors.KafkaTimeoutError(f"no answer within {PATIENCE:.0f} s")


@contextmanager
def explained(address: str) -> Iterator[None]:
    """Turn an error of Kafka inside the block into one sentence: the broker does not answer, or it refused."""
    try:
        yield
    except LabError:
        raise
    except (errors.KafkaConnectionError, errors.KafkaTimeoutError, errors.NodeNotReadyError, TimeoutError) as error:
        raise unavailable(address) from error
    except errors.KafkaError as error:
        raise JobFailed(
            f"{address}: Kafka refused the request ({type(error).__name__}: {' '.join(str(error).split())})."
        ) from error


def open_transactions(address: str) -> list[TransactionDescription]:
    """Return every undecided transaction of a cluster, no matter who began it, oldest first."""
    coordinators = Coordinators(address)
    try:
        descriptions = [coordinators.describe(name) for name in coordinators.unfinished()]
    finally:
        coordinators.close()
    return sorted((each for each in descriptions if each and each.stage in UNFINISHED), key=lambda each: each.started)


class Coordinators:
    """The transaction coordinators of a cluster, and direct requests to them."""

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
        """Return kafka-python's public admin client, which carries the requests."""
        return self._admin

    def close(self) -> None:
        """Close the connection to the cluster."""
        self._admin.close()

    def longest_timeout(self) -> float | None:
        """Return the broker's maximum transaction timeout in seconds; None if this user may not ask for it."""
        with explained(self._address), suppress(errors.AuthorizationError):
            # The configuration belongs to a broker, so the broker's number is looked up first; versions of the protocol
            # name its field differently.
            brokers = self._admin.describe_cluster()["brokers"]
            number = str(next(broker[key] for broker in brokers for key in ("broker_id", "node_id") if key in broker))
            wanted = ConfigResource(ConfigResourceType.BROKER, number, {_MAXIMUM: None})
            configuration = self._admin.describe_configs([wanted], config_filter="all")
            return float(configuration["broker"][number][_MAXIMUM]["value"]) / 1000
        return None

    def delete_groups(self, prefix: str) -> None:
        """Delete every consumer group with this prefix."""
        with explained(self._address):
            names = [group["group_id"] for group in self._admin.list_groups()]
            if matching := [name for name in names if name.startswith(prefix)]:
                self._admin.delete_groups(matching)

    def describe(self, name: str) -> TransactionDescription | None:
        """Return a transactional id's state, producer and times; None if its coordinator does not know the id."""

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
        """Wait until the broker has written all markers of the id's last decision, then describe the id.

        Raises `ServiceUnavailable` if that takes longer than `PATIENCE` seconds.
        """
        deadline = time.monotonic() + PATIENCE
        while (
            (description := self.describe(name))
            and description.stage in UNFINISHED
            and description.stage is not Stage.ONGOING
        ):
            if time.monotonic() > deadline:
                raise ServiceUnavailable(
                    f"{self._address}: the transaction {name} was still in the state {description.stage} after "
                    f"{PATIENCE:.0f} s; check the broker."
                )
            time.sleep(_PAUSE)
        return description

    def unfinished(self, prefix: str = "") -> list[str]:
        """Return every transactional id with this prefix whose transaction is undecided, sorted."""
        with explained(self._address):
            answers = self._patiently(lambda: self._admin.list_transactions(state_filters=list(UNFINISHED)))
        names = (listing.transactional_id for listings in answers.values() for listing in listings)
        return sorted(name for name in names if name.startswith(prefix))

    def end(self, name: str, producer: Producer, *, commit: bool) -> type[errors.KafkaError]:
        """Request a commit or an abort and return the coordinator's answer: `errors.NoError` once the decision is
        logged.
        """
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
        """Abort the open transaction of this id and raise its epoch, so that its previous writer can write no more.

        When this returns, the abort markers are written.
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
        """Return whether a consumer group has committed any offset."""
        return bool(self.group_offsets(group))

    def group_offsets(self, group: str) -> dict[TopicPartition, int]:
        """Return the committed offsets of a consumer group: for each partition the next offset to read."""

        def ask() -> dict[TopicPartition, int]:
            try:
                positions = self._admin.list_group_offsets([group])[group]
            except errors.GroupIdNotFoundError:
                return {}
            return {place: position.offset for place, position in positions.items() if position.offset >= 0}

        with explained(self._address):
            return self._patiently(ask)

    def commit_offsets(self, group: str, offsets: Mapping[TopicPartition, int]) -> None:
        """Commit offsets for a group without members; Kafka does not check whether anybody has read the records."""
        wanted = {place: OffsetAndMetadata(offset, "", -1) for place, offset in offsets.items()}

        def ask() -> None:
            for error in self._admin.alter_group_offsets(group, wanted).values():
                if error is not errors.NoError:
                    raise error(f"OffsetCommit of {group}")

        with explained(self._address):
            self._patiently(ask)

    def ends(self, topic: str) -> dict[TopicPartition, int]:
        """Return for every partition of a topic the offset that its next record will get."""
        with explained(self._address):
            [description] = self._admin.describe_topics([topic])
            places = [TopicPartition(topic, each["partition_index"]) for each in description["partitions"]]
            latest = self._admin.list_partition_offsets(dict.fromkeys(places, OffsetSpec.LATEST))
        return {place: latest[place].offset for place in sorted(places)}

    def _ask(self, name: str, request: Callable[[], Any]) -> tuple[type[errors.KafkaError], Any]:
        """Return the coordinator's error code and answer, and repeat the request while it is busy or unavailable."""

        async def send() -> Any:
            node = await self._admin._find_coordinator_id(  # noqa: SLF001 - no public name
                name, key_type=CoordinatorType.TRANSACTION
            )
            return await self._admin._manager.send(request(), node_id=node)  # noqa: SLF001 - no public name

        def once() -> tuple[type[errors.KafkaError], Any]:
            answer = self._admin._manager.run(send)  # noqa: SLF001 - no public name
            error = errors.for_code(answer.error_code)
            # This means "not yet": the coordinator is still writing the markers of the previous transaction, or has
            # moved.
            if error is errors.ConcurrentTransactionsError or issubclass(error, _ELSEWHERE):
                raise error
            return error, answer

        return self._patiently(once)

    def _patiently(self, ask: Callable[[], AnswerT]) -> AnswerT:
        """Repeat a request while the coordinator starts, moves, or writes the markers of the id's last transaction."""
        deadline = time.monotonic() + PATIENCE
        while True:
            try:
                return ask()
            except (errors.ConcurrentTransactionsError, *_ELSEWHERE):
                if time.monotonic() > deadline:
                    raise
            time.sleep(_PAUSE)


_ELSEWHERE = (errors.CoordinatorLoadInProgressError, errors.CoordinatorNotAvailableError, errors.NotCoordinatorError)
