"""Real Spark, real Kafka, and what comes between two drivers: time that runs out, and a broker that is killed."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from conducted import Outcomes, conducted

from labkit.core.errors import JobFailed, ServiceUnavailable
from labkit.core.judge import Guarantee
from labkit.host.processes.events import AnyEvent, Parked
from labkit.host.servers.kafka import KafkaService
from labkit.host.servers.kafka_jars import BROKER
from labkit.runs.crash import finish
from labkit.runs.prepare import prepare, resume
from labkit.runs.scenario import Scenario, plan

pytestmark = [pytest.mark.spark, pytest.mark.slow]


@pytest.fixture(scope="module")
def own_broker(kafka: KafkaService, tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaService]:
    """The broker of a user with a cache folder of his own; `kafka` has seen to it that the jars are there."""
    cache = tmp_path_factory.mktemp("cache")
    (cache / "labkit").mkdir()
    (cache / "labkit" / "kafka-4.3.0").symlink_to(BROKER.folder())
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(cache))
        patch.delenv("LABKIT_KAFKA", raising=False)
        broker = KafkaService()
        with ends_with_us():
            broker.up()
            yield broker


@contextmanager
def ends_with_us() -> Iterator[None]:
    """A broker that is killed and started again in between is tethered to nobody: this stops whichever there is."""
    code = "import sys; sys.stdin.read(); from labkit.host.servers.kafka import KafkaService; KafkaService().down()"
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, start_new_session=True):
        yield


CASES = {
    "engine, expired": ("engine", "sink.after_pre_commit@0", "expire"),
    "decision, expired before it": ("decision", "coordinator.after_handles@0", "expire"),
    "decision, expired after it": ("decision", "engine.after_commit_log@0", "expire"),
    "decision, broker killed": ("decision", "engine.after_commit_log@0", "kill-server"),
    "engine, broker killed": ("engine", "sink.after_pre_commit@0", "kill-server"),
}


@pytest.fixture(scope="module")
def outcomes(own_broker: KafkaService, tmp_path_factory: pytest.TempPathFactory) -> Outcomes:
    """Those that wait for time to run out share their drivers, and so do those whose broker dies when all are dead."""
    found = Outcomes()
    for what in ("expire", "kill-server"):
        cases = {name: case(name) for name, (_, _, between) in CASES.items() if between == what}
        found.update(conducted(cases, tmp_path_factory.mktemp(what)))
    return found


def case(name: str) -> Scenario:
    order, crash, between = CASES[name]
    return plan(sink="two_phase", store="kafka", order=order, crashes=[crash], between=between)


def test_engine_order_runs_the_batch_again_when_time_ran_out(outcomes: Outcomes) -> None:
    for name in ("engine, expired", "decision, expired before it"):
        outcome = outcomes[name]
        assert (outcome.verdict.guarantee, outcome.verdict.rows) == (Guarantee.EXACTLY_ONCE, 3)
        assert len(outcome.crashes[0]["server"]["aborted"]) == 2


def test_decision_order_loses_what_was_decided_when_time_ran_out(outcomes: Outcomes) -> None:
    outcome = outcomes["decision, expired after it"]
    assert (outcome.verdict.guarantee, outcome.verdict.lost) == (Guarantee.AT_MOST_ONCE, (0, 1, 2))
    [crash] = outcome.crashes
    assert len(crash["server"]["aborted"]) == 2
    assert [said.partition(",")[0] for said in crash["recovery"]] == ["LOST", "LOST"]


def test_a_broker_that_is_killed_in_between_loses_and_doubles_nothing(outcomes: Outcomes) -> None:
    for name in ("decision, broker killed", "engine, broker killed"):
        outcome = outcomes[name]
        assert (outcome.verdict.guarantee, outcome.verdict.rows) == (Guarantee.EXACTLY_ONCE, 3)
        server = outcome.crashes[0]["server"]
        assert server["signal"] == 9
        assert server["now"] not in server["ended"]


def test_a_topic_is_gone_when_its_run_is_judged(outcomes: Outcomes, own_broker: KafkaService) -> None:
    assert all(outcome.record.released for outcome in outcomes.values())
    assert not any((outcome.record.folder.store("kafka") / "topic").exists() for outcome in outcomes.values())


@pytest.mark.variant
@pytest.mark.slow
def test_a_run_whose_broker_dies_fails_in_one_sentence_and_is_finished_when_it_is_back(
    own_broker: KafkaService, tmp_path: Path
) -> None:
    """It is down when the crash of the first driver is to be recovered from."""
    down = list[int]()

    def tell(event: AnyEvent) -> None:
        if isinstance(event, Parked) and not down:
            down.extend(own_broker.kill())

    run = prepare(plan(sink="two_phase", store="kafka", crashes=["sink.after_pre_commit@0"]), tmp_path / "run")
    with pytest.raises((JobFailed, ServiceUnavailable)) as told:
        finish(run, tell)
    assert down
    assert "\n" not in str(told.value)
    own_broker.up()
    outcome = finish(resume(run.folder.path))
    assert (outcome.verdict.guarantee, outcome.verdict.rows) == (Guarantee.EXACTLY_ONCE, 3)
    assert [crash["signal"] for crash in outcome.crashes] == [9]
