"""Summarises the runs of a test: eight axes and the guarantee that is left, the weakest run first.

Every single run was judged by `labkit.core.judge`; this module only puts the verdicts side by side, and must not judge.
A run without evidence is unknown, and nothing else.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from labkit.core.explanation import Explanation
from labkit.core.exposure import Exposure, beside_verdict
from labkit.core.judge import Guarantee, Outcome, Verdict, satisfies
from labkit.core.verdict import guarantee
from labkit.crashtest.instrument.effects import Point

AXES = ("lost", "duplicate", "unexpected", "aborted_read", "precommitted_read", "fractured_read", "regression", "stuck")
"""`unexpected` are rows that no input explains; with duplicates they are the extra effects of the guarantee."""

EYES = INSTRUMENTS, KERNEL = "instruments", "kernel"
"""Who sees the sink's effects: wrappers around Python's libraries, or the kernel that every program asks."""

VARIANTS = {
    "fresh_checkpoint": "a second query with a fresh checkpoint and new rows",
    "two_queries": "two queries with rows of their own at the same time",
    "copied_checkpoint": "an older copy of the checkpoint, restored behind later batches",
    "other_rows": "the same batch id with other rows, as from a source that is not deterministic",
    "stopped_driver": "a driver stopped by SIGSTOP, replaced, and continued",
}
"""Faults of a query's identity, and of a driver that was thought dead."""

DEMANDED = ("fresh_checkpoint", "two_queries", "copied_checkpoint")
"""Variants that belong to the guarantee. The others are conditions: a sink cannot always meet them by itself."""


class Group(StrEnum):
    """The kind of a run: what was done to the job."""

    HEALTHY = "healthy"
    CRASH = "crash"
    PAIR = "second crash"
    POWER = "power cut"
    RETRY = "task retry"
    LARGE = "large batch"
    SEEING = "seeing"
    """No run, but a doubt: the test did not see in the healthy run all that the sink does."""
    IDENTITY = "identity"
    CONDITION = "condition"
    """A variant that says under which condition the guarantee holds, and is no part of it."""


@dataclass(frozen=True)
class Result:
    """The result of one run."""

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
    explanation: Explanation | None = None
    """What failure-free runs have to say of what was read."""
    exposure: Exposure | None = None
    """For how long a reader could have read something wrong; None where the reader was not asked all the time."""

    def found(self, axis: str) -> tuple[int, ...]:
        """Ids of the rows that violate an axis; for `stuck` one id or none."""
        if axis == "stuck":
            return (0,) if self.stuck else ()
        return getattr(self.verdict, axis) if self.verdict is not None else ()

    @property
    def violated(self) -> tuple[str, ...]:
        """The axes that this run violates."""
        return tuple(axis for axis in AXES if self.found(axis))

    @property
    def guarantee(self) -> Guarantee:
        """The guarantee of this run alone."""
        return Guarantee.UNKNOWN if self.unknown or self.verdict is None else self.verdict.guarantee

    @property
    def because(self) -> str:
        """The reason for the guarantee, in a sentence."""
        reasons = [f"stuck: after the crash the job fails again and again ({self.stuck})"] if self.stuck else []
        if self.unknown:
            reasons.append(f"unknown: {self.unknown}")
        elif self.verdict is not None:
            reasons.append(self.verdict.because)
        return "; ".join(reasons)

    def beside_verdict(self) -> list[tuple[str, str]]:
        """What is to be said beside the verdict; see `labkit.core.exposure.beside_verdict`."""
        return beside_verdict(self.explanation, self.exposure)

    def to_json(self) -> dict[str, Any]:
        """The result as plain data."""
        plain = {"id": self.id, "title": self.title, "group": self.group.value, "guarantee": self.guarantee.value}
        rows = {axis: list(self.found(axis)) for axis in AXES if axis != "stuck"}
        more = {"stuck": self.stuck, "unknown": self.unknown, "because": self.because, "notes": list(self.notes)}
        ends = {
            "evidence": [dict(each) for each in self.evidence],
            "seconds": round(self.seconds, 2),
            "explanation": self.explanation.to_json() if self.explanation else None,
            "exposure": self.exposure.to_json() if self.exposure else None,
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
    """The rank of a result, small for weak: loss, duplicates, a stuck job, early reads, no flaw, unknown."""
    rank = _RANK[result.guarantee]
    if rank == 5 and result.violated:
        return 3 if result.stuck else 4
    return rank


@dataclass(frozen=True)
class Coverage:
    """How many points there are, and how many runs were planned and reached theirs."""

    found: int
    """Points of single crashes in the log of the healthy run."""
    pairs: int
    """Pairs of a point and another one in the recovery from it."""
    planned: int
    hit: int
    tried: int = 0
    """Points that had a run of their own."""
    pairs_tried: int = 0

    def __str__(self) -> str:
        tried = f"{self.tried} of {self.found} points"
        pairs = f"{self.pairs_tried} of {self.pairs} pairs of one and another in its recovery"
        return f"{self.hit} of {self.planned} runs reached their points: {tried}, and {pairs}"

    def to_json(self) -> dict[str, int]:
        """The coverage as plain data."""
        return dict(vars(self))


@dataclass(frozen=True)
class Summary:
    """The findings of a test as a whole."""

    results: tuple[Result, ...]
    coverage: Coverage
    axes: Mapping[str, Outcome]
    guarantee: Guarantee
    conditions: Mapping[str, Guarantee] = field(default_factory=dict)

    @property
    def weakest(self) -> Result | None:
        """The weakest run that violates an axis, conditions apart; None if there is none."""
        ranked = [each for each in self.ranked() if each.violated and each.group is not Group.CONDITION]
        return ranked[0] if ranked else None

    def ranked(self) -> list[Result]:
        """The results, the weakest first; equally weak ones in the order in which they ran."""
        return sorted(self.results, key=weakness)

    def unknown(self) -> list[Result]:
        """Results that prove nothing."""
        return [each for each in self.results if each.unknown]

    def at_best(self) -> Guarantee:
        """The guarantee if nothing is wrong beyond what was seen."""
        outcomes = {
            axis: Outcome.VIOLATED if held is Outcome.VIOLATED else Outcome.HOLDS for axis, held in self.axes.items()
        }
        return guarantee(_properties(outcomes))

    def holds(self, expected: Guarantee, also: Iterable[str] = ()) -> bool | None:
        """Whether the expected guarantee was measured; None where a run that could refute it proves nothing."""
        outcomes = [self.axes[axis] for axis in (*also, "stuck")]
        if Outcome.VIOLATED in outcomes or not satisfies(self.at_best(), expected):
            return False
        if Outcome.UNKNOWN in outcomes:
            return None
        doubt = (each.unknown for each in self.results if each.group is not Group.CONDITION)
        return None if self.guarantee is Guarantee.UNKNOWN or any(doubt) else True


def summarise(results: Sequence[Result], coverage: Coverage, unjudged: Sequence[str] = ()) -> Summary:
    """Puts the results together. An axis is violated if a demanded run violates it, unknown if one proves nothing.

    `unjudged`: axes of which runs of this kind say nothing. They are unknown, unless one is violated all the same.
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
    conditions = {each.id: each.guarantee for each in results if each.group is Group.CONDITION}
    return Summary(tuple(results), coverage, axes, measured, conditions)


def _properties(axes: Mapping[str, Outcome]) -> dict[str, Outcome]:
    return {"no_loss": axes["lost"], "no_duplicate": axes["duplicate"], "no_unexpected": axes["unexpected"]}


def _proves_nothing(result: Result) -> bool:
    """Whether a run says why it is unknown, or its verdict is unknown, as where nobody looked."""
    return bool(result.unknown) or result.guarantee is Guarantee.UNKNOWN


def _outcome(axis: str, results: Sequence[Result]) -> Outcome:
    if any(each.found(axis) for each in results):
        return Outcome.VIOLATED
    return Outcome.UNKNOWN if not results or any(_proves_nothing(each) for each in results) else Outcome.HOLDS
