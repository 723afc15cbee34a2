"""Turns repeated readings of a store into the history that `labkit.core.judge` judges.

Each copy of a row in the last reading counts as an effect. A row that was read and later disappeared is an aborted
read. A batch that was readable as a whole while no process ran, although its sink still had durable work to do, is a
precommitted read. This module counts no anomalies; the judge does.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from labkit.core.explanation import Explanation, explain
from labkit.core.judge import Verdict, judge
from labkit.core.records import History, Observation, Reading, Record, Visibility
from labkit.crashtest.rows import Rows, Seen, Shape, Token, named, tokens

SETTLED = 4.0
"""The number of seconds after a run for which missing rows may still arrive; then they count as lost."""


class Sample(NamedTuple):
    """One reading of the store during a run: the rows that the user's reader returned, and when."""

    at: float
    driver: int
    """The number of the run's latest driver at that time, from 1."""
    seen: tuple[Seen, ...]
    moment: str = ""
    """`crash 1`, `end` or the like if no driver was running; empty if the job was running."""
    unfinished: tuple[int, ...] = ()
    """The batches for which the sink still had a durable effect to do when it crashed."""


@dataclass(frozen=True)
class TokenReading:
    """One reading of the store, with the number of times that each input row occurs in it."""

    sample: Sample
    tokens: Counter[Token]


@dataclass(frozen=True)
class Life:
    """One copy of a row in the store over time: the reading in which it appeared (`born`), and whether it stayed."""

    token: Token
    born: int
    driver: int
    order: int
    visibility: Visibility = Visibility.COMMITTED


class Readings:
    """All readings of the store in one run, matched with the run's input rows."""

    def __init__(self, samples: Sequence[Sample], rows: Rows, shape: Shape) -> None:
        known = rows.expected()
        self._readings = [TokenReading(sample, tokens(sample.seen, shape, known)) for sample in samples]
        self._rows, self._shape = rows, shape
        self._batch_of = {row["id"]: batch.number for batch in rows.batches for row in batch.rows}
        ids = {number: rows.ids(number) for number in range(len(rows.batches))}
        lives = keyed(self._readings) if self.is_keyed else copies(self._readings, ids)
        self._lives = sorted(lives, key=lambda life: (life.born, life.order, life.token))

    @property
    def is_keyed(self) -> bool:
        """Whether the store keeps only the latest row of each key."""
        return self._shape is Shape.LAST

    def history(self, delivered: Sequence[Record]) -> History:
        """Return which rows became visible when, for `labkit.core.judge`; `delivered` is what the sink got."""
        return History(
            events=list(self._events()),
            keyed=self.is_keyed,
            planned_batches=[
                plan
                for plan in self._rows.planned_batches()
                if any(plan.start <= one.offset < plan.end for one in delivered)
            ],
        )

    def _events(self) -> Iterator[Observation | Reading]:
        waiting = list(self._lives)
        for number, each in enumerate(self._readings):
            while waiting and waiting[0].born == number:
                yield self._row(waiting.pop(0))
            if each.sample.moment:
                yield Reading(each.sample.moment)

    def _row(self, life: Life) -> Observation:
        row = named(Record(*life.token), self._shape)
        batch = self._batch_of.get(row.offset, -1)
        return Observation(*row, batch, life.driver, life.visibility)


def history(samples: Sequence[Sample], rows: Rows, shape: Shape, delivered: Sequence[Record]) -> History:
    """Return which rows became visible when, as `labkit.core.judge` takes it, from the readings of one run.

    `shape` is the form in which the reader returns rows, `delivered` are the records that Spark passed to the sink.
    """
    return Readings(samples, rows, shape).history(delivered)


def judge_run(
    samples: Sequence[Sample], rows: Rows, shape: Shape, due: Sequence[Record]
) -> tuple[Verdict, Explanation]:
    """Return the verdict on one run, and an explanation of how its readings differ from a run without failures.

    `samples` are the readings of the store, `rows` is the input, `shape` the form in which the reader returns rows,
    and `due` are the records that the store must contain in the end.
    """
    expected = [named(each, shape) for each in due]
    observed = history(samples, rows, shape, due)
    return judge(expected, observed), explain(expected, observed)


def copies(readings: Sequence[TokenReading], ids: dict[int, set[int]]) -> list[Life]:
    """Return the history of every copy of every row that was read; `ids` maps each batch to its row ids.

    If some of several copies of a row disappear, the newest ones count as gone.
    """
    living: dict[Token, list[Life]] = {}
    over: list[Life] = []
    for number, each in enumerate(readings):
        for token in sorted(set(living) | set(each.tokens)):
            alive = living.setdefault(token, [])
            while len(alive) > each.tokens[token]:
                gone = alive.pop()
                over.append(replace(gone, visibility=Visibility.ABORTED))
            alive += [
                Life(token, number, each.sample.driver, token.offset) for _ in range(each.tokens[token] - len(alive))
            ]
        for batch in each.sample.unfinished:
            _mark_early(living, ids[batch])
    return over + [life for alive in living.values() for life in alive]


def _mark_early(living: dict[Token, list[Life]], ids: set[int]) -> None:
    """If all rows of an unfinished batch are readable, mark them as read too early, before their commit.

    `ids` are the ids of the batch's rows. If only some are readable, none is marked, because `labkit.core.judge`
    reports a batch that is partly visible (a fractured read).
    """
    present = {token.offset for token, alive in living.items() if alive}
    if not ids <= present:
        return
    for token, alive in living.items():
        if token.offset in ids:
            alive[:] = [replace(life, visibility=Visibility.PRECOMMITTED) for life in alive]


def keyed(readings: Sequence[TokenReading]) -> list[Life]:
    """Return the history of every value of every key, for a store that keeps only the latest row of each key.

    If a key is missing at the end, all its values count as aborted: they were read and later taken back. A second
    row of a key in one reading gets a made-up key, so it counts as a row that was not in the input.
    """
    first, extra = [], []
    for each in readings:
        kept, spare = _apart(each.tokens)
        first.append(TokenReading(each.sample, kept))
        extra.append(TokenReading(each.sample, spare))
    return _latest(first) + _latest(extra)


def _apart(tokens: Counter[Token]) -> tuple[Counter[Token], Counter[Token]]:
    keys: Counter[str] = Counter()
    kept, spare = Counter[Token](), Counter[Token]()
    for token in sorted(tokens.elements(), reverse=True):
        keys[token.key] += 1
        if keys[token.key] == 1:
            kept[token] = 1
        else:
            spare[token._replace(key=f"{token.key}, copy {keys[token.key]}")] = 1
    return kept, spare


def _latest(readings: Sequence[TokenReading]) -> list[Life]:
    shown: dict[str, int] = {}
    lives: list[Life] = []
    last = {token.key for token in readings[-1].tokens} if readings else set()
    for number, each in enumerate(readings):
        for token in sorted(each.tokens):
            if token.key not in shown or lives[shown[token.key]].token != token:
                shown[token.key] = len(lives)
                lasting = Visibility.COMMITTED if token.key in last else Visibility.ABORTED
                lives.append(Life(token, number, each.sample.driver, token.offset, lasting))
        for key in set(shown) - {token.key for token in each.tokens}:
            del shown[key]
    return lives
