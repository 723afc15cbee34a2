"""Kafka by hand on a real broker: both readers side by side, timeouts, and a job that trusts its checkpoint or not."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from other_processes import until_killed, with_word
from waiting import until

from labkit import lab
from labkit.core.errors import InvalidInput
from labkit.core.judge import Guarantee
from labkit.host import addresses
from labkit.host.java import Java
from labkit.teach.hands_on.copying import copy, ten_steps
from labkit.teach.hands_on.kafka import Kafka
from labkit.teach.hands_on.kafka import kafka as by_hand

PATIENCE = 120.0


@pytest.fixture
def broker(kafka_address: str) -> Iterator[Kafka]:
    found = by_hand()
    assert found.address == kafka_address
    yield found
    places = [found.folder().parent for _ in range(2)]
    assert places[0] == places[1]
    assert places[0].is_dir()
    found.clean()
    assert not places[0].exists(), "a client of somebody else's broker takes its files away"
    assert found.folder().parent.is_dir(), "it can be used again"
    found.clean()


def test_both_levels_side_by_side(broker: Kafka) -> None:
    topic = broker.topic()
    assert topic.begin("slow") == "slow: begun"
    assert topic.look().open == []  # nothing is open before the first record
    assert topic.write("slow", "one") == "slow: written"
    topic.hang_up("slow")
    topic.plain("two")
    look = topic.look()
    assert (look.uncommitted, look.committed, look.open) == (["one", "two"], [], ["slow"])
    assert (look.end, look.stable) == (2, 0)
    assert str(look).splitlines()[2] == "read_committed    0, the last stable offset  -"
    topic.abort("slow")
    assert topic.look().committed == ["two"]


def test_a_topic_is_there_for_clients_of_ones_own(broker: Kafka) -> None:
    from kafka import KafkaConsumer, KafkaProducer

    name = broker.topic().name
    producer = KafkaProducer(bootstrap_servers=broker.address, max_block_ms=10_000)
    producer.send(name, b"hello").get(timeout=PATIENCE)
    producer.close()
    consumer = KafkaConsumer(
        name, bootstrap_servers=broker.address, auto_offset_reset="earliest", consumer_timeout_ms=5_000
    )
    assert next(iter(consumer)).value == b"hello"
    consumer.close()


def test_a_second_request_is_answered_without_an_error_and_an_expired_one_is_fenced(broker: Kafka) -> None:
    topic = broker.topic(timeout=1)
    topic.begin("kept")
    topic.write("kept", "hello")
    with pytest.raises(InvalidInput, match=r"kept: .*not pre-committed"):
        topic.ask_to_commit("kept")
    topic.pre_commit("kept")
    assert {topic.ask_to_commit("kept") for _ in range(2)} == {"kept: the coordinator answers NoError"}
    topic.begin("early")
    topic.write("early", "world")
    topic.pre_commit("early")
    until(topic.store.expired, "the coordinator to abort the transaction")
    assert topic.ask_to_commit("early") == "early: the coordinator answers ProducerFencedError"
    assert topic.commit("early") == "early: lost"
    assert topic.look().committed == ["hello"]


def test_a_refused_write_and_a_refused_beginning_are_sentences(broker: Kafka) -> None:
    assert "transaction.max.timeout.ms" in broker.topic(timeout=3600).begin("t")
    topic = broker.topic(timeout=1)
    topic.begin("t")
    topic.write("t", "hello")
    until(topic.store.expired, "the coordinator to abort the transaction")
    assert topic.write("t", "world").startswith("t: refused, ")
    with pytest.raises(InvalidInput, match=r"call topic.begin\('other'\) first"):
        topic.write("other", "hello")


@pytest.mark.slow
def test_the_ten_steps(broker: Kafka) -> None:
    steps = ten_steps(broker)
    assert len(steps.steps) == 10
    assert (steps.first("hello", "read_uncommitted"), steps.first("hello", "read_committed")) == (4, 9)
    assert steps.first("world", "read_committed") is None
    assert steps.steps[7][1] is None


@pytest.mark.parametrize(
    ("trusts", "says", "guarantee", "lost", "duplicate"),
    [
        ("checkpoint", 0, Guarantee.EXACTLY_ONCE, (), ()),
        ("checkpoint", 4, Guarantee.EXACTLY_ONCE, (), ()),
        ("group", 0, Guarantee.AT_LEAST_ONCE, (), (0, 1)),
        ("group", 2, Guarantee.EXACTLY_ONCE, (), ()),
        ("group", 4, Guarantee.AT_MOST_ONCE, (2, 3), ()),
    ],
)
def test_only_who_trusts_the_group_is_misled_by_it(
    broker: Kafka, trusts: str, says: int, guarantee: Guarantee, lost: tuple[int, ...], duplicate: tuple[int, ...]
) -> None:
    verdict = copy(broker, trusts=trusts, group_says=says).verdict
    assert (verdict.guarantee, verdict.lost, verdict.duplicate) == (guarantee, lost, duplicate)


def test_what_cannot_be_copied_is_a_sentence(broker: Kafka) -> None:
    with pytest.raises(InvalidInput, match=r"group_says=9 .* from 0 to 4"):
        copy(broker, trusts="checkpoint", group_says=9)
    with pytest.raises(InvalidInput, match="trusts='nobody' is not accepted; write 'checkpoint' or 'group'"):
        copy(broker, trusts="nobody", group_says=1)


def test_the_checker_in_python() -> None:
    assert lab.timeouts(interval=10, pause=15, checkpoint=1, transaction=5).fit == "can lose data"
    assert lab.timeouts(interval=10, checkpoint=1, transaction=3600).fit == "refused at start"
    with pytest.raises(InvalidInput, match="needs transaction"):
        lab.timeouts(interval=10, checkpoint=1)
    with pytest.raises(InvalidInput, match="no parameter paus; did you mean 'pause'"):
        lab.timeouts(interval=10, checkpoint=1, transaction=5, paus=1)


KERNEL = """
import sys
from labkit import lab
from labkit.teach.hands_on import private
broker = lab.kafka()
topic = broker.topic()
print(topic.plain("hello"))
print(private._private["LABKIT_KAFKA"][1].folder, flush=True)
sys.stdin.read()
"""


@pytest.mark.slow
def test_a_private_broker_ends_with_a_killed_kernel(java: Java, broker: Kafka) -> None:
    with until_killed(KERNEL, without=addresses.KAFKA) as line:
        assert line() == "written without a transaction"
        folder = Path(line())
        assert folder.is_dir()
    until(lambda: not folder.exists() and not with_word(str(folder)), f"the end of {folder} and of every process in it")
