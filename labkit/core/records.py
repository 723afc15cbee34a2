"""What goes into a stream, what an outside reader could have seen come out, and when it looked.

A record's identity is its offset in the ordered input. A simulated trace and a real run both end in a
`History`, and `labkit.core.judge` reads nothing else. This module holds data only: no counting, no verdicts, no I/O.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple


class Record(NamedTuple):
    """One record that should come out: the word count emits one for every input record.

    `offset` is the position of the input record that caused it, `value` the running count of `key` after it.
    """

    offset: int
    key: str
    value: int


class Visibility(StrEnum):
    """How a reader came to see a row, told from the end of the row's transaction."""

    COMMITTED = "committed"
    """Read after its transaction committed, or written outside any transaction."""
    PRECOMMITTED = "precommitted"
    """Read while its transaction had not been decided; it committed later, or is undecided still."""
    ABORTED = "aborted"
    """Read, but its transaction was aborted (Adya's G1a)."""


class Observation(NamedTuple):
    """One row that an outside reader could have seen, with the batch and the incarnation that wrote it.

    `incarnation` counts the drivers of the query: 1 before the first crash, 2 after it.
    Stores write and return rows in this form, so that what is written is what can be observed.
    """

    offset: int
    key: str
    value: int
    batch: int
    incarnation: int
    visibility: Visibility = Visibility.COMMITTED

    @property
    def attempt(self) -> int:
        """The incarnation, under the name that notebooks and the files of a run have for it."""
        return self.incarnation


class Reading(NamedTuple):
    """A moment at which an outside reader really looked while everything was quiet: `crash 1`, `end`."""

    moment: str


class PlannedBatch(NamedTuple):
    """The half-open range of offsets [start, end) that one micro-batch was planned to process."""

    batch: int
    start: int
    end: int


@dataclass(frozen=True)
class History:
    """Everything that an outside reader could have seen, in the order in which it became visible.

    `events` holds observations, interrupted by readings; it may be a generator and is consumed once.
    `keyed` says that a row replaces the earlier row of its key (an upsert), so that a repeated row is no duplicate.
    `planned_batches` are the planned micro-batches; `hidden` are rows in transactions that are neither committed nor
    aborted at the end.
    """

    events: Iterable[Observation | Reading]
    keyed: bool = False
    planned_batches: Sequence[PlannedBatch] = ()
    hidden: Iterable[Observation] = field(default=())
