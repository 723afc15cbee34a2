"""The data that the judge compares: the records that a job should write, and the history of rows that a reader saw.

A record's identity is its offset in the ordered input. Simulated traces and real runs both produce a `History`, and
`labkit.core.judge` reads nothing else.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple


class Record(NamedTuple):
    """One record that a job should write.

    The jobs count words and write one record for each input record. `key` is the word, `value` is the word's count up
    to and including this input record, and `offset` is the position of the input record.
    """

    offset: int
    key: str
    value: int


def word_counts(words: Iterable[str]) -> Iterator[Record]:
    """Yield the record that a word count should write for each word of the input: the word and its count so far."""
    counts: Counter[str] = Counter()
    for offset, word in enumerate(words):
        counts[word] += 1
        yield Record(offset, word, counts[word])


class Visibility(StrEnum):
    """Whether readers saw a row after its commit, before its commit, or despite the abort of its transaction."""

    COMMITTED = "committed"
    """Read after its transaction committed, or written outside of any transaction."""
    PRECOMMITTED = "precommitted"
    """Read before its transaction was decided; it committed later, or is still undecided."""
    ABORTED = "aborted"
    """Read although its transaction was aborted (Adya's G1a)."""


class Observation(NamedTuple):
    """One row that a reader outside the job could have seen, with the micro-batch and the driver that wrote it.

    `incarnation` numbers the driver processes of the query: 1 before the first crash, 2 after it.
    """

    offset: int
    key: str
    value: int
    batch: int
    incarnation: int
    visibility: Visibility = Visibility.COMMITTED

    @property
    def attempt(self) -> int:
        """Return the number of the driver process that wrote the row; notebooks and run folders call it the attempt."""
        return self.incarnation


class Reading(NamedTuple):
    """A reader has read the whole store while no job ran. `moment` is `crash N` after the Nth crash, or `end`."""

    moment: str


class PlannedBatch(NamedTuple):
    """The half-open range of offsets [start, end) that Spark planned for one micro-batch."""

    batch: int
    start: int
    end: int


@dataclass(frozen=True)
class History:
    """Everything that a reader outside the job could have seen, in the order in which it became visible.

    `events` contains rows and readings; at a reading, a reader read the whole store. `events` may be a generator, and
    is consumed once. `keyed` means that a row replaces the earlier row of its key (an upsert), so a repeated row is no
    duplicate. `hidden` are rows whose transactions are still open at the end.
    """

    events: Iterable[Observation | Reading]
    keyed: bool = False
    planned_batches: Sequence[PlannedBatch] = ()
    hidden: Iterable[Observation] = field(default=())
