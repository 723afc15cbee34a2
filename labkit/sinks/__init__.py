"""Sink strategies over stores: one file a strategy, its branch in `_class`, and its facts in `labkit.core.strategies`.

Nothing here imports Spark; the same strategies serve the Data Source adapter, the foreachBatch adapter, and plain
tests.
"""

from pathlib import Path
from typing import Any, assert_never

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
from labkit.stores import CAPABILITIES, STORES, capabilities, open_store

__all__ = ["SINKS", "Coordinator", "Sink", "Vote", "check_capability", "coordinate"]


def _class(strategy: Strategy) -> type[Sink[Any]]:
    """The sink of a strategy. A strategy without a branch here is a type error."""
    match strategy:
        case Strategy.APPEND:
            return AppendSink
        case Strategy.IDEMPOTENT:
            return IdempotentSink
        case Strategy.BATCH_MARKER:
            return BatchMarkerSink
        case Strategy.WAL:
            return WriteAheadLogSink
        case Strategy.TWO_PHASE:
            return TwoPhaseSink
        case _:
            assert_never(strategy)


SINKS: dict[Strategy, type[Sink[Any]]] = {strategy: _class(strategy) for strategy in Strategy}
"""Every sink strategy with the class that writes so."""


def check_capability(strategy: Strategy, store: str) -> None:
    """Raise `InvalidInput`, naming the missing capability, if the store cannot support the strategy."""
    needed = SINKS[strategy].capability
    if needed not in capabilities(store):
        able = ", ".join(name for name in STORES if needed in capabilities(name))
        lack = CAPABILITIES[needed]
        raise InvalidInput(f"--sink {strategy} cannot use the store {store!r}, because it {lack}; use --store {able}.")


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
