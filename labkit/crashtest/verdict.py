"""Summarises the runs of a test: eight axes and the remaining guarantee, the weakest run first.

`labkit.core.judge` has judged every single run; this module only combines the verdicts. A run without evidence
is unknown.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from labkit.core.explanation import Explanation
from labkit.core.exposure import Exposure, verdict_notes
from labkit.core.judge import Guarantee, Outcome, Verdict
from labkit.core.verdict import guarantee
from labkit.crashtest.instrument.effects import Point

AXES = ("lost", "duplicate", "unexpected", "aborted_read", "precommitted_read", "fractured_read", "regression", "stuck")
"""The properties that a test checks.

`unexpected` are rows that no input explains; with duplicates they are extra effects.
"""

EYES = INSTRUMENTS, KERNEL = "instruments", "kernel"
"""How the test observes a sink's effects: by wrappers around Python's libraries, or by system calls in the kernel."""

VARIANTS = {
    "fresh_checkpoint": "a second query with a fresh checkpoint and new rows",
    "two_queries": "two queries with rows of their own at the same time",
    "copied_checkpoint": "an older copy of the checkpoint, restored after later batches",
    "other_rows": "the same batch id with other rows, as from a source that is not deterministic",
    "stopped_driver": "a driver stopped by SIGSTOP, replaced, and continued",
}
"""Faults of a query's identity, and a driver that was wrongly thought dead, by name."""

DEMANDED = ("fresh_checkpoint", "two_queries", "copied_checkpoint")
"""Variants that belong to the guarantee. The others are conditions, which a sink cannot always meet by itself."""


class Group(StrEnum):
    """The kind of a run, by what was done to the job."""

    HEALTHY = "healthy"
    CRASH = "crash"
    PAIR = "second crash"
    POWER = "power cut"
    RETRY = "task retry"
    LARGE = "large batch"
    SEEING = "seeing"
    """Not a run but a doubt: in the healthy run the test did not see everything that the sink does."""
    IDENTITY = "identity"
    CONDITION = "condition"
    """A variant that shows a condition of the guarantee and is not part of it."""


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
    skipped: bool = False
    """Whether the run was not made, because no time was left; `unknown` then names the time."""
    evidence: Sequence[Mapping[str, Any]] = ()
    notes: tuple[str, ...] = ()
    story: tuple[str, ...] = ()
    seconds: float = 0.0
    explanation: Explanation | None = None
    """The comparison of the readings with all failure-free runs; None if it was not made."""
    exposure: Exposure | None = None
    """How long a reader could have read something wrong; None if the store was not read all the time."""

    def rows_of(self, axis: str) -> tuple[int, ...]:
        """Return the ids of the rows that violate an axis; for `stuck` the id 0 or nothing."""
        if axis == "stuck":
            return (0,) if self.stuck else ()
        return getattr(self.verdict, axis) if self.verdict is not None else ()

    @property
    def violated(self) -> tuple[str, ...]:
        """The axes that this run violates."""
        return tuple(axis for axis in AXES if self.rows_of(axis))

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

    def verdict_notes(self) -> list[tuple[str, str]]:
        """Return further remarks on the run as (label, sentence); see `labkit.core.exposure.verdict_notes`."""
        return verdict_notes(self.explanation, self.exposure)

    def to_json(self) -> dict[str, Any]:
        """Return the result as plain data."""
        plain = {"id": self.id, "title": self.title, "group": self.group.value, "guarantee": self.guarantee.value}
        rows = {axis: list(self.rows_of(axis)) for axis in AXES if axis != "stuck"}
        more = {
            "stuck": self.stuck,
            "unknown": self.unknown,
            "skipped": self.skipped,
            "because": self.because,
            "notes": list(self.notes),
        }
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
    """Return the rank of a result, small for weak: loss, duplicates, a stuck job, early reads, no flaw, unknown."""
    rank = _RANK[result.guarantee]
    if rank == 5 and result.violated:
        return 3 if result.stuck else 4
    return rank


@dataclass(frozen=True)
class Coverage:
    """The number of points, and how many runs were planned and reached their points."""

    found: int
    """The number of points for single crashes in the log of the healthy run."""
    pairs: int
    """The number of pairs of a point and another point in the recovery from it."""
    planned: int
    hit: int
    tried: int = 0
    """The number of points that had a run of their own."""
    pairs_tried: int = 0
    directed: int = 0
    """The number of pairs that a complete test tries, because no single crash says what they do."""
    directed_tried: int = 0
    selected: bool = False
    """Whether the user selected single runs with `--only`."""

    @property
    def complete(self) -> bool:
        """Whether every point and every directed pair was tried, and every planned run proved something."""
        every = self.tried >= self.found > 0 and self.directed_tried >= self.directed
        return every and self.hit >= self.planned and not self.selected

    @property
    def extent(self) -> str:
        """The share that was tried: points, and directed pairs if points alone do not say what is missing."""
        points = f"{self.tried} of {self.found} points"
        if self.tried >= self.found and self.directed_tried < self.directed:
            return f"{points}, {self.directed_tried} of {self.directed} directed pairs"
        return points

    def __str__(self) -> str:
        tried = f"{self.tried} of {self.found} points"
        pairs = f"{self.pairs_tried} of {self.pairs} pairs of a point and another in its recovery"
        directed = f" ({self.directed_tried} of {self.directed} directed pairs)" if self.directed else ""
        return f"{self.hit} of {self.planned} runs reached their points: {tried}, and {pairs}{directed}"

    def to_json(self) -> dict[str, int]:
        """Return the coverage as plain data."""
        return dict(vars(self))


@dataclass(frozen=True)
class Summary:
    """The combined findings of a test."""

    results: tuple[Result, ...]
    coverage: Coverage
    axes: Mapping[str, Outcome]
    guarantee: Guarantee
    conditions: Mapping[str, Guarantee] = field(default_factory=dict)

    @property
    def weakest(self) -> Result | None:
        """The weakest run that violates an axis, except conditions; None if there is none."""
        ranked = [each for each in self.ranked() if each.violated and each.group is not Group.CONDITION]
        return ranked[0] if ranked else None

    def ranked(self) -> list[Result]:
        """Return the results, the weakest first; equally weak ones in the order in which they ran."""
        return sorted(self.results, key=weakness)

    def unknown(self) -> list[Result]:
        """Return the results of runs that were made and prove nothing, with their reasons."""
        return [each for each in self.results if each.unknown and not each.skipped]

    @property
    def in_doubt(self) -> bool:
        """Whether the measured guarantee is unknown, or a run that could refute it proves nothing."""
        demanded = [each for each in self.results if each.group is not Group.CONDITION]
        return self.guarantee is Guarantee.UNKNOWN or any(map(_proves_nothing, demanded))

    def skipped(self) -> list[Result]:
        """Return the results of runs for which no time was left."""
        return [each for each in self.results if each.skipped]

    def at_best(self) -> Guarantee:
        """Return the guarantee that holds if nothing beyond the seen violations is wrong."""
        outcomes = {
            axis: Outcome.VIOLATED if held is Outcome.VIOLATED else Outcome.HOLDS for axis, held in self.axes.items()
        }
        return guarantee(_properties(outcomes))


def summarise(results: Sequence[Result], coverage: Coverage, unjudged: Sequence[str] = ()) -> Summary:
    """Return the summary of results: an axis is violated if a demanded run violates it, unknown if a run proves
    nothing.

    `unjudged` are axes that runs of this kind cannot judge. They are unknown unless a run violates them.
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
    """Return whether a run that was made has a reason for being unknown, or an unknown verdict because nobody read the
    store.
    """
    return not result.skipped and (bool(result.unknown) or result.guarantee is Guarantee.UNKNOWN)


def _outcome(axis: str, results: Sequence[Result]) -> Outcome:
    if any(each.rows_of(axis) for each in results):
        return Outcome.VIOLATED
    return Outcome.UNKNOWN if not results or any(_proves_nothing(each) for each in results) else Outcome.HOLDS
