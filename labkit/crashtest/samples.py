"""Turns repeated readings of a store into the history that `labkit.core.judge` judges.

Each copy of a row in the last reading counts as an effect. A row that was read and later disappeared is an aborted
read. A batch that was readable as a whole while no process ran, although its sink had not finished it, is a
precommitted read. This module counts no anomalies; the judge does.
"""

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from labkit.core.explanation import Explanation, explain
from labkit.core.judge import Verdict, judge
from labkit.core.records import History, Observation, Reading, Record, Visibility
from labkit.crashtest.rows import Rows, Seen, Shape, named, row_counts

SETTLED = 4.0
"""The number of seconds after a run for which missing rows may still arrive; after that, they count as lost."""


class Sample(NamedTuple):
    """One reading of the store during a run: the rows that the user's reader returned, and the time."""

    at: float
    driver: int
    """The number of the run's latest driver at that time, from 1."""
    seen: tuple[Seen, ...]
    moment: str = ""
    """`crash 1`, `end` or the like if no driver was running; empty if the job was running."""
    unfinished: tuple[int, ...] = ()
    """The batches whose durable effects the sink had not completed when it crashed."""


Counted = tuple[Sample, Counter[Record]]
"""One reading of the store, and how often each row occurs in it."""


class Life(NamedTuple):
    """One copy of a row in the store: the index of the reading that showed it first, and whether it disappeared."""

    born: int
    row: Record
    driver: int
    visibility: Visibility = Visibility.COMMITTED


def history(samples: Sequence[Sample], rows: Rows, shape: Shape, delivered: Sequence[Record]) -> History:
    """Convert the readings of one run into a history for the judge.

    `delivered` are the input rows that Spark passed to the sink. A batch without such a row does not count as planned.
    """
    known, keyed = rows.expected(), shape is Shape.LAST
    readings = [(sample, row_counts(sample.seen, shape, known)) for sample in samples]
    ids = {batch.number: {row["id"] for row in batch.rows} for batch in rows.batches}
    batch_of = {offset: number for number, several in ids.items() for offset in several}
    lives = sorted(_of_keys(readings) if keyed else _copies(readings, ids))
    events: list[Observation | Reading] = []
    for number, sample in enumerate(samples):
        for life in (each for each in lives if each.born == number):
            row = named(life.row, shape)
            events.append(Observation(*row, batch_of.get(row.offset, -1), life.driver, life.visibility))
        if sample.moment:
            events.append(Reading(sample.moment))
    planned = [plan for plan in rows.planned_batches() if any(plan.start <= one.offset < plan.end for one in delivered)]
    return History(events, keyed, planned)


def judge_run(
    samples: Sequence[Sample], rows: Rows, shape: Shape, due: Sequence[Record]
) -> tuple[Verdict, Explanation]:
    """Return the verdict on the readings of one run, and the explanation of this verdict.

    `due` are the rows that the store must contain at the end of the run.
    """
    expected = [named(each, shape) for each in due]
    observed = history(samples, rows, shape, due)
    return judge(expected, observed), explain(expected, observed)


def _copies(readings: Sequence[Counted], ids: dict[int, set[int]]) -> list[Life]:
    """Return a `Life` for each copy of a row: the reading that showed it first, and whether it disappeared.

    `ids` maps the number of each batch to the ids of its rows. If only some copies of a row disappear, the newest ones
    count as gone.
    """
    living: dict[Record, list[Life]] = {}
    over: list[Life] = []
    for number, (sample, rows) in enumerate(readings):
        for row in {*living, *rows}:
            alive = living.setdefault(row, [])
            while len(alive) > rows[row]:
                over.append(alive.pop()._replace(visibility=Visibility.ABORTED))
            alive += [Life(number, row, sample.driver)] * (rows[row] - len(alive))
        for batch in sample.unfinished:
            _mark_early(living, ids[batch])
    return over + [life for alive in living.values() for life in alive]


def _mark_early(living: dict[Record, list[Life]], ids: set[int]) -> None:
    """If all rows of an unfinished batch can be read, mark them as rows that were read before their commit.

    `ids` are the ids of the batch's rows. `living` maps each row to its copies in the store; the lists are changed.
    If only some rows of the batch can be read, none is marked, because `labkit.core.judge` itself reports such a
    fractured read.
    """
    present = {row.offset for row, alive in living.items() if alive}
    if not ids <= present:
        return
    for row, alive in living.items():
        if row.offset in ids:
            alive[:] = [life._replace(visibility=Visibility.PRECOMMITTED) for life in alive]


def _of_keys(readings: Sequence[Counted]) -> list[Life]:
    """Return a `Life` for each value that a key had over time, in a store that keeps only the last row of each key.

    If the last reading lacks a key, all values of this key count as aborted. If a reading has a second row of a key,
    this row gets a made-up key, so that it counts as a row that was not in the input.
    """
    values = [_by_key(rows) for _, rows in readings]
    last = values[-1] if values else {}
    before: dict[tuple[str, int], Record] = {}
    lives: list[Life] = []
    for number, ((sample, _), now) in enumerate(zip(readings, values, strict=True)):
        for key, row in now.items():
            if before.get(key) != row:
                lasting = Visibility.COMMITTED if key in last else Visibility.ABORTED
                lives.append(Life(number, row, sample.driver, lasting))
        before = now
    return lives


def _by_key(rows: Counter[Record]) -> dict[tuple[str, int], Record]:
    """Return the rows of one reading as a dict from (key, number) to row.

    The latest row of a key has the number 1. Surplus rows of this key have the numbers 2, 3 and so on, and their key is
    changed, for example to `a, copy 2`.
    """
    copies: Counter[str] = Counter()
    values = {}
    for row in sorted(rows.elements(), reverse=True):
        copies[row.key] += 1
        copy = copies[row.key]
        values[row.key, copy] = row if copy == 1 else row._replace(key=f"{row.key}, copy {copy}")
    return values
