"""A second crash, in the recovery from the first, on real Spark: what comes out is what the simulator says."""

from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from labkit import lab
from labkit.core.errors import LabError
from labkit.core.failpoints import (
    POINTS,
    RECOVERY_POINTS,
    Crash,
    FailPoint,
    Order,
    Strategy,
)
from labkit.host.java import Java
from labkit.runs.expected import compared
from labkit.runs.run import prepare
from labkit.runs.scenario import plan
from labkit.sim.models.pipeline.scenarios import simulate

pytestmark = [pytest.mark.spark, pytest.mark.slow]

Case = tuple[Strategy, Order, FailPoint, FailPoint]

CHOSEN: list[Case] = [
    (
        Strategy.TWO_PHASE,
        Order.DECISION,
        FailPoint.AFTER_HANDLES,
        FailPoint.MID_RESOLVE,
    ),
    (
        Strategy.TWO_PHASE,
        Order.DECISION,
        FailPoint.AFTER_COMMIT_LOG,
        FailPoint.MID_RESOLVE,
    ),
    (Strategy.TWO_PHASE, Order.DECISION, FailPoint.MID_COMMIT, FailPoint.AFTER_RESOLVE),
    (Strategy.TWO_PHASE, Order.ENGINE, FailPoint.MID_COMMIT, FailPoint.AFTER_RESOLVE),
    (Strategy.WAL, Order.DECISION, FailPoint.AFTER_COMMIT_LOG, FailPoint.MID_RESOLVE),
    (Strategy.WAL, Order.DECISION, FailPoint.MID_COMMIT, FailPoint.MID_RESOLVE),
    (Strategy.WAL, Order.DECISION, FailPoint.BEFORE_CONFIRM, FailPoint.AFTER_RESOLVE),
    (Strategy.WAL, Order.ENGINE, FailPoint.MID_COMMIT, FailPoint.BEFORE_RESOLVE),
]


def simulated(case: Case, store: str = "files") -> dict | None:
    """What the simulator says; None where the second point is never reached, as when nothing is in doubt."""
    strategy, order, first, second = case
    try:
        return compared(
            simulate(strategy, order, store, [Crash(first), Crash(second)]).to_json()
        )
    except LabError:
        return None


def all_cases() -> Iterator[Case]:
    for (strategy, order), points in POINTS.items():
        if order is not Order.NONE:
            yield from (
                (strategy, order, first, second)
                for first in points
                for second in RECOVERY_POINTS
            )


def name(case: Case) -> str:
    return "-".join(case)


def run(cases: list[Case], base: Path) -> Mapping[Case, lab.Outcome | LabError]:
    runs = [
        prepare(
            plan(
                sink=strategy,
                store="files",
                order=order,
                crashes=[str(Crash(first)), str(Crash(second))],
            ),
            base / name((strategy, order, first, second)),
        )
        for strategy, order, first, second in cases
    ]
    return dict(zip(cases, lab.run_all(runs, base / "scratch"), strict=True))


def check(case: Case, outcome: lab.Outcome | LabError) -> None:
    assert isinstance(outcome, lab.Outcome), str(outcome)
    assert [(crash["point"], crash["signal"]) for crash in outcome.crashes] == [
        (case[2], 9),
        (case[3], 9),
    ]
    assert compared(outcome.to_json()) == simulated(case)


@pytest.fixture(scope="module")
def outcomes(
    java: Java, tmp_path_factory: pytest.TempPathFactory
) -> Mapping[Case, lab.Outcome | LabError]:
    return run(CHOSEN, tmp_path_factory.mktemp("twice"))


@pytest.mark.parametrize("case", CHOSEN, ids=name)
def test_a_second_crash_gives_what_was_simulated(
    case: Case, outcomes: Mapping[Case, lab.Outcome | LabError]
):
    check(case, outcomes[case])


@pytest.mark.slow
def test_every_second_crash_gives_what_was_simulated(java: Java, tmp_path: Path):
    """Every failpoint of what defers, with every recovery point; where there is no such moment, real Spark has none."""
    cases = list(all_cases())
    possible = [case for case in cases if simulated(case) is not None]
    assert len(possible) > 70
    differing = []
    for case, outcome in run(cases, tmp_path).items():
        try:
            if case in possible:
                check(case, outcome)
            else:
                assert "was never reached" in str(outcome)
        except AssertionError as error:
            differing.append(f"{name(case)}: {error}")
    assert differing == []
