"""Batch marker: one transaction writes the rows of a batch and a marker; a batch whose marker exists is skipped.

One transaction needs one writer, so tasks send their rows to the driver, which suits small results only. The marker is
(query, batch): batch ids start again at 0 with a new checkpoint, and a marker without the query would make the sink
skip new data.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import ClassVar

from labkit.core.records import Observation
from labkit.sinks.contract import Sink, SinkClass, Vote, announce_first_write
from labkit.stores.contract import Atomic, Handle


class BatchMarkerSink(Sink[Atomic]):
    """A sink, common in foreachBatch: one transaction writes a batch's rows and a marker that the batch is done."""

    bears_speculation: ClassVar[bool] = True  # tasks write nothing: their rows go to the driver with the vote

    def pre_commit(self, handle: Handle, rows: Iterator[Observation]) -> Vote | None:
        """Return a vote that carries the rows to the driver; the task itself writes nothing."""
        kept = tuple(rows)
        return Vote(handle, kept) if kept else None

    @contextmanager
    def gathered(self, batch: int, votes: Sequence[Vote]) -> Iterator[None]:
        """Write all rows and the batch's marker in one transaction, which commits when the `with` block ends.

        If the store already has the marker, the batch was committed before a crash, so do nothing.
        """
        # A batch without rows sets no marker, because a replay has nothing to write twice.
        if not votes or self.store.has_marker(self.query, batch):
            yield
            return
        # The driver is the only writer, so partition and attempt are always 0.
        name = Handle(self.query, batch, 0, self.incarnation, 0)
        with self.store.transaction(name) as write:
            for vote in votes[:-1]:
                for row in vote.rows:
                    write(row)
            # The failpoint is only in the last task's rows, so that the rows of all other tasks are written before it.
            for row in announce_first_write(votes[-1].rows, self.reach, batch):
                write(row)
            yield


SINK: SinkClass = BatchMarkerSink
