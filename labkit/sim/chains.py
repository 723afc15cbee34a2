"""Combinations of a source, an engine and a sink, translated into parameters of the simulator `pipeline`.

Two properties describe an engine: whether the sink commits before the engine logs the batch as finished (Spark's order)
or afterwards (Flink's), and whether its checkpoint survives a crash. For a sink without a separate commit the order
makes no difference.
"""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from labkit.core.errors import InvalidInput
from labkit.core.failpoints import Order
from labkit.core.strategies import Strategy, orders
from labkit.core.words import nearest

SOURCES: Mapping[str, Mapping[str, object]] = {"log": {}, "socket": {"source": "socket"}}
"""The sources by name: a log can be read again from any offset, a socket delivers every record only once."""

ENGINES: Mapping[str, Order] = {
    "commit-then-log": Order.ENGINE,
    "log-then-commit": Order.DECISION,
    "loses its checkpoint": Order.NONE,
}
"""The engines by name, each with its commit order: does the sink commit before or after the engine's log entry?

`Order.NONE` marks the engine whose checkpoint is lost in a crash; it uses each sink's default order.
"""

INPUT: Mapping[str, object] = {"words": "hello-hello-world-hello", "records_per_batch": 3}
"""The input of every simulated pipeline. Its first batch has two partitions, and one word twice."""

SINKS = tuple(each.value for each in Strategy)


class Chain(NamedTuple):
    """A pipeline to simulate: the names of its source, its stream processing engine and its sink."""

    source: str
    engine: str
    sink: str

    @property
    def order(self) -> Order:
        """Return which comes first: the sink commits a batch, or the engine logs the batch as finished.

        The result is the engine's usual order if the sink supports this order, and otherwise the sink's default order.
        """
        possible, wanted = orders(Strategy(self.sink)), ENGINES[self.engine]
        return wanted if wanted in possible else possible[0]

    @property
    def keeps_checkpoint(self) -> bool:
        """Return whether this pipeline's engine writes a checkpoint that survives a crash."""
        return ENGINES[self.engine] is not Order.NONE

    def parameters(self) -> dict[str, object]:
        """Return the parameters with which the simulator `pipeline` simulates this pipeline.

        The input consists of four records in two batches.
        """
        chosen: dict[str, object] = {"strategy": self.sink, **SOURCES[self.source], **INPUT}
        if self.order is not Order.NONE:
            chosen["order"] = self.order.value
        if Strategy(self.sink).facts.replaces:
            chosen["store"] = "sqlite"
        if not self.keeps_checkpoint:
            chosen["deletions"] = 1
        return chosen


def chain(source: str, engine: str, sink: str) -> Chain:
    """Return the pipeline that consists of these three parts.

    Raises `InvalidInput` for an unknown name; the message suggests a similar name.
    """
    for kind, name, names in (("source", source, SOURCES), ("engine", engine, ENGINES), ("sink", sink, SINKS)):
        if name not in names:
            raise InvalidInput(f"there is no {kind} {str(name)[:40]!r}; {nearest(str(name)[:40], list(names))}")
    return Chain(source, engine, sink)


def every() -> Iterator[Chain]:
    """Yield every combination of source, engine and sink, sorted by source, then sink, then engine."""
    return (Chain(source, engine, sink) for source in SOURCES for sink in SINKS for engine in ENGINES)
