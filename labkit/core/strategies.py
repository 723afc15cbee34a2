"""One record of facts for every sink strategy: its failpoints with descriptions, its commit orders, the capability that
its store needs, where its rows wait, and the operations of its commit and its recovery.

Runs, simulators, cards and pictures use these facts instead of testing for a strategy's name. The behaviour of a
strategy is implemented twice, on purpose: the sink (`labkit/sinks`) writes to real stores, and the simulator carries
out the operations that the record lists (`labkit/sim/models/pipeline`).
"""

from dataclasses import dataclass, replace
from enum import Enum, StrEnum, auto
from typing import Literal, NamedTuple, assert_never

from labkit.core.errors import InvalidInput
from labkit.core.failpoints import Crash, FailPoint, Order


class Step(NamedTuple):
    """A failpoint (crash point) of a micro-batch: the work done before it, and whether this work survives a crash."""

    point: FailPoint
    words: str
    is_on_disk: bool = False


class Op(StrEnum):
    """One atomic operation of a sink's task or driver. The simulator can crash between any two operations."""

    __hash__ = str.__hash__  # fast, because a search hashes every state that it reaches

    WRITE = "write"
    """A row becomes visible at once (append, idempotent)."""
    HAND_OVER = "hand_over"
    """A row goes into the driver's only open transaction, which is lost when the driver dies (batch_marker)."""
    INSERT = "insert"
    """A row goes into the open transaction of a task, which survives the task (two_phase)."""
    LOG = "log"
    """A row goes into a log, which recovery ignores until the log is sealed (wal)."""
    PREPARE = "prepare"
    """A task pre-commits its transaction, and by that votes to commit the batch."""
    SEAL = "seal"
    """A task closes its log, and by that votes to commit. The log replaces the one of an earlier attempt (wal)."""
    LOOK = "look"
    """The driver looks for a marker or a confirmation of the batch; if there is one, it skips the batch."""
    COMMIT = "commit"
    """A participant's transaction is committed, so its rows become visible."""
    FLUSH = "flush"
    """One row of the log is written to the store and becomes visible."""
    CONFIRM = "confirm"
    """The sink records durably that it has written the whole log of a batch to the store (wal)."""
    MARK = "mark"
    """The rows of a batch and its marker are committed together."""
    STORE_HANDLES = "store_handles"
    """The driver stores durably which tasks of a batch have voted to commit, with their transactions."""
    LOG_COMMIT = "log_commit"
    """The file `commits/N`, which records batch N as finished, becomes durable."""
    TELL = "tell"
    """The engine notifies the sink that a batch is finished. The sink does nothing, as it has already committed."""
    FORGET = "forget"
    """The driver deletes the stored votes of a batch."""
    ABORT = "abort"
    """Recovery aborts a transaction whose batch has no `commits/N`."""
    RESOLVED = "resolved"
    """Recovery has finished or aborted every transaction, and deletes the stored votes."""


CommitOp = Literal[Op.LOOK, Op.COMMIT, Op.FLUSH, Op.CONFIRM, Op.MARK]
"""The operations of which a sink's commit may consist."""

Ability = Literal["Appendable", "Keyed", "Atomic", "Transactional"]
"""The capability that a strategy needs from its store: the name of a protocol in `labkit.stores.contract`."""


class Pending(Enum):
    """Where a sink keeps the rows of a micro-batch until readers may see the rows."""

    NOWHERE = auto()
    """Tasks write rows that readers see at once."""
    DRIVER = auto()
    """Tasks write nothing: the driver holds all rows in one transaction, which ends with the driver."""
    LOG = auto()
    """Tasks write log files next to the checkpoint, which readers of the store do not see."""
    STORE = auto()
    """Tasks write into transactions of the store, which outlive them."""


@dataclass(frozen=True, kw_only=True)
class StrategyFacts:
    """The facts about one strategy of writing: its failpoints, its commit, and its recovery after a crash."""

    needs: Ability
    """The capability (a protocol of `labkit.stores.contract`) that a store must have to support the strategy."""
    pending: Pending
    write: tuple[Step, ...]
    """The failpoints from the batch's plan until all tasks have pre-committed."""
    commit: tuple[Step, ...]
    """The failpoints of the sink's commit; empty if rows are visible as soon as they are written."""
    commit_ops: tuple[CommitOp, ...]
    """The operations of the sink's commit in sequence; each is carried out for every row, transaction or batch."""
    recovery_ops: tuple[CommitOp | Literal[Op.ABORT], ...]
    """The operations of a restarted driver for each decided batch; `ABORT` aborts all other unfinished transactions."""
    looks_first: bool = False
    """Whether the driver looks for the batch's marker before it writes anything."""
    defers: bool = False
    """Whether the commit may follow `commits/N` (log-then-commit) as well as precede it (commit-then-log)."""
    replaces: bool = False
    """Whether a row replaces the earlier row of its key, so that readers find one value per key."""

    @property
    def orders(self) -> tuple[Order, ...]:
        """Return the commit orders that the strategy supports. The first order is the strategy's default."""
        return (Order.DECISION, Order.ENGINE) if self.defers else (Order.NONE,)

    def steps(self, order: Order) -> tuple[Step, ...]:
        """Return the steps of a micro-batch in this commit order, first to last: its failpoints, with descriptions."""
        if order is Order.DECISION:
            return (*self.write, VOTES, NOTED, *self.commit)
        return (*self.write, *self.commit, NOTED)

    def step(self, point: FailPoint) -> Step | None:
        """Return the step of this strategy at the failpoint `point`; None if the strategy never passes it."""
        return next((step for order in self.orders for step in self.steps(order) if step.point is point), None)


class Strategy(StrEnum):
    """The way in which a sink writes a micro-batch and makes its rows visible, such as append or two-phase commit."""

    APPEND = "append"
    """Rows are written at once and stay."""
    IDEMPOTENT = "idempotent"
    """Rows are upserted at once under a deterministic key."""
    BATCH_MARKER = "batch_marker"
    """Rows and a marker with query and batch are committed together; a batch whose marker exists is skipped."""
    WAL = "wal"
    """Rows are written to a log first. The commit copies the log to the store, and then records that it has done so."""
    TWO_PHASE = "two_phase"
    """Rows are written into open transactions, which are pre-committed and later committed."""

    @property
    def facts(self) -> StrategyFacts:
        """Return the facts of this strategy, such as its failpoints and its operations."""
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
"""`PLAN`, `VOTES` and `NOTED` are failpoints at which a file of the checkpoint is durable; all sinks share them."""

_VISIBLE_AT_ONCE = (
    PLAN,
    Step(FailPoint.MID_WRITE, "the first row is in the store", is_on_disk=True),
    Step(FailPoint.AFTER_PRE_COMMIT, "all rows are in the store", is_on_disk=True),
)

_APPEND = StrategyFacts(
    needs="Appendable", pending=Pending.NOWHERE, write=_VISIBLE_AT_ONCE, commit=(), commit_ops=(), recovery_ops=()
)

_IDEMPOTENT = replace(_APPEND, needs="Keyed", replaces=True)

_BATCH_MARKER = StrategyFacts(
    needs="Atomic",
    pending=Pending.DRIVER,
    write=(
        PLAN,
        Step(FailPoint.MID_WRITE, "the first row is in an open transaction"),
        Step(FailPoint.AFTER_PRE_COMMIT, "all rows are in an open transaction"),
    ),
    commit=(Step(FailPoint.AFTER_COMMIT, "rows and marker are in the store", is_on_disk=True),),
    commit_ops=(Op.MARK,),
    recovery_ops=(),
    looks_first=True,
)

_WAL = StrategyFacts(
    needs="Appendable",
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
    commit_ops=(Op.LOOK, Op.FLUSH, Op.CONFIRM),
    recovery_ops=(Op.FLUSH, Op.CONFIRM),
    defers=True,
)

_TWO_PHASE = StrategyFacts(
    needs="Transactional",
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
    commit_ops=(Op.COMMIT,),
    recovery_ops=(Op.COMMIT, Op.ABORT),
    defers=True,
)

POINTS: dict[tuple[Strategy, Order], tuple[FailPoint, ...]] = {
    (strategy, order): tuple(step.point for step in strategy.facts.steps(order))
    for strategy in Strategy
    for order in Order
    if order in strategy.facts.orders
}
"""For every strategy and commit order, the failpoints in the order in which a batch passes them."""


def orders(strategy: Strategy) -> tuple[Order, ...]:
    """Return the commit orders that a strategy supports. The first order is the strategy's default."""
    return strategy.facts.orders


def check_crash(crash: Crash, strategy: Strategy, order: Order) -> None:
    """Raise `InvalidInput` if the strategy never passes the failpoint of `crash` in this commit order.

    The error's message lists the failpoints that the strategy passes.
    """
    points = POINTS[strategy, order]
    if crash.point in points or crash.point.in_recovery:
        return
    sink = f"{strategy.value} {order.spoken}".rstrip()
    names = ", ".join(point.value for point in points)
    raise InvalidInput(f"{sink} has no failpoint {crash.point.value}; it has {names}.")
