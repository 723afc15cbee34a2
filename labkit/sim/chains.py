"""Chains of a source, an engine and a sink: what is chosen of the pipeline for each link, so that links can be changed.

An engine is told here by what it knows after a crash: whether the sink commits before the engine has noted the batch as
finished (Spark's order) or after it (Flink's), and whether its checkpoint is still there. A sink that has nothing to
defer takes no order, so that both engines are the same for it.
"""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from labkit.core.errors import InvalidInput
from labkit.core.failpoints import Order
from labkit.core.strategies import Strategy, orders
from labkit.core.words import nearest

SOURCES: Mapping[str, Mapping[str, object]] = {"log": {}, "socket": {"source": "socket"}}
"""A log can be read again from any offset; a socket gives every record once."""

ENGINES: Mapping[str, Order] = {
    "commit-then-log": Order.ENGINE,
    "log-then-commit": Order.DECISION,
    "loses its checkpoint": Order.NONE,
}
"""The order of the sink's commit and the engine's note; the last one has its own order and a disk that can be lost."""

INPUT: Mapping[str, object] = {"words": "hello-hello-world-hello", "records_per_batch": 3}
"""A first batch with a word twice, so that a jump back can be seen, and with two participants."""

SINKS = tuple(each.value for each in Strategy)


class Chain(NamedTuple):
    """Three links by name."""

    source: str
    engine: str
    sink: str

    @property
    def order(self) -> Order:
        """The commit order that the sink takes in this chain."""
        possible, wanted = orders(Strategy(self.sink)), ENGINES[self.engine]
        return wanted if wanted in possible else possible[0]

    @property
    def keeps_checkpoint(self) -> bool:
        """Whether the engine has its checkpoint after a crash."""
        return ENGINES[self.engine] is not Order.NONE

    def parameters(self) -> dict[str, object]:
        """What is chosen of the pipeline: four records in two batches, and one crash."""
        chosen: dict[str, object] = {"strategy": self.sink, **SOURCES[self.source], **INPUT}
        if self.order is not Order.NONE:
            chosen["order"] = self.order.value
        if Strategy(self.sink).facts.replaces:
            chosen["store"] = "sqlite"
        if not self.keeps_checkpoint:
            chosen["deletions"] = 1
        return chosen


def chain(source: str, engine: str, sink: str) -> Chain:
    """Three links, each known. Raises `InvalidInput` with the nearest name."""
    for kind, name, names in (("source", source, SOURCES), ("engine", engine, ENGINES), ("sink", sink, SINKS)):
        if name not in names:
            raise InvalidInput(f"there is no {kind} {str(name)[:40]!r}; {nearest(str(name)[:40], list(names))}")
    return Chain(source, engine, sink)


def every() -> Iterator[Chain]:
    """All chains, source by source, sink by sink."""
    return (Chain(source, engine, sink) for source in SOURCES for sink in SINKS for engine in ENGINES)
