"""Check whether three timeouts fit together: the checkpoint's, the transaction's, and the broker's maximum.

A common rule is: transaction timeout > (tolerated failures + 1) x (interval + checkpoint timeout) + downtime. That is
too short if a checkpoint may take longer than (tolerated failures + 1) intervals, and otherwise long enough. The module
uses `longest_open` instead, which an exhaustive search of the simulator confirms.
"""

from enum import StrEnum
from typing import NamedTuple

from labkit.core.errors import InvalidInput


class Timeouts(NamedTuple):
    """The checkpoint interval and the timeouts of a job that writes Kafka transactions, in seconds.

    `pause` is the minimum time from the end of a checkpoint to the start of the next.
    """

    interval: float
    checkpoint: float
    transaction: float
    maximum: float = 900.0
    """The broker's transaction.max.timeout.ms, 15 minutes by default."""
    pause: float = 0.0
    tolerated: int = 0
    """The number of checkpoints in a row that may expire before the job fails."""
    downtime: float = 0.0
    """The longest time from a crash until the restarted job has committed all decided transactions."""


class Fit(StrEnum):
    """Whether a job with certain timeouts is safe, can lose data, or does not even start."""

    SAFE = "safe"
    LOSES = "can lose data"
    REFUSED = "refused at start"


class Examination(NamedTuple):
    """The result of `examine`: whether the job is safe (`fit`), and why.

    `needed` is the number of seconds that the transaction timeout must exceed.
    """

    fit: Fit
    needed: float
    because: str


def longest_open(interval: float, checkpoint_timeout: float, tolerated: int, downtime: float) -> float:
    """Return the longest time that a transaction can be open, from its first record to its commit.

    All times have the same unit. In the worst case, the first record comes just after a checkpoint barrier. The next
    checkpoint starts after `interval`, or when the running checkpoint ends if that takes longer. Then `tolerated`
    checkpoints expire one after the other, and each time the next checkpoint takes over the transactions. The last
    checkpoint takes all of `checkpoint_timeout`, and then the job is down for `downtime`.
    """
    return (tolerated + 1) * max(interval, checkpoint_timeout) + checkpoint_timeout + downtime


def examine(timeouts: Timeouts) -> Examination:
    """Check whether a job with these timeouts starts, and whether it can lose data.

    Raises `InvalidInput` if a value is negative, or if a value that must be positive is 0.
    """
    _check(timeouts)
    interval = max(timeouts.interval, timeouts.checkpoint + timeouts.pause) if timeouts.pause else timeouts.interval
    needed = longest_open(interval, timeouts.checkpoint, timeouts.tolerated, timeouts.downtime)
    if timeouts.transaction > timeouts.maximum:
        return Examination(Fit.REFUSED, needed, _refused(timeouts, needed))
    if timeouts.transaction > needed:
        return Examination(Fit.SAFE, needed, f"a transaction is open for at most {needed:g} s, less than its timeout")
    return Examination(Fit.LOSES, needed, _loses(timeouts, interval, needed))


def _check(timeouts: Timeouts) -> None:
    for name, value in timeouts._asdict().items():
        least_is_zero = name in {"pause", "tolerated", "downtime"}
        if value < 0 or (value == 0 and not least_is_zero):
            raise InvalidInput(f"--{name} {value:g}: must be {'0 or more' if least_is_zero else 'more than 0'}.")


def _refused(timeouts: Timeouts, needed: float) -> str:
    remedy = f"set the transaction timeout to more than {needed:g} s and at most {timeouts.maximum:g} s"
    if needed >= timeouts.maximum:
        remedy = f"raise transaction.max.timeout.ms above {needed:g} s, which this job needs"
    return (
        f"the producer asks for {timeouts.transaction:g} s, but the broker allows only {timeouts.maximum:g} s and "
        f"answers INVALID_TRANSACTION_TIMEOUT when the producer starts; {remedy}"
    )


def _loses(timeouts: Timeouts, interval: float, needed: float) -> str:
    how = f"a transaction can be open for {needed:g} s and is aborted after {timeouts.transaction:g} s"
    if timeouts.transaction < interval:
        when = (
            "under steady traffic, writes fail in a crash loop without loss; a burst before a silence is lost, because "
            "the checkpoint completes and only the commit is refused; records just before a barrier survive"
        )
    else:
        when = "a slow or expired checkpoint, or a long restart after the decision, is enough to lose its records"
    return f"{how}: {when}"
