"""Sink strategies that write to any store: one module per strategy. Their facts are in `labkit.core.strategies`.

The same strategies serve the two adapters for Spark (a Data Source, and foreachBatch) and tests without Spark.
"""

from importlib import import_module
from pathlib import Path

from labkit.core.errors import InvalidInput
from labkit.core.failpoints import Order, Reach, pass_by
from labkit.core.strategies import Strategy
from labkit.sinks.contract import Sink, SinkClass, Vote
from labkit.sinks.coordinator import Coordinator, DecisionOrder, EngineOrder
from labkit.stores import CAPABILITIES, STORES, capabilities, open_store

__all__ = ["SINKS", "Coordinator", "Sink", "Vote", "check_capability", "coordinate"]


SINKS: dict[Strategy, SinkClass] = {strategy: import_module(f"{__name__}.{strategy}").SINK for strategy in Strategy}
"""The sink class of every strategy: `SINK` in the module with the strategy's name."""


def check_capability(strategy: Strategy, store: str) -> None:
    """Raise `InvalidInput` if the store lacks a capability, such as transactions, that this sink strategy needs."""
    needed = strategy.facts.needs
    if needed not in capabilities(store):
        able = ", ".join(name for name in STORES if needed in capabilities(name))
        lack = CAPABILITIES[needed]
        raise InvalidInput(f"--sink {strategy} cannot use the store {store!r}, which {lack}; use --store {able}.")


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
    """Open a store, and return the coordinator that commits the batches of `query` to this store through a sink.

    `strategy` chooses the sink. `order` says whether the sink commits before or after the engine logs a batch as done.
    `store` is a key of `STORES`, and `location` the store's path. `incarnation` is the number of the query's driver,
    from 1. `log` is the sink's own directory. `reach` is called at each failpoint, where a test may kill the process.
    Raises `InvalidInput` if the store lacks a capability that the sink needs.
    """
    check_capability(strategy, store)
    sink = SINKS[strategy](open_store(store, location), query, incarnation, log, reach)
    return DecisionOrder(sink) if order is Order.DECISION else EngineOrder(sink)
