"""From what an outside reader saw, again and again, to the history that `labkit.core.judge` judges.

A row that is there at the end counts, as often as it is there. A row that was seen and is gone was read although it
did not last (an aborted read). A batch that was readable as a whole while its sink still had something durable to do
for it, at a moment when nobody was left to do it, was read before it was decided (a precommitted read). Nothing is
counted here.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from labkit.core.exposure import Sight, Span
from labkit.core.records import History, Observation, Reading, Record, Visibility
from labkit.crashtest.rows import Rows, Seen, Shape, Token, named, tokens

SETTLED = 4.0
"""Seconds after which missing rows are taken to be lost."""


class Sample(NamedTuple):
    """What was read at one moment."""

    at: float
    driver: int
    """From 1: which driver of the run was the last one to be started."""
    seen: tuple[Seen, ...]
    moment: str = ""
    """`crash 1`, `end`: everything was quiet. Empty: the job was running."""
    unfinished: tuple[int, ...] = ()
    """Batches for which the sink still had something durable to do at a quiet moment."""
    since: float | None = None
    """When the reading before this one began; it was another than this, or there was none."""
    until: float | None = None
    """When this reading had ended."""

    def changed(self) -> Span | None:
        """When what was read became as it is: after the reading before had begun. None where that is not known."""
        if self.since is None or self.until is None:
            return None
        return Span(self.since, self.until)


@dataclass(frozen=True)
class TokenReading:
    """What one reading tells of the input."""

    sample: Sample
    tokens: Counter[Token]


@dataclass(frozen=True)
class Life:
    """One copy of a row: when it appeared, and what became of it."""

    token: Token
    born: int
    driver: int
    order: int
    visibility: Visibility = Visibility.COMMITTED
    gone: int = -1
    """The reading that did not find it any more; -1: every later one did, or found another value of its key."""


class Readings:
    """What was read of one run, with what it tells of the input."""

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
        """Whether a row replaces the earlier one of its key."""
        return self._shape is Shape.LAST

    def history(self, delivered: Sequence[Record]) -> History:
        """The history of the run. `delivered` are the records that the engine handed to the sink."""
        return History(
            events=self._events(),
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

    def sights(self) -> list[Sight]:
        """What came into sight and went out of it, in order; when, is known between two readings."""
        found = []
        for life in self._lives:
            row = self._row(life)
            found.append((life.born, Sight(row, self._changed(life.born))))
            if life.gone >= 0:
                went = Sight(row, self._changed(life.gone), goes=True)
                found.append((life.gone, went))
        # What goes, goes first: in between a key would show two values.
        found.sort(key=lambda pair: (pair[0], not pair[1].goes))
        return [sight for _, sight in found]

    def born(self, place: int) -> Span | None:
        """When the row came that is at this place among those of the history."""
        return self._changed(self._lives[place].born)

    def end(self) -> Span | None:
        """When the last reading was made."""
        last = self._readings[-1].sample if self._readings else None
        return None if last is None or last.until is None else Span(last.at, last.until)

    def _changed(self, number: int) -> Span | None:
        return self._readings[number].sample.changed()

    def _row(self, life: Life) -> Observation:
        row = named(Record(*life.token), self._shape)
        batch = self._batch_of.get(row.offset, -1)
        return Observation(*row, batch, life.driver, life.visibility)


def history(samples: Sequence[Sample], rows: Rows, shape: Shape, delivered: Sequence[Record]) -> History:
    """The history of one run. `delivered` are the records that the engine handed to the sink."""
    return Readings(samples, rows, shape).history(delivered)


def copies(readings: Sequence[TokenReading], ids: dict[int, set[int]]) -> list[Life]:
    """Every copy of every row that was ever seen. Of several copies the latest one goes first."""
    living: dict[Token, list[Life]] = {}
    over: list[Life] = []
    for number, each in enumerate(readings):
        for token in sorted(set(living) | set(each.tokens)):
            alive = living.setdefault(token, [])
            while len(alive) > each.tokens[token]:
                gone = alive.pop()
                over.append(replace(gone, visibility=Visibility.ABORTED, gone=number))
            alive += [
                Life(token, number, each.sample.driver, token.offset) for _ in range(each.tokens[token] - len(alive))
            ]
        for batch in each.sample.unfinished:
            _mark_early(living, ids[batch])
    return over + [life for alive in living.values() for life in alive]


def _mark_early(living: dict[Token, list[Life]], ids: set[int]) -> None:
    """A batch that is readable as a whole although its sink has not finished it. A part of it is a fractured read."""
    there = {token.offset for token, alive in living.items() if alive}
    if not ids <= there:
        return
    for token, alive in living.items():
        if token.offset in ids:
            alive[:] = [replace(life, visibility=Visibility.PRECOMMITTED) for life in alive]


def keyed(readings: Sequence[TokenReading]) -> list[Life]:
    """Every value that a key was seen to take; a key that is gone at the end shows that none of them lasted.

    A key that is there twice has one row too many, which no input explains: it gets a key of its own.
    """
    first, extra = [], []
    for each in readings:
        kept, spare = _apart(each.tokens)
        first.append(TokenReading(each.sample, kept))
        extra.append(TokenReading(each.sample, spare))
    return _latest(first) + _latest(extra)


def _apart(tokens: Counter[Token]) -> tuple[Counter[Token], Counter[Token]]:
    """The latest row of each key, and the others under other keys."""
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
            place = shown.pop(key)
            lives[place] = replace(lives[place], gone=number)
    return lives
