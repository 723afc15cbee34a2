"""What the runs of a test say together: seven axes and what is left of a guarantee, the weakest run first.

Every single run was judged by `labkit.core.judge`; here its findings are only put side by side. A run without
evidence is unknown, and nothing is made of it but that.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from labkit.core.judge import Guarantee, Outcome, Verdict, satisfies
from labkit.core.verdict import guarantee
from labkit.crashtest.instrument.effects import Point

AXES = (
    "lost",
    "duplicate",
    "unexpected",
    "aborted_read",
    "precommitted_read",
    "fractured_read",
    "regression",
    "stuck",
)
"""`unexpected` are rows that no input explains; with duplicates they are the extra effects of the guarantee."""


class Group(StrEnum):
    """What was done to the job in a run."""

    HEALTHY = "healthy"
    CRASH = "crash"
    PAIR = "second crash"
    POWER = "power cut"
    RETRY = "task retry"
    LARGE = "large batch"
    SEEING = "seeing"
    """No run: whether the test saw in the healthy run what the sink does. It is there only if it did not."""
    IDENTITY = "identity"
    CONDITION = "condition"
    """A variant that says under which condition the guarantee holds, and is no part of it."""


@dataclass(frozen=True)
class Result:
    """One run, judged."""

    id: str
    title: str
    group: Group
    points: tuple[Point, ...] = ()
    verdict: Verdict | None = None
    stuck: str = ""
    unknown: str = ""
    evidence: Sequence[Mapping[str, Any]] = ()
    notes: tuple[str, ...] = ()
    story: tuple[str, ...] = ()
    seconds: float = 0.0

    def found(self, axis: str) -> tuple[int, ...]:
        """The rows that violate an axis, by id; of `stuck` something or nothing."""
        if axis == "stuck":
            return (0,) if self.stuck else ()
        return getattr(self.verdict, axis) if self.verdict is not None else ()

    @property
    def violated(self) -> tuple[str, ...]:
        """The axes that this run violates."""
        return tuple(axis for axis in AXES if self.found(axis))

    @property
    def guarantee(self) -> Guarantee:
        """Of this run alone."""
        return (
            Guarantee.UNKNOWN
            if self.unknown or self.verdict is None
            else self.verdict.guarantee
        )

    @property
    def because(self) -> str:
        """Why, in a sentence."""
        if self.unknown:
            return f"unknown: {self.unknown}"
        said = (
            [f"stuck: after the crash the job fails again and again ({self.stuck})"]
            if self.stuck
            else []
        )
        return "; ".join([*said, self.verdict.because if self.verdict else ""])

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        plain = {
            "id": self.id,
            "title": self.title,
            "group": self.group.value,
            "guarantee": self.guarantee.value,
        }
        rows = {axis: list(self.found(axis)) for axis in AXES if axis != "stuck"}
        more = {
            "stuck": self.stuck,
            "unknown": self.unknown,
            "because": self.because,
            "notes": list(self.notes),
        }
        ends = {
            "evidence": [dict(each) for each in self.evidence],
            "seconds": round(self.seconds, 2),
        }
        return {**plain, **rows, **more, **ends}


_RANK = {
    Guarantee.NONE: 0,
    Guarantee.AT_MOST_ONCE: 1,
    Guarantee.AT_LEAST_ONCE: 2,
    Guarantee.EXACTLY_ONCE: 5,
    Guarantee.UNKNOWN: 6,
}


def weakness(result: Result) -> int:
    """Small is weak: loss, then duplicates, then a job that is stuck, then early reads, then nothing."""
    rank = _RANK[result.guarantee]
    if rank == 5 and result.violated:
        return 3 if result.stuck else 4
    return rank


@dataclass(frozen=True)
class Coverage:
    """How much of what was found was hit."""

    found: int
    """Points of single crashes in the log of the healthy run."""
    pairs: int
    planned: int
    hit: int

    def __str__(self) -> str:
        return f"{self.hit} of {self.planned} runs reached their points; {self.found} points and {self.pairs} pairs exist"

    def to_json(self) -> dict[str, int]:
        """Plain data."""
        return dict(vars(self))


@dataclass(frozen=True)
class Summary:
    """The test as a whole."""

    results: tuple[Result, ...]
    coverage: Coverage
    axes: Mapping[str, Outcome]
    guarantee: Guarantee
    conditions: Mapping[str, Guarantee] = field(default_factory=dict)

    @property
    def weakest(self) -> Result | None:
        """The weakest run that says anything; None if every one is exactly-once without a flaw."""
        ranked = [
            each
            for each in self.ranked()
            if each.violated and each.group is not Group.CONDITION
        ]
        return ranked[0] if ranked else None

    def ranked(self) -> list[Result]:
        """The weakest first; of equals, in the order in which they ran."""
        return sorted(self.results, key=weakness)

    def unknown(self) -> list[Result]:
        """Runs that prove nothing."""
        return [each for each in self.results if each.unknown]

    def at_best(self) -> Guarantee:
        """What is left if nothing else is wrong than what was seen."""
        seen = {
            axis: Outcome.VIOLATED if held is Outcome.VIOLATED else Outcome.HOLDS
            for axis, held in self.axes.items()
        }
        return guarantee(_properties(seen))

    def holds(self, expected: Guarantee, also: Iterable[str] = ()) -> bool | None:
        """Whether what is expected was measured; None where a run that could refute it proves nothing."""
        asked = [self.axes[axis] for axis in (*also, "stuck")]
        if Outcome.VIOLATED in asked or not satisfies(self.at_best(), expected):
            return False
        if Outcome.UNKNOWN in asked:
            return None
        doubt = (
            each.unknown for each in self.results if each.group is not Group.CONDITION
        )
        return None if self.guarantee is Guarantee.UNKNOWN or any(doubt) else True


def summarise(
    results: Sequence[Result], coverage: Coverage, unjudged: Sequence[str] = ()
) -> Summary:
    """Puts the runs together. An axis is violated if any demanded run violates it, unknown if one proves nothing.

    `unjudged` are axes of which runs of this kind say nothing: unknown, unless one is violated all the same.
    """
    demanded = [each for each in results if each.group is not Group.CONDITION]
    axes = {axis: _outcome(axis, demanded) for axis in AXES}
    for axis in unjudged:
        if axes[axis] is Outcome.HOLDS:
            axes[axis] = Outcome.UNKNOWN
    properties = _properties(axes)
    measured = guarantee(properties)
    # Rows were lost, and whether some came twice was not seen: "at most once" would be a promise, too.
    promised = measured in (Guarantee.EXACTLY_ONCE, Guarantee.AT_MOST_ONCE)
    if promised and Outcome.UNKNOWN in properties.values():
        measured = Guarantee.UNKNOWN
    conditions = {
        each.id: each.guarantee for each in results if each.group is Group.CONDITION
    }
    return Summary(tuple(results), coverage, axes, measured, conditions)


def _properties(axes: Mapping[str, Outcome]) -> dict[str, Outcome]:
    return {
        "no_loss": axes["lost"],
        "no_duplicate": axes["duplicate"],
        "no_unexpected": axes["unexpected"],
    }


def _outcome(axis: str, results: Sequence[Result]) -> Outcome:
    if any(each.found(axis) for each in results):
        return Outcome.VIOLATED
    return (
        Outcome.UNKNOWN
        if not results or any(each.unknown for each in results)
        else Outcome.HOLDS
    )
