"""A second crash, in the recovery from the first, on real Spark: what comes out is what the simulator says."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from conducted import conducted

from labkit.core.errors import LabError
from labkit.core.failpoints import RECOVERY_POINTS, Crash, FailPoint, Order
from labkit.core.strategies import POINTS, Strategy
from labkit.runs.expected import compared
from labkit.runs.scenario import Scenario, plan
from labkit.sim.models.pipeline.scenarios import simulate

pytestmark = [pytest.mark.spark, pytest.mark.slow]

Case = tuple[Strategy, Order, FailPoint, FailPoint]


def simulated(case: Case, store: str = "files") -> dict | None:
    """What the simulator says; None where the second point is never reached, as when nothing is in doubt."""
    strategy, order, first, second = case
    try:
        return compared(simulate(strategy, order, store, [Crash(first), Crash(second)]).to_json())
    except LabError:
        return None


def a_third() -> Iterator[Case]:
    """Of all pairs a third, in which every first and every second point is; tests/sim/test_agreement.py has them all,
    with an engine that needs no Spark.
    """
    for (strategy, order), points in POINTS.items():
        if order is not Order.NONE:
            yield from (
                (strategy, order, first, second)
                for at, first in enumerate(points)
                for then, second in enumerate(RECOVERY_POINTS)
                if at % 3 == then % 3
            )


def planned(case: Case) -> Scenario:
    strategy, order, first, second = case
    return plan(sink=strategy, store="files", order=order, crashes=[str(Crash(first)), str(Crash(second))])


@pytest.mark.variant
@pytest.mark.parametrize("half", [0, pytest.param(1, marks=pytest.mark.variant)])
def test_a_second_crash_gives_what_was_simulated(half: int, tmp_path: Path) -> None:
    """Every failpoint of what defers, and every recovery point; where there is no such moment, real Spark has none."""
    cases = list(a_third())[half::2]
    possible = [case for case in cases if simulated(case) is not None]
    assert len(possible) >= 12
    differing = []
    outcomes = conducted({case: planned(case) for case in cases}, tmp_path)
    for case in cases:
        try:
            if case in possible:
                crashes = [(crash["point"], crash["signal"]) for crash in outcomes[case].crashes]
                assert crashes == [(case[2], 9), (case[3], 9)]
                assert compared(outcomes[case].to_json()) == simulated(case)
            else:
                assert "without reaching the failpoint" in str(outcomes.get(case))
        except AssertionError as error:
            differing.append(f"{case}: {error}")
    assert differing == []
