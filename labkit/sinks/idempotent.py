"""Idempotent writes: every row is upserted at once under its key, so a repeated write changes nothing in the end.

The final state is exactly-once only if keys and values are deterministic, and a reader during a replay sees values jump
back. The sink sets values and never adds to one, because n = n + x is not idempotent.
"""

from collections.abc import Iterator
from operator import attrgetter

from labkit.core.records import Observation
from labkit.sinks.contract import Sink, SinkClass, Vote, announce_first_write, chunked
from labkit.stores.contract import Handle, Keyed


class IdempotentSink(Sink[Keyed]):
    """A sink that upserts each row under its key, so that writing a row twice changes nothing."""

    def pre_commit(self, handle: Handle, rows: Iterator[Observation]) -> Vote | None:
        """Upsert every row, which is then visible at once. Return None, because nothing is left to commit."""
        for some in chunked(announce_first_write(rows, self.reach, handle.batch), distinct=attrgetter("key")):
            self.store.upsert(*some)
        return None


SINK: SinkClass = IdempotentSink
