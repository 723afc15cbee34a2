"""All failure-free runs of a small input, made one after the other: a plain oracle, without a rule of the
explanation's.

A run is a tuple of tokens: the record that a row shows, or None for a reading.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from labkit.core.records import History, Observation, PlannedBatch, Record, Visibility

Run = tuple[Record | None, ...]


class Input(NamedTuple):
    """The records that come in, each with the value that it shows in this run, and their batches."""

    records: Sequence[Record]
    planned: Sequence[PlannedBatch]
    keyed: bool

    def keys(self) -> Iterator[list[Record]]:
        """The records of each key."""
        for key in sorted({record.key for record in self.records}):
            yield [record for record in self.records if record.key == key]

    def is_whole(self, run: Run) -> bool:
        """Whether each batch is there as a whole or not at all."""
        came = {record for record in run if record}
        for plan in self.planned:
            batch = {each for each in self.records if plan.start <= each.offset < plan.end}
            if came & batch and not batch <= came:
                return False
        return True

    def nexts(self, run: Run) -> Iterator[Record | None]:
        """What may come next: a reading, or a row of any key."""
        if self.is_whole(run):
            yield None
        for records in self.keys():
            came = [record for record in run if record in records]
            if self.keyed:
                yield from records[records.index(came[-1]) if came else 0 :]
            else:
                yield from records[len(came) : len(came) + 1]

    def is_over(self, run: Run) -> bool:
        """Whether nothing is missing."""
        last = {record.key: record for record in run if record}
        if self.keyed:
            return all(last.get(records[-1].key) == records[-1] for records in self.keys())
        return set(self.records) <= set(run)


def failure_free(given: Input, longest: int) -> Iterator[Run]:
    """Every run of an input up to so many tokens."""
    waiting: list[Run] = [()]
    while waiting:
        run = waiting.pop()
        if given.is_over(run):
            yield run
        if len(run) < longest:
            waiting += [(*run, each) for each in given.nexts(run)]


def tokens(history: History) -> list[object]:
    """What a reader sees of each event; a row that no failure-free run has is no record."""
    return [
        None
        if not isinstance(event, Observation)
        else Record(*event[:3])
        if event.visibility == Visibility.COMMITTED
        else event
        for event in history.events
    ]


def still_hidden(history: History, choices: Sequence[Record], run: Sequence[object]) -> bool:
    """Whether an open transaction holds the row of a record that never came in a run."""
    hidden = {Record(*row[:3]) for row in history.hidden if row.visibility != Visibility.ABORTED}
    return bool(hidden & set(choices) - set(run))
