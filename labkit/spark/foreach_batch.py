"""The foreachBatch door: a sink strategy in the driver, behind `writeStream.foreachBatch`.

What a Python Data Source cannot take, update mode, comes in here; most people write their sinks this way. The rows of
a batch are dealt to participants in order of their keys, so that a commit has a middle. This module must not start a
query: `labkit.spark.start` locks the checkpoint and recovers first.
"""

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING

from labkit.failpoints import FailPoint
from labkit.records import Observation
from labkit.sinks import Coordinator, Vote
from labkit.sinks.coordinator import pass_offset_log
from labkit.spark.data_source import SinkOptions
from labkit.stores.contract import Handle

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

PARTICIPANTS = 3
"""Transactions that the rows of a batch are dealt to."""


class BatchDoor:
    """Called by Spark with every micro-batch, in the driver, and again with the same batch after a crash."""

    def __init__(self, options: SinkOptions) -> None:
        self._options = options

    def __call__(self, frame: "DataFrame", batch: int) -> None:
        """Writes, pre-commits and commits one batch; `frame` has the columns offset, key, value."""
        coordinator = self._options.coordinator()
        try:
            pass_offset_log(coordinator.reach, batch)
            parts = deal(self._rows(frame, batch))
            votes = [self._vote(coordinator, batch, part, number, len(parts)) for number, part in enumerate(parts)]
            coordinator.commit(batch, [vote for vote in votes if vote is not None])
        finally:
            coordinator.sink.store.close()

    def _rows(self, frame: "DataFrame", batch: int) -> list[Observation]:
        table = frame.toArrow().sort_by("key")
        offsets, keys, values = (table.column(name).to_pylist() for name in ("offset", "key", "value"))
        attempt = self._options.incarnation
        rows = zip(offsets, keys, values, strict=True)
        return [Observation(offset, key, value, batch, attempt) for offset, key, value in rows]

    def _vote(
        self, coordinator: Coordinator, batch: int, rows: Sequence[Observation], number: int, parts: int
    ) -> Vote | None:
        """One participant's turn; the middle of the write lies in the last one."""

        def reach(point: FailPoint, batch: int) -> None:
            if point is not FailPoint.MID_WRITE or number == parts - 1:
                coordinator.reach(point, batch)

        sink = replace(coordinator.sink, reach=reach)
        return sink.pre_commit(Handle(sink.query, batch, number, sink.incarnation, 0), iter(rows))


def deal(rows: Sequence[Observation]) -> list[Sequence[Observation]]:
    """The rows in at most `PARTICIPANTS` runs of nearly equal length, none of them empty."""
    ends = [len(rows) * part // PARTICIPANTS for part in range(PARTICIPANTS + 1)]
    return [rows[begin:end] for begin, end in pairwise(ends) if begin < end]
