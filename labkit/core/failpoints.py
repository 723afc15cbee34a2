"""All failpoints by name: the points of a batch at which labkit can kill a run. Each has a sentence for learners.

A failpoint's name states what the sink, source or engine has done by then, not which callback runs. Simulators and real
runs use the same failpoints. In a real run, `labkit.spark.reach` stops a process at a failpoint, and
`labkit.host.processes.supervisor` kills it.
"""

from collections.abc import Callable
from enum import StrEnum
from typing import NamedTuple

from labkit.core.errors import InvalidInput
from labkit.core.words import nearest


class Order(StrEnum):
    """Whether a sink commits a micro-batch before or after Spark writes `commits/N`, which records it as finished."""

    ENGINE = "engine"
    """Spark's own order: the sink commits, then Spark writes `commits/N`."""
    DECISION = "decision"
    """Flink's order: the prepared transactions are recorded, `commits/N` is the decision, then the sink commits."""
    NONE = "none"
    """The strategy has no commit of its own (rows are visible at once), so there is no order to choose."""

    @property
    def spoken(self) -> str:
        """Return the course's name for this commit order, such as `commit-then-log`; an empty text for `NONE`."""
        return {Order.ENGINE: "commit-then-log", Order.DECISION: "log-then-commit"}.get(self, "")


class FailPoint(StrEnum):
    """A point in the processing of a micro-batch, or in a recovery, at which labkit can kill a run."""

    AFTER_OFFSET_LOG = "source.after_offset_log"
    MID_WRITE = "sink.mid_write"
    BEFORE_PRE_COMMIT = "sink.before_pre_commit"
    AFTER_PRE_COMMIT = "sink.after_pre_commit"
    AFTER_HANDLES = "coordinator.after_handles"
    MID_COMMIT = "sink.mid_commit"
    BEFORE_CONFIRM = "sink.before_confirm"
    AFTER_COMMIT = "sink.after_commit"
    AFTER_COMMIT_LOG = "engine.after_commit_log"
    BEFORE_RESOLVE = "recovery.before_resolve"
    MID_RESOLVE = "recovery.mid_resolve"
    AFTER_RESOLVE = "recovery.after_resolve"

    @property
    def sentence(self) -> str:
        """Return a sentence for learners that describes the state of the micro-batch at this failpoint."""
        return SENTENCES[self]

    @property
    def in_recovery(self) -> bool:
        """Return whether the point is in a restarted Spark driver's recovery, which runs before the query starts."""
        return self.value.startswith("recovery.")

    @property
    def in_task(self) -> bool:
        """Return whether the point is inside a Spark task. When a task reaches it, other tasks may be at any stage."""
        return self in IN_TASK


SENTENCES = {
    FailPoint.AFTER_OFFSET_LOG: "The batch is planned: offsets/N is durable, and no task has written anything.",
    FailPoint.MID_WRITE: "The first row of the last non-empty partition has been written.",
    FailPoint.BEFORE_PRE_COMMIT: "All rows of one task have been written, but that task has not pre-committed.",
    FailPoint.AFTER_PRE_COMMIT: (
        "All tasks have pre-committed, and the batch is not committed: the moment between pre-commit and commit. "
        "A sink without a commit of its own, such as append, has shown its rows already."
    ),
    FailPoint.AFTER_HANDLES: "The handles of the batch are durable, but commits/N, the decision, is not.",
    FailPoint.MID_COMMIT: (
        "Some participants have committed and others have not (a sink with a log has flushed half of it)."
    ),
    FailPoint.BEFORE_CONFIRM: "The log has been flushed, but the second confirmation, which notes this, is missing.",
    FailPoint.AFTER_COMMIT: "All participants have committed (a sink with a log has also confirmed it).",
    FailPoint.AFTER_COMMIT_LOG: "The engine has recorded the batch as finished: commits/N is durable.",
    FailPoint.BEFORE_RESOLVE: "A restarted driver has read the decisions, but has resolved no transaction yet.",
    FailPoint.MID_RESOLVE: "A restarted driver has resolved the first of several transactions that were in doubt.",
    FailPoint.AFTER_RESOLVE: "A restarted driver has resolved everything in doubt, but has replayed nothing yet.",
}

IN_TASK = frozenset({FailPoint.AFTER_OFFSET_LOG, FailPoint.MID_WRITE, FailPoint.BEFORE_PRE_COMMIT})
"""The failpoints (crash points) inside a Spark task. With foreachBatch the driver passes them, as it writes rows."""

RECOVERY_POINTS = (FailPoint.BEFORE_RESOLVE, FailPoint.MID_RESOLVE, FailPoint.AFTER_RESOLVE)


class Extent(StrEnum):
    """How much of a step of a micro-batch, such as writing its rows, is done: nothing, a part, or all of it."""

    NOT = "not at all"
    PART = "in part"
    WHOLE = "wholly"


class BatchProgress(NamedTuple):
    """How much of a micro-batch is written at a failpoint (crash point), and how much is pre-committed."""

    written: Extent
    pre_committed: Extent


UNFINISHED = {
    FailPoint.AFTER_OFFSET_LOG: BatchProgress(Extent.NOT, Extent.NOT),
    FailPoint.MID_WRITE: BatchProgress(Extent.PART, Extent.NOT),
    FailPoint.BEFORE_PRE_COMMIT: BatchProgress(Extent.PART, Extent.NOT),
}
"""The failpoints before a micro-batch is completely written and pre-committed, each with how far the batch is."""


def progress_at(point: FailPoint) -> BatchProgress:
    """Return how much of a micro-batch is written at this failpoint (crash point), and how much is pre-committed."""
    return UNFINISHED.get(point, BatchProgress(Extent.WHOLE, Extent.WHOLE))


class EngineLogs(NamedTuple):
    """Whether Spark's checkpoint contains the files `offsets/N` (batch N is planned) and `commits/N` (finished)."""

    planned: bool
    finished: bool


_AFTER_THE_DECISION = (FailPoint.MID_COMMIT, FailPoint.BEFORE_CONFIRM, FailPoint.AFTER_COMMIT)
"""Failpoints that the sink passes only after `commits/N` is durable, if the commit order is log-then-commit."""


def engine_logs(point: FailPoint, order: Order) -> EngineLogs | None:
    """Return whether the files `offsets/N` and `commits/N` of batch N exist after a kill at this failpoint.

    `order` is the sink's commit order. Returns None for a failpoint of a recovery, which writes neither file.
    """
    if point.in_recovery:
        return None
    is_decided = order is Order.DECISION and point in _AFTER_THE_DECISION
    return EngineLogs(planned=True, finished=is_decided or point is FailPoint.AFTER_COMMIT_LOG)


class Crash(NamedTuple):
    """A planned kill of a run at a failpoint (crash point) of a micro-batch. In a recovery, `batch` is 0."""

    point: FailPoint
    batch: int = 0

    def __str__(self) -> str:
        return self.point.value if self.point.in_recovery else f"{self.point.value}@{self.batch}"


Reach = Callable[[FailPoint, int], None]
"""A function that is called at each failpoint with the batch. It returns at once unless a crash is planned there."""


def pass_by(point: FailPoint, batch: int) -> None:
    """Do nothing. A run without a planned kill calls this function at each failpoint (crash point)."""


def parse_crash(text: str) -> Crash:
    """Return the planned kill that a user typed as `POINT` or `POINT@BATCH`. Raises `InvalidInput` for other texts."""
    name, at, number = text.partition("@")
    names = [point.value for point in FailPoint]
    if name not in names:
        raise InvalidInput(f"--crash {text}: there is no failpoint {name!r}; {nearest(name, names)}")
    if at and not (number.isascii() and number.isdigit() and len(number) <= 9):
        raise InvalidInput(f"--crash {text}: the batch must be a whole number from 0, as in {name}@0.")
    point = FailPoint(name)
    if at and point.in_recovery:
        raise InvalidInput(
            f"--crash {text}: the failpoint {name} is in recovery, outside of any batch; leave @{number} out."
        )
    return Crash(point, int(number) if at else 0)
