"""The judge's verdict as data, as JSON and in sentences, and the guarantee that follows from the anomalies."""

from array import array
from bisect import bisect_left
from collections.abc import ItemsView, Iterator, Mapping, MutableSequence, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import islice
from operator import itemgetter
from typing import NamedTuple

TEN = 10
"""The number of witnesses kept for each anomaly, and of offsets that `Verdict.text` prints for it."""

_VIOLATIONS = ("duplicate", "regression", "aborted_read", "precommitted_read", "fractured_read", "unexpected")
ANOMALY = {"no_loss": "lost"} | {f"no_{name}": name for name in _VIOLATIONS}
"""The anomaly that violates each property."""
LISTS = (*ANOMALY.values(), "unseen")
"""The lists of offsets in a verdict: the anomalies, and the records that an open transaction hides."""


class Outcome(StrEnum):
    """Whether a run has a property, such as `no_loss`; unknown if nothing was read, or open transactions hide rows."""

    HOLDS = "holds"
    VIOLATED = "violated"
    UNKNOWN = "unknown"


class Guarantee(StrEnum):
    """How often the effect of each record is present at the end of a run, such as exactly once."""

    EXACTLY_ONCE = "exactly-once"
    AT_LEAST_ONCE = "at-least-once"
    AT_MOST_ONCE = "at-most-once"
    NONE = "none"
    UNKNOWN = "unknown"


def satisfies(guarantee: Guarantee, required: Guarantee) -> bool:
    """Return whether a run with the guarantee `guarantee` meets the requirement `required`.

    An unknown guarantee meets only the requirement `unknown`.
    """
    if guarantee == Guarantee.EXACTLY_ONCE:
        return required != Guarantee.UNKNOWN
    return required == guarantee or (required == Guarantee.NONE and guarantee != Guarantee.UNKNOWN)


_IN_FILES = {"incarnation": "attempt"}
"""Fields that have another name in the files of a run: `incarnation` is written as `attempt`."""


class Witness(NamedTuple):
    """One example of an anomaly in a run, such as a lost record or a row that appeared twice.

    `batch` and `incarnation` say which micro-batch and which driver process wrote the row. A record may be lost because
    an older value replaced its row: then the two fields describe the replaced row, and `overwritten_by` the row that
    replaced it. For any other lost record, `batch` is its planned batch, and `incarnation` is None.

    Other fields are None if they do not apply. `earlier` is the first occurrence of a duplicate. If a value jumped back
    (a regression), `to_value` is the older value that followed `from_value`. `moment` names the reading that saw an
    incomplete batch (a fractured read).
    """

    offset: int
    key: str
    value: int
    batch: int | None
    incarnation: int | None
    earlier: "Witness | None" = None
    overwritten_by: "Witness | None" = None
    from_value: int | None = None
    to_value: int | None = None
    moment: str | None = None

    def to_json(self) -> dict[str, object]:
        """Return this example of an anomaly as plain data for JSON. Unknown and unused fields are left out."""
        parts = {_IN_FILES.get(name, name): part for name, part in self._asdict().items() if part is not None}
        return {name: part.to_json() if isinstance(part, Witness) else part for name, part in parts.items()}

    def __str__(self) -> str:
        return f"offset {self.offset} ({self.key!r:.40} = {self.value})"

    @property
    def fate(self) -> str:
        if self.overwritten_by:
            return f"over{self.overwritten_by.fate} with {self.overwritten_by.value}"
        writer = f"by attempt {self.incarnation} of batch {self.batch}"
        written = f"{self.earlier.fate} and {writer}" if self.earlier else f"written {writer}"
        return "no effect of it is left" if self.incarnation is None else written


class ByKey(Mapping[str, int]):
    """A mapping from each key to the key's last value, sorted by key, for millions of keys.

    It consists of two columns, which take less memory than a dict, and are sorted only when they are needed.
    """

    def __init__(self, keys: Sequence[str], values: Sequence[int]) -> None:
        self._keys, self._values, self._sorted = keys, values, False

    def _sort(self) -> None:
        order = sorted(range(len(self._keys)), key=self._keys.__getitem__)
        keys: list[str] = []
        values: MutableSequence[int] = array("q") if isinstance(self._values, array) else []
        for start in range(0, len(order), 500):  # so few that they do not start a garbage collection
            pick = itemgetter(*order[start : start + 500], 0)  # with one index alone, it would not return a tuple
            keys += pick(self._keys)[:-1]
            values.extend(pick(self._values)[:-1])
        self._keys, self._values, self._sorted = keys, values, True

    @property
    def _columns(self) -> tuple[Sequence[str], Sequence[int]]:
        if not self._sorted:
            self._sort()
        return self._keys, self._values

    def __getitem__(self, key: object) -> int:
        keys, values = self._columns
        place = bisect_left(keys, key) if isinstance(key, str) else len(keys)
        if place == len(keys) or keys[place] != key:
            raise KeyError(key)
        return values[place]

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns[0])

    def __len__(self) -> int:
        return len(self._keys)

    def __repr__(self) -> str:
        return repr(dict(self.items()))

    def items(self) -> ItemsView[str, int]:
        return _Items(self)

    def pairs(self) -> Iterator[tuple[str, int]]:
        """Yield a pair of key and last value for each key, sorted by key. This is faster than single look-ups."""
        return zip(*self._columns, strict=True)


class _Items(ItemsView[str, int]):
    def __init__(self, by_key: ByKey) -> None:
        super().__init__(by_key)
        self._by_key = by_key

    def __iter__(self) -> Iterator[tuple[str, int]]:
        return self._by_key.pairs()


@dataclass(frozen=True)
class Verdict:
    """The judge's result for a run: the guarantee, such as exactly-once, and the offsets of each kind of anomaly.

    The lists of offsets are complete, sorted and without duplicates. Only the list `regression` (a value jumped back to
    an older value) is in the order of occurrence.
    """

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

    def to_json(self) -> dict[str, object]:
        """Return the verdict as plain data for `--json` and the file `verdict.json`."""
        return {name: list(part) if isinstance(part, tuple) else part for name, part in vars(self).items()} | {
            "guarantee": self.guarantee.value,
            "final": dict(self.final.items()),
            "properties": {name: outcome.value for name, outcome in self.properties.items()},
            "witnesses": {anomaly: [case.to_json() for case in cases] for anomaly, cases in self.witnesses.items()},
        }

    def text(self) -> str:
        """Return the verdict as a short block of lines for a terminal."""
        lines = [("guarantee", self.guarantee.value), ("because", self.because)]
        lines += [(name, f"{self.properties[name]:<9} {_some(getattr(self, ANOMALY[name]))}") for name in ANOMALY]
        final = [f"{key!r:.40} = {value}" for key, value in islice(self.final.items(), TEN)]
        lines += [("unseen", _some(self.unseen)), ("rows", str(self.rows))]
        lines += [("final", _some(final, len(self.final)))]
        return "\n".join(f"{name:<21} {rest}".rstrip() for name, rest in lines)


@dataclass(frozen=True)
class Findings:
    """The anomalies and final values that the judge found in a run. `conclude` makes a verdict from them."""

    offsets: Mapping[str, tuple[int, ...]]
    """The offsets of each list in `LISTS`, in the order that `Verdict` describes."""
    witnesses: Mapping[str, tuple[Witness, ...]]
    """The witnesses of the first `TEN` offsets of each list in `LISTS`."""
    final: Mapping[str, int]
    """The last value of each key, sorted by key; rows of aborted transactions do not count."""
    effects: int
    """The number of observed rows, without those of aborted transactions."""
    records: int
    """The number of expected records."""
    keyed: bool
    looked: bool
    """Whether a reader saw or read anything at all; if not, nothing is known about the run."""


def conclude(findings: Findings) -> Verdict:
    """Return the verdict that follows from a run's anomalies: which properties hold, the guarantee, and the reason."""
    offsets = findings.offsets
    properties = {name: Outcome.VIOLATED if offsets[anomaly] else Outcome.HOLDS for name, anomaly in ANOMALY.items()}
    if not findings.looked:
        properties = dict.fromkeys(ANOMALY, Outcome.UNKNOWN)
    elif offsets["unseen"] and not offsets["lost"]:
        properties["no_loss"] = Outcome.UNKNOWN
    verdict = Verdict(
        guarantee=guarantee(properties),
        properties=properties,
        **offsets,
        because="",
        final=findings.final,
        rows=len(findings.final) if findings.keyed else findings.effects,
        witnesses=findings.witnesses,
    )
    return replace(verdict, because=_because(verdict, findings))


def guarantee(properties: Mapping[str, Outcome]) -> Guarantee:
    """Return the guarantee, such as at-least-once, that follows from the outcomes of three properties.

    `properties` is a dict from `no_loss`, `no_duplicate` and `no_unexpected` to the outcome of this property.
    """
    extra = Outcome.VIOLATED in (properties["no_duplicate"], properties["no_unexpected"])
    if properties["no_loss"] == Outcome.VIOLATED:
        return Guarantee.NONE if extra else Guarantee.AT_MOST_ONCE
    if properties["no_loss"] == Outcome.UNKNOWN:
        return Guarantee.UNKNOWN
    return Guarantee.AT_LEAST_ONCE if extra else Guarantee.EXACTLY_ONCE


_PHRASES = {
    "unseen": "an open transaction still hides {n} of {records} records, first {case}: {case.fate}",
    "lost": "{n} of {records} records got lost, first {case}: {case.fate}",
    "duplicate": "{n} of {records} records came out twice or more, first {case}: {case.fate}",
    "unexpected": "there are rows that no input explains (number of offsets: {n}), first {case}: {case.fate}",
    "regression": "{case.key!r:.40} jump back from {case.from_value} to {case.to_value}",
    "precommitted_read": "{case} before its transaction was decided",
    "aborted_read": "{case} of an aborted transaction",
    "fractured_read": "{case} at {case.moment} without the rest of its batch",
}


def _because(verdict: Verdict, findings: Findings) -> str:
    records = findings.records
    if not findings.looked:
        return "unknown, because there is neither a reading nor an observation"
    once = "is contained in the last value of its key" if findings.keyed else "came out once"
    why = _in_words(verdict, records, "unseen", "lost", "duplicate", "unexpected")
    phrases = {
        Guarantee.EXACTLY_ONCE: f"exactly-once, because every one of the {records} records {once}",
        Guarantee.NONE: f"neither at-least-once nor at-most-once, because {why}",
        Guarantee.UNKNOWN: f"unknown, because {why}",
    }
    sentence = phrases.get(verdict.guarantee, f"not exactly-once, because {why}; {verdict.guarantee} still holds")
    reader_faults = _in_words(verdict, records, "regression", "precommitted_read", "aborted_read", "fractured_read")
    return f"{sentence}; meanwhile a reader saw {reader_faults}" if reader_faults else sentence


def _in_words(verdict: Verdict, records: int, *anomalies: str) -> str:
    first = {name: verdict.witnesses[name][0] for name in anomalies if verdict.witnesses[name]}
    counts = {name: len(getattr(verdict, name)) for name in first}
    return ", and ".join(_PHRASES[name].format(n=counts[name], records=records, case=first[name]) for name in first)


def _some(items: Sequence[object], count: int = 0) -> str:
    count = count or len(items)
    return ", ".join(map(str, items[:TEN])) + (f", ... ({count} in all)" if count > TEN else "")
