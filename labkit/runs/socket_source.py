"""When a query on a socket plans its batches, when its lines are sent to it, and when it has read them all.

Spark's socket source gives a batch the lines that have come by the moment of the plan. So the moments of the plans are
known, and lines are sent between them.
"""

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

    from labkit.spark.checkpoint import Checkpoint

PLANNED_EVERY = 2
"""Seconds between two plans. Spark plans whenever the time since 1970 is a multiple of them (ProcessingTimeExecutor).
"""


def just_planned() -> bool:
    """Whether the next plan is far away: a query that connects now has its lines by then."""
    return _passed() < 0.2


def between_plans() -> bool:
    """Whether plans are far away on both sides: lines that are sent now come into one batch."""
    return 0.4 < _passed() < 0.6


def _passed() -> float:
    """Which part of the time between two plans has passed."""
    return time.time() % PLANNED_EVERY / PLANNED_EVERY


class SocketProgress:
    """Knows whether a query on a socket has read the lines that this connection sends; their offsets begin at 0.

    A batch that an earlier driver planned says nothing about them. Lines under offsets that are taken already make no
    batch, so a query that does nothing for `QUIET` seconds has nothing left to do either.
    """

    QUIET = 5.0

    def __init__(self, lines: int, checkpoint: "Checkpoint") -> None:
        self._last_offset, self._planned = (lines - 1, max(checkpoint.offset_log(), default=-1))
        # Neither a batch nor the -1 for no progress, so that the first look always
        # counts as news.
        self._batch, self._since = -2, time.monotonic()

    def by(self, query: "StreamingQuery") -> bool:
        """Looks at the query's progress, and says whether it has read all lines."""
        progress = query.lastProgress
        batch = -1 if progress is None else progress["batchId"]
        if batch != self._batch:
            self._batch, self._since = batch, time.monotonic()
        if progress is not None and batch > self._planned:
            return int(progress["sources"][0]["endOffset"]) >= self._last_offset
        return batch >= 0 and time.monotonic() - self._since > self.QUIET
