"""One batch as nine moments in plain words, each a failpoint: what a sink has done by then, and what is on disk.

The numbers are those that the course uses. Which moments a sink has, and in which order it passes them, is told by
`POINTS`. This module holds data only and draws nothing.
"""

from collections.abc import Sequence
from typing import NamedTuple

from labkit.core.failpoints import FailPoint, Order
from labkit.core.strategies import POINTS, Strategy, orders


class Said(NamedTuple):
    """What has happened by a moment, in a few words, and whether a crash leaves something of it on disk."""

    words: str
    is_on_disk: bool = False


class Moment(NamedTuple):
    """One moment of a batch as it is shown: of any sink, or of the one that was asked for."""

    number: int
    name: str
    point: FailPoint
    said: Said
    is_passed: bool = True
    """Whether the sink has this moment at all."""


NAMES = {
    FailPoint.AFTER_OFFSET_LOG: "plan",
    FailPoint.MID_WRITE: "write",
    FailPoint.BEFORE_PRE_COMMIT: "task done",
    FailPoint.AFTER_PRE_COMMIT: "pre-commit",
    FailPoint.AFTER_HANDLES: "votes",
    FailPoint.MID_COMMIT: "half",
    FailPoint.BEFORE_CONFIRM: "flushed",
    FailPoint.AFTER_COMMIT: "committed",
    FailPoint.AFTER_COMMIT_LOG: "noted",
}
"""The nine moments in the order of their numbers, from 1."""


def spoken(name: str) -> str:
    """A failpoint's name with number and word of its moment before it; any other name as it is."""
    for number, (point, word) in enumerate(NAMES.items(), start=1):
        if name == point:
            return f"{number} {word} ({name})"
    return name


_CHECKPOINT = {
    FailPoint.AFTER_OFFSET_LOG: Said("offsets/0 is on disk", is_on_disk=True),
    FailPoint.AFTER_HANDLES: Said("handles are on disk", is_on_disk=True),
    FailPoint.AFTER_COMMIT_LOG: Said("commits/0 is on disk", is_on_disk=True),
}
"""What lies in the checkpoint, whatever the sink."""

_ANY = _CHECKPOINT | {
    FailPoint.MID_WRITE: Said("the first row is written"),
    FailPoint.BEFORE_PRE_COMMIT: Said("one task has written all its rows"),
    FailPoint.AFTER_PRE_COMMIT: Said("all tasks are ready, nothing is final"),
    FailPoint.MID_COMMIT: Said("some participants have committed"),
    FailPoint.BEFORE_CONFIRM: Said("the log is copied, not confirmed"),
    FailPoint.AFTER_COMMIT: Said("all participants have committed"),
}

_AT_ONCE = _CHECKPOINT | {
    FailPoint.MID_WRITE: Said("the first row is in the store", is_on_disk=True),
    FailPoint.AFTER_PRE_COMMIT: Said("all rows are in the store", is_on_disk=True),
}

SAID = {
    Strategy.APPEND: _AT_ONCE,
    Strategy.IDEMPOTENT: _AT_ONCE,
    Strategy.BATCH_MARKER: _CHECKPOINT
    | {
        FailPoint.MID_WRITE: Said("the first row is in an open transaction"),
        FailPoint.AFTER_PRE_COMMIT: Said("all rows are in an open transaction"),
        FailPoint.AFTER_COMMIT: Said("rows and marker are in the store", is_on_disk=True),
    },
    Strategy.WAL: _CHECKPOINT
    | {
        FailPoint.MID_WRITE: Said("the first row is in an open log"),
        FailPoint.BEFORE_PRE_COMMIT: Said("one task has logged all its rows"),
        FailPoint.AFTER_PRE_COMMIT: Said("all logs are sealed", is_on_disk=True),
        FailPoint.MID_COMMIT: Said("half of the log is in the store", is_on_disk=True),
        FailPoint.BEFORE_CONFIRM: Said("the whole log is in the store, not confirmed", is_on_disk=True),
        FailPoint.AFTER_COMMIT: Said("the log is confirmed", is_on_disk=True),
    },
    Strategy.TWO_PHASE: _CHECKPOINT
    | {
        FailPoint.MID_WRITE: Said("the first row is in an open transaction"),
        FailPoint.BEFORE_PRE_COMMIT: Said("one task has written all its rows"),
        FailPoint.AFTER_PRE_COMMIT: Said("all transactions are prepared, none is committed", is_on_disk=True),
        FailPoint.MID_COMMIT: Said("some transactions are committed", is_on_disk=True),
        FailPoint.AFTER_COMMIT: Said("all transactions are committed", is_on_disk=True),
    },
}
"""Of every strategy what has happened by each of its moments."""


def number_of(point: FailPoint) -> int | None:
    """The moment's number, from 1; None for a point in recovery, which belongs to no batch."""
    return list(NAMES).index(point) + 1 if point in NAMES else None


def moments(strategy: Strategy | None = None, order: Order | None = None) -> Sequence[Moment]:
    """The nine moments: of any sink in the order of their numbers, of one sink in the order in which it passes them.

    A moment that the sink does not have keeps its place behind the moment before it.
    """
    if strategy is None:
        return [Moment(number, name, point, _ANY[point]) for number, (point, name) in enumerate(NAMES.items(), 1)]
    passed = POINTS[strategy, orders(strategy)[0] if order is None else order]
    said = SAID[strategy]
    return [
        Moment(
            number,
            NAMES[point],
            point,
            said.get(point, _ANY[point]) if point in passed else _ANY[point],
            point in passed,
        )
        for number, point in sorted(enumerate(NAMES, 1), key=lambda each: _place(each[1], passed))
    ]


def _place(point: FailPoint, passed: Sequence[FailPoint]) -> tuple[int, int]:
    """Where a moment stands; one that the sink does not have stands right behind the last moment before it."""
    names = list(NAMES)
    number = names.index(point)
    if point in passed:
        return passed.index(point), 0
    before = [passed.index(each) for each in names[:number] if each in passed]
    return max(before, default=-1), number + 1
