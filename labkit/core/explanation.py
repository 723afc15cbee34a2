"""Whether a run without a failure gives the same observations; if none does, where the observations leave all of them.

A **failure-free run** is what a reader sees where nothing fails. It is a sequence of rows and readings in which

- the **effect** of each record comes once, and the effects of a key come in the order of its records. Keys and batches
  interleave in any way, since tasks commit by themselves and a verdict knows no order between keys;
- with **upserts** a value may be skipped, because a later value of its key contains it, and may be written again
  while it is the key's newest; a key never shows an older value, and ends with its newest;
- each **row** is read after its transaction committed, and shows key and value of its record;
- at a **reading** each planned batch is there as a whole or not at all;
- in the **end** nothing is missing, and no open transaction holds the row of a record that never came.

Batch and incarnation of a row do not count: no reader sees which driver wrote it. A record whose value is drawn at
random or looked up has a set of **outcomes**, to which the expected value belongs; one run shows one of them. The
outcomes of different records are independent of each other, so a total over drawn values cannot be said in this way.

Without outcomes there is such a run just where `labkit.core.judge` finds exactly-once and nothing else: a test compares
both, and both with all failure-free runs of small inputs. Where there is none, the **shortest prefix** is what was
there up to the first event after which no failure-free run is left, whatever may follow.

Events are passed over once, and nothing of them is kept but a few numbers for each expected record. This module must
not count an anomaly, which is the judge's; it must not read files, clocks or chance, and must not depend on hash order.
"""

import struct
from abc import ABC, abstractmethod
from array import array
from bisect import bisect_left
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import chain, compress, count, islice
from operator import gt
from typing import ClassVar

from labkit.core.errors import InvalidInput
from labkit.core.expected import FACTS, NUMBER, SIZE, ExpectedRecords, check_planned
from labkit.core.judge import LARGE, TOO_LARGE, judge
from labkit.core.judge_large import judge_large
from labkit.core.records import History, Observation, Reading, Record, Visibility
from labkit.core.verdict import Outcome, Verdict

Outcomes = Mapping[int, Container[int]]
"""The values that a record may show instead of the expected one, by its offset; a record without an entry has none."""

COMMITTED = Visibility.COMMITTED


@dataclass(frozen=True)
class Explanation:
    """What failure-free runs have to say of a history."""

    exists: Outcome
    """Whether a failure-free run gives these observations; unknown where nobody looked."""
    events: int = 0
    """Of the shortest prefix that no failure-free run gives, or of the whole history: its rows and readings."""
    rows: int = 0
    """The rows before the event that refutes, or all of them."""
    row: Observation | None = None
    """The row that refutes; None where a reading or the end does."""
    record: Record | None = None
    """The expected record that the sentence is about."""
    after: str = ""
    """The last moment before that event at which a reader looked: `crash 1`."""
    refuted: str = ""
    """What the event is and why no failure-free run has it."""
    at: str = ""
    """When that was, as somebody who knows the times says it: `at 2.31 s`."""
    drawn: Mapping[int, int] = field(default_factory=dict)
    """The values that records with outcomes have shown, by offset."""

    @property
    def because(self) -> str:
        """One sentence, without its full stop."""
        if self.exists is Outcome.UNKNOWN:
            return "nobody looked, so there is nothing to compare with a failure-free run"
        if self.exists is Outcome.HOLDS:
            drew = f", if it draws {self._drew()}" if self.drawn else ""
            return f"a failure-free run gives the same observations{drew}"
        begun = (
            f"a failure-free run gives the first {self.rows} rows"
            if self.rows > 1
            else f"a failure-free run gives {'the first row' if self.rows else 'no row'}"
        )
        moment = ", ".join(part for part in (f"after {self.after}" * bool(self.after), self.at) if part)
        when = f" ({moment})" if moment else ""
        return f"{begun}, and none goes on as this one did{when}: {self.refuted}"

    @property
    def adds(self) -> bool:
        """Whether the sentence says more than an exactly-once verdict without a flaw does."""
        return self.exists is Outcome.VIOLATED or bool(self.drawn)

    def _drew(self) -> str:
        some = [f"{value} for offset {offset}" for offset, value in islice(self.drawn.items(), 3)]
        more = len(self.drawn) - len(some)
        return ", ".join(some) + (f" and {more} more" if more > 0 else "")

    def to_json(self) -> dict[str, object]:
        """Plain data for `--json`; only what is known."""
        plain: dict[str, object] = {
            "failure_free_run": self.exists.value,
            "because": self.because,
            "events": self.events,
            "rows": self.rows,
        }
        if self.record is not None:
            plain["record"] = self.record._asdict()
        if self.row is not None:
            names = ("offset", "key", "value", "batch", "attempt")
            plain["row"] = dict(zip(names, self.row[:5], strict=True))
        told = {"after": self.after, "at": self.at}
        plain |= {name: said for name, said in told.items() if said}
        if self.drawn:
            plain["drawn"] = {str(offset): value for offset, value in self.drawn.items()}
        return plain


def explain(expected: Iterable[Record], history: History, outcomes: Outcomes | None = None) -> Explanation:
    """Compares a history with all failure-free runs.

    Raises `InvalidInput` as `labkit.core.judge.judge` does.
    """
    with _refused():
        watch = _watch(ExpectedRecords(expected), history, outcomes)
        for _ in chain(watch.events(), watch.hidden()):
            continue
        return watch.explanation()


def judge_and_explain(
    expected: Iterable[Record], history: History, outcomes: Outcomes | None = None
) -> tuple[Verdict, Explanation]:
    """The judge's verdict and the explanation, in one pass over the same events, with one table of records.

    The verdict is on the expected values, so a drawn one is unexpected there. Raises `InvalidInput` as `judge` does.
    """
    expected = iter(expected)
    records = list(islice(expected, LARGE))
    with _refused():
        if len(records) < LARGE:
            watch = _watch(ExpectedRecords(records), history, outcomes)
            verdict = judge(records, watch.watched())
        else:
            # One table for both: of millions of records a second one would not fit.
            table = ExpectedRecords(chain(records, expected))
            del records
            watch = _watch(table, history, outcomes)
            verdict = judge_large(table, watch.watched())
        return verdict, watch.explanation()


def settled(expected: Iterable[Record], events: Iterable[object], outcomes: Outcomes) -> list[Record]:
    """The records of the one run that a verdict is about: each with the outcome that it showed last.

    A record that showed none keeps its expected value.
    """
    last = {
        event.offset: event.value
        for event in events
        if isinstance(event, Observation) and event.value in outcomes.get(event.offset, ())
    }
    return [record._replace(value=last.get(record.offset, record.value)) for record in expected]


@contextmanager
def _refused() -> Iterator[None]:
    """Says of numbers beyond 64 bits what the judge says of them."""
    try:
        yield
    except (OverflowError, struct.error) as error:
        raise InvalidInput(TOO_LARGE) from error


class _Watch(ABC):
    """Passes events on, and notes the first one after which no failure-free run is left."""

    may_skip: ClassVar[bool]
    """Whether a later record of a key may come, too, and not only the next one."""
    _following: Sequence[int]
    """Of each record the first one of its key that may come after it, or -1."""

    def __init__(self, table: ExpectedRecords, history: History, outcomes: Outcomes) -> None:
        check_planned(history.planned_batches)
        self._table, self._history, self._outcomes = table, history, outcomes
        self._found: Explanation | None = None
        self._events = self._readings = 0
        self._after = ""
        self._drawn: dict[int, int] = {}
        self._came = bytearray(len(table.offsets))
        """Of each record whether it has come."""
        self._fresh = array("i")
        """The records of planned batches that came since the last reading."""
        self._batch_of = array("i")
        """Of each record the place of its planned batch, or -1; empty where no batch was planned."""
        self._sizes: list[int] = []
        """Of each planned batch how many records it has."""
        if history.planned_batches:
            self._plan()
        self._next = array("i", [-1]) * len(table.keys)
        """Of each key the first of its records that may come now; where none may come any more, or all may, -1."""

    @abstractmethod
    def _why_not(self, index: int) -> str:
        """Why no failure-free run shows a record now, though key and value are right."""

    @abstractmethod
    def _first_missing(self) -> int:
        """The first record that is missing in the end, or -1."""

    def watched(self) -> History:
        """The same history, each event of which is looked at as it passes."""
        return replace(self._history, events=self.events(), hidden=self.hidden())

    def events(self) -> Iterator[Observation | Reading]:
        """The events, unchanged. Once no failure-free run is left, the rest passes without a look."""
        stream = iter(self._history.events)
        yield from self._follow(stream)
        yield from stream

    def hidden(self) -> Iterator[Observation]:
        """The hidden rows, unchanged, after all events. Behind them everything is known."""
        for row in self._history.hidden:
            looked = bool(self._events)
            if looked and not self._found and row.visibility != Visibility.ABORTED:
                self._hide(row)
            yield row
        # Now and not when somebody asks: the judge empties the table that both use.
        self._found = self._found or self._end()

    def explanation(self) -> Explanation:
        """What was found, after everything has passed."""
        assert self._found is not None, "hidden rows come after the events"
        return self._found

    def _follow(self, stream: Iterator[Observation | Reading]) -> Iterator[Observation | Reading]:
        """Passes events on up to their end, or to the first one after which no failure-free run is left."""
        # Local names, because each look-up of an attribute would be paid for every event.
        table, outcomes, fresh = self._table, self._outcomes, self._fresh
        rows, keys, first, span = table.rows, table.keys, table.first, table.span
        places, sparse, facts = table.table, table.sparse, FACTS.unpack_from
        came, following, next_of = self._came, self._following, self._next
        must_be_next, is_planned, events = not self.may_skip, bool(self._sizes), 0
        for events, event in enumerate(stream, start=1):  # asked after the loop
            if isinstance(event, Reading):
                if not self._is_whole(event, events):
                    yield event
                    return
                yield event
                continue
            offset, key, value, _, _, visibility = event
            index = offset - first
            index = places[index] if 0 <= index < span else sparse.get(offset, -1)
            if index < 0 or visibility != COMMITTED:
                break
            right, number, _, _ = facts(rows, index * SIZE)
            due = next_of[number]
            if (
                index < due
                or (must_be_next and index > due)
                or key != keys[number]
                or ((value != right or outcomes) and not self._may_show(event, right))
            ):
                break
            next_of[number] = following[index]
            if is_planned and not came[index]:
                fresh.append(index)
            came[index] = 1
            yield event
        else:
            self._events = events
            return
        self._refute_row(event, index, events)
        yield event

    def _plan(self) -> None:
        offsets = self._table.offsets
        self._batch_of = array("i", [-1]) * len(offsets)
        for place, plan in enumerate(self._history.planned_batches):
            begin, end = (bisect_left(offsets, each) for each in (plan.start, plan.end))
            self._batch_of[begin:end] = array("i", [place]) * (end - begin)
            self._sizes.append(end - begin)

    def _may_show(self, row: Observation, right: int) -> bool:
        """Whether the record may show this value, and has shown no other before."""
        if row.offset not in self._outcomes:
            return row.value == right
        return self._is_allowed(row, right) and self._drawn.setdefault(row.offset, row.value) == row.value

    def _is_allowed(self, row: Observation, right: int) -> bool:
        return row.value == right or row.value in self._outcomes.get(row.offset, ())

    def _is_whole(self, reading: Reading, events: int) -> bool:
        """At a reading: whether of each batch that has begun to come everything has come; notes where it has not."""
        came = Counter(map(self._batch_of.__getitem__, self._fresh))
        del self._fresh[:]
        for place in sorted(came):
            # What an earlier reading saw of a batch was all of it, so this is all that is there of it.
            if place >= 0 and came[place] < self._sizes[place]:
                self._refute_part(reading, place, events)
                return False
        self._after = reading.moment
        self._readings += 1
        return True

    # What follows happens once in a history, so it may take its time.

    def _refute_part(self, reading: Reading, place: int, events: int) -> None:
        plan, offsets = self._history.planned_batches[place], self._table.offsets
        span = [bisect_left(offsets, each) for each in (plan.start, plan.end)]
        there, missing = (self._came.index(bit, *span) for bit in (1, 0))
        self._refute(
            events,
            f"the reading {reading.moment!r} finds batch {plan.batch} in part, with {self._said(there)} and without "
            f"{self._said(missing)}",
            record=self._record(missing),
        )

    def _refute_row(self, row: Observation, index: int, events: int) -> None:
        """Notes the row after which no failure-free run is left, and why."""
        record = self._record(index) if index >= 0 else None
        if row.visibility == Visibility.ABORTED:
            why = "is read although its transaction was aborted"
        elif row.visibility != COMMITTED:
            why = "is read before its transaction is decided"
        elif record is None:
            why = "is there, and no input explains it"
        elif row.key != record.key or not self._is_allowed(row, record.value):
            why = f"is there, and the input asks for {record.key!r:.40} = {record.value}"
        elif self._drawn.get(row.offset, row.value) != row.value:
            why = f"is there, and {self._drawn[row.offset]} was before: one run draws one value"
        else:
            why = self._why_not(index)
        said = f"{_named(row)}, written by attempt {row.incarnation} of batch {row.batch}, {why}"
        self._refute(events, said, row=row, record=record)

    def _refute(self, events: int, said: str, row: Observation | None = None, record: Record | None = None) -> None:
        """Notes what refutes all failure-free runs: the last of so many events, or the end behind them."""
        is_end = events == self._events
        before = events - (not is_end) - self._readings
        after = "" if is_end else self._after
        self._found = Explanation(Outcome.VIOLATED, events, before, row, record, after, said)

    def _hide(self, row: Observation) -> None:
        """No failure-free run leaves open what becomes of a record that never came."""
        index = self._table.place(row.offset)
        if index < 0 or self._came[index]:
            return
        record = self._record(index)
        if row.key == record.key and self._is_allowed(row, record.value):
            said = (
                f"at the end an open transaction still holds {_named(row)}, written by attempt {row.incarnation} of "
                f"batch {row.batch}"
            )
            self._refute(self._events, said, record=record)

    def _end(self) -> Explanation:
        if not self._events:
            return Explanation(Outcome.UNKNOWN)
        missing = self._first_missing()
        if missing < 0:
            rows = self._events - self._readings
            return Explanation(Outcome.HOLDS, self._events, rows, drawn=dict(self._drawn))
        said = f"at the end {self._said(missing)} is missing"
        self._refute(self._events, said, record=self._record(missing))
        return self.explanation()

    def _record(self, index: int) -> Record:
        value, number = self._table.facts(index)[:2]
        return Record(self._table.offsets[index], self._table.keys[number], value)

    def _said(self, index: int) -> str:
        return _named(self._record(index))


class _Rows(_Watch):
    """Rows that stay: each must be the one of its key that has to come next."""

    may_skip = False

    def __init__(self, table: ExpectedRecords, history: History, outcomes: Outcomes) -> None:
        super().__init__(table, history, outcomes)
        self._following = following = array("i", [-1]) * len(table.offsets)
        last = array("i", [-1]) * len(table.keys)
        for index, number in enumerate(_numbers(table)):
            before = last[number]
            if before < 0:
                self._next[number] = index
            else:
                following[before] = index
            last[number] = index

    def _why_not(self, index: int) -> str:
        if self._came[index]:
            return "comes a second time"
        number = self._table.facts(index)[1]
        return f"comes before {self._said(self._next[number])}"

    def _first_missing(self) -> int:
        return self._came.find(0)


class _Upserts(_Watch):
    """Rows that replace the one of their key: none may be older than that one."""

    may_skip = True

    def __init__(self, table: ExpectedRecords, history: History, outcomes: Outcomes) -> None:
        super().__init__(table, history, outcomes)
        # What is there may be written again.
        self._following = range(len(table.offsets))

    def _why_not(self, index: int) -> str:
        newest = self._next[self._table.facts(index)[1]]
        return f"comes back after {self._said(newest)}"

    def _first_missing(self) -> int:
        newest = map(self._next.__getitem__, _numbers(self._table))
        return next(compress(count(), map(gt, count(), newest)), -1)


def _watch(table: ExpectedRecords, history: History, outcomes: Outcomes | None) -> _Watch:
    return (_Upserts if history.keyed else _Rows)(table, history, outcomes or {})


def _numbers(table: ExpectedRecords) -> Iterator[int]:
    """Of each record the number of its key."""
    return chain.from_iterable(NUMBER.iter_unpack(table.rows))


def _named(row: Record | Observation) -> str:
    return f"offset {row.offset} ({row.key!r:.40} = {row.value})"
