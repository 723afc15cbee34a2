"""Three voices: what was predicted by hand, what the simulator says, and what the real sinks do after a real SIGKILL.

Real Spark is compared with the same predictions in tests/spark; here the sinks run in a plain engine, so that every
pair of crashes can be tried.
"""

import signal
from collections.abc import Sequence
from pathlib import Path

import pytest
from choosing import spread
from plain_engine import EXPECTED, QUERY, NeverReached, PlainEngine
from plain_engine import crashed as plainly_crashed

from labkit.core.errors import JobFailed
from labkit.core.failpoints import RECOVERY_POINTS, Crash, FailPoint, Order
from labkit.core.judge import Verdict, judge
from labkit.core.records import History, Observation, PlannedBatch
from labkit.core.strategies import POINTS, Op, Strategy
from labkit.runs.expected import Cell, compared, expectations
from labkit.sim.models.pipeline.scenarios import Cue, crashes, is_modelled, play, simulate
from labkit.sim.trace import make
from labkit.sim.verdicts import verdict_of
from labkit.sinks.coordinator import Coordinator
from labkit.stores import STORES, capabilities
from labkit.stores.contract import Handle

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


DEFERRING = [(strategy, order) for strategy, order in POINTS if strategy.facts.defers]
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
    if strategy.facts.needs in capabilities(store)
]
SAMPLED = EVERYWHERE[::5]
"""Every fifth combination, since each takes seconds; the matrix of real runs has the others with a single crash."""


def left_out(strategy: Strategy, order: Order) -> set[FailPoint]:
    """The points that a re-run leaves out if it finds the marker or the second confirmation of its batch."""
    facts = strategy.facts
    if facts.looks_first:
        return {FailPoint.MID_WRITE}
    if Op.LOOK in facts.commit_ops and order is Order.ENGINE:
        return {step.point for step in facts.commit} - {FailPoint.AFTER_COMMIT}
    return set()


def passed(strategy: Strategy, order: Order, first: FailPoint) -> tuple[set[FailPoint], set[FailPoint]]:
    """The points that the next driver must pass, and those that it may pass: those of its recovery, and of the batch
    where `commits/0` was not written.

    Where nothing waits for the decision its notification comes at every clean end, also of a driver without a batch.
    A crash before the end of the commit may have left what a re-run finds: that depends on the strategy.
    """
    points = list(POINTS[strategy, order])
    recovery = set(RECOVERY_POINTS) - {FailPoint.MID_RESOLVE}
    if points.index(first) >= points.index(FailPoint.AFTER_COMMIT_LOG):
        told = set() if order is Order.DECISION else {FailPoint.AFTER_COMMIT_LOG}
        return recovery | told, recovery | told
    again = recovery | set(points)
    committing = first in {step.point for step in strategy.facts.commit}
    least = again - left_out(strategy, order) if committing else again
    return least, least if first is FailPoint.AFTER_COMMIT else again


@pytest.mark.slow
@pytest.mark.usefixtures("every_store")
@pytest.mark.parametrize(("strategy", "order", "store", "first"), spread(SAMPLED, 4))
def test_any_second_crash_is_simulated_as_it_really_goes(
    strategy: Strategy, order: Order, store: str, first: FailPoint, tmp_path: Path
):
    """The whole verdict is the same; a point that the next driver passes is reached in both, any other in neither.

    Whether recovery has a middle depends on how many transactions it finds.
    """
    reached = set()
    for number, second in enumerate((*POINTS[strategy, order], *RECOVERY_POINTS)):
        mine = simulated(strategy, order, store, [first, second])
        assert mine == real(strategy, order, store, [first, second], tmp_path / str(number)), second
        if mine is not None:
            reached.add(second)
    least, most = passed(strategy, order, first)
    assert least <= reached - {FailPoint.MID_RESOLVE} <= most, f"after {first}, {strategy} runs its batch again"


class TwoBatches(PlainEngine):
    """The plain engine with hello and world in one batch and hello in the next; the notification is prompt or lost."""

    prompt = True

    def verdict(self) -> Verdict:
        return judge(EXPECTED, History(self._events(), planned_batches=(PlannedBatch(0, 0, 2), PlannedBatch(1, 2, 3))))

    def _live(self, crash: Crash | None) -> None:
        coordinator = self._coordinator(crash)
        decided = [batch for batch in (0, 1) if (self.folder / f"commits-{batch}").exists()]
        list(coordinator.recover(max(decided, default=None)))
        for batch in (0, 1):
            if batch not in decided:
                self._run(coordinator, batch)
                (self.folder / f"commits-{batch}").touch()
                if self.prompt or batch:
                    coordinator.commit_log_durable(batch)

    def _run(self, coordinator: Coordinator, batch: int) -> None:
        reach = coordinator.reach
        reach(FailPoint.AFTER_OFFSET_LOG, batch)
        shares = [(1, [EXPECTED[1]]), (2, [EXPECTED[0]])] if batch == 0 else [(2, [EXPECTED[2]])]
        votes = []
        for partition, records in shares:
            first = partition != shares[-1][0]
            coordinator.sink.reach = (lambda *at: at[0] is FailPoint.MID_WRITE or reach(*at)) if first else reach
            rows = (Observation(*record, batch, self.drivers) for record in records)
            vote = coordinator.sink.pre_commit(Handle(QUERY, batch, partition, self.drivers, partition), rows)
            votes += [vote] if vote else []
        coordinator.sink.reach = reach
        coordinator.commit(batch, votes)


def two_batches(strategy: Strategy, order: Order, crash: Crash, folder: Path, *, prompt: bool) -> dict | None:
    engine = TwoBatches(folder, strategy, "files", order)
    engine.prompt = prompt
    if engine.drive(crash) != signal.SIGKILL:
        return None
    assert engine.drive() == 0
    return engine.verdict().to_json()


LOST = Cue(FailPoint.AFTER_COMMIT_LOG, ("lose_notice",))


def simulated_batches(strategy: Strategy, order: Order, crash: Crash, *, prompt: bool) -> dict | None:
    given = {"strategy": strategy.value, "records_per_batch": 2, "lost_notices": int(not prompt)}
    given |= {} if order is Order.NONE else {"order": order.value}
    try:
        return verdict_of(play(make("pipeline", given), [*([] if prompt else [LOST]), *crashes([crash])])).to_json()
    except JobFailed:
        return None


BATCHES = [
    (strategy, order, point, batch)
    for (strategy, order), points in POINTS.items()
    for point in points
    for batch in (0, 1)
    if not strategy.facts.replaces
]


LATE = [
    (strategy, order, point, batch)
    for strategy, order, point, batch in BATCHES
    if order is Order.DECISION and (batch or point in (FailPoint.MID_COMMIT, FailPoint.AFTER_COMMIT))
]
"""Behind a lost notification, batch 0 is committed by whoever stores the votes of batch 1; a crash may interrupt it."""


@pytest.mark.parametrize(
    ("strategy", "order", "point", "batch", "prompt"),
    [*((*each, True) for each in BATCHES), *((*each, False) for each in LATE)],
)
def test_a_crash_in_any_of_two_batches_is_simulated_as_it_really_goes(
    strategy: Strategy, order: Order, point: FailPoint, batch: int, prompt: bool, tmp_path: Path
):
    crash = Crash(point, batch)
    found = simulated_batches(strategy, order, crash, prompt=prompt)
    assert found == two_batches(strategy, order, crash, tmp_path, prompt=prompt)
    assert found is not None or (point, batch) == (FailPoint.MID_COMMIT, 1)
