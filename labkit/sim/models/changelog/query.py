"""The continuous query and the batch query: SELECT word, COUNT(*) FROM words GROUP BY word, with or without HAVING.

The continuous query remembers counts and sends what each record changes; the batch query knows nothing and counts all
records of a prefix anew. This module must not know how messages travel or who reads them.
"""

from collections import Counter
from functools import lru_cache

from labkit.sim.models.changelog.parts import Counts, Kind, Message, Row, Table
from labkit.sim.models.changelog.settings import Encoding, Settings


def counted(counts: Counts, key: str) -> int:
    """The count of a key."""
    return dict(counts).get(key, 0)


def with_count(counts: Counts, key: str, count: int) -> Counts:
    """The counts with another one for a key; 0: it is forgotten."""
    changed = {**dict(counts), key: count}
    return tuple(sorted((each, number) for each, number in changed.items() if number))


def messages(settings: Settings, key: str, old: int, offset: int) -> tuple[Message, ...]:
    """What the query sends when a key's count grows by one."""
    new = old + 1
    was, stays = settings.shows(old), settings.shows(new)
    if settings.encoding is Encoding.APPEND:
        return (Message(Kind.ADD, key, new, offset),)
    if settings.encoding is Encoding.UPSERT:
        if stays:
            return (Message(Kind.UPSERT, key, new, offset),)
        return (Message(Kind.DELETE, key, old, offset),) if was and settings.broken != "no_delete" else ()
    changes = []
    if was and settings.broken != "add_only":
        changes.append(Message(Kind.RETRACT, key, new if settings.broken == "retract_new" else old, offset))
    if stays:
        changes.append(Message(Kind.ADD, key, new, offset))
    return tuple(changes)


@lru_cache(maxsize=1_000)
def batch(settings: Settings, records: int) -> Table:
    """What the batch query gives for the first records; append-only: every count that a key has had."""
    words = settings.words[:records]
    if settings.encoding is Encoding.APPEND:
        so_far: Counter[str] = Counter()
        rows = []
        for word in words:
            so_far[word] += 1
            rows.append(Row(word, so_far[word]))
        return tuple(sorted(rows))
    return tuple(sorted(Row(word, count) for word, count in Counter(words).items() if settings.shows(count)))
