"""The changelog in words: a state in one line. Nothing here decides anything."""

from labkit.sim.models.changelog.claims import rows
from labkit.sim.models.changelog.parts import Budget, State
from labkit.sim.wording import listed, to_come


def text(state: State) -> str:
    """Query, messages, consumer, and what may still go wrong."""
    query, consumer, network, topic, budget, furthest = state
    counts = listed(f"{key}={count}" for key, count in query.counts)
    now = f"at {query.offset} of {furthest}, counts {counts}" if query.is_up else f"down, had come to {furthest}"
    saved = listed(f"{key}={count}" for key, count in query.saved_counts)
    at = f"at {consumer.position}" + " between delete and insert" * consumer.has_deleted if consumer.is_up else "down"
    left = to_come(Budget._fields, budget)
    return "; ".join(
        (
            f"query {now}, saved {query.saved}: {saved}",
            f"on the way {listed(map(str, network))}",
            f"log {listed(map(str, topic))}",
            f"consumer {at}, stored {consumer.stored}, table {rows(consumer.table)}",
            f"to come {listed(left)}.",
        )
    )
