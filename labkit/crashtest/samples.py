"""Turns the readings of an outside reader into the history that `labkit.core.judge` judges.

A row that is there at the end counts, as often as it is there. A row that was seen and is gone was read although it did
not last (an aborted read). A batch that was readable as a whole while its sink still had something durable to do for
it, at a moment when nobody was left to do it, was read before it was decided (a precommitted read). This module must
not count effects.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from labkit.core.records import History, Observation, Reading, Record, Visibility
from labkit.crashtest.rows import Rows, Seen, Shape, Token, named, tokens


class Sample(NamedTuple):
    """The rows of one reading."""

    at: float
    driver: int
    """The number of the run's latest driver, from 1."""
    seen: tuple[Seen, ...]
    moment: str = ""
    """`crash 1`, `end`: everything was quiet. Empty: the job was running."""
    unfinished: tuple[int, ...] = ()
    """Batches for which the sink still had something durable to do at a quiet moment."""


@dataclass(frozen=True)
class Told:
    """One reading, with the input rows that it shows."""

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


def history(
    samples: Sequence[Sample], rows: Rows, shape: Shape, delivered: Sequence[Record]
) -> History:
    """The history of one run. `delivered`: the records that the engine handed to the sink."""
    known = rows.expected()
    readings = [Told(sample, tokens(sample.seen, shape, known)) for sample in samples]
    batch_of = {row["id"]: batch.number for batch in rows.batches for row in batch.rows}
    ids = {number: rows.ids(number) for number in range(len(rows.batches))}
    lives = keyed(readings) if shape is Shape.LAST else copies(readings, ids)
    return History(
        events=_events(lives, readings, batch_of, shape),
        keyed=shape is Shape.LAST,
        planned_batches=[
            plan
            for plan in rows.planned_batches()
            if any(plan.start <= one.offset < plan.end for one in delivered)
        ],
    )


def _events(
    lives: Sequence[Life],
    readings: Sequence[Told],
    batch_of: dict[int, int],
    shape: Shape,
) -> Iterator[Observation | Reading]:
    waiting = sorted(lives, key=lambda life: (life.born, life.order, life.token))
    for number, each in enumerate(readings):
        while waiting and waiting[0].born == number:
            life = waiting.pop(0)
            row = named(Record(*life.token), shape)
            yield Observation(
                *row, batch_of.get(row.offset, -1), life.driver, life.visibility
            )
        if each.sample.moment:
            yield Reading(each.sample.moment)


def copies(told: Sequence[Told], ids: dict[int, set[int]]) -> list[Life]:
    """Every copy of every row that was ever seen. Of several copies the latest one goes first."""
    living: dict[Token, list[Life]] = {}
    over: list[Life] = []
    for number, each in enumerate(told):
        for token in sorted(set(living) | set(each.tokens)):
            alive = living.setdefault(token, [])
            while len(alive) > each.tokens[token]:
                over.append(replace(alive.pop(), visibility=Visibility.ABORTED))
            alive += [
                Life(token, number, each.sample.driver, token.offset)
                for _ in range(each.tokens[token] - len(alive))
            ]
        for batch in each.sample.unfinished:
            _mark_early(living, ids[batch])
    return over + [life for alive in living.values() for life in alive]


def _mark_early(living: dict[Token, list[Life]], ids: set[int]) -> None:
    """Marks a batch that is readable as a whole although unfinished. A part of a batch is a fractured read."""
    there = {token.offset for token, alive in living.items() if alive}
    if not ids <= there:
        return
    for token, alive in living.items():
        if token.offset in ids:
            alive[:] = [
                replace(life, visibility=Visibility.PRECOMMITTED) for life in alive
            ]


def keyed(told: Sequence[Told]) -> list[Life]:
    """Every value that a key was seen to take; if the key is gone at the end, none of its values lasted.

    A key that is there twice has one row too many, which no input explains: that row gets a key of its own.
    """
    first, extra = [], []
    for each in told:
        kept, spare = _apart(each.tokens)
        first.append(Told(each.sample, kept))
        extra.append(Told(each.sample, spare))
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


def _latest(readings: Sequence[Told]) -> list[Life]:
    shown: dict[str, Token] = {}
    lives: list[Life] = []
    last = {token.key for token in readings[-1].tokens} if readings else set()
    for number, each in enumerate(readings):
        for token in sorted(each.tokens):
            if shown.get(token.key) != token:
                shown[token.key] = token
                lasting = (
                    Visibility.COMMITTED if token.key in last else Visibility.ABORTED
                )
                lives.append(
                    Life(token, number, each.sample.driver, token.offset, lasting)
                )
        for key in set(shown) - {token.key for token in each.tokens}:
            del shown[key]
    return lives
