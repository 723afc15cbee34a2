"""Every sink strategy, the failpoints that a batch passes with it, and the commit orders that it can take.

The simulators and the real runner use this one enumeration.
"""

from enum import StrEnum

from labkit.core.errors import InvalidInput
from labkit.core.failpoints import Crash, FailPoint, Order


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


_VISIBLE_AT_ONCE = (
    FailPoint.AFTER_OFFSET_LOG,
    FailPoint.MID_WRITE,
    FailPoint.AFTER_PRE_COMMIT,
    FailPoint.AFTER_COMMIT_LOG,
)
_BEFORE_COMMIT = (
    FailPoint.AFTER_OFFSET_LOG,
    FailPoint.MID_WRITE,
    FailPoint.BEFORE_PRE_COMMIT,
    FailPoint.AFTER_PRE_COMMIT,
)
_LOG_COMMIT = (FailPoint.MID_COMMIT, FailPoint.BEFORE_CONFIRM, FailPoint.AFTER_COMMIT)
_TRANSACTION_COMMIT = (FailPoint.MID_COMMIT, FailPoint.AFTER_COMMIT)
_DECISION = (FailPoint.AFTER_HANDLES, FailPoint.AFTER_COMMIT_LOG)

POINTS: dict[tuple[Strategy, Order], tuple[FailPoint, ...]] = {
    (Strategy.APPEND, Order.NONE): _VISIBLE_AT_ONCE,
    (Strategy.IDEMPOTENT, Order.NONE): _VISIBLE_AT_ONCE,
    (Strategy.BATCH_MARKER, Order.NONE): (
        FailPoint.AFTER_OFFSET_LOG,
        FailPoint.MID_WRITE,
        FailPoint.AFTER_PRE_COMMIT,
        FailPoint.AFTER_COMMIT,
        FailPoint.AFTER_COMMIT_LOG,
    ),
    (Strategy.WAL, Order.ENGINE): (*_BEFORE_COMMIT, *_LOG_COMMIT, FailPoint.AFTER_COMMIT_LOG),
    (Strategy.WAL, Order.DECISION): (*_BEFORE_COMMIT, *_DECISION, *_LOG_COMMIT),
    (Strategy.TWO_PHASE, Order.ENGINE): (*_BEFORE_COMMIT, *_TRANSACTION_COMMIT, FailPoint.AFTER_COMMIT_LOG),
    (Strategy.TWO_PHASE, Order.DECISION): (*_BEFORE_COMMIT, *_DECISION, *_TRANSACTION_COMMIT),
}
"""The points of every strategy and order, in the order in which a batch passes them."""


def orders(strategy: Strategy) -> tuple[Order, ...]:
    """The commit orders that a strategy can take; the first is its default."""
    deferring = (Order.DECISION, Order.ENGINE)
    return deferring if (strategy, Order.ENGINE) in POINTS else (Order.NONE,)


def check_crash(crash: Crash, strategy: Strategy, order: Order) -> None:
    """Refuses a point that the strategy does not pass in this order, naming those that it does pass."""
    points = POINTS[strategy, order]
    if crash.point in points or crash.point.in_recovery:
        return
    where = f"{strategy.value} {order.spoken}".rstrip()
    names = ", ".join(point.value for point in points)
    raise InvalidInput(f"{where} has no failpoint {crash.point.value}; it has {names}.")
