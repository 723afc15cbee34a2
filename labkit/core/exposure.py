"""Measure how long a reader of each key could have read a wrong value, and how long right values were held back.

A reader of a key reads all its rows, or its one value if rows replace each other (upserts). The reader's view is
**wrong** while no failure-free run (`labkit.core.explanation`) shows it: a row is there twice, is explained by no
input, or disappears later; a later record is there without an earlier one; or, with upserts, an older value has
replaced a newer one, or a value has disappeared. A row that is read before its transaction commits, and commits later,
is early but not wrong. Records that never appear are counted separately, because nobody knows when they should have
appeared.

A row is **held back** from the time when it is complete in the store (written or pre-committed) until it can be read.
That is the price of not reading it too early; rows that are visible as soon as they are written pay nothing.

Each time lies between two bounds, which coincide if the store knows the exact time. A duration therefore has a lower
and an upper bound; it is unknown, and never zero, if one of its ends is unknown. The caller chooses the unit: seconds
of a real run, or steps of a simulation.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from labkit.core.records import Observation, Record, Visibility
from labkit.core.verdict import Outcome

if TYPE_CHECKING:
    # Stores import this module for `Span`, but need nothing that explains a history.
    from labkit.core.explanation import Explanation


class Span(NamedTuple):
    """A time or a duration of which only a lower and an upper bound are known."""

    least: float
    most: float

    @classmethod
    def exactly(cls, moment: float) -> "Span":
        """Return a span whose two bounds are `moment`, for a time that is known exactly."""
        return cls(moment, moment)

    def since(self, earlier: "Span") -> "Span":
        least = max(0, self.least - earlier.most)
        return Span(least, max(least, self.most - earlier.least))

    def plus(self, other: "Span") -> "Span":
        return Span(self.least + other.least, self.most + other.most)


class Sight(NamedTuple):
    """A change that readers could see at the time `at` (None if unknown): `row` appeared or, if `goes`, disappeared."""

    row: Observation
    at: Span | None
    ready: Span | None = None
    """When the row was complete in the store: the same object as `at` if it was visible as soon as it was written."""
    goes: bool = False


class KeyExposure(NamedTuple):
    """How long a key showed wrong values (`wrong`), and how long its right values were hidden (`held`).

    A duration is None if it is unknown.
    """

    wrong: Span | None
    held: Span | None
    lasts: bool = False
    """Whether readers of the key still saw a wrong value at the end."""
    missing: int = 0
    """The number of records that never appeared."""


NOTHING = Span(0, 0)
MOST_KEYS = 1_000
"""The largest number of keys that `to_json` lists."""


@dataclass(frozen=True)
class Exposure:
    """For each key, how long readers could see a wrong value, and how long right values were hidden from readers."""

    keys: Mapping[str, KeyExposure]
    unit: str = "s"
    """The unit of all durations: `s` or `steps`."""

    def worst(self) -> tuple[str, KeyExposure] | None:
        """Return the key that was wrong for the longest time, with its durations; None if there are no keys.

        An unknown duration counts as the longest.
        """
        if not self.keys:
            return None
        return max(self.keys.items(), key=lambda each: _rank(each[1]))

    def sentence(self) -> str:
        """Return a sentence, without full stop, about the key that showed a wrong value for the longest time.

        If no key showed one, the sentence is about the key with the most records that never appeared or, if all
        records appeared, about the key whose right values were hidden for the longest time.
        """
        worst = self.worst()
        if worst is None:
            return "there is no key to read"
        key, times = worst
        name, held = f"{key!r:.40}", self.in_words(times.held)
        if times.wrong == NOTHING and not times.missing:
            return f"no key showed a wrong value; right values of {name} were held back for {held}"
        text = f"a reader of {name} could have read a wrong value for {self.in_words(times.wrong)}"
        text += " up to the end" if times.lasts else ""
        if times.missing:
            text += f", and {times.missing} record{'s' * (times.missing > 1)} of it never appeared"
        return f"{text}; right values of it were held back for {held}"

    def in_words(self, span: Span | None) -> str:
        """Return a duration as text, such as `0.120 to 0.250 s`."""
        if span is None:
            return "an unknown time"
        least, most = (f"{each:.3f}" if self.unit == "s" else f"{each:g}" for each in span)
        unit = self.unit.removesuffix("s") if span.most == 1 and len(self.unit) > 1 else self.unit
        return f"{least if least == most else f'{least} to {most}'} {unit}"

    def to_json(self) -> dict[str, object]:
        """Return, for JSON, the durations of at most `MOST_KEYS` keys: those that were wrong for the longest time.

        An unknown duration is null.
        """
        worst = sorted(self.keys.items(), key=lambda each: _rank(each[1]), reverse=True)
        return {
            "unit": self.unit,
            "all_keys": len(self.keys),
            "keys": {
                key: {
                    "wrong": _plain(times.wrong),
                    "held_back": _plain(times.held),
                    "wrong_at_the_end": times.lasts,
                    "never_came": times.missing,
                }
                for key, times in sorted(worst[:MOST_KEYS])
            },
        }


def _rank(times: KeyExposure) -> tuple[float, int, float]:
    longest = float("inf")
    wrong, held = (longest if each is None else each.most for each in times[:2])
    return wrong, times.missing, held


def _plain(span: Span | None) -> list[float] | None:
    return None if span is None else [round(each, 6) for each in span]


def exposure(
    expected: Iterable[Record],
    sights: Iterable[Sight],
    end: Span | None,
    *,
    keyed: bool,
    ready: Mapping[int, Span] | None = None,
    held: Iterable[Observation] = (),
    unit: str = "s",
) -> Exposure:
    """Return for each key how long readers could see a wrong value, and how long right values were hidden from them.

    `sights` are the changes that readers could see, sorted by time, and `end` is the time of the last reading. `keyed`
    means that a row replaces the earlier rows of its key (upserts). `ready` maps the offset of a record to the time at
    which the store first had a complete row of it. `held` are complete rows that are still invisible at the end. All
    times are in `unit`.
    """
    earliest = ready or {}
    keys: dict[str, _Key] = {}
    records = {}
    for record in expected:
        key = keys.setdefault(record.key, _Upserted() if keyed else _Rows())
        records[record.offset] = key.place(record)
    for sight in sights:
        row = sight.row
        key = keys.setdefault(row.key, _Upserted() if keyed else _Rows())
        match = records.get(row.offset)
        explained = match is not None and match.record == row[:3]
        place = match.place if match and explained else -1
        key.wait(row, place, sight, earliest)
        key.take(sight, place)
    for row in held:
        match = records.get(row.offset)
        if match is None or match.record != row[:3]:  # hiding a row with a wrong key or value is no loss
            continue
        if row.offset in earliest and not keys[row.key].has(match.place):
            keys[row.key].holding.append((earliest[row.offset], end))
    return Exposure({key: keys[key].ended(end) for key in sorted(keys)}, unit)


def verdict_notes(explanation: "Explanation | None", exposed: Exposure | None) -> list[tuple[str, str]]:
    """Return the sentences to print below a verdict, as pairs (name, sentence). They have no full stop.

    The names are `breaks` (a row that no run without failures could show), `drawn` (the random values that readers saw)
    and `wrong` (how long readers could have read a wrong value).
    """
    lines = []
    if explanation is not None and explanation.adds:
        is_broken = explanation.exists is Outcome.VIOLATED
        lines.append(("breaks" if is_broken else "drawn", explanation.because))
    if exposed is not None and exposed.keys:
        lines.append(("wrong", exposed.sentence()))
    return lines


class _Place(NamedTuple):
    record: Record
    place: int
    """The position among the records of its key, from 0."""


@dataclass
class _Key(ABC):
    """The rows of one key that a reader sees now, and how long the key's values have been wrong or hidden so far.

    In the methods, `place` says which of the key's expected records a row shows, counted from 0; -1 if it shows none.
    """

    due: int = 0
    """The number of expected records of the key."""
    appeared: set[int] = field(default_factory=set)
    since: Span | None = None
    """When the key last changed between right and wrong."""
    is_wrong: bool = False
    wrong: Span | None = NOTHING
    holding: list[tuple[Span | None, Span | None]] = field(default_factory=list)
    """When each held-back row was complete in the store, and when readers could see it."""

    def place(self, record: Record) -> _Place:
        """Count an expected record of this key, and return it with its position, from 0, among the key's records."""
        self.due += 1
        return _Place(record, self.due - 1)

    def has(self, place: int) -> bool:
        return place in self.appeared

    def wait(self, row: Observation, place: int, sight: Sight, earliest: Mapping[int, Span]) -> None:
        """Note for how long a row was held back: from its completion in the store until readers could see it.

        `sight` says when `row` became visible. `earliest` maps the offset of a record to the time at which the store
        first had a complete row of it. Only the first right row of each record counts: it must be committed and have
        the right value. A row that readers could see at once was not held back.
        """
        is_right = row.visibility == Visibility.COMMITTED and place >= 0
        if sight.goes or not is_right or self.has(place):
            return
        ready = earliest.get(row.offset, sight.ready)
        if ready is None or ready is not sight.at:
            self.holding.append((ready, sight.at))

    def take(self, sight: Sight, place: int) -> None:
        """Apply the change that `sight` shows, and keep account of how long the rows of the key are wrong."""
        self.change(sight, place)
        if self.is_wrong != self.is_wrong_now():
            if self.is_wrong:
                self._add(sight.at)
            self.is_wrong, self.since = not self.is_wrong, sight.at

    @abstractmethod
    def change(self, sight: Sight, place: int) -> None:
        """Add the row of `sight` to the rows of its key that readers see, or remove the row if `sight.goes` is True."""

    @abstractmethod
    def is_wrong_now(self) -> bool:
        """Return whether readers now see rows of this key that a run without failures could not show."""

    @abstractmethod
    def missing(self) -> int:
        pass

    def _add(self, until: Span | None) -> None:
        if self.wrong is None or self.since is None or until is None:
            self.wrong = None
        else:
            self.wrong = self.wrong.plus(until.since(self.since))

    def ended(self, end: Span | None) -> KeyExposure:
        """Return how long this key's values were wrong or hidden until `end`, and how many records never appeared."""
        if self.is_wrong:
            self._add(end)
        return KeyExposure(self.wrong, _covered(self.holding), self.is_wrong, self.missing())


@dataclass
class _Rows(_Key):
    extra: int = 0
    """The number of visible rows that are repeated, unexplained or aborted."""
    first_missing: int = 0
    furthest: int = -1

    def change(self, sight: Sight, place: int) -> None:
        is_extra = (
            place < 0 or sight.row.visibility == Visibility.ABORTED or (place in self.appeared and not sight.goes)
        )
        if is_extra:
            self.extra += -1 if sight.goes else 1
            return
        self.appeared.add(place)
        self.furthest = max(self.furthest, place)
        while self.first_missing in self.appeared:
            self.first_missing += 1

    def is_wrong_now(self) -> bool:
        return self.extra > 0 or self.first_missing <= self.furthest

    def missing(self) -> int:
        return self.due - len(self.appeared)


@dataclass
class _Upserted(_Key):
    shown: int | None = None
    """The position of the record whose value is visible; -1 for a wrong value; None before the first value."""
    furthest: int = -1

    def change(self, sight: Sight, place: int) -> None:
        if sight.goes or sight.row.visibility == Visibility.ABORTED:
            self.shown = -1
            return
        self.shown = place
        self.furthest = max(self.furthest, place)
        self.appeared.add(place)

    def is_wrong_now(self) -> bool:
        return self.shown is not None and (self.shown < 0 or self.shown < self.furthest)

    def missing(self) -> int:
        return self.due - 1 - self.furthest


def _covered(holding: Iterable[tuple[Span | None, Span | None]]) -> Span | None:
    """Return for how long at least one of the intervals (begin, end) was open; None if any time is unknown."""
    spans = []
    for begin, end in holding:
        if begin is None or end is None:
            return None
        spans.append((begin, end))
    least = _union((begin.most, end.least) for begin, end in spans)
    return Span(least, _union((begin.least, end.most) for begin, end in spans))


def _union(stretches: Iterable[tuple[float, float]]) -> float:
    return sum(_apart(sorted(each for each in stretches if each[0] < each[1])))


def _apart(stretches: Iterable[tuple[float, float]]) -> Iterator[float]:
    """Yield for each of the sorted intervals in `stretches` how much it extends the union of the earlier intervals.

    An interval inside of the union is left out.
    """
    reached = float("-inf")
    for begin, end in stretches:
        if end > reached:
            yield end - max(begin, reached)
            reached = end
