"""Batch marker: the rows of a batch and (query, batch) in one transaction; a batch whose marker exists is skipped.

One transaction needs one writer, so tasks hand their rows to the driver, which suits small results only. The
marker names the query, because batch ids start again at 0 in a fresh checkpoint, and a marker without the query
would skip new data.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import ClassVar

from labkit.core.records import Observation
from labkit.sinks.contract import Sink, SinkClass, Vote, announce_first_write
from labkit.stores.contract import Atomic, Handle


class BatchMarkerSink(Sink[Atomic]):
    """A sink that writes a batch and its marker in one transaction, as careful Spark users do in foreachBatch."""

    bears_speculation: ClassVar[bool] = True  # tasks write nothing: their rows go to the driver with the vote

    def pre_commit(self, handle: Handle, rows: Iterator[Observation]) -> Vote | None:
        """Return a vote that carries the rows to the driver; the task itself writes nothing."""
        kept = tuple(rows)
        return Vote(handle, kept) if kept else None

    @contextmanager
    def gathered(self, batch: int, votes: Sequence[Vote]) -> Iterator[None]:
        """Write all rows and the batch's marker in one transaction, which commits when the block ends."""
        # A batch without rows sets no marker: there is nothing that a replay could
        # write twice.
        if not votes or self.store.has_marker(self.query, batch):
            yield
            return
        # The driver is the one writer, so partition and attempt say nothing here.
        name = Handle(self.query, batch, 0, self.incarnation, 0)
        with self.store.transaction(name) as write:
            for vote in votes[:-1]:
                for row in vote.rows:
                    write(row)
            # Only the last participant's rows pass the failpoint in the middle of the
            # write, so that all others have been written by then.
            for row in announce_first_write(votes[-1].rows, self.reach, batch):
                write(row)
            yield


SINK: SinkClass = BatchMarkerSink
