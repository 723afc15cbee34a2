"""What an experiment with consumer groups needs from a broker: its least session timeout, and a filled topic."""

import socket
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import Any

import pytest
from kafka import KafkaAdminClient, KafkaConsumer, errors
from waiting import until

from labkit.core.errors import JobFailed, ServiceUnavailable
from labkit.stores.kafka import transaction
from labkit.stores.kafka.member import BROKERS_LEAST_SESSION, Member, fill, least_session
from labkit.stores.kafka.transaction import Coordinators

NAME = "labkit-member-of-small-records"


@pytest.fixture
def coordinators(kafka_address: str) -> Iterator[Coordinators]:
    with closing(Coordinators(kafka_address)) as connected:
        yield connected


@pytest.fixture
def small(coordinators: Coordinators) -> Iterator[str]:
    """A topic that refuses records of more than 200 bytes."""
    settings = {"num_partitions": 1, "replication_factor": 1, "configs": {"max.message.bytes": "200"}}
    coordinators.admin.create_topics({NAME: settings}, wait_for_metadata=True)
    yield NAME
    coordinators.admin.delete_topics([NAME])


def test_the_brokers_settings_are_read(kafka_address: str, coordinators: Coordinators) -> None:
    assert coordinators.setting("group.min.session.timeout.ms") == str(least_session(kafka_address))
    assert coordinators.setting("no.such.setting") is None


def forbidden(*_: Any, **__: Any) -> dict[str, Any]:
    raise errors.ClusterAuthorizationFailedError("DescribeConfigs")


def empty(_: KafkaAdminClient, resources: list[Any], **__: Any) -> dict[str, Any]:
    """The answer of kafka-python 3.0.12 for a refused resource: it does not look at the resource's error code."""
    return {"broker": {resources[0].name: {}}}


@pytest.mark.parametrize("answer", [forbidden, empty])
def test_a_user_who_must_not_read_the_settings_gets_kafkas_defaults(
    answer: Any, kafka_address: str, coordinators: Coordinators, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(KafkaAdminClient, "describe_configs", answer)
    assert coordinators.longest_timeout() is None
    assert least_session(kafka_address) == BROKERS_LEAST_SESSION


def test_a_record_that_the_broker_refuses_is_an_error(
    kafka_address: str, small: str, coordinators: Coordinators
) -> None:
    fill(kafka_address, small, ["order 0"])
    for values in ([1_000 * "x"], ["order 1", 1_000 * "x", "order 2"]):
        with pytest.raises(JobFailed, match=r"Kafka refused a request .MessageSizeTooLargeError"):
            fill(kafka_address, small, values)
    assert sum(coordinators.ends(small).values()) >= 1


def test_the_first_member_of_a_group_joins_once(kafka_address: str, small: str) -> None:
    """Otherwise a second join, when the topic's metadata has arrived, would refuse its commits."""
    fill(kafka_address, small, ["order 0"])
    for number in range(4):
        with closing(Member(kafka_address, small, f"{small}.{number}")) as member:
            assert (polled(member), member.generation) == ([0], 1)
            time.sleep(0.2)  # in which a change of metadata would arrive
            member.poll()
            member.commit()
            assert member.generation == 1


def test_a_member_whose_join_takes_longer_than_a_poll_joins_once(
    kafka_address: str, small: str, coordinators: Coordinators
) -> None:
    """The broker holds the second member's join until the first one has left, so that a short poll would end before."""
    fill(kafka_address, small, ["order 0"])
    with closing(Member(kafka_address, small, small, enable_auto_commit=False)) as first:
        assert (polled(first), first.generation) == ([0], 1)
        with closing(Member(kafka_address, small, small, enable_auto_commit=False)) as second:
            with ThreadPoolExecutor(1) as pool:
                records = pool.submit(polled, second, pause=2)
                until(
                    lambda: coordinators.admin.describe_groups([small])[small]["group_state"] == "PreparingRebalance",
                    "the second member's join",
                )
                time.sleep(0.5)  # longer than the limit of a poll for records
                first.close()
                assert (records.result(), second.generation) == ([0], 2)
            second.commit()


def polled(member: Member, pause: float = 0) -> list[int]:
    """The offsets of the next records, with a pause in seconds between two polls."""
    deadline = time.monotonic() + 120
    while not (records := member.poll()):
        assert time.monotonic() < deadline
        time.sleep(pause)
    return records


def test_a_member_of_a_topic_without_its_partition_is_closed(
    kafka_address: str, small: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed = []
    close = KafkaConsumer.close
    monkeypatch.setattr(
        KafkaConsumer, "close", lambda consumer, **how: (closed.append(consumer), close(consumer, **how))
    )
    monkeypatch.setattr(transaction, "PATIENCE", 0.5)
    with pytest.raises(errors.KafkaTimeoutError, match=f"partition 0 of the topic {small}\\.none within 0.5 s"):
        Member(kafka_address, f"{small}.none", small, allow_auto_create_topics=False)
    assert len(closed) == 1


def test_a_broker_that_does_not_answer_is_named() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{unused.getsockname()[1]}"
        for call in (lambda: least_session(address), lambda: fill(address, "topic", ["order 0"])):
            with pytest.raises(ServiceUnavailable, match="the Kafka broker does not answer"):
                call()
