"""Choose the times at which lines are sent to a socket source, so that each batch has a known content.

Spark's socket source puts into a batch the lines that arrived before it planned the batch. Therefore plans happen
at known times, and lines are sent between them.
"""

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

    from labkit.spark.checkpoint import Checkpoint

PLANNED_EVERY = 4
"""The seconds between two plans of a batch. Spark plans at every multiple of them since 1970
(ProcessingTimeExecutor). The first query of a driver takes two of them to start on a busy machine.
"""


def just_planned() -> bool:
    """Return whether a plan has only just passed, so that a query which connects now has its lines before the next
    one.
    """
    return _passed() < 0.2


def between_plans() -> bool:
    """Return whether now is the middle between two plans, so that lines sent now arrive in one batch."""
    return 0.4 < _passed() < 0.6


def before_plan() -> bool:
    """Return whether the next plan is so near that lines must be sent now to arrive before it."""
    return _passed() > 0.6


def _passed() -> float:
    """Return the fraction (0 to 1) of the time between two plans that has passed since the last one."""
    return time.time() % PLANNED_EVERY / PLANNED_EVERY


class SocketProgress:
    """Detects when a query has read all lines that its current socket connection sends; their offsets begin at 0.

    Batches that an earlier driver planned say nothing about these lines. Lines whose offsets were committed
    before make no batch, so a query that is idle for `QUIET` seconds has read everything too.
    """

    QUIET = 2.5 * PLANNED_EVERY

    def __init__(self, lines: int, checkpoint: "Checkpoint") -> None:
        self._last_offset, self._planned = (lines - 1, max(checkpoint.offset_log(), default=-1))
        # Neither a batch nor the -1 that means no progress, so that the first look always counts as progress.
        self._batch, self._since = -2, time.monotonic()

    def by(self, query: "StreamingQuery") -> bool:
        """Return whether the query has read all lines that its socket sends, according to its latest progress
        report.
        """
        progress = query.lastProgress
        batch = -1 if progress is None else progress["batchId"]
        if batch != self._batch:
            self._batch, self._since = batch, time.monotonic()
        if progress is not None and batch > self._planned:
            return int(progress["sources"][0]["endOffset"]) >= self._last_offset
        return batch >= 0 and time.monotonic() - self._since > self.QUIET
