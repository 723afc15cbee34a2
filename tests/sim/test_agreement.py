"""Three voices: what was predicted by hand, what the simulator says, and what the real sinks do after a real SIGKILL.

Real Spark is compared with the same predictions in tests/spark; here the sinks run in a plain engine, so that every
pair of crashes can be tried.
"""

from collections.abc import Sequence
from pathlib import Path

import pytest
from plain_engine import NeverReached
from plain_engine import crashed as plainly_crashed

from labkit.errors import JobFailed
from labkit.expected import Cell, compared, expectations
from labkit.failpoints import POINTS, RECOVERY_POINTS, Crash, FailPoint, Order, Strategy
from labkit.sim.pipeline.scenarios import is_modelled, simulate
from labkit.stores import STORES

CELLS = expectations()


@pytest.mark.parametrize("cell", CELLS, ids=str)
def test_the_simulator_gives_what_was_predicted(cell: Cell):
    found = simulate(cell.strategy, cell.order, cell.store, [Crash(cell.point)])
    assert compared(found.to_json()) == CELLS[cell].compared(), CELLS[cell].reason


def test_every_store_of_the_lab_is_modelled():
    assert [store for store in STORES if not is_modelled(store)] == []


def simulated(strategy: Strategy, order: Order, store: str, points: Sequence[FailPoint]) -> dict | None:
    try:
        return simulate(strategy, order, store, [Crash(point) for point in points]).to_json()
    except JobFailed:
        return None


def real(strategy: Strategy, order: Order, store: str, points: Sequence[FailPoint], folder: Path) -> dict | None:
    try:
        return plainly_crashed(folder, strategy, store, order, points).verdict().to_json()
    except NeverReached:
        return None


DEFERRING = [(strategy, order) for strategy, order in POINTS if strategy in (Strategy.WAL, Strategy.TWO_PHASE)]
IN_RECOVERY = [
    (strategy, order, first, second)
    for strategy, order in DEFERRING
    for first in POINTS[strategy, order]
    for second in RECOVERY_POINTS
]


@pytest.mark.parametrize(("strategy", "order", "first", "second"), IN_RECOVERY)
def test_a_second_crash_in_recovery_is_simulated_as_it_really_goes(
    strategy: Strategy, order: Order, first: FailPoint, second: FailPoint, tmp_path: Path
):
    """The whole verdict is the same, to the last witness; and a point is reached in both or in neither."""
    found = simulated(strategy, order, "files", [first, second])
    assert found == real(strategy, order, "files", [first, second], tmp_path)
    assert found is not None or second is FailPoint.MID_RESOLVE


EVERYWHERE = [
    (strategy, order, store, first)
    for (strategy, order), points in POINTS.items()
    for store in STORES
    for first in points
    if strategy is not Strategy.IDEMPOTENT or store == "sqlite"
]


@pytest.mark.slow
@pytest.mark.parametrize(("strategy", "order", "store", "first"), EVERYWHERE)
def test_any_second_crash_is_simulated_as_it_really_goes(
    strategy: Strategy, order: Order, store: str, first: FailPoint, tmp_path: Path
):
    for number, second in enumerate((*POINTS[strategy, order], *RECOVERY_POINTS)):
        mine = simulated(strategy, order, store, [first, second])
        assert mine == real(strategy, order, store, [first, second], tmp_path / str(number)), second
