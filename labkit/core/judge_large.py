"""The judge for long histories: the same verdict as `labkit.core.judge`, for millions of records in less than 1 GB.

`labkit.core.judge` defines the properties; a property test compares the verdicts and witnesses of the two judges. To
save memory, this judge packs each expected record into some bytes, and reads the observations once without storing
them.
"""

from array import array
from bisect import insort
from collections.abc import Iterable, Iterator, MutableSequence, Sequence
from itertools import chain, compress, count
from operator import gt, itemgetter, not_

from labkit.core.expected import EFFECT, EFFECT_AT, FACTS, MARKS_AT, NOWHERE, NUMBER, PLAN_AT, SIZE, ExpectedRecords
from labkit.core.records import History, Observation, PlannedBatch, Reading, Record, Visibility
from labkit.core.verdict import LISTS, TEN, ByKey, Findings, Verdict, Witness, conclude

COMMITTED, ABORTED = Visibility.COMMITTED, Visibility.ABORTED


def judge_large(expected: Iterable[Record] | ExpectedRecords, history: History) -> Verdict:
    """Return the same verdict as `judge`, in one pass with little memory, for histories of millions of rows.

    If `expected` is an `ExpectedRecords`, this call empties it. Raises `InvalidInput` for unsorted expected records or
    planned batches, and `OverflowError` or `struct.error` for numbers beyond 64 bits.
    """
    table = expected if isinstance(expected, ExpectedRecords) else ExpectedRecords(expected)
    tally = _Tally(table, history)
    tally.observe(history.events)
    tally.settle()
    for row in history.hidden:
        tally.hide(row)
    tally.lose()
    return _verdict(tally)


class _PlannedBatches:
    """Finds records whose planned batch was only partly visible at a reading, without a scan of all records."""

    def __init__(self, planned_batches: Sequence[PlannedBatch], expected: ExpectedRecords) -> None:
        self.planned_batches, self.fresh, self.fresh_plans = planned_batches, array("i"), array("i")
        plan_of, self.absent = expected.plan(planned_batches)
        self.absent.append(0)
        for byte in range(plan_of.itemsize):  # one byte of all records at once
            expected.rows[PLAN_AT + byte :: SIZE] = plan_of.tobytes()[byte :: plan_of.itemsize]

    def appear(self, index: int, plan: int) -> None:
        self.fresh.append(index)
        self.fresh_plans.append(plan)

    def read(self) -> Iterator[int]:
        """Process a reading of the whole store: yield the index of each record whose planned batch it saw only in part.

        Records that an earlier reading saw are left out.
        """
        fresh, numbers, self.fresh, self.fresh_plans = (self.fresh, self.fresh_plans, array("i"), array("i"))
        for number in numbers:
            self.absent[number] -= 1
        self.absent[-1] = 0  # the entry for records without a planned batch
        return compress(fresh, map(self.absent.__getitem__, numbers))


class _Cases:
    """The offsets at which one kind of anomaly occurred, with details of ten examples.

    To save memory, one bit in each expected record says whether the record's offset is in this collection.
    """

    room = 1 << 23
    """How many offsets that belong to no record are collected before duplicates among them are removed."""

    def __init__(self, rows: bytearray, bit: int, *, in_order: bool) -> None:
        self.rows, self.bit = rows, bit
        self.others: MutableSequence[int] = array("q")
        self.order = array("q") if in_order else None
        self.ranked: list[tuple[int, Witness]] = []

    def add(self, index: int, offset: int) -> bool:
        """Add an offset at which the anomaly occurred; return whether the caller should keep details of it.

        The caller keeps details of ten examples. The result is False for an offset that was added before. `index` is
        the index of the expected record with this offset, or -1 if there is no such record.
        """
        if index < 0:
            return self._add_other(offset)
        place = index * SIZE + MARKS_AT
        if self.rows[place] & self.bit:
            return False
        self.rows[place] |= self.bit
        if self.order is not None:
            self.order.append(offset)
            return len(self.order) <= TEN
        return len(self.ranked) < TEN or offset < self.ranked[-1][0]

    def _add_other(self, offset: int) -> bool:
        try:
            self.others.append(offset)
        # An offset beyond 64 bits has no record; a plain list takes it.
        except OverflowError:
            self.others = [*self.others, offset]
        # Repeated offsets are removed only now and then, because each time needs a set of all of them.
        if len(self.others) > self.room:
            self.others, others = self.others[:0], set(self.others)
            self.others.extend(others)
            self.room = max(self.room, 2 * len(others))
        if len(self.ranked) == TEN and offset >= self.ranked[-1][0]:
            return False
        return all(offset != kept for kept, _ in self.ranked)

    def keep(self, witness: Witness) -> None:
        insort(self.ranked, (witness.offset if self.order is None else len(self.order), witness), key=itemgetter(0))
        del self.ranked[TEN:]

    def all(self, offsets: Sequence[int], marks: bytearray) -> tuple[int, ...]:
        if self.order is not None:
            return tuple(self.order)
        marked = compress(offsets, marks.translate(bytes(bits & self.bit for bits in range(256))))
        return tuple(sorted(chain(marked, set(self.others))) if self.others else marked)


class _Tally:
    """The judge's state during a long history: facts about records and keys so far, and the anomalies so far."""

    def __init__(self, expected: ExpectedRecords, history: History) -> None:
        self.expected, self.keyed, self.looked, self.rows = (expected, history.keyed, False, 0)
        self.planned_batches = _PlannedBatches(history.planned_batches, expected)
        # For each key two entries: its latest record that was read, and the record of its last effect.
        self.latest = array("i", [-1, -1]) * len(expected.keys)
        self.odd: dict[str, int] = {}
        """For each key whose last effect no record explains, the value of this effect."""
        self.cases = {
            anomaly: _Cases(expected.rows, 1 << number, in_order=anomaly == "regression")
            for number, anomaly in enumerate(LISTS)
        }

    def observe(self, events: Iterable[Observation | Reading]) -> None:
        """Process the events of the history (rows, and readings of the whole store), and note their anomalies.

        A single loop with few function calls does this, because there may be millions of rows.
        """
        # Local names, because each row would otherwise pay for attribute look-ups.
        expected, latest, odd, regression = (self.expected, self.latest, self.odd, self.cases["regression"])
        rows, keys, first, span, table = (expected.rows, expected.keys, expected.first, expected.span, expected.table)
        facts, write = FACTS.unpack_from, EFFECT.pack_into
        for event in events:
            self.looked = True
            if isinstance(event, Reading):
                self.read(event.moment)
                continue
            offset, key, value, batch, incarnation, visibility = event
            index = offset - first
            index = table[index] if 0 <= index < span else expected.sparse.get(offset, -1)
            right, number, plan, has_effect = facts(rows, index * SIZE) if index >= 0 else NOWHERE
            if index < 0 or value != right or key != keys[number]:
                self._unexplained(index, event)
                continue
            number *= 2  # `latest` has two entries for each key
            if index > latest[number]:
                latest[number] = index
            elif index < latest[number] and regression.add(index, offset):
                regression.keep(Witness(*event[:5], from_value=expected.facts(latest[number])[0], to_value=value))
            if visibility != COMMITTED and self._is_no_effect(index, event):
                continue
            self.rows += 1
            latest[number + 1] = index
            if odd:  # false in almost every history, so few rows pay for the look-up
                odd.pop(key, None)
            if not has_effect:
                self.planned_batches.appear(index, plan)
            elif not self.keyed:
                self._note("duplicate", index, event)
                continue
            write(rows, index * SIZE + EFFECT_AT, 1, batch, incarnation)

    def _unexplained(self, index: int, row: Observation) -> None:
        if row.visibility != COMMITTED and self._is_no_effect(index, row):
            return
        self.rows += 1
        key = self.expected.key(index) if index >= 0 else row.key
        # If possible the record's text object, because a second one for each of millions of keys would take memory.
        self.odd[key if key == row.key else row.key] = row.value
        self._note("unexpected", index, row)

    def _is_no_effect(self, index: int, row: Observation) -> bool:
        """Note that readers saw `row` before its commit or despite its abort; return True if it was aborted.

        The caller needs this because an aborted row has no effect on the final rows. `index` is the index of the row's
        expected record, or -1 if there is none.
        """
        self._note(f"{row.visibility}_read", index, row)
        return row.visibility == ABORTED

    def read(self, moment: str) -> None:
        fractures = self.cases["fractured_read"]
        for index in self.planned_batches.read():
            if fractures.add(index, self.expected.offsets[index]):
                fractures.keep(self._written(index)._replace(moment=moment))

    def settle(self) -> None:
        """Note each key whose last row matches no expected record. Call this after all visible rows."""
        for number, key in enumerate(self.expected.keys if self.odd else ()):
            if self.latest[number * 2 + 1] >= 0 and key in self.odd:
                self.latest[number * 2 + 1] = -1

    def hide(self, row: Observation) -> None:
        """Note the record of a hidden row as unseen: the transaction of `row` is still open at the end.

        If another row of the record took effect, the record is unseen only if an older or unexplained value replaced
        that row. Call this after `settle`.
        """
        index = self.expected.place(row.offset)
        if index < 0 or row.visibility == ABORTED:
            return
        value, number, _, has_effect = self.expected.facts(index)
        is_missing = not has_effect or (self.keyed and index > self.latest[number * 2 + 1])
        if is_missing and value == row.value and self.expected.keys[number] == row.key:
            self._note("unseen", index, row)

    def lose(self) -> None:
        """Note the lost records: those that are missing at the end and that `hide` has not noted as unseen.

        If rows are appended, a record is missing if none of its rows took effect. With upserts, it is missing if the
        last row of its key is older or unexplained. If the history has no row or reading, nobody looked, so no record
        is lost. Call this last.
        """
        lost, unseen, rows = (self.cases["lost"], self.cases["unseen"].bit, self.expected.rows)
        if self.keyed:
            numbers = chain.from_iterable(NUMBER.iter_unpack(rows))
            missing = map(gt, count(), map(self.latest[1::2].__getitem__, numbers))
        else:
            missing = map(not_, rows[EFFECT_AT::SIZE])
        for index in compress(count(), missing) if self.looked else ():
            if not rows[index * SIZE + MARKS_AT] & unseen and lost.add(index, self.expected.offsets[index]):
                lost.keep(self._lost(index))

    def last(self) -> ByKey:
        """Return the last value of each key that readers saw, and free the memory of all other state."""
        expected, shown, odd = self.expected, self.latest[1::2], self.odd
        keys = list(compress(expected.keys, map((-1).__ne__, shown)))
        last = [FACTS.unpack_from(expected.rows, index * SIZE)[0] for index in shown if index >= 0]
        # A list if there are unexplained rows, because their values may exceed 64 bits.
        values: MutableSequence[int] = last if odd else array("q", last)
        keys.extend(odd)
        values.extend(odd.values())
        expected.rows.clear()  # in place, because each `_Cases` refers to it as well
        del (self.latest, self.planned_batches, self.odd, odd, expected.keys, expected.table, expected.sparse)
        return ByKey(keys, values)

    def _lost(self, index: int) -> Witness:
        _, number, plan, has_effect = self.expected.facts(index)
        shown = self.latest[number * 2 + 1]
        if has_effect and shown >= 0:
            return self._written(index)._replace(overwritten_by=self._written(shown))
        batch = self.planned_batches.planned_batches[plan].batch if plan >= 0 else None
        return self._written(index)._replace(batch=batch, incarnation=None)

    def _written(self, index: int) -> Witness:
        value, number, _, _ = self.expected.facts(index)
        place = index * SIZE + EFFECT_AT
        _, batch, incarnation = EFFECT.unpack_from(self.expected.rows, place)
        offset, key = self.expected.offsets[index], self.expected.keys[number]
        return Witness(offset, key, value, batch, incarnation)

    def _note(self, anomaly: str, index: int, row: Observation) -> None:
        cases = self.cases[anomaly]
        if cases.add(index, row.offset):
            cases.keep(Witness(*row[:5], earlier=self._written(index) if anomaly == "duplicate" else None))


def _verdict(tally: _Tally) -> Verdict:
    marks, offsets = tally.expected.rows[MARKS_AT::SIZE], tally.expected.offsets
    final = tally.last()
    return conclude(
        Findings(
            offsets={anomaly: cases.all(offsets, marks) for anomaly, cases in tally.cases.items()},
            witnesses={anomaly: tuple(case for _, case in cases.ranked) for anomaly, cases in tally.cases.items()},
            final=final,
            effects=tally.rows,
            records=len(offsets),
            keyed=tally.keyed,
            looked=tally.looked,
        )
    )
