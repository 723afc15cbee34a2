"""Sink strategies over stores: one file a strategy, one line in `SINKS` to register it.

Nothing here imports Spark; the same strategies serve the Data Source adapter, the foreachBatch adapter, and plain
tests.
"""

from pathlib import Path
from typing import Any

from labkit.core.errors import InvalidInput
from labkit.core.failpoints import Order, Reach, pass_by
from labkit.core.strategies import Strategy
from labkit.sinks.append import AppendSink
from labkit.sinks.batch_marker import BatchMarkerSink
from labkit.sinks.contract import Sink, Vote
from labkit.sinks.coordinator import Coordinator, DecisionOrder, EngineOrder
from labkit.sinks.idempotent import IdempotentSink
from labkit.sinks.two_phase import TwoPhaseSink
from labkit.sinks.wal import WriteAheadLogSink
from labkit.stores import STORES, capabilities, open_store

__all__ = ["SINKS", "Coordinator", "Sink", "Vote", "check_capability", "coordinate"]

SINKS: dict[Strategy, type[Sink[Any]]] = {
    Strategy.APPEND: AppendSink,
    Strategy.IDEMPOTENT: IdempotentSink,
    Strategy.BATCH_MARKER: BatchMarkerSink,
    Strategy.WAL: WriteAheadLogSink,
    Strategy.TWO_PHASE: TwoPhaseSink,
}

_NEEDS = {
    "Appendable": "cannot append rows",
    "Keyed": "cannot upsert by key",
    "Atomic": "cannot write rows and a marker in one transaction",
    "Transactional": "has no transactions that outlive their writer",
}


def check_capability(strategy: Strategy, store: str) -> None:
    """Raise `InvalidInput`, naming the missing capability, if the store cannot support the strategy."""
    needed = SINKS[strategy].capability
    if needed not in capabilities(store):
        able = ", ".join(name for name in STORES if needed in capabilities(name))
        raise InvalidInput(
            f"--sink {strategy} needs a store that the store {store!r} is not: it {_NEEDS[needed]}; use --store {able}."
        )


def coordinate(
    strategy: Strategy,
    order: Order,
    *,
    store: str,
    location: Path,
    query: str,
    incarnation: int,
    log: Path,
    reach: Reach = pass_by,
) -> Coordinator:
    """Return the coordinator of one query in this process, over a store that it opens. Raises `InvalidInput`."""
    check_capability(strategy, store)
    sink = SINKS[strategy](open_store(store, location), query, incarnation, log, reach)
    return DecisionOrder(sink) if order is Order.DECISION else EngineOrder(sink)
