"""Turns repeated readings of a store into the history that `labkit.core.judge` judges.

Each copy of a row in the last reading counts as an effect. A row that was read and later disappeared is an aborted
read. A batch that was readable as a whole while no process ran, before its sink had finished its durable work, is a
precommitted read. This module counts no anomalies; the judge does.
"""

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from labkit.core.explanation import Explanation, explain
from labkit.core.judge import Verdict, judge
from labkit.core.records import History, Observation, Reading, Record, Visibility
from labkit.crashtest.rows import Rows, Seen, Shape, Token, named, tokens

SETTLED = 4.0
"""The number of seconds after a run for which missing rows may still arrive; then they count as lost."""


class Sample(NamedTuple):
    """One reading of the store during a run: the rows that the user's reader returned, and the time."""

    at: float
    driver: int
    """The number of the run's latest driver at that time, from 1."""
    seen: tuple[Seen, ...]
    moment: str = ""
    """`crash 1`, `end` or the like if no driver was running; empty if the job was running."""
    unfinished: tuple[int, ...] = ()
    """The batches for which the sink still had a durable effect to do when it crashed."""


class TokenReading(NamedTuple):
    """One reading of the store, with a Counter of how often each input row occurs in it."""

    sample: Sample
    tokens: Counter[Token]


class Life(NamedTuple):
    """One copy of a row in the store: the index of the reading that showed it first, and whether it disappeared."""

    born: int
    token: Token
    driver: int
    visibility: Visibility = Visibility.COMMITTED


def history(samples: Sequence[Sample], rows: Rows, shape: Shape, delivered: Sequence[Record]) -> History:
    """Convert the readings of one run (`samples`) into the history that `labkit.core.judge` takes.

    The history says in which order rows became visible. `rows` is the input, `shape` the form in which the reader
    returns rows, and `delivered` are the records that Spark passed to the sink.
    """
    known, keyed = rows.expected(), shape is Shape.LAST
    readings = [TokenReading(sample, tokens(sample.seen, shape, known)) for sample in samples]
    ids = {batch.number: {row["id"] for row in batch.rows} for batch in rows.batches}
    batch_of = {offset: number for number, several in ids.items() for offset in several}
    lives = _of_keys(readings) if keyed else _copies(readings, ids)
    lives.sort(key=lambda life: (life.born, life.token))
    events: list[Observation | Reading] = []
    for number, sample in enumerate(samples):
        for life in (each for each in lives if each.born == number):
            row = named(Record(*life.token), shape)
            events.append(Observation(*row, batch_of.get(row.offset, -1), life.driver, life.visibility))
        if sample.moment:
            events.append(Reading(sample.moment))
    planned = [plan for plan in rows.planned_batches() if any(plan.start <= one.offset < plan.end for one in delivered)]
    return History(events, keyed, planned)


def judge_run(
    samples: Sequence[Sample], rows: Rows, shape: Shape, due: Sequence[Record]
) -> tuple[Verdict, Explanation]:
    """Return the verdict on one run, and an explanation of how its readings differ from a run without failures.

    `samples` are the readings of the store, `rows` is the input, `shape` the form in which the reader returns rows, and
    `due` are the records that the store must contain in the end.
    """
    expected = [named(each, shape) for each in due]
    observed = history(samples, rows, shape, due)
    return judge(expected, observed), explain(expected, observed)


def _copies(readings: Sequence[TokenReading], ids: dict[int, set[int]]) -> list[Life]:
    """Return one `Life` for each copy of a row that the readings show: when it appeared, and whether it disappeared.

    `ids` maps each batch to its row ids. If some of several copies of a row disappear, the newest copies count as gone.
    """
    living: dict[Token, list[Life]] = {}
    over: list[Life] = []
    for number, each in enumerate(readings):
        for token in sorted(set(living) | set(each.tokens)):
            alive = living.setdefault(token, [])
            while len(alive) > each.tokens[token]:
                gone = alive.pop()
                over.append(gone._replace(visibility=Visibility.ABORTED))
            alive += [Life(number, token, each.sample.driver)] * (each.tokens[token] - len(alive))
        for batch in each.sample.unfinished:
            _mark_early(living, ids[batch])
    return over + [life for alive in living.values() for life in alive]


def _mark_early(living: dict[Token, list[Life]], ids: set[int]) -> None:
    """If all rows of an unfinished batch are readable, mark them as readable before their commit.

    `living` has the copies of rows that are readable now, and `ids` are the ids of the batch's rows. If only some of
    these rows are readable, none is marked, because `labkit.core.judge` reports a partly visible batch itself (a
    fractured read).
    """
    present = {token.offset for token, alive in living.items() if alive}
    if not ids <= present:
        return
    for token, alive in living.items():
        if token.offset in ids:
            alive[:] = [life._replace(visibility=Visibility.PRECOMMITTED) for life in alive]


def _of_keys(readings: Sequence[TokenReading]) -> list[Life]:
    """Return one `Life` for each value that a key had over time, for a store that keeps only the last row of a key.

    If the last reading does not show a key, all values of the key count as aborted: they were read and later taken
    back. If a reading shows a second row of a key, this row gets a made-up key and so counts as a row that was not in
    the input.
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
                lives.append(Life(number, token, each.sample.driver, lasting))
        for key in set(shown) - {token.key for token in each.tokens}:
            del shown[key]
    return lives
