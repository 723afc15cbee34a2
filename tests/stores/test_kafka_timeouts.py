"""Slip B2 on a real broker: a transaction timeout of 5 s, a checkpoint every 10 s, and three kinds of traffic."""

import json
from collections.abc import Mapping
from pathlib import Path

import pytest
from waiting import until

from labkit.cli.timeouts import timeouts
from labkit.core.errors import InvalidInput, JobFailed, ServiceUnavailable
from labkit.core.judge import Guarantee
from labkit.host import addresses
from labkit.host.java import Java
from labkit.host.servers.kafka import KafkaService
from labkit.sim.models.kafka_log.timeouts import Fit, Timeouts, examine
from labkit.stores.contract import Handle
from labkit.stores.kafka import timeouts as under_test
from labkit.stores.kafka.store import KafkaStore, Outcome
from labkit.stores.kafka.timeouts import ATTEMPTS, TimeoutTrial, Traffic, try_timeouts
from labkit.stores.kafka.transaction import Coordinators

pytestmark = pytest.mark.slow

INTERVAL, TRANSACTION = 10.0, 5.0


@pytest.fixture(scope="module")
def tried(kafka_address: str) -> Mapping[str, TimeoutTrial]:
    return try_timeouts(INTERVAL, TRANSACTION)


def verdict(tried: TimeoutTrial) -> tuple[Guarantee, int, tuple[int, ...]]:
    return tried.verdict.guarantee, tried.verdict.rows, tried.verdict.lost


def test_steady_traffic_fails_again_and_again_and_loses_nothing(tried: Mapping[str, TimeoutTrial]) -> None:
    """The write fails, so the checkpoint never completes: with a timeout that fits, all of it is read again."""
    found = tried[Traffic.STEADY]
    assert (found.failures, found.outcome) == (ATTEMPTS, None)
    assert sum("the write fails" in step and "was aborted while it was open" in step for step in found.steps) == 2
    assert verdict(found) == (Guarantee.EXACTLY_ONCE, 20, ())


def test_a_burst_and_then_silence_is_lost_without_any_failure(tried: Mapping[str, TimeoutTrial]) -> None:
    found = tried[Traffic.BURST]
    assert (found.failures, found.outcome) == (0, Outcome.LOST)
    told = [step.partition("attempt 1: ")[2] for step in found.steps]
    aborted = next(place for place, step in enumerate(told) if step.startswith("Kafka has aborted"))
    complete = next(place for place, step in enumerate(told) if "the checkpoint is complete" in step)
    assert aborted < complete, "what is complete was aborted before"
    assert verdict(found) == (Guarantee.AT_MOST_ONCE, 0, (0, 1, 2))


def test_what_comes_just_before_the_barrier_survives(tried: Mapping[str, TimeoutTrial]) -> None:
    found = tried[Traffic.LATE]
    assert (found.failures, found.outcome) == (0, Outcome.COMMITTED)
    assert verdict(found) == (Guarantee.EXACTLY_ONCE, 3, ())


def test_a_broker_that_looks_seldom_gives_the_same_outcomes(
    java: Java, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It looks every 20 s: long after the barrier, so a job that did not wait would commit what is too old."""
    monkeypatch.delenv(addresses.KAFKA, raising=False)
    seldom = {"transaction.abort.timed.out.transaction.cleanup.interval.ms": "20000"}
    service = KafkaService(tmp_path / "broker", tethered=True, settings=seldom)
    try:
        monkeypatch.setenv(addresses.KAFKA, service.up().address)
        kinds = (Traffic.BURST, Traffic.LATE)
        found = try_timeouts(2, 1, kinds)
        assert [found[kind].outcome for kind in kinds] == [Outcome.LOST, Outcome.COMMITTED]
        assert any(under_test.WAITS in step for step in found["burst"].steps)
        assert not any("the job waits" in step for step in found["late"].steps)
        monkeypatch.setattr(under_test, "PATIENCE", 0.5)
        with pytest.raises(ServiceUnavailable, match=r"within 0\.5 s after its timeout of 1 s"):
            try_timeouts(2, 1, (Traffic.BURST,))
    finally:
        monkeypatch.delenv(addresses.KAFKA, raising=False)
        service.down()


def test_the_checker_refuses_the_configuration(tried: Mapping[str, TimeoutTrial]) -> None:
    assert examine(Timeouts(INTERVAL, 600, TRANSACTION, pause=15)).fit is Fit.LOSES


def test_a_timeout_that_fits_loses_nothing_whatever_the_traffic(kafka_address: str) -> None:
    for found in try_timeouts(1, 60).values():
        assert (found.failures, found.outcome) == (0, Outcome.COMMITTED)
        assert verdict(found)[0] is Guarantee.EXACTLY_ONCE


def test_the_command_runs_it_and_leaves_nothing_behind(kafka_address: str, capsys: pytest.CaptureFixture[str]) -> None:
    coordinators = Coordinators(kafka_address)
    before, unfinished = topics(coordinators), coordinators.unfinished()
    given = {"checkpoint": 1.0, "maximum": 900.0, "pause": 0.0, "tolerated": 0, "downtime": 0.0}
    assert timeouts(interval=1, transaction=60, run=True, as_json=True, **given) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["fit"], sorted(told["runs"])) == ("safe", ["burst", "late", "steady"])
    assert told["runs"]["late"]["commit"] == "committed"
    assert timeouts(interval=1, transaction=60, run=True, as_json=False, **given) == 0
    assert "burst: exactly-once, because" in capsys.readouterr().out
    # The broker confirms that a topic is deleted before it has forgotten it.
    until(lambda: topics(coordinators) <= before, "the end of the topics")
    assert coordinators.unfinished() == unfinished
    coordinators.close()


def topics(coordinators: Coordinators) -> set[str]:
    """Those of the lab; other tests of this broker may have left some."""
    return {name for name in coordinators.admin.list_topics() if name.startswith("labkit-")}


@pytest.mark.parametrize(
    ("interval", "transaction", "remedy"),
    [(0, 5, "at most 120 s"), (3600, 5, "at most 120 s"), (10, 0, "more than 0 s")],
)
def test_what_nobody_would_wait_for_is_refused(interval: float, transaction: float, remedy: str) -> None:
    with pytest.raises(InvalidInput, match=remedy):
        try_timeouts(interval, transaction)


def test_an_attempt_that_succeeds_after_a_failed_one_is_the_last(
    kafka_address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    write, attempts = under_test._Job._write, list[int]()

    def fails_first(self: under_test._Job, store: KafkaStore, handle: Handle, interval: float) -> None:
        write(self, store, handle, interval)
        attempts.append(handle.incarnation)
        if len(attempts) == 1:
            raise JobFailed("the first attempt fails when all its records are written.")

    monkeypatch.setattr(under_test._Job, "_write", fails_first)
    found = try_timeouts(1, 60, (Traffic.LATE,))[Traffic.LATE]
    assert (found.failures, attempts) == (1, [1, 2])
    assert verdict(found) == (Guarantee.EXACTLY_ONCE, 3, ())
