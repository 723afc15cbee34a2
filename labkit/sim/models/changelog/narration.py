"""The changelog in words: a state in one line, an action in one sentence. Nothing here decides anything."""

from collections.abc import Iterable

from labkit.sim.model import Action
from labkit.sim.models.changelog.claims import listed
from labkit.sim.models.changelog.parts import Budget, State
from labkit.sim.models.changelog.settings import Settings

SENTENCES = {
    "process": "The query counts record {which} ({word}) and sends what it changes.",
    "checkpoint": "The query saves its offset {which} and its counts.",
    "restart_query": "The query starts again from its checkpoint and sends what it had sent since.",
    "arrive": "The next message arrives in the log.",
    "apply": "The consumer reads message {which} and changes its table.",
    "delete": "The consumer reads message {which} and deletes the old row of its key, to insert the new one next.",
    "insert": "The consumer inserts the new row of message {which}.",
    "store_position": "The consumer stores position {which}.",
    "restart": "The consumer starts again from its table and the position that it has stored.",
    "crash": "The consumer dies; only its table and its stored position are left.",
    "crash_query": "The query dies; only its checkpoint is left.",
    "lose": "The next message is lost.",
    "repeat": "The next message arrives, and will arrive once more.",
    "overtake": "The message after the next one arrives first.",
    "expire": "The query forgets the count of {key}: its state has expired.",
}


def sentence(settings: Settings, action: Action) -> str:
    """What happens."""
    words, keys = settings.words, settings.keys
    return SENTENCES[action.name].format(
        which=action.which, word=_at(words, action.which), key=_at(keys, action.which)
    )


def _at(words: tuple[str, ...], which: int) -> str:
    return words[which] if 0 <= which < len(words) else ""


def text(state: State) -> str:
    """Query, messages, consumer, and what may still go wrong."""
    query, consumer, network, topic, budget, furthest = state
    counts = _all(f"{key}={count}" for key, count in query.counts)
    now = (
        f"at {query.offset} of {furthest}, counts {counts}"
        if query.is_up
        else f"down, had come to {furthest}"
    )
    saved = _all(f"{key}={count}" for key, count in query.saved_counts)
    at = (
        f"at {consumer.position}" + " between delete and insert" * consumer.has_deleted
        if consumer.is_up
        else "down"
    )
    left = [
        f"{count} {name}"
        for name, count in zip(Budget._fields, budget, strict=True)
        if count
    ]
    return "; ".join(
        (
            f"query {now}, saved {query.saved}: {saved}",
            f"on the way {_all(map(str, network))}",
            f"log {_all(map(str, topic))}",
            f"consumer {at}, stored {consumer.stored}, table {listed(consumer.table)}",
            f"to come {_all(left)}.",
        )
    )


def _all(words: Iterable[str]) -> str:
    return " ".join(words) or "-"
