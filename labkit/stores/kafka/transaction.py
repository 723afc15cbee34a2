"""Direct requests to Kafka's transaction coordinator, and all uses of private names of kafka-python.

A process can finish a transaction that another began: it sends EndTxn with the transaction's transactional.id, producer
id and epoch. It must not start a producer, because InitProducerId would abort the transaction (KIP-98). Sending the
request ourselves needs two private names of kafka-python and returns the broker's own error code. The alternative,
resuming a KafkaProducer as Flink's connector does by reflection (FlinkKafkaInternalProducer.resumeTransaction), needs
four private names, waits without a limit, and reports several codes as one error. We send EndTxn in version 3, as
kafka-python's producer does (transaction version 1); in that version a second commit under the same epoch is no error.
"""

import logging
import socket
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from enum import StrEnum
from importlib.metadata import version
from typing import Any, NamedTuple, TypeVar

from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition, errors
from kafka.admin import ConfigResource, ConfigResourceType, OffsetSpec
from kafka.protocol.metadata import CoordinatorType
from kafka.protocol.producer import EndTxnRequest, InitProducerIdRequest
from kafka.structs import OffsetAndMetadata

from labkit.core.errors import JobFailed, LabError, ServiceUnavailable

PINNED = "3.0.12"
"""The version of kafka-python whose private names this module uses; tests run them against a real broker."""

PATIENCE = 30.0
"""Seconds within which a coordinator must answer a request, and must complete a commit or an abort."""

DELIVERY = 30
"""Seconds within which a record must be delivered (delivery.timeout.ms)."""

AnswerT = TypeVar("AnswerT")

_END_TXN, _INIT_PRODUCER_ID = 3, 4
_MAXIMUM = "transaction.max.timeout.ms"
_PAUSE = 0.01

logging.getLogger("kafka").addHandler(logging.NullHandler())  # labkit raises important errors, as one sentence


class Producer(NamedTuple):
    """A transactional producer's id and epoch at the broker. A higher epoch fences all lower epochs of the same id."""

    id: int
    epoch: int


class Stage(StrEnum):
    """The state of a Kafka transaction, with the names of Kafka's TransactionState."""

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
    """The broker's description of a transactional id (`name`) and of its latest transaction.

    `timeout` is in seconds. `started` is in seconds since 1970, or 0 if no transaction is open.
    """

    name: str
    stage: Stage
    producer: Producer
    timeout: float
    started: float


def check_version() -> None:
    """Raise `ServiceUnavailable` unless the installed kafka-python has the version `PINNED`."""
    installed = version("kafka-python")
    if installed != PINNED:
        raise ServiceUnavailable(
            f"kafka-python {installed} is installed, but labkit uses private functions of version {PINNED}: "
            f"run `pip install kafka-python=={PINNED}`."
        )


def probe(address: str) -> None:
    """Raise `ServiceUnavailable` if nothing listens at the address (host:port).

    Without this check, a Kafka client would try to connect for several seconds, and would leave a thread running.
    """
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=5).close()
    except (OSError, ValueError) as error:
        raise unavailable(address) from error


def unavailable(address: str) -> ServiceUnavailable:
    """Return the error to raise when the broker at this address (host:port) does not answer."""
    remedy = "run `labkit services status kafka`, or check LABKIT_KAFKA"
    return ServiceUnavailable(f"{address}: the Kafka broker does not answer; {remedy}.")


def producer_of(writer: KafkaProducer) -> Producer:
    """Return a producer's id and epoch. An epoch that changes during a transaction means an abort (KIP-360)."""
    identity = writer._transaction_manager.producer_id_and_epoch  # noqa: SLF001 - no public name
    return Producer(identity.producer_id, identity.epoch)


def flush(writer: KafkaProducer) -> None:
    """Wait until the broker has answered for every record. Raises `KafkaTimeoutError` after `DELIVERY` + 10 seconds.

    Without a limit, the client may wait forever for a broker that has stopped.
    """
    writer.flush(timeout=DELIVERY + 10)


def hang_up(writer: KafkaProducer, seconds: float = 1) -> bool:
    """Close a producer within `seconds`, by force if necessary; return whether force was necessary.

    A forced close may lose records that are not delivered yet. It is necessary if the client's own `close` does not
    finish in time, because the client's thread would then continue to run.
    """
    try:
        writer.close(timeout=seconds)
    except errors.KafkaError:
        writer._sender.force_close()  # noqa: SLF001 - no public name
        return True
    return False


def add_offsets(writer: KafkaProducer, offsets: Mapping[TopicPartition, OffsetAndMetadata], group: str) -> None:
    """Add offsets of the consumer group `group` to a producer's open transaction, which then commits them too.

    Raises `KafkaTimeoutError` after `PATIENCE` seconds. The client's public method may wait forever.
    """
    result = writer._transaction_manager.send_offsets_to_transaction(offsets, group)  # noqa: SLF001 - no public name
    # The client's sender thread sleeps until somebody wakes it, as the public method does.
    writer._sender.wakeup()  # noqa: SLF001 - no public name
    if not result.wait(timeout_ms=PATIENCE * 1000):
        raise errors.KafkaTimeoutError(f"no answer within {PATIENCE:g} s")


def await_metadata(reader: KafkaConsumer, partition: TopicPartition) -> None:
    """Wait until a subscribed consumer knows `partition`, so that the consumer can then join its group.

    A consumer that joins before this does not get the partition. It must join again when the metadata arrive, and
    until then Kafka refuses its commits. Raises `KafkaTimeoutError` after `PATIENCE` seconds.
    """
    check_version()
    deadline = time.monotonic() + PATIENCE
    # A joining consumer compares this snapshot with the one after its join.
    while partition.partition not in reader._coordinator._metadata_snapshot.get(  # noqa: SLF001 - no public name
        partition.topic, ()
    ):
        if time.monotonic() > deadline:
            raise errors.KafkaTimeoutError(
                f"the broker's metadata did not list partition {partition.partition} of the topic {partition.topic} "
                f"within {PATIENCE:g} s"
            )
        # Asked again: the client forgets its own request if an older answer arrives after the subscription.
        reader._cluster.request_update()  # noqa: SLF001 - no public name
        time.sleep(_PAUSE)


def join(reader: KafkaConsumer) -> bool:
    """Wait, at most `PATIENCE` seconds, until a subscribed consumer is a member of its group; return whether it is.

    The client's public method `poll` is not safe here. After the join, `poll` also waits for records until its time
    limit, so the limit would have to be short. But if a short limit ends during a rebalance, and the join succeeds
    before the next call, kafka-python 3.0.12 forgets the join and joins once more.
    """
    return bool(reader._coordinator.poll(timeout_ms=PATIENCE * 1000))  # noqa: SLF001 - no public name


@contextmanager
def explained(address: str) -> Iterator[None]:
    """Turn Kafka's errors in a `with` block into `ServiceUnavailable` (no answer) or `JobFailed` (Kafka refused)."""
    try:
        yield
    except LabError:
        raise
    except (errors.KafkaConnectionError, errors.KafkaTimeoutError, errors.NodeNotReadyError, TimeoutError) as error:
        raise unavailable(address) from error
    except errors.KafkaError as error:
        raise JobFailed(
            f"{address}: Kafka refused a request ({type(error).__name__}: "
            f"{' '.join(str(error).split())}); see the broker's log."
        ) from error


def open_transactions(address: str) -> list[TransactionDescription]:
    """Return all unfinished transactions of the Kafka cluster at this address (host:port), the oldest first."""
    with closing(Coordinators(address)) as coordinators:
        descriptions = [coordinators.describe(name) for name in coordinators.unfinished()]
    return sorted((each for each in descriptions if each and each.stage in UNFINISHED), key=lambda each: each.started)


class Coordinators:
    """A client that describes, commits and aborts transactions of a Kafka cluster, whichever process began them.

    `address` is the host:port of one of the cluster's brokers.
    """

    def __init__(self, address: str) -> None:
        check_version()
        probe(address)
        self._address = address
        with explained(address):
            self.admin = KafkaAdminClient(
                bootstrap_servers=address, client_id="labkit", bootstrap_timeout_ms=10_000, request_timeout_ms=10_000
            )
            """The public admin client of kafka-python that sends the requests."""

    def close(self) -> None:
        self.admin.close()

    def longest_timeout(self) -> float | None:
        """Return the broker's maximum transaction timeout in seconds, or None if this user may not read it."""
        value = self.setting(_MAXIMUM)
        return None if value is None else float(value) / 1000

    def setting(self, name: str) -> str | None:
        """Return the value of a broker setting as text; None if there is none, or this user may not read it."""
        with explained(self._address), suppress(errors.AuthorizationError):
            # The setting belongs to a broker, and versions of the protocol name the field with its number differently.
            brokers = self.admin.describe_cluster()["brokers"]
            number = str(next(broker[key] for broker in brokers for key in ("broker_id", "node_id") if key in broker))
            wanted = ConfigResource(ConfigResourceType.BROKER, number, {name: None})
            configuration = self.admin.describe_configs([wanted], config_filter="all")
            # kafka-python ignores the error of a refused resource, which then has no settings.
            found = configuration.get("broker", {}).get(number, {}).get(name)
            return None if found is None else str(found["value"])
        return None

    def delete_groups(self, prefix: str) -> None:
        """Delete every consumer group whose name begins with this prefix."""
        with explained(self._address):
            names = [group["group_id"] for group in self.admin.list_groups()]
            if matching := [name for name in names if name.startswith(prefix)]:
                self.admin.delete_groups(matching)

    def describe(self, name: str) -> TransactionDescription | None:
        """Return the state, producer and times of the transactional id `name`, or None if Kafka does not know it."""

        def ask() -> TransactionDescription | None:
            try:
                answer = self.admin.describe_transactions([name])[name]
            except errors.TransactionalIdNotFoundError:
                return None
            producer = Producer(answer.producer_id, answer.producer_epoch)
            times = (answer.transaction_timeout_ms / 1000, max(answer.transaction_start_time_ms, 0) / 1000)
            return TransactionDescription(name, Stage(answer.state.value), producer, *times)

        with explained(self._address):
            return self._retried(ask)

    def settled(self, name: str) -> TransactionDescription | None:
        """Wait until no commit or abort of the transactional id `name` is in progress, and return its description."""
        deadline = time.monotonic() + PATIENCE
        while (
            (description := self.describe(name))
            and description.stage in UNFINISHED
            and description.stage is not Stage.ONGOING
        ):
            if time.monotonic() > deadline:
                raise ServiceUnavailable(
                    f"{self._address}: the transaction {name} was still in the state {description.stage} after "
                    f"{PATIENCE:g} s; check the broker."
                )
            time.sleep(_PAUSE)
        return description

    def unfinished(self, prefix: str = "") -> list[str]:
        """Return all transactional ids that begin with `prefix` and have an unfinished transaction, sorted."""
        with explained(self._address):
            answers = self._retried(lambda: self.admin.list_transactions(state_filters=list(UNFINISHED)))
        names = (listing.transactional_id for listings in answers.values() for listing in listings)
        return sorted(name for name in names if name.startswith(prefix))

    def end(self, name: str, producer: Producer, *, commit: bool) -> type[errors.KafkaError]:
        """Commit or abort a transaction that any process began, with Kafka's request EndTxn.

        Returns kafka-python's error class for the broker's answer: `NoError` if the broker has accepted the request.
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
        """Abort the open transaction of the transactional id `name`, and fence its writer by raising the id's epoch.

        `timeout` is the id's new transaction timeout in seconds. The method returns when the abort is complete.
        """
        with explained(self._address):
            error, _ = self._ask(
                name,
                lambda: InitProducerIdRequest(
                    transactional_id=name,
                    transaction_timeout_ms=int(timeout * 1000),
                    # -1 for both asks for the next epoch, whichever producer has the id now.
                    producer_id=-1,
                    producer_epoch=-1,
                    max_version=_INIT_PRODUCER_ID,
                    min_version=2,
                ),
            )
            if error is not errors.NoError:
                raise error(f"InitProducerId of {name}")
        self.settled(name)

    def group_offsets(self, group: str) -> dict[TopicPartition, int]:
        """Return a dict from partition to the group's committed offset (the offset of the next record to read)."""

        def ask() -> dict[TopicPartition, int]:
            try:
                positions = self.admin.list_group_offsets([group])[group]
            except errors.GroupIdNotFoundError:
                return {}
            return {place: position.offset for place, position in positions.items() if position.offset >= 0}

        with explained(self._address):
            return self._retried(ask)

    def commit_offsets(self, group: str, offsets: Mapping[TopicPartition, int]) -> None:
        """Commit these offsets for a consumer group without members, even if the group has read nothing so far."""
        wanted = {place: OffsetAndMetadata(offset, "", -1) for place, offset in offsets.items()}

        def ask() -> None:
            for error in self.admin.alter_group_offsets(group, wanted).values():
                if error is not errors.NoError:
                    raise error(f"OffsetCommit of {group}")

        with explained(self._address):
            self._retried(ask)

    def ends(self, topic: str) -> dict[TopicPartition, int]:
        """Return a dict from each partition of a topic to its end offset, which is the offset of its next record."""
        with explained(self._address):
            [description] = self.admin.describe_topics([topic])
            places = [TopicPartition(topic, each["partition_index"]) for each in description["partitions"]]
            latest = self.admin.list_partition_offsets(dict.fromkeys(places, OffsetSpec.LATEST))
        return {place: latest[place].offset for place in sorted(places)}

    def _ask(self, name: str, request: Callable[[], Any]) -> tuple[type[errors.KafkaError], Any]:
        """Send a request to the coordinator of the transactional id `name`; return (error class, response).

        Repeat the request while the coordinator is busy with an earlier transaction of the id, or has moved.
        """

        async def send() -> Any:
            node = await self.admin._find_coordinator_id(  # noqa: SLF001 - no public name
                name, key_type=CoordinatorType.TRANSACTION
            )
            return await self.admin._manager.send(request(), node_id=node)  # noqa: SLF001 - no public name

        def once() -> tuple[type[errors.KafkaError], Any]:
            answer = self.admin._manager.run(send)  # noqa: SLF001 - no public name
            error = errors.for_code(answer.error_code)
            # "Not yet": the coordinator still writes the markers of the previous transaction, or has moved.
            if error is errors.ConcurrentTransactionsError or issubclass(error, _ELSEWHERE):
                raise error
            return error, answer

        return self._retried(once)

    def _retried(self, ask: Callable[[], AnswerT]) -> AnswerT:
        deadline = time.monotonic() + PATIENCE
        while True:
            try:
                return ask()
            except (errors.ConcurrentTransactionsError, *_ELSEWHERE):
                if time.monotonic() > deadline:
                    raise
            time.sleep(_PAUSE)


_ELSEWHERE = (errors.CoordinatorLoadInProgressError, errors.CoordinatorNotAvailableError, errors.NotCoordinatorError)
