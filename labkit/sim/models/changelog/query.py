"""The query SELECT word, COUNT(*) FROM words GROUP BY word, with or without HAVING, run continuously and as a batch.

The continuous query keeps its counts and sends the changes that each record causes. The batch query counts all records
of a prefix from the beginning. `totals` compares the two after each message.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import zip_longest
from typing import NamedTuple

from labkit.core.records import word_counts
from labkit.sim.model import Action
from labkit.sim.models.changelog.state import Counts, Encoding, Kind, Message, Row, Settings, State, Table, visible


def counted(counts: Counts, key: str) -> int:
    """Return the count of a key, 0 if there is none."""
    return dict(counts).get(key, 0)


def with_count(counts: Counts, key: str, count: int) -> Counts:
    """Return the counts after the count of a key has changed to `count`; 0 removes the key."""
    changed = {**dict(counts), key: count}
    return tuple(sorted((each, number) for each, number in changed.items() if number))


def messages(settings: Settings, key: str, old: int, offset: int) -> tuple[Message, ...]:
    """Return the messages that the query sends when a record at this offset adds one to the count `old` of its key."""
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
    """Return the table that the first `records` records should give: a row with the final count for each key.

    If the changelog can only append rows, the table has a row for each count that a key went through.
    """
    words = settings.words[:records]
    if settings.encoding is Encoding.APPEND:
        return tuple(sorted(Row(key, value) for _, key, value in word_counts(words)))
    return tuple(sorted(Row(word, count) for word, count in Counter(words).items() if settings.shows(count)))


READS = ("apply", "delete", "insert")
"""The actions by which the consumer changes its table: `apply`, or `delete` and then `insert`."""


class Total(NamedTuple):
    """The sum of the counts in the consumer's table after one message was read or lost, and the correct sum.

    The correct sum is the one that a batch query over the same input records gives.
    """

    message: str
    is_lost: bool
    records: int
    """The number of records whose messages were read or lost, which is also the sum of the batch query's counts."""
    reader_sum: int
    """The sum of the counts in the consumer's table."""
    is_whole: bool
    """Whether this is the last message that its record has caused; before it, the table may lack half of a change."""

    @property
    def differs(self) -> bool:
        """Return whether the table's sum is wrong although no message of the input record is still to come."""
        return self.is_whole and self.reader_sum != self.records


class _Step(NamedTuple):
    message: Message
    is_lost: bool
    after: State


def totals(states: Sequence[State], actions: Sequence[Action]) -> list[Total]:
    """Return one `Total` for each message that was read or lost in a run, in the order of these events."""
    happened = list(_messages(states, actions))
    following = [each.message.offset for each in happened[1:]]
    result, records = [], 0
    for each, next_offset in zip_longest(happened, following):
        kind, key, value, offset = each.message
        records = max(records, offset + 1)
        result.append(
            Total(
                f"{kind} {key} {value}",
                each.is_lost,
                records,
                sum(row.value * row.times for row in visible(each.after.consumer.table)),
                offset != next_offset,
            )
        )
    return result


def _messages(states: Sequence[State], actions: Sequence[Action]) -> Iterator[_Step]:
    for before, action, after in zip(states, actions, states[1:], strict=False):
        if action.name == "lose":
            yield _Step(before.network[0], is_lost=True, after=after)
        elif action.name in READS:
            message = before.topic[before.consumer.position]
            yield _Step(message, is_lost=False, after=after)
