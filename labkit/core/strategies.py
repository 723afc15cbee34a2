"""One record of facts for every sink strategy: its failpoints with their words, its commit orders, and where its
rows wait.

Runs, simulators, cards and pictures use these facts and know no strategy by its name. The behaviour of a
strategy is implemented twice, on purpose: in `labkit/sinks`, and as a program of the simulator
(`labkit/sim/models/pipeline`).
"""

from dataclasses import dataclass
from enum import Enum, StrEnum, auto
from typing import NamedTuple, assert_never

from labkit.core.errors import InvalidInput
from labkit.core.failpoints import Crash, FailPoint, Order


class Step(NamedTuple):
    """A failpoint that a batch passes, with the state of the batch there and whether a crash leaves any of it on
    disk.
    """

    point: FailPoint
    words: str
    is_on_disk: bool = False


class Pending(Enum):
    """Where the rows of a batch wait until readers may see them."""

    NOWHERE = auto()
    """Tasks write rows that readers see at once."""
    DRIVER = auto()
    """Tasks write nothing: the driver holds all rows in one transaction, which ends with the driver."""
    LOG = auto()
    """Tasks write logs beside the checkpoint, which neither store nor reader knows."""
    STORE = auto()
    """Tasks write into transactions of the store, which outlive them."""


@dataclass(frozen=True, kw_only=True)
class StrategyFacts:
    """The facts of one strategy; every field without a default must be filled in."""

    pending: Pending
    write: tuple[Step, ...]
    """The steps from the batch's plan until all tasks have pre-committed."""
    commit: tuple[Step, ...]
    """The steps of the sink's commit; empty if rows are visible before it."""
    defers: bool = False
    """Whether the commit may follow `commits/N` (log-then-commit) as well as precede it (commit-then-log)."""
    replaces: bool = False
    """Whether a row replaces the earlier row of its key, so that readers find one value per key."""

    @property
    def orders(self) -> tuple[Order, ...]:
        """Return the commit orders that the strategy supports; the first is its default."""
        return (Order.DECISION, Order.ENGINE) if self.defers else (Order.NONE,)

    def steps(self, order: Order) -> tuple[Step, ...]:
        """Return the steps of a batch in one of the strategy's orders, in sequence."""
        if order is Order.DECISION:
            return (*self.write, VOTES, NOTED, *self.commit)
        return (*self.write, *self.commit, NOTED)

    def step(self, point: FailPoint) -> Step | None:
        """Return the step at a failpoint; None if the strategy never passes it."""
        return next((step for order in self.orders for step in self.steps(order) if step.point is point), None)


class Strategy(StrEnum):
    """How a sink makes the rows of a micro-batch readable for others."""

    APPEND = "append"
    """Rows are written at once and stay."""
    IDEMPOTENT = "idempotent"
    """Rows are upserted at once under a deterministic key."""
    BATCH_MARKER = "batch_marker"
    """Rows and (query, batch) are written in one transaction; a batch whose marker exists is skipped."""
    WAL = "wal"
    """Rows are logged first, flushed at the commit, and confirmed afterwards."""
    TWO_PHASE = "two_phase"
    """Rows are written into open transactions, which are pre-committed and later committed."""

    @property
    def facts(self) -> StrategyFacts:
        """Return the strategy's facts. A member without a branch here is a type error."""
        match self:
            case Strategy.APPEND:
                return _APPEND
            case Strategy.IDEMPOTENT:
                return _IDEMPOTENT
            case Strategy.BATCH_MARKER:
                return _BATCH_MARKER
            case Strategy.WAL:
                return _WAL
            case Strategy.TWO_PHASE:
                return _TWO_PHASE
            case _:
                assert_never(self)


PLAN = Step(FailPoint.AFTER_OFFSET_LOG, "offsets/0 is on disk", is_on_disk=True)
VOTES = Step(FailPoint.AFTER_HANDLES, "handles are on disk", is_on_disk=True)
NOTED = Step(FailPoint.AFTER_COMMIT_LOG, "commits/0 is on disk", is_on_disk=True)
"""What lies in the checkpoint, with any sink."""

_VISIBLE_AT_ONCE = (
    PLAN,
    Step(FailPoint.MID_WRITE, "the first row is in the store", is_on_disk=True),
    Step(FailPoint.AFTER_PRE_COMMIT, "all rows are in the store", is_on_disk=True),
)

_APPEND = StrategyFacts(pending=Pending.NOWHERE, write=_VISIBLE_AT_ONCE, commit=())

_IDEMPOTENT = StrategyFacts(pending=Pending.NOWHERE, write=_VISIBLE_AT_ONCE, commit=(), replaces=True)

_BATCH_MARKER = StrategyFacts(
    pending=Pending.DRIVER,
    write=(
        PLAN,
        Step(FailPoint.MID_WRITE, "the first row is in an open transaction"),
        Step(FailPoint.AFTER_PRE_COMMIT, "all rows are in an open transaction"),
    ),
    commit=(Step(FailPoint.AFTER_COMMIT, "rows and marker are in the store", is_on_disk=True),),
)

_WAL = StrategyFacts(
    pending=Pending.LOG,
    write=(
        PLAN,
        Step(FailPoint.MID_WRITE, "the first row is in an open log"),
        Step(FailPoint.BEFORE_PRE_COMMIT, "one task has logged all its rows"),
        Step(FailPoint.AFTER_PRE_COMMIT, "all logs are sealed", is_on_disk=True),
    ),
    commit=(
        Step(FailPoint.MID_COMMIT, "half of the log is in the store", is_on_disk=True),
        Step(FailPoint.BEFORE_CONFIRM, "the whole log is in the store, not confirmed", is_on_disk=True),
        Step(FailPoint.AFTER_COMMIT, "the log is confirmed", is_on_disk=True),
    ),
    defers=True,
)

_TWO_PHASE = StrategyFacts(
    pending=Pending.STORE,
    write=(
        PLAN,
        Step(FailPoint.MID_WRITE, "the first row is in an open transaction"),
        Step(FailPoint.BEFORE_PRE_COMMIT, "one task has written all its rows"),
        Step(FailPoint.AFTER_PRE_COMMIT, "all transactions are prepared, none is committed", is_on_disk=True),
    ),
    commit=(
        Step(FailPoint.MID_COMMIT, "some transactions are committed", is_on_disk=True),
        Step(FailPoint.AFTER_COMMIT, "all transactions are committed", is_on_disk=True),
    ),
    defers=True,
)

POINTS: dict[tuple[Strategy, Order], tuple[FailPoint, ...]] = {
    (strategy, order): tuple(step.point for step in strategy.facts.steps(order))
    for strategy in Strategy
    for order in Order
    if order in strategy.facts.orders
}
"""The failpoints of every strategy and order, in the order in which a batch passes them."""


def orders(strategy: Strategy) -> tuple[Order, ...]:
    """Return the commit orders that a strategy supports; the first is its default."""
    return strategy.facts.orders


def check_crash(crash: Crash, strategy: Strategy, order: Order) -> None:
    """Raise `InvalidInput`, listing the failpoints of the strategy, if it does not pass this one in this order."""
    points = POINTS[strategy, order]
    if crash.point in points or crash.point.in_recovery:
        return
    where = f"{strategy.value} {order.spoken}".rstrip()
    names = ", ".join(point.value for point in points)
    raise InvalidInput(f"{where} has no failpoint {crash.point.value}; it has {names}.")
