"""The continuous query and the batch query: SELECT word, COUNT(*) FROM words GROUP BY word, with or without HAVING.

The continuous query remembers counts and sends the changes that each record makes; the batch query counts all records
of a prefix anew. A reader who adds up the consumer's table compares both, message by message.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import zip_longest
from typing import NamedTuple

from labkit.sim.model import Action
from labkit.sim.models.changelog.state import Counts, Encoding, Kind, Message, Row, Settings, State, Table, visible


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


READS = ("apply", "delete", "insert")
"""The actions by which the consumer changes its table; a consumer of two steps meets a message twice."""


class Total(NamedTuple):
    """The moment after one message was read, or lost on its way."""

    message: str
    is_lost: bool
    records: int
    """Records of which any message has spoken so far: what the batch query's counts of them add up to."""
    found: int
    """What the counts in the consumer's table add up to."""
    is_whole: bool
    """Whether no more messages of the same record follow: a reader in between meets half of a change."""

    @property
    def differs(self) -> bool:
        """Whether a reader finds another total than the batch query, though no half of a change is missing."""
        return self.is_whole and self.found != self.records


class _Happened(NamedTuple):
    message: Message
    is_lost: bool
    after: State


def totals(states: Sequence[State], actions: Sequence[Action]) -> list[Total]:
    """One total for each message of a run; `states` are the state before each action, and the last one."""
    happened = list(_messages(states, actions))
    following = [each.message.offset for each in happened[1:]]
    found, records = [], 0
    for each, next_offset in zip_longest(happened, following):
        kind, key, value, offset = each.message
        records = max(records, offset + 1)
        found.append(
            Total(
                f"{kind} {key} {value}",
                each.is_lost,
                records,
                sum(row.value * row.times for row in visible(each.after.consumer.table)),
                offset != next_offset,
            )
        )
    return found


def _messages(states: Sequence[State], actions: Sequence[Action]) -> Iterator[_Happened]:
    """The messages that were read or lost, in order."""
    for before, action, after in zip(states, actions, states[1:], strict=False):
        if action.name == "lose":
            yield _Happened(before.network[0], is_lost=True, after=after)
        elif action.name in READS:
            message = before.topic[before.consumer.position]
            yield _Happened(message, is_lost=False, after=after)
