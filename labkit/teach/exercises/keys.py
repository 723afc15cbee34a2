"""Judge the key of an upserting sink: the rows of every run of the pipeline go into a table with the learner's key.

The run does not depend on the key, so the schedules are those of the simulator. The judge of real runs compares the
final table with the expected records. Some wrong keys (truncated, lower-cased, joined without separator) collide only
in an input that is too long for a search, so labkit also asks for the keys of single records.
"""

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

from labkit.core.judge import Verdict, judge
from labkit.core.records import History, Observation, Reading, Record
from labkit.sim.explore import explore
from labkit.sim.model import Mood, Property
from labkit.sim.models.pipeline.claims import expected, is_over
from labkit.sim.models.pipeline.state import State, VisibleRow
from labkit.sim.trace import make
from labkit.teach.exercises.asking import Asker, Unusable, shown
from labkit.teach.exercises.contract import Answer, Finding, Plain, Variant
from labkit.teach.exercises.invariants import ObservedModel
from labkit.teach.exercises.searching import MAX_STATES, ask_each, remembered, steady, unusable

SAME_CHECKSUM = (1_401_558_561_589, 7_014_945_064_510)
"""Offsets whose decimal digits have the same CRC-32."""
SENTENCE = "In the end the table holds one row for every record."


class Table:
    """The table that a sink fills by upserts, with the key that a learner's function gives each row.

    Each sequence of written rows is judged once; then its verdict is cached.
    """

    def __init__(self, ask: Asker, words: tuple[str, ...]) -> None:
        self.ask, self.expected = ask, expected(words)
        self.verdict = cache(self._verdict)

    def row(self, seen: VisibleRow) -> dict[str, Plain]:
        """Return a row as the dict that the learner's function receives."""
        record = self.expected[seen.offset]
        return {
            "offset": record.offset,
            "word": record.key,
            "count": record.value,
            "batch": seen.batch,
            "attempt": seen.incarnation,
        }

    def key(self, seen: VisibleRow) -> str:
        """Return the key that the learner's function gives a row, as JSON.

        Raises `Unusable` if a table cannot use it as a key.
        """
        return usable_key(self.ask, self.row(seen))

    def _verdict(self, seen: tuple[VisibleRow, ...]) -> Verdict:
        table = {self.key(row): row for row in seen if row.offset >= 0}
        rows = (
            Observation(*Record(*self.expected[row.offset]), row.batch, row.incarnation)
            for row in sorted(table.values(), key=lambda row: (row.incarnation, row.offset))
        )
        return judge(self.expected, History([*rows, Reading("end")]))

    def because(self, state: State) -> str:
        """Return a sentence on a row that another row overwrote, or that the table has twice, with the keys of both."""
        rows = [row for row in state.seen if row.offset >= 0]
        verdict = self.verdict(state.seen)
        if verdict.lost:
            lost = next(row for row in rows[::-1] if row.offset == verdict.lost[0])
            over = next(row for row in rows[rows.index(lost) :] if row.offset != lost.offset and self._same(row, lost))
            return (
                f"the row of offset {lost.offset} is gone: the row of offset {over.offset} has the same key "
                f"{shown(self.ask(self.row(lost)))} and took its place."
            )
        offset = verdict.duplicate[0]
        keys = dict.fromkeys(self.key(row) for row in rows if row.offset == offset)
        return f"the row of offset {offset} is there {len(keys)} times, by the keys {' and '.join(keys)}."

    def _same(self, one: VisibleRow, other: VisibleRow) -> bool:
        return self.key(one) == self.key(other)


def usable_key(ask: Asker, row: dict[str, Plain]) -> str:
    """Return the key that the learner's function gives a row, as JSON.

    Raises `Unusable` if the key is not a number, a text, or a list of these.
    """
    key = ask(row)
    parts = key if type(key) is list else [key]
    if not parts or any(type(part) not in (int, str) for part in parts):
        raise Unusable(f"{ask.with_answer(row)}: a key must be a number, a text, or a list of these.")
    return json.dumps(key)


def judge_long_input(answer: Answer, variant: Variant) -> Finding:
    """Check that a learner's key function gives different records different keys, in an input too long to simulate.

    The input begins with the words of `variant` and then repeats the last one without end. All records of the beginning
    are tested, and from the repetition those whose offsets differ by powers of two and ten or have the same CRC-32.
    """
    ask, before = Asker(answer, "key"), dict[str, dict[str, Plain]]()

    def wrong(row: dict[str, Plain]) -> Finding | None:
        key = usable_key(ask, row)
        other = before.setdefault(key, row)
        if (other["offset"], other["word"]) == (row["offset"], row["word"]):
            return None
        message = f"{ask.call(other)} and {ask.with_answer(row)}: two different records have the same key."
        general = "In a long input two different records have the same key."
        return Finding(False, message, "two records with one key", "a key for each record", general=general)

    rows = ask.announced(_long_input(variant["words"]), lambda row: [row])
    return ask_each(ask, rows, wrong, "Each of {} records of a long input has its own key")


def _long_input(words: Sequence[str]) -> Iterator[dict[str, Plain]]:
    counts, last = Counter[str](), words[-1]
    for offset, word in enumerate(words):
        counts[word] += 1
        yield {"offset": offset, "word": word, "count": counts[word], "batch": offset // 100, "attempt": 1}
    powers = {base**power for base in (2, 10) for power in range(1, 13)}
    collisions = (offset - len(words) for offset in SAME_CHECKSUM)
    later = sorted({0, *powers, *(2**power for power in (16, 24, 32, 48, 62)), *collisions})
    for number in later:
        offset = len(words) + number
        row = {"offset": offset, "word": last, "count": counts[last] + 1 + number}
        yield {**row, "batch": offset // 100, "attempt": 1}


def judge_key(answer: Answer, variant: Variant) -> Finding:
    """Check a learner's key function in every schedule of a job that appends rows.

    The schedules contain crashes and deleted checkpoint folders. If the variant has a list of `words`, check instead
    single records of an input that begins with them.
    """
    if not isinstance(variant["words"], str):
        return judge_long_input(answer, variant)
    ask = Asker(answer, "key")
    model = make("pipeline", {"strategy": "append", **dict(variant.parameters)})
    table = Table(ask, tuple(str(model.values["words"]).split("-")))

    def holds(state: Any) -> bool:
        verdict = table.verdict(state.seen)
        return not verdict.lost and not verdict.duplicate

    claim = Property("one_row_each", Mood.ALWAYS, SENTENCE, holds, table.because, is_over)
    configuration = json.dumps([model.name, model.version, "key", dict(model.values)])
    try:
        finding = remembered(ask, configuration, lambda: _searched(ObservedModel(model, claim)))
    except Unusable as error:
        return unusable("key", error)
    assert finding is not None
    return steady(ask, finding.message) if finding.passed else finding


def _searched(model: ObservedModel) -> Finding:
    result = explore(model, max_states=MAX_STATES)
    if not result.violations:
        return Finding(True, f"In all {result.unique_states:,} states the table ends with one row for every record")
    first = result.violations[0]
    text = first.because
    general = "After some run the table does not hold one row for every record."
    message = f"{text[0].upper()}{text[1:]}"
    return Finding(False, message, text, SENTENCE, str(first.trace), len(first.trace.actions), general)
