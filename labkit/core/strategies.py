"""Every sink strategy as one record of facts: its failpoints with their words, its orders, and where its rows wait.

Runs, simulators, cards and pictures ask these facts and know no strategy by its name. What a strategy does is written
down twice more, on purpose: in `labkit/sinks`, and as a program of the simulator (`labkit/sim/models/pipeline`).
"""

from dataclasses import dataclass
from enum import Enum, StrEnum, auto
from typing import NamedTuple, assert_never

from labkit.core.errors import InvalidInput
from labkit.core.failpoints import Crash, FailPoint, Order


class Step(NamedTuple):
    """A failpoint that a batch passes: what has happened by then, and whether a crash leaves some of it on disk."""

    point: FailPoint
    words: str
    is_on_disk: bool = False


class Pending(Enum):
    """Where the rows of a batch wait until readers may see them."""

    NOWHERE = auto()
    """Tasks write rows that readers see at once."""
    DRIVER = auto()
    """Tasks write nothing: the driver holds all rows in one transaction that dies with it."""
    LOG = auto()
    """Tasks write logs beside the checkpoint, which no store and no reader knows."""
    STORE = auto()
    """Tasks write into transactions of the store, which outlive them."""


@dataclass(frozen=True, kw_only=True)
class StrategyFacts:
    """What the rest of the lab must know of a strategy; every field without a default has to be answered."""

    pending: Pending
    write: tuple[Step, ...]
    """From the plan of the batch until all tasks have pre-committed."""
    commit: tuple[Step, ...]
    """The sink's commit; empty where rows are visible already."""
    defers: bool = False
    """Whether the commit can come after `commits/N` (log-then-commit) as well as before it (commit-then-log)."""
    replaces: bool = False
    """Whether a row replaces the earlier row of its key, so that readers find one value of each key."""

    @property
    def orders(self) -> tuple[Order, ...]:
        """The commit orders that the strategy can take; the first is its default."""
        return (Order.DECISION, Order.ENGINE) if self.defers else (Order.NONE,)

    def steps(self, order: Order) -> tuple[Step, ...]:
        """The steps of a batch in one of the strategy's orders, as the batch passes them."""
        if order is Order.DECISION:
            return (*self.write, VOTES, NOTED, *self.commit)
        return (*self.write, *self.commit, NOTED)

    def step(self, point: FailPoint) -> Step | None:
        """The step at a failpoint; None where the strategy passes it in none of its orders."""
        return next((step for order in self.orders for step in self.steps(order) if step.point is point), None)


class Strategy(StrEnum):
    """How a sink turns the rows of a micro-batch into something that others can read."""

    APPEND = "append"
    """Rows are written at once and stay."""
    IDEMPOTENT = "idempotent"
    """Rows are upserted at once under a deterministic key."""
    BATCH_MARKER = "batch_marker"
    """Rows and (query, batch) are written in one transaction; a batch whose marker is there is skipped."""
    WAL = "wal"
    """Rows are logged first, flushed when told to commit, and confirmed a second time afterwards."""
    TWO_PHASE = "two_phase"
    """Rows are written into open transactions, which are pre-committed, and committed when told."""

    @property
    def facts(self) -> StrategyFacts:
        """The strategy's record of facts. A member without a branch here is a type error."""
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
"""The points of every strategy and order, in the order in which a batch passes them."""


def orders(strategy: Strategy) -> tuple[Order, ...]:
    """The commit orders that a strategy can take; the first is its default."""
    return strategy.facts.orders


def check_crash(crash: Crash, strategy: Strategy, order: Order) -> None:
    """Refuses a point that the strategy does not pass in this order, naming those that it does pass."""
    points = POINTS[strategy, order]
    if crash.point in points or crash.point.in_recovery:
        return
    where = f"{strategy.value} {order.spoken}".rstrip()
    names = ", ".join(point.value for point in points)
    raise InvalidInput(f"{where} has no failpoint {crash.point.value}; it has {names}.")
