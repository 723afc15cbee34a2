"""Append: every row is written at once and stays, so a repeated batch is written again.

Most hand-written sinks work this way. The sink never reads the rows in the store.
"""

from collections.abc import Iterator

from labkit.core.records import Observation
from labkit.sinks.contract import Sink, SinkClass, Vote, announce_first_write, chunked
from labkit.stores.contract import Appendable, Handle


class AppendSink(Sink[Appendable]):
    """A sink whose rows become visible while the task writes them, so that there is no commit."""

    def pre_commit(self, handle: Handle, rows: Iterator[Observation]) -> Vote | None:
        """Append every row to the store, where it is visible at once. Return None, as nothing is left to commit."""
        for some in chunked(announce_first_write(rows, self.reach, handle.batch)):
            self.store.append(*some)
        return None


SINK: SinkClass = AppendSink
