"""What a reader who adds up the consumer's table finds, message by message, beside what the batch query finds.

This module must not judge: it puts two numbers side by side.
"""

from collections.abc import Iterator, Sequence
from itertools import zip_longest
from typing import NamedTuple

from labkit.sim.model import Action
from labkit.sim.models.changelog.parts import Message, State
from labkit.sim.models.changelog.table import visible

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
