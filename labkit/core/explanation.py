"""Decide whether some failure-free run produces the same observations, and if not, find where the observations
diverge.

A **failure-free run** is what a reader sees if nothing fails: a sequence of rows, and of readings of the whole store,
in which

- the **effect** of each record appears once, and the effects of one key appear in the order of its records. Keys and
  batches interleave freely, because tasks commit independently and a verdict assumes no order between keys;
- with **upserts**, a value may be skipped, because a later value of its key contains it, and may be repeated while it
  is the newest value of the key; a key never shows an older value, and ends with its newest;
- each **row** is read after its transaction committed, and carries the key and value of its record;
- at each **reading**, a planned batch is present completely or not at all;
- at the **end** nothing is missing, and no open transaction holds a row of a record that never appeared.

The batch and incarnation of a row do not count, because no reader sees which driver wrote it. A record whose
value is random or looked up has a set of **outcomes**, which contains the expected value; each run shows one of
them. Outcomes of different records are independent, so a running total over random values cannot be described
this way.

Without outcomes, a failure-free run exists exactly where `labkit.core.judge` finds exactly-once and no anomaly.
A test compares the two, and compares both with an enumeration of all failure-free runs of small inputs. If no
such run exists, the **shortest prefix** ends with the first event after which none is possible, whatever
follows.

The module makes one pass over the events and keeps a few numbers per expected record. It counts no anomalies,
since that is the judge's work, and does not depend on hash order.
"""

from abc import ABC, abstractmethod
from array import array
from bisect import bisect_left
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, compress, count, islice
from operator import gt
from typing import ClassVar

from labkit.core.expected import FACTS, NUMBER, SIZE, ExpectedRecords, refusing_large_numbers
from labkit.core.judge import LARGE, judge
from labkit.core.judge_large import judge_large
from labkit.core.records import History, Observation, Reading, Record, Visibility
from labkit.core.verdict import Outcome, Verdict

Outcomes = Mapping[int, Container[int]]
"""The allowed values of records whose value is not determined, by offset. A record without an entry has one value."""

COMMITTED = Visibility.COMMITTED

READ_AND_ABORTED = "is read although its transaction was aborted"
"""The reason why no failure-free run contains an aborted row; a test without transactions has its own words for it."""


@dataclass(frozen=True)
class Explanation:
    """Whether a run without failures could show readers the same rows and, if not, a proof that it could not.

    The proof is the first event (a row that became visible, or a reading of the whole store) that no such run contains.
    If there is no such event, the proof is a record that is missing or still hidden at the end of the history.
    """

    exists: Outcome
    """Whether a failure-free run produces these observations; unknown if the history has no reading and no row."""
    events: int = 0
    """The number of events in the shortest prefix that no failure-free run produces; in the whole history if none."""
    rows: int = 0
    """The number of rows before the event that no failure-free run contains, or of all rows if there is none."""
    row: Observation | None = None
    """The row that no failure-free run contains; None if a reading or the end of the history refutes all such runs."""
    record: Record | None = None
    """The expected record that the explanation's sentence mentions."""
    after: str = ""
    """The name of the last reading before the refuting event, for example `crash 1`."""
    refuted: str = ""
    """A description of the refuting event and the reason why no failure-free run contains it."""
    at: str = ""
    """The time of the refuting event in words, such as `at 2.31 s`, if the caller knows times; otherwise empty."""
    drawn: Mapping[int, int] = field(default_factory=dict)
    """The value that each record with several allowed values showed, by offset."""

    @property
    def because(self) -> str:
        """Return a sentence, without full stop, on whether a run without failures could show readers the same rows.

        If no such run could, the sentence says why.
        """
        if self.exists is Outcome.UNKNOWN:
            return "there are no observations, so there is nothing to compare with a failure-free run"
        if self.exists is Outcome.HOLDS:
            drew = f", if the outcomes are {self._drew()}" if self.drawn else ""
            return f"a failure-free run gives the same observations{drew}"
        begun = "no failure-free run looks like this one"
        if self.rows:
            rows = "the first row" if self.rows == 1 else f"the first {self.rows} rows"
            begun = f"a failure-free run gives {rows}, but none continues like this one"
        moment = ", ".join(part for part in (f"after {self.after}" * bool(self.after), self.at) if part)
        when = f" ({moment})" if moment else ""
        return f"{begun}{when}: {self.refuted}"

    @property
    def adds(self) -> bool:
        """Return whether this explanation says more than the verdict.

        It does so if no run without failures fits the history, or if the readers saw random values.
        """
        return self.exists is Outcome.VIOLATED or bool(self.drawn)

    def _drew(self) -> str:
        some = [f"{value} for offset {offset}" for offset, value in islice(self.drawn.items(), 3)]
        more = len(self.drawn) - len(some)
        return ", ".join(some) + (f" and {more} more" if more > 0 else "")

    def to_json(self) -> dict[str, object]:
        """Return the explanation as plain data for `--json`. Unknown fields are left out."""
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
        details = {"after": self.after, "at": self.at}
        plain |= {name: detail for name, detail in details.items() if detail}
        if self.drawn:
            plain["drawn"] = {str(offset): value for offset, value in self.drawn.items()}
        return plain


def explain(expected: Iterable[Record], history: History, outcomes: Outcomes | None = None) -> Explanation:
    """Return whether a reader of a run without failures could have seen the events in `history` and, if not, why.

    `expected` has the records that a correct run writes. `outcomes` is for records with a random value: a dict from
    offset to the allowed values. Raises `InvalidInput` like `judge`.
    """
    with refusing_large_numbers():
        watch = _watch(ExpectedRecords(expected), history, outcomes)
        for _ in chain(watch.events(), watch.hidden()):
            continue
        return watch.explanation()


def judge_and_explain(
    expected: Iterable[Record], history: History, outcomes: Outcomes | None = None
) -> tuple[Verdict, Explanation]:
    """Return the verdict of `judge` and the result of `explain` on the same history, which is read only once.

    The verdict ignores `outcomes`: every value except the expected value counts as unexpected, even if `outcomes`
    allows it. Raises `InvalidInput` like `judge`.
    """
    expected = iter(expected)
    records = list(islice(expected, LARGE))
    with refusing_large_numbers():
        if len(records) < LARGE:
            watch = _watch(ExpectedRecords(records), history, outcomes)
            verdict = judge(records, watch.watched())
        else:
            # Both use one table, because a second one for millions of records would not fit into memory.
            table = ExpectedRecords(chain(records, expected))
            del records
            watch = _watch(table, history, outcomes)
            verdict = judge_large(table, watch.watched())
        return verdict, watch.explanation()


def settled(expected: Iterable[Record], events: Iterable[object], outcomes: Outcomes) -> list[Record]:
    """Return the expected records, with each random value set to the value that readers saw.

    `outcomes` is a dict from offset to the allowed values of the record. Such a record gets the allowed value that a
    reader saw last. If no reader saw one, the record keeps its expected value.
    """
    last = {
        event.offset: event.value
        for event in events
        if isinstance(event, Observation) and event.value in outcomes.get(event.offset, ())
    }
    return [record._replace(value=last.get(record.offset, record.value)) for record in expected]


class _Watch(ABC):
    """Yields a history's events (rows, readings) unchanged, and notes the first that is impossible without failures."""

    may_skip: ClassVar[bool]
    """Whether a record of a key may never appear, as with upserts; if rows are appended, every record must appear."""
    _following: Sequence[int]
    """For each record, the earliest record of its key that may come next (with upserts, itself); -1 if none."""

    def __init__(self, table: ExpectedRecords, history: History, outcomes: Outcomes) -> None:
        self._table, self._history, self._outcomes = table, history, outcomes
        self._result: Explanation | None = None
        self._events = self._readings = 0
        self._after = ""
        self._drawn: dict[int, int] = {}
        self._appeared = bytearray(len(table.offsets))
        """For each record, whether it has appeared."""
        self._fresh = array("i")
        """The records of planned batches that appeared since the last reading."""
        plans = history.planned_batches
        self._batch_of, self._sizes = table.plan(plans) if plans else (array("i"), array("q"))
        """For each record, the index of its planned batch or -1, and the number of records in each planned batch."""
        self._next = array("i", [-1]) * len(table.keys)
        """For each key, the next of its records that may appear; -1 if none is left, or if any may appear."""

    @abstractmethod
    def _why_not(self, index: int) -> str:
        """Return why a failure-free run cannot show a row of record `index` now, although the row's value is right."""

    @abstractmethod
    def _first_missing(self) -> int:
        """Return the index of the first record that readers should have seen by the end but did not, or -1 if none."""

    def watched(self) -> History:
        return replace(self._history, events=self.events(), hidden=self.hidden())

    def events(self) -> Iterator[Observation | Reading]:
        stream = iter(self._history.events)
        yield from self._follow(stream)
        yield from stream

    def hidden(self) -> Iterator[Observation]:
        """Yield the rows that are still hidden at the end, and note the first of them whose record readers never saw.

        Consume `events` first, and then this iterator to its end; only after that does `explanation` have a result.
        """
        for row in self._history.hidden:
            looked = bool(self._events)
            if looked and not self._result and row.visibility != Visibility.ABORTED:
                self._hide(row)
            yield row
        # Computed now and not on demand, because the judge empties the table that both use.
        self._result = self._result or self._end()

    def explanation(self) -> Explanation:
        assert self._result is not None, "hidden rows come after the events"
        return self._result

    def _follow(self, stream: Iterator[Observation | Reading]) -> Iterator[Observation | Reading]:
        """Yield all rows and readings, but stop after the first that no run without failures could show."""
        # Local names, because each event would otherwise pay for attribute look-ups.
        table, outcomes, fresh = self._table, self._outcomes, self._fresh
        rows, keys, first, span = table.rows, table.keys, table.first, table.span
        places, sparse, facts = table.table, table.sparse, FACTS.unpack_from
        appeared, following, next_of = self._appeared, self._following, self._next
        must_be_next, is_planned, events = not self.may_skip, bool(self._sizes), 0
        for events, event in enumerate(stream, start=1):  # `events` is used after the loop
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
            if is_planned and not appeared[index]:
                fresh.append(index)
            appeared[index] = 1
            yield event
        else:
            self._events = events
            return
        self._refute_row(event, index, events)
        yield event

    def _may_show(self, row: Observation, right: int) -> bool:
        """Return whether the row's value is possible without failures.

        The value must be `right`, the expected value. If the row's record has a random value, any of its allowed values
        is possible, but all rows of the record must have the same value.
        """
        if row.offset not in self._outcomes:
            return row.value == right
        return self._is_allowed(row, right) and self._drawn.setdefault(row.offset, row.value) == row.value

    def _is_allowed(self, row: Observation, right: int) -> bool:
        return row.value == right or row.value in self._outcomes.get(row.offset, ())

    def _is_whole(self, reading: Reading, events: int) -> bool:
        """Return whether each planned batch is visible completely or not at all at a reading.

        If only a part of a batch is visible, store this batch as the reason why the history is impossible without
        failures. `events` is the number of events up to and including this reading.
        """
        appeared = Counter(map(self._batch_of.__getitem__, self._fresh))
        del self._fresh[:]
        for place in sorted(appeared):
            # An earlier reading saw complete batches only, so these rows are all that is visible of this batch.
            if place >= 0 and appeared[place] < self._sizes[place]:
                self._refute_part(reading, place, events)
                return False
        self._after = reading.moment
        self._readings += 1
        return True

    # The following code runs once in a history, so it need not be fast.

    def _refute_part(self, reading: Reading, place: int, events: int) -> None:
        plan, offsets = self._history.planned_batches[place], self._table.offsets
        span = [bisect_left(offsets, each) for each in (plan.start, plan.end)]
        present, missing = (self._appeared.index(bit, *span) for bit in (1, 0))
        self._refute(
            events,
            f"the reading {reading.moment!r} finds only a part of batch {plan.batch}, with "
            f"{self._record_text(present)} and without {self._record_text(missing)}",
            record=self._record(missing),
        )

    def _refute_row(self, row: Observation, index: int, events: int) -> None:
        record = self._record(index) if index >= 0 else None
        if row.visibility == Visibility.ABORTED:
            why = READ_AND_ABORTED
        elif row.visibility != COMMITTED:
            why = "is read before its transaction is decided"
        elif record is None:
            why = "is visible, but no input explains it"
        elif row.key != record.key or not self._is_allowed(row, record.value):
            why = f"is visible, but the input requires {record.key!r:.40} = {record.value}"
        elif self._drawn.get(row.offset, row.value) != row.value:
            why = (
                f"is visible, but an earlier row has {self._drawn[row.offset]}: in one run, every row of a record "
                "has the same value"
            )
        else:
            why = self._why_not(index)
        message = f"{_named(row)}, written by attempt {row.incarnation} of batch {row.batch}, {why}"
        self._refute(events, message, row=row, record=record)

    def _refute(self, events: int, because: str, row: Observation | None = None, record: Record | None = None) -> None:
        """Store the result that this history is impossible without failures.

        `events` is the number of events up to and including the event that proves this, and `because` is the reason in
        words. If the proof is a record that is missing or still hidden at the end, `events` is the number of all
        events. `row` and `record` are the row and the expected record that belong to the proof.
        """
        is_end = events == self._events
        before = events - (not is_end) - self._readings
        after = "" if is_end else self._after
        self._result = Explanation(Outcome.VIOLATED, events, before, row, record, after, because)

    def _hide(self, row: Observation) -> None:
        index = self._table.place(row.offset)
        if index < 0 or self._appeared[index]:
            return
        record = self._record(index)
        if row.key == record.key and self._is_allowed(row, record.value):
            message = (
                f"at the end an open transaction still holds {_named(row)}, written by attempt {row.incarnation} of "
                f"batch {row.batch}"
            )
            self._refute(self._events, message, record=record)

    def _end(self) -> Explanation:
        if not self._events:
            return Explanation(Outcome.UNKNOWN)
        missing = self._first_missing()
        if missing < 0:
            rows = self._events - self._readings
            return Explanation(Outcome.HOLDS, self._events, rows, drawn=dict(self._drawn))
        message = f"at the end {self._record_text(missing)} is missing"
        self._refute(self._events, message, record=self._record(missing))
        return self.explanation()

    def _record(self, index: int) -> Record:
        value, number = self._table.facts(index)[:2]
        return Record(self._table.offsets[index], self._table.keys[number], value)

    def _record_text(self, index: int) -> str:
        return _named(self._record(index))


class _Rows(_Watch):
    """Finds the first appended row that is impossible without failures: it repeats or skips a record of its key."""

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
        if self._appeared[index]:
            return "appears a second time"
        number = self._table.facts(index)[1]
        return f"appears before {self._record_text(self._next[number])}, the next record of its key"

    def _first_missing(self) -> int:
        return self._appeared.find(0)


class _Upserts(_Watch):
    """Finds the first upsert that arrived after a newer upsert of its key, which happens only after a failure."""

    may_skip = True

    def __init__(self, table: ExpectedRecords, history: History, outcomes: Outcomes) -> None:
        super().__init__(table, history, outcomes)
        # An upsert may write an existing row again.
        self._following = range(len(table.offsets))

    def _why_not(self, index: int) -> str:
        newest = self._next[self._table.facts(index)[1]]
        return f"appears again after {self._record_text(newest)}, which is newer"

    def _first_missing(self) -> int:
        newest = map(self._next.__getitem__, _numbers(self._table))
        return next(compress(count(), map(gt, count(), newest)), -1)


def _watch(table: ExpectedRecords, history: History, outcomes: Outcomes | None) -> _Watch:
    return (_Upserts if history.keyed else _Rows)(table, history, outcomes or {})


def _numbers(table: ExpectedRecords) -> Iterator[int]:
    return chain.from_iterable(NUMBER.iter_unpack(table.rows))


def _named(row: Record | Observation) -> str:
    return f"offset {row.offset} ({row.key[:38]!r} = {row.value})"
