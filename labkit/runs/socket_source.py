"""Choose the times at which lines are sent to a socket source, so that each batch has a known content.

Spark's socket source puts into a batch the lines that have arrived when Spark plans the batch. Therefore labkit makes
Spark plan at known times, and sends the lines between them.
"""

import math
import time
from typing import TYPE_CHECKING

from labkit.host import durable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from labkit.spark.checkpoint import Checkpoint

SHORTEST = 4
"""The shortest interval in seconds between the plans of two batches; the first query of a driver needs up to 2 s."""

_FILE = "planned_every"
"""The file, in labkit's own folder of a checkpoint, with the seconds between two plans of the latest driver."""


class Plans:
    """The times at which Spark plans the batches of a driver's query: all multiples of `every` seconds since 1970.

    Spark's ProcessingTimeExecutor plans at these times. Lines that arrive between two of them are in one batch.
    """

    def __init__(self, every: int) -> None:
        self.every = every

    @classmethod
    def of_driver(cls, spark: "SparkSession", checkpoint: "Checkpoint") -> "Plans":
        """Choose the interval at which Spark plans batches for this driver's query, and store it in `checkpoint`.

        The process that sends the lines reads the interval there. The interval must be longer than the start of the
        query, which is slow on a busy machine. Therefore it is at least three times the time from the start of this
        process to the start of the Spark context.
        """
        import psutil

        context = spark.sparkContext.startTime / 1000
        plans = cls(max(SHORTEST, math.ceil(3 * (context - psutil.Process().create_time()))))
        durable.replace(checkpoint.log / _FILE, str(plans.every))
        return plans

    @classmethod
    def read(cls, checkpoint: "Checkpoint") -> "Plans | None":
        """Return the planning times of the query's latest driver; None if `checkpoint` contains no interval."""
        path = checkpoint.log / _FILE
        return cls(int(path.read_text(encoding="utf-8"))) if path.exists() else None

    def has_just_passed(self) -> bool:
        """Return whether less than a fifth of the current planning interval has passed.

        A query that starts now can then receive lines for almost a whole interval before it plans a batch.
        """
        return self._passed() < 0.2

    def is_between(self) -> bool:
        """Return whether it is about halfway between two planning times, so that lines sent now arrive in one batch."""
        return 0.4 < self._passed() < 0.6

    def is_near(self) -> bool:
        """Return whether the next planning time is so near that lines for its batch must be sent now."""
        return self._passed() > 0.8

    def _passed(self) -> float:
        """Return the fraction (0 to 1) of the current planning interval that has passed."""
        return time.time() % self.every / self.every


class SocketProgress:
    """Detects that a query has read all `lines` lines of its socket, because a socket source never ends by itself.

    If Spark had committed all lines before a restart, it plans no new batch. So 2.5 planning intervals without a new
    batch also count as the end.
    """

    def __init__(self, lines: int, checkpoint: "Checkpoint", plans: Plans) -> None:
        self._quiet = 2.5 * plans.every
        self._last_offset, self._planned = (lines - 1, max(checkpoint.offset_log(), default=-1))
        # -2 is neither a batch nor the -1 for "no batch yet", so that the first look always counts as progress.
        self._batch, self._since = -2, time.monotonic()

    def by(self, query: "StreamingQuery") -> bool:
        """Return whether the query has read all lines of its socket, judged by Spark's latest progress report."""
        progress = query.lastProgress
        batch = -1 if progress is None else progress["batchId"]
        if batch != self._batch:
            self._batch, self._since = batch, time.monotonic()
        if progress is not None and batch > self._planned:
            return int(progress["sources"][0]["endOffset"]) >= self._last_offset
        return batch >= 0 and time.monotonic() - self._since > self._quiet
