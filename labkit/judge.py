"""The one judge: compares what should have come out with what an outside reader could have seen.

A simulated trace and a real run end here; lost, duplicate, early and jumped-back effects are counted nowhere else.
An observation is *explained* by an expected record when offset, key and value are equal, and is an *effect* unless
it was aborted. Rows: a record without an effect is lost. Upserts: a later value of a key contains the earlier ones,
so lost are the records after the one that the key's last effect shows; an unexplained effect shows none of them.

This module must not read files, clocks or chance, must not depend on hash order, and never holds the observations.
"""

from array import array
from bisect import bisect_left, insort
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import chain, compress, count, islice
from operator import ge, itemgetter
from typing import Any

from labkit.errors import InvalidInput
from labkit.records import Epoch, History, Observation, Reading, Record, Visibility
from labkit.verdict import (
    ANOMALY,
    TEN,
    ByKey,
    Guarantee,
    Outcome,
    Verdict,
    Witness,
    because,
    guarantee,
    satisfies,
)

__all__ = ["ANOMALY", "Guarantee", "Outcome", "Verdict", "Witness", "judge", "satisfies"]

COMMITTED, ABORTED = Visibility.COMMITTED, Visibility.ABORTED


def judge(expected: Iterable[Record], history: History) -> Verdict:
    """Judges a history in one pass. Raises `InvalidInput` for expected records or epochs out of order."""
    try:
        tally = _Tally(_Expected(expected), history)
        for event in history.events:
            tally.looked = True
            if isinstance(event, Reading):
                tally.read(event.moment)
            else:
                tally.observe(event)
        tally.settle()
        for row in history.hidden:
            tally.hide(row)
    except OverflowError as error:
        raise InvalidInput("A number of a record or row does not fit into 64 bits; count from 0.") from error
    return _verdict(tally)


class _Expected:
    """The expected records in columns. Keys are numbered, since a dict of millions of keys must not outlive this."""

    def __init__(self, records: Iterable[Record]) -> None:
        self.values, self.numbers, offsets = array("q"), array("q"), array("q")
        number_of: dict[str, int] = defaultdict(count().__next__)
        records = iter(records)
        while some := list(islice(records, 500)):  # few enough not to wake the garbage collector
            its_offsets, keys, values = zip(*some, strict=True)
            offsets.extend(its_offsets)
            self.numbers.extend(map(number_of.__getitem__, keys))
            self.values.extend(values)
        for index in compress(count(1), map(ge, offsets, islice(offsets, 1, None))):
            raise InvalidInput(
                f"Expected record {index + 1}: {offsets[index]} after {offsets[index - 1]}; sort by offset."
            )
        self.keys = list(number_of)
        self.first = offsets[0] if offsets else 0
        self.gap = bool(offsets) and offsets[-1] - self.first >= len(offsets)
        self.offsets: Sequence[int] = offsets if self.gap else range(self.first, self.first + len(offsets))

    def key(self, index: int) -> str:
        return self.keys[self.numbers[index]]

    def place(self, offset: int) -> int:
        """The index of the record with an offset, or -1: directly where the offsets have no gap."""
        if not self.gap:
            index = offset - self.first
            return index if 0 <= index < len(self.values) else -1
        index = bisect_left(self.offsets, offset)
        return index if index < len(self.values) and self.offsets[index] == offset else -1

    def explained(self, index: int, key: str, value: int) -> int:
        """The number of the key, if the record at the place of a row's offset explains the row, else -1."""
        if index >= 0 and value == self.values[index] and key == self.keys[number := self.numbers[index]]:
            return number
        return -1


class _Epochs:
    """Which records of an epoch appeared while others had not, without ever scanning all epochs."""

    def __init__(self, epochs: Sequence[Epoch], offsets: Sequence[int]) -> None:
        self.epochs, self.absent, self.epoch_of = epochs, array("q"), array("q", [-1]) * len(offsets)
        # An index leaves when its epoch is complete or was read, so that each is handled at most twice.
        self.partial: dict[int, array[int]] = defaultdict(lambda: array("q"))
        for number, epoch in enumerate(epochs):
            if epoch.end < epoch.start or (number and epoch.start < epochs[number - 1].end):
                raise InvalidInput(f"Epoch {number + 1}: {epoch} ends early or starts before the last end; sort them.")
            begin, end = bisect_left(offsets, epoch.start), bisect_left(offsets, epoch.end)
            self.epoch_of[begin:end] = array("q", [number]) * (end - begin)
            self.absent.append(end - begin)

    def appear(self, index: int) -> None:
        number = self.epoch_of[index]
        if number >= 0:
            self.absent[number] -= 1
            if self.absent[number]:
                self.partial[number].append(index)
            else:
                self.partial.pop(number, None)

    def planned_batch(self, index: int) -> int | None:
        return self.epochs[self.epoch_of[index]].batch if self.epoch_of[index] >= 0 else None


class _Found:
    """The distinct offsets of one anomaly, as marks beside the expected records, and few witnesses."""

    def __init__(self, offsets: Sequence[int], *, in_order: bool) -> None:
        self.offsets, self.marks, self.others = offsets, bytearray(len(offsets)), set[int]()
        self.order = array("q") if in_order else None
        self.ranked: list[tuple[int, Witness]] = []

    def add(self, index: int, offset: int) -> bool:
        """Lists an offset once, which may have no record; says whether its witness is to be kept.

        The ten first are kept, so that the first of a list always has its witness.
        """
        if self.marks[index] if index >= 0 else offset in self.others:
            return False
        if index >= 0:
            self.marks[index] = 1
        else:
            self.others.add(offset)
        if self.order is not None:
            self.order.append(offset)
            return len(self.order) <= TEN
        return len(self.ranked) < TEN or offset < self.ranked[-1][0]

    def keep(self, witness: Witness) -> None:
        insort(self.ranked, (witness.offset if self.order is None else len(self.order), witness), key=itemgetter(0))
        del self.ranked[TEN:]

    def all(self) -> tuple[int, ...]:
        if self.order is not None:
            return tuple(self.order)
        marked = compress(self.offsets, self.marks)
        return tuple(sorted(chain(marked, self.others)) if self.others else marked)


class _Tally:
    """What is remembered of a history: columns by record and by key, anomalies by offset, few witnesses."""

    def __init__(self, expected: _Expected, history: History) -> None:
        self.expected, self.keyed, self.looked, self.rows = expected, history.keyed, False, 0
        self.epochs = _Epochs(history.epochs, expected.offsets)
        self.seen = bytearray(len(expected.values))
        # The write of a row's first effect, but of an upsert's latest: that is the one which overwrites.
        self.batch, self.attempt = (array("q", [0]) * len(self.seen) for _ in range(2))
        # By key: its latest record that was read, and the record of its last effect; or that effect's value, if odd.
        self.largest, self.shown = (array("q", [-1]) * len(expected.keys) for _ in range(2))
        self.odd: dict[str, int] = {}
        self.found = {
            anomaly: _Found(expected.offsets, in_order=anomaly == "regression")
            for anomaly in (*ANOMALY.values(), "unseen")
        }

    def observe(self, row: Observation) -> None:
        offset, key, value, _, _, visibility = row
        place = self.expected.place(offset)
        number = self.expected.explained(place, key, value)
        if number >= 0:
            largest = self.largest[number]
            if place > largest:
                self.largest[number] = place
            elif place < largest:
                self._note("regression", place, row, from_value=self.expected.values[largest], to_value=value)
        if visibility != COMMITTED:
            self._note(f"{visibility}_read", place, row)
            if visibility == ABORTED:
                return
        self.rows += 1
        if number >= 0:
            self._effect(place, number, row)
        else:
            known = self.expected.key(place) if place >= 0 else key
            self.odd[known if known == key else key] = value  # one object for a key, since there may be millions
            self._note("unexpected", place, row)

    def _effect(self, index: int, number: int, row: Observation) -> None:
        self.shown[number] = index
        if self.odd:
            self.odd.pop(row.key, None)
        if not self.seen[index]:
            self.seen[index] = 1
            self.epochs.appear(index)
        elif not self.keyed:
            if self.found["duplicate"].add(index, row.offset):
                self.found["duplicate"].keep(Witness(*row[:5], earlier=self._written(index)))
            return
        self.batch[index], self.attempt[index] = row.batch, row.attempt

    def read(self, moment: str) -> None:
        found = self.found["fractured_read"]
        for index in chain.from_iterable(self.epochs.partial.values()):
            if found.add(index, self.expected.offsets[index]):
                found.keep(self._written(index, moment=moment))
        self.epochs.partial.clear()

    def settle(self) -> None:
        """After all events: a key whose last effect nothing explains shows no record."""
        for number, key in enumerate(self.expected.keys if self.odd else ()):
            if key in self.odd:
                self.shown[number] = -1

    def hide(self, row: Observation) -> None:
        """Notes a row of an undecided transaction, after all events."""
        index = self.expected.place(row.offset)
        may_count = self.expected.explained(index, row.key, row.value) >= 0 and row.visibility != ABORTED
        if may_count and (self._is_missing(index) or not self.seen[index]):
            self._note("unseen", index, row)

    def lose(self) -> None:
        """Notes what is lost, after all hidden rows; where nobody looked, nothing is known to be."""
        found, unseen = self.found["lost"], self.found["unseen"].marks
        for index, offset in enumerate(self.expected.offsets if self.looked else ()):
            if self._is_missing(index) and not unseen[index] and found.add(index, offset):
                found.keep(self._lost(index))

    def last(self) -> ByKey:
        """The value of the last effect of each key, after all else: forgets the columns, since keys may be millions."""
        del self.batch, self.attempt, self.largest, self.seen, self.epochs, self.expected.numbers
        keys, shown, values, odd = self.expected.keys, self.shown, self.expected.values, self.odd
        numbers = [number for number, index in enumerate(shown) if index >= 0]
        numbers.extend(range(len(keys), len(keys) + len(odd)))
        keys.extend(odd)
        numbers.sort(key=keys.__getitem__)
        last = (values[shown[number]] if number < len(shown) else odd[keys[number]] for number in numbers)
        # What nothing explains may be a number of any size.
        final = ByKey([keys[number] for number in numbers], list(last) if odd else array("q", last))
        del self.shown, self.odd, self.expected.keys, self.expected.values
        return final

    def _is_missing(self, index: int) -> bool:
        return index > self.shown[self.expected.numbers[index]] if self.keyed else not self.seen[index]

    def _lost(self, index: int) -> Witness:
        shown = self.shown[self.expected.numbers[index]]
        if self.seen[index] and shown >= 0:
            return self._written(index, overwritten_by=self._written(shown))
        return self._written(index)._replace(batch=self.epochs.planned_batch(index), attempt=None)

    def _written(self, index: int, **more: Any) -> Witness:
        record = self.expected.offsets[index], self.expected.key(index), self.expected.values[index]
        return Witness(*record, self.batch[index], self.attempt[index], **more)

    def _note(self, anomaly: str, index: int, row: Observation, **more: Any) -> None:
        found = self.found[anomaly]
        if found.add(index, row.offset):
            found.keep(Witness(*row[:5], **more))


def _verdict(tally: _Tally) -> Verdict:
    tally.lose()
    records, final = len(tally.seen), tally.last()
    found = {name: found.all() for name, found in tally.found.items()}
    properties = {name: Outcome.VIOLATED if found[ANOMALY[name]] else Outcome.HOLDS for name in ANOMALY}
    in_doubt = ["no_loss"] if found["unseen"] and not found["lost"] else []
    properties |= dict.fromkeys(in_doubt if tally.looked else ANOMALY, Outcome.UNKNOWN)
    verdict = Verdict(
        guarantee=guarantee(properties),
        properties=properties,
        **found,
        because="",
        final=final,
        rows=len(final) if tally.keyed else tally.rows,
        witnesses={anomaly: tuple(case for _, case in found.ranked) for anomaly, found in tally.found.items()},
    )
    return replace(verdict, because=because(verdict, records, keyed=tally.keyed, looked=tally.looked))
