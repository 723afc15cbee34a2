"""The foreachBatch adapter: a sink strategy in the driver, called by `writeStream.foreachBatch`.

Update mode needs this adapter because a Python Data Source does not support it; most people also write their sinks this
way. The adapter divides the rows of a batch, in the order of their keys, among two transactions, so that a crash can
happen between the two commits. Start queries with `labkit.spark.start`, which locks the checkpoint and recovers first.
"""

import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING

from labkit.core.failpoints import FailPoint
from labkit.core.records import Observation
from labkit.sinks import Coordinator, Vote
from labkit.sinks.coordinator import pass_offset_log
from labkit.spark.adapters.data_source import SinkOptions
from labkit.spark.stopwatch import Stopwatch
from labkit.stores.contract import Handle

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

PARTICIPANTS = 2
"""The number of transactions per batch: the smallest that allows a crash between two commits. Each costs an fsync."""


class ForeachBatchAdapter:
    """The function to pass to `foreachBatch`: it writes each micro-batch with a sink strategy of the lab."""

    def __init__(self, options: SinkOptions) -> None:
        self._options = options

    def __call__(self, frame: "DataFrame", batch: int) -> None:
        """Write, pre-commit and commit the rows of one micro-batch; `frame` has the columns offset, key, value."""
        coordinator, watch = self._options.coordinator(), Stopwatch(self._options.log, batch)
        with closing(coordinator.sink.store):
            pass_offset_log(coordinator.reach, batch)
            with watch.phase("collect"):
                parts = deal(self._rows(frame, batch))
            with watch.phase("write"):
                votes = [self._vote(coordinator, batch, parts, number, watch) for number in range(len(parts))]
            with watch.phase("commit"):
                coordinator.commit(batch, [vote for vote in votes if vote is not None])
        watch.keep()

    def _rows(self, frame: "DataFrame", batch: int) -> list[Observation]:
        # Sorted, because a shuffle does not fix the order of rows, and a replay must put the same rows into the same
        # transaction.
        table = frame.toArrow().sort_by("key")
        offsets, keys, values = (table.column(name).to_pylist() for name in ("offset", "key", "value"))
        attempt = self._options.incarnation
        rows = zip(offsets, keys, values, strict=True)
        return [Observation(offset, key, value, batch, attempt) for offset, key, value in rows]

    def _vote(
        self,
        coordinator: Coordinator,
        batch: int,
        parts: Sequence[Sequence[Observation]],
        number: int,
        watch: Stopwatch,
    ) -> Vote | None:
        """Write and pre-commit one part of a batch, `parts[number]`; return its vote, or None if it needs no commit.

        A crash planned in the middle of a write happens in the last of the `parts`. `watch` measures the time.
        """
        written: list[float] = []

        def reach(point: FailPoint, batch: int) -> None:
            if point is not FailPoint.MID_WRITE or number == len(parts) - 1:
                coordinator.reach(point, batch)
            if point is FailPoint.BEFORE_PRE_COMMIT:
                written.append(time.perf_counter())

        # A copy of the sink that calls the function above at its failpoints.
        sink = replace(coordinator.sink, reach=reach)
        vote = sink.pre_commit(Handle(sink.query, batch, number, sink.incarnation, 0), iter(parts[number]))
        if written:
            watch.move(time.perf_counter() - written[-1], out_of="write", to="pre_commit")
        return vote


def deal(rows: Sequence[Observation]) -> list[Sequence[Observation]]:
    """Split the rows into at most `PARTICIPANTS` consecutive parts of nearly equal length, one for each transaction."""
    ends = [len(rows) * part // PARTICIPANTS for part in range(PARTICIPANTS + 1)]
    return [rows[begin:end] for begin, end in pairwise(ends) if begin < end]
