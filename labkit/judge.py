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
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import partial
from itertools import chain
from operator import itemgetter
from typing import Any, NamedTuple

from labkit.errors import InvalidInput
from labkit.records import Epoch, History, Observation, Reading, Record, Visibility

TEN = 10
"""Witnesses kept for each anomaly, and items of a list that `Verdict.text` prints."""

_VIOLATIONS = ("duplicate", "regression", "aborted_read", "precommitted_read", "fractured_read", "unexpected")
ANOMALY = {"no_loss": "lost"} | {f"no_{name}": name for name in _VIOLATIONS}
"""The anomaly that violates each property."""


class Outcome(StrEnum):
    """What the history says of one property; unknown where nobody looked or an open transaction hides rows."""

    HOLDS = "holds"
    VIOLATED = "violated"
    UNKNOWN = "unknown"


class Guarantee(StrEnum):
    """How often the effect of each record is there in the end."""

    EXACTLY_ONCE = "exactly-once"
    AT_LEAST_ONCE = "at-least-once"
    AT_MOST_ONCE = "at-most-once"
    NONE = "none"
    UNKNOWN = "unknown"


def satisfies(held: Guarantee, asked: Guarantee) -> bool:
    """Whether a run that held one guarantee will do where another is asked for. Unknown will do for unknown only."""
    if held == Guarantee.EXACTLY_ONCE:
        return asked != Guarantee.UNKNOWN
    return asked == held or (asked == Guarantee.NONE and held != Guarantee.UNKNOWN)


class Witness(NamedTuple):
    """One case of an anomaly. A lost record has an attempt only if an older value overwrote it, else its planned batch.

    `earlier`: the first occurrence of a duplicate; `overwritten_by`: the older value in the place of a lost upsert;
    `from_value`: that of the largest offset before a regression to `to_value`; `moment`: of a fractured read.
    """

    offset: int
    key: str
    value: int
    batch: int | None
    attempt: int | None
    earlier: "Witness | None" = None
    overwritten_by: "Witness | None" = None
    from_value: int | None = None
    to_value: int | None = None
    moment: str | None = None

    def to_json(self) -> dict[str, Any]:
        """Plain data, without what is not known or not used."""
        parts = {name: part for name, part in self._asdict().items() if part is not None}
        return {name: part.to_json() if isinstance(part, Witness) else part for name, part in parts.items()}

    def __str__(self) -> str:
        return f"offset {self.offset} ({self.key!r:.40} = {self.value})"

    @property
    def fate(self) -> str:
        if self.overwritten_by:
            return f"over{self.overwritten_by.fate} with {self.overwritten_by.value}"
        writer = f"by attempt {self.attempt} of batch {self.batch}"
        written = f"{self.earlier.fate} and {writer}" if self.earlier else f"written {writer}"
        return "no effect of it is left" if self.attempt is None else written


@dataclass(frozen=True)
class Verdict:
    """What the judge found. Offsets are complete, distinct and sorted; of `regression`, in order of occurrence."""

    guarantee: Guarantee
    properties: Mapping[str, Outcome]
    lost: tuple[int, ...]
    duplicate: tuple[int, ...]
    regression: tuple[int, ...]
    aborted_read: tuple[int, ...]
    precommitted_read: tuple[int, ...]
    fractured_read: tuple[int, ...]
    unseen: tuple[int, ...]
    unexpected: tuple[int, ...]
    because: str
    final: Mapping[str, int]
    rows: int
    witnesses: Mapping[str, tuple[Witness, ...]]

    def to_json(self) -> dict[str, Any]:
        """Plain data for `--json` and `verdict.json`."""
        return {name: list(part) if isinstance(part, tuple) else part for name, part in vars(self).items()} | {
            "guarantee": self.guarantee.value,
            "properties": {name: outcome.value for name, outcome in self.properties.items()},
            "witnesses": {anomaly: [case.to_json() for case in cases] for anomaly, cases in self.witnesses.items()},
        }

    def text(self) -> str:
        """A short block for a terminal."""
        lines = [("guarantee", self.guarantee.value), ("because", self.because)]
        lines += [(name, f"{self.properties[name]:<9} {_some(getattr(self, ANOMALY[name]))}") for name in ANOMALY]
        final = [f"{key!r:.40} = {value}" for key, value in self.final.items()]
        lines += [("unseen", _some(self.unseen)), ("rows", str(self.rows)), ("final", _some(final))]
        return "\n".join(f"{name:<21} {rest}".rstrip() for name, rest in lines)


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
        for row in history.hidden:
            tally.hide(row)
    except OverflowError as error:
        raise InvalidInput("A number of a record or row does not fit into 64 bits; count from 0.") from error
    return _verdict(tally)


class _Expected:
    """The expected records in columns, found by offset: directly where the offsets have no gap."""

    def __init__(self, records: Iterable[Record]) -> None:
        self.keys: list[str] = []
        self.values, offsets = array("q"), array("q")
        one_object: dict[str, str] = {}
        for offset, key, value in records:
            if offsets and offset <= offsets[-1]:
                raise InvalidInput(f"Expected record {len(offsets) + 1}: {offset} after {offsets[-1]}; sort by offset.")
            offsets.append(offset)
            self.keys.append(one_object.setdefault(key, key))
            self.values.append(value)
        self.first = offsets[0] if offsets else 0
        gap = bool(offsets) and offsets[-1] - self.first >= len(offsets)
        self.offsets: Sequence[int] = offsets if gap else range(self.first, self.first + len(offsets))
        self.positions = {offset: index for index, offset in enumerate(offsets)} if gap else None

    def explain(self, row: Observation) -> int:
        """The index of the record that explains a row, or -1."""
        index = row.offset - self.first if self.positions is None else self.positions.get(row.offset, -1)
        if 0 <= index < len(self.values) and row.value == self.values[index] and row.key == self.keys[index]:
            return index
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


class _Tally:
    """What is remembered of a history: columns by record, the state of each key, anomalies by offset, few witnesses."""

    def __init__(self, expected: _Expected, history: History) -> None:
        self.expected, self.keyed, self.looked, self.rows = expected, history.keyed, False, 0
        self.epochs = _Epochs(history.epochs, expected.offsets)
        self.seen = bytearray(len(expected.values))
        # The write of a row's first effect, but of an upsert's latest: that is the one which overwrites.
        self.batch, self.attempt = (array("q", [0]) * len(self.seen) for _ in range(2))
        self.largest, self.shown, self.final = (dict[str, int]() for _ in range(3))
        self.found: dict[str, dict[int, None]] = {anomaly: {} for anomaly in (*ANOMALY.values(), "unseen")}
        self.ranked: dict[str, list[tuple[int, Witness]]] = {anomaly: [] for anomaly in self.found}

    def observe(self, row: Observation) -> None:
        index = self.expected.explain(row)
        if index >= 0:
            self._follow(index, row)
        if row.visibility != Visibility.COMMITTED:
            self._note(f"{row.visibility}_read", row.offset, partial(Witness, *row[:5]))
        if row.visibility == Visibility.ABORTED:
            return
        self.rows += 1
        key = row.key if index < 0 else self.expected.keys[index]
        self.final[key] = row.value
        if self.keyed:
            self.shown[key] = index
        if index >= 0:
            self._effect(index, row)
        else:
            self._note("unexpected", row.offset, partial(Witness, *row[:5]))

    def _follow(self, index: int, row: Observation) -> None:
        largest = self.largest.setdefault(self.expected.keys[index], index)
        if index > largest:
            self.largest[row.key] = index
        elif index < largest:
            values = self.expected.values[largest], row.value
            self._note("regression", row.offset, partial(Witness, *row[:5], None, None, *values))

    def _effect(self, index: int, row: Observation) -> None:
        if not self.seen[index]:
            self.seen[index] = 1
            self.epochs.appear(index)
        elif not self.keyed:
            self._note("duplicate", row.offset, lambda: Witness(*row[:5], earlier=self._written(index)))
            return
        self.batch[index], self.attempt[index] = row.batch, row.attempt

    def read(self, moment: str) -> None:
        for index in chain.from_iterable(self.epochs.partial.values()):
            self._note("fractured_read", self.expected.offsets[index], partial(self._written, index, moment=moment))
        self.epochs.partial.clear()

    def hide(self, row: Observation) -> None:
        """Notes a row of an undecided transaction, after all events."""
        index = self.expected.explain(row)
        if index >= 0 and row.visibility != Visibility.ABORTED and (self._is_missing(index) or not self.seen[index]):
            self._note("unseen", row.offset, partial(Witness, *row[:5]))

    def lose(self) -> None:
        """Notes what is lost, after all hidden rows; where nobody looked, nothing is known to be."""
        for index, offset in enumerate(self.expected.offsets if self.looked else ()):
            if self._is_missing(index) and offset not in self.found["unseen"]:
                self._note("lost", offset, partial(self._lost, index))

    def _is_missing(self, index: int) -> bool:
        return index > self.shown.get(self.expected.keys[index], -1) if self.keyed else not self.seen[index]

    def _lost(self, index: int) -> Witness:
        shown = self.shown.get(self.expected.keys[index], -1)
        if self.seen[index] and shown >= 0:
            return self._written(index, overwritten_by=self._written(shown))
        return self._written(index)._replace(batch=self.epochs.planned_batch(index), attempt=None)

    def _written(self, index: int, **more: Any) -> Witness:
        record = self.expected.offsets[index], self.expected.keys[index], self.expected.values[index]
        return Witness(*record, self.batch[index], self.attempt[index], **more)

    def _note(self, anomaly: str, offset: int, witness: Callable[[], Witness]) -> None:
        """Lists an offset once; keeps the ten first witnesses, so that the first of a list always has its witness."""
        found, ranked = self.found[anomaly], self.ranked[anomaly]
        if offset in found:
            return
        found[offset] = None
        rank = len(found) if anomaly == "regression" else offset
        if len(ranked) < TEN or rank < ranked[-1][0]:
            insort(ranked, (rank, witness()), key=itemgetter(0))
            del ranked[TEN:]


def _verdict(tally: _Tally) -> Verdict:
    tally.lose()
    found = {name: tuple(offsets if name == "regression" else sorted(offsets)) for name, offsets in tally.found.items()}
    properties = {name: Outcome.VIOLATED if found[ANOMALY[name]] else Outcome.HOLDS for name in ANOMALY}
    in_doubt = ["no_loss"] if found["unseen"] and not found["lost"] else []
    properties |= dict.fromkeys(in_doubt if tally.looked else ANOMALY, Outcome.UNKNOWN)
    verdict = Verdict(
        guarantee=_guarantee(properties),
        properties=properties,
        **found,
        because="",
        final={key: tally.final[key] for key in sorted(tally.final)},
        rows=len(tally.final) if tally.keyed else tally.rows,
        witnesses={anomaly: tuple(case for _, case in ranked) for anomaly, ranked in tally.ranked.items()},
    )
    return replace(verdict, because=_because(verdict, tally))


def _guarantee(properties: Mapping[str, Outcome]) -> Guarantee:
    extra = Outcome.VIOLATED in (properties["no_duplicate"], properties["no_unexpected"])
    if properties["no_loss"] == Outcome.VIOLATED:
        return Guarantee.NONE if extra else Guarantee.AT_MOST_ONCE
    if properties["no_loss"] == Outcome.UNKNOWN:
        return Guarantee.UNKNOWN
    return Guarantee.AT_LEAST_ONCE if extra else Guarantee.EXACTLY_ONCE


_SAID = {
    "unseen": "an open transaction still hides {n} of {records} records, first {case}: {case.fate}",
    "lost": "{n} of {records} records got lost, first {case}: {case.fate}",
    "duplicate": "{n} of {records} records came out twice or more, first {case}: {case.fate}",
    "unexpected": "rows that no input explains came out (offsets: {n}), first {case}: {case.fate}",
    "regression": "{case.key!r:.40} jump back from {case.from_value} to {case.to_value}",
    "precommitted_read": "{case} before its transaction was decided",
    "aborted_read": "{case} of an aborted transaction",
    "fractured_read": "{case} at {case.moment} without the rest of its epoch",
}


def _because(verdict: Verdict, tally: _Tally) -> str:
    if not tally.looked:
        return "unknown, because nobody looked: there is neither a reading nor an observation"
    once = "is contained in the last value of its key" if tally.keyed else "came out once"
    why = _said(verdict, len(tally.seen), "unseen", "lost", "duplicate", "unexpected")
    held = {
        Guarantee.EXACTLY_ONCE: f"exactly-once, because every one of the {len(tally.seen)} records {once}",
        Guarantee.NONE: f"neither at-least-once nor at-most-once, because {why}",
        Guarantee.UNKNOWN: f"unknown, because {why}",
    }
    sentence = held.get(verdict.guarantee, f"not exactly-once, because {why}; {verdict.guarantee} still holds")
    early = _said(verdict, len(tally.seen), "regression", "precommitted_read", "aborted_read", "fractured_read")
    return f"{sentence}; meanwhile a reader saw {early}" if early else sentence


def _said(verdict: Verdict, records: int, *anomalies: str) -> str:
    first = {name: verdict.witnesses[name][0] for name in anomalies if verdict.witnesses[name]}
    counts = {name: len(getattr(verdict, name)) for name in first}
    return ", and ".join(_SAID[name].format(n=counts[name], records=records, case=first[name]) for name in first)


def _some(items: Sequence[object]) -> str:
    return ", ".join(map(str, items[:TEN])) + (f", ... ({len(items)} in all)" if len(items) > TEN else "")
