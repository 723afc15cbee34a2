"""Summarises the runs of a test: the outcome of eight properties, the guarantee that remains, and the weakest run.

`labkit.core.judge` has already judged every single run; this module only combines the verdicts. A run without evidence
is unknown.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from labkit.core.explanation import Explanation
from labkit.core.exposure import verdict_notes
from labkit.core.judge import Guarantee, Outcome, Verdict
from labkit.core.verdict import guarantee

MEANINGS = {
    "lost": "",
    "duplicate": "",
    "unexpected": "rows came out that no input explains",
    "aborted_read": "a reader saw rows that disappeared later",
    "precommitted_read": "after a crash a reader saw a whole batch that its sink had not finished",
    "fractured_read": "a reader saw a part of a batch, when no process was left to complete it",
    "regression": "a reader saw a value of a key, and later an older one",
    "stuck": "a start fails again and again",
}
"""What a violation of each property means, for the report; empty if the property's name says it."""
AXES = tuple(MEANINGS)
"""The properties (called axes) that a test checks, each named after its violation.

`unexpected` are rows that no input explains; together with duplicates they are the extra effects.
"""

KERNEL, LINES = "kernel", "lines"
"""How the test observes effects: by system calls, or where that is impossible, by lines of Python alone."""

FAULT_AT = " at "
"""The separator, in the id of a run with a fault, between the kind of fault and the name of the point."""


class Group(StrEnum):
    """The kind of a run in a crash test, such as the crash or other fault that the run suffers."""

    HEALTHY = "healthy"
    CRASH = "crash"
    PAIR = "second crash"
    POWER = "power cut"
    RETRY = "task retry"
    LARGE = "large batch"
    SEEING = "seeing"
    """Not a run, but a doubt: in the run without a crash the test did not observe everything that the sink does."""
    IDENTITY = "identity"
    CONDITION = "condition"
    """A run with a fault that no sink needs to withstand, so it shows a condition of the guarantee and no violation."""
    FAULT = "fault"
    """A run in which one call fails while the command goes on; it counts for a claim apart from the guarantee."""

    @property
    def is_apart(self) -> bool:
        """Whether the report shows runs of this kind separately and does not count them toward the guarantee."""
        return self in (Group.CONDITION, Group.FAULT)


@dataclass(frozen=True)
class Result:
    """The result of one run of a crash test: how the rows that the reader returned differ from the expected rows."""

    id: str
    title: str
    group: Group
    verdict: Verdict | None = None
    stuck: str = ""
    unknown: str = ""
    skipped: bool = False
    """Whether the run counts as not made, for example because no time was left; `unknown` has the reason."""
    evidence: Sequence[Mapping[str, Any]] = ()
    notes: tuple[str, ...] = ()
    story: tuple[str, ...] = ()
    seconds: float = 0.0
    explanation: Explanation | None = None
    """How the readings differ from every failure-free run; None if they were not compared."""

    @property
    def fault(self) -> str:
        """The kind of fault, such as a failing write, that the test caused in this run; empty if there was none."""
        return self.id.partition(FAULT_AT)[0] if self.group is Group.FAULT else ""

    def rows_of(self, axis: str) -> tuple[int, ...]:
        """Return the ids of the rows that violate the property `axis`, such as `lost`.

        The property `stuck` concerns no rows: the result is (0,) if the run is stuck, and otherwise ().
        """
        if axis == "stuck":
            return (0,) if self.stuck else ()
        return getattr(self.verdict, axis) if self.verdict is not None else ()

    @property
    def violated(self) -> tuple[str, ...]:
        """The properties, such as `lost` or `duplicate`, that this run violates."""
        return tuple(axis for axis in AXES if self.rows_of(axis))

    @property
    def guarantee(self) -> Guarantee:
        """The strongest guarantee, such as exactly-once, that is consistent with this run's rows, considered alone."""
        return Guarantee.UNKNOWN if self.unknown or self.verdict is None else self.verdict.guarantee

    @property
    def because(self) -> str:
        """The reason for the run's guarantee as text, such as which rows were lost."""
        what = "fault" if self.group is Group.FAULT else "crash"
        when = f"after the {what} the job fails again and again" if self.evidence else "the job fails without a crash"
        reasons = [f"stuck: {when} ({self.stuck})"] if self.stuck else []
        if self.unknown:
            reasons.append(f"unknown: {self.unknown}")
        elif self.verdict is not None:
            reasons.append(f"{'of the rows until then: ' if self.stuck else ''}{self.verdict.because}")
        return "; ".join(reasons)

    def verdict_notes(self) -> list[tuple[str, str]]:
        """Return further remarks on the run as pairs (label, text); see `labkit.core.exposure.verdict_notes`."""
        return verdict_notes(self.explanation, None)

    def to_json(self) -> dict[str, Any]:
        """Return the result as a dict for JSON."""
        return {
            "id": self.id,
            "title": self.title,
            "group": self.group.value,
            "guarantee": self.guarantee.value,
            **{axis: list(self.rows_of(axis)) for axis in AXES if axis != "stuck"},
            "stuck": self.stuck,
            "unknown": self.unknown,
            "skipped": self.skipped,
            "because": self.because,
            "notes": list(self.notes),
            "evidence": [dict(each) for each in self.evidence],
            "seconds": round(self.seconds, 2),
            "explanation": self.explanation.to_json() if self.explanation else None,
        }


_RANK = {
    Guarantee.NONE: 0,
    Guarantee.AT_MOST_ONCE: 1,
    Guarantee.AT_LEAST_ONCE: 2,
    Guarantee.EXACTLY_ONCE: 5,
    Guarantee.UNKNOWN: 6,
}


def weakness(result: Result) -> int:
    """Return a number by which to sort results, the worst first.

    The order is: loss, duplicates, stuck, wrong reads, no flaw, unknown.
    """
    rank = _RANK[result.guarantee]
    if rank == 5 and result.violated:
        return 3 if result.stuck else 4
    return rank


@dataclass(frozen=True)
class Coverage:
    """How many crash points, second crashes and planned runs a crash test has, and how many of each were tried."""

    found: int
    """The number of crash points for single crashes in the log of the run without a crash."""
    pairs: int
    """The number of possible runs with a second crash during recovery, plus the longer runs that were made."""
    planned: int
    hit: int
    """The number of planned runs that proved something."""
    tried: int = 0
    """The number of crash points that had a run of their own."""
    alike: int = 0
    """The number of other crash points that leave the files as one with a run does, so that they need none."""
    pairs_tried: int = 0
    directed: int = 0
    """The number of runs that a complete test needs in addition to single crashes.

    These are runs with two crashes, crash loops, runs with a late call, without a reading, or with new input.
    """
    directed_tried: int = 0
    sampled_writes: int = 0
    """The number of writes that a SIGKILL may end at more places than the test tries."""
    selected: bool = False
    """Whether runs were left out: the user selected some, or the test was stopped."""
    between_lines: bool = False
    """Whether the test killed only between lines of Python. Such a test is never complete: much happens in a line."""
    states: int = 0
    """The number of different states of the files from which a run restarted."""
    states_left: int = 0
    """The number of other states of the files that a crash before a call of some restart leaves."""
    closed: bool = False
    """Whether there are no such other states, and the pipeline keeps everything in files that labkit can compare."""
    every_state: bool = True
    """Whether exactly-once needs a restart from all such states; false for a Spark sink, whose runs take too long."""
    new_in: Sequence[str] = ()
    """Up to two files by which the states without a restart differ from the others."""

    @property
    def _every_point(self) -> bool:
        return self.tried + self.alike >= self.found > 0

    @property
    def complete(self) -> bool:
        """Whether all crash points and all other required runs were tried, and each of these runs gave a result."""
        every = self._every_point and self.directed_tried >= self.directed and not self.sampled_writes
        every = every and not (self.every_state and self.states_left)
        return every and self.hit >= self.planned and not self.selected and not self.between_lines

    @property
    def extent(self) -> str:
        """How many crash points were tried, such as `12 of 83 points`.

        If all were tried, the text also says what a complete test still lacks: directed runs (such as crash loops),
        crashes at further places within long writes, or restarts from further states of the files.
        """
        points = f"{self.tried + self.alike} of {self.found} points{' between lines' if self.between_lines else ''}"
        if self._every_point and self.directed_tried < self.directed:
            return f"{points}, {self.directed_tried} of {self.directed} directed runs"
        if self._every_point and self.sampled_writes:
            return f"{points}, {self.sampled_writes} long write(s) cut at some places only"
        if self._every_point and self.every_state and self.states_left:
            return f"{points}, {self.states} of at least {self.states + self.states_left} states of the files"
        return points

    def __str__(self) -> str:
        directed = f", {self.directed_tried} of {self.directed} directed runs" if self.directed else ""
        pairs = f"{self.pairs_tried} of the {self.pairs} possible runs with a crash in a recovery"
        writes = f"; {self.sampled_writes} long write(s) were cut at some places only" if self.sampled_writes else ""
        proven = f"{self.hit} of the {self.planned} runs that count toward the guarantee proved something"
        alike = f" ({self.alike} more leave the files as these do)" if self.alike else ""
        return f"{self.tried} of {self.found} points{alike}{directed}, {pairs}{writes}; {proven}"

    @property
    def of_states(self) -> str:
        """A clause on how many states of the files restarts began from; empty if labkit compared no states."""
        if self.closed:
            closed = "no crash before an effect of theirs leaves another one"
            return f"restarts began from all {self.states} that are known; {closed}"
        if not self.states:
            return ""
        if not self.states_left:
            return (
                f"restarts began from {self.states}; there may be others, since labkit cannot compare all that is kept"
            )
        remedy = " (--exhaustive tries them)" if self.every_state else ""
        new = f"; what is new in them: {', '.join(self.new_in)}" if self.new_in else ""
        others = f"crashes in these restarts also leave others, {self.states_left} at least"
        return f"restarts began from {self.states}; {others}{remedy}{new}"


@dataclass(frozen=True)
class Summary:
    """The results of all runs of a crash test, and the guarantee that they support together."""

    results: tuple[Result, ...]
    coverage: Coverage
    axes: Mapping[str, Outcome]
    guarantee: Guarantee
    conditions: Mapping[str, Guarantee] = field(default_factory=dict)
    faults: Mapping[str, int] = field(default_factory=dict)
    """How many calls can suffer a fault, by the kinds of fault that the user asked for."""

    @property
    def weakest(self) -> Result | None:
        """The worst run, among those that count toward the guarantee; None if no such run violates a property."""
        ranked = [each for each in self.ranked() if each.violated and not each.group.is_apart]
        return ranked[0] if ranked else None

    def violating(self, axis: str) -> list[str]:
        """Return the ids of runs that count toward the guarantee and violate the property `axis`, such as `lost`."""
        return [each.id for each in self.results if each.rows_of(axis) and not each.group.is_apart]

    def ranked(self) -> list[Result]:
        """Return all results, the worst first; equally bad results stay in the order of their runs."""
        return sorted(self.results, key=weakness)

    def unknown(self) -> list[Result]:
        """Return the results of runs that prove nothing, for example because they did not reach their crash point."""
        return [each for each in self.results if each.unknown and not each.skipped]

    @property
    def in_doubt(self) -> bool:
        """Whether the guarantee is unknown, or a run that counts toward the guarantee proved nothing.

        Such a run might have refuted the guarantee.
        """
        demanded = [each for each in self.results if not each.group.is_apart]
        return self.guarantee is Guarantee.UNKNOWN or any(map(_proves_nothing, demanded))

    def condition_rows(self) -> list[tuple[str, str]]:
        """Return (title, guarantee) for each run with a fault that no sink needs to withstand (`Group.CONDITION`)."""
        return [(each.title, each.guarantee.value) for each in self.results if each.group is Group.CONDITION]

    def skipped(self) -> list[Result]:
        """Return the results of the planned runs that did not take place.

        For example, no time was left for such a run, or its restart did not reach the point of the second crash. Runs
        with a fault (`Group.FAULT`) are left out, because the report counts them separately.
        """
        return [each for each in self.results if each.skipped and each.group is not Group.FAULT]

    def at_best(self) -> Guarantee:
        """Return the best guarantee that is still possible: it holds if every unknown property turns out to hold."""
        outcomes = {
            axis: Outcome.VIOLATED if held is Outcome.VIOLATED else Outcome.HOLDS for axis, held in self.axes.items()
        }
        return guarantee(_properties(outcomes))


def summarise(
    results: Sequence[Result], coverage: Coverage, unjudged: Sequence[str] = (), faults: Mapping[str, int] | None = None
) -> Summary:
    """Combine the results of all runs into an outcome for each property, and a guarantee.

    A property is violated if any run violates it. Otherwise it is unknown if it is in `unjudged`, or if a run that took
    place proves nothing. Runs that do not count toward the guarantee (`Group.is_apart`) are ignored. `faults` maps each
    fault that the user asked for to the number of calls that can suffer it.
    """
    demanded = [each for each in results if not each.group.is_apart]
    axes = {axis: _outcome(axis, demanded) for axis in AXES}
    for axis in unjudged:
        if axes[axis] is Outcome.HOLDS:
            axes[axis] = Outcome.UNKNOWN
    properties = _properties(axes)
    measured = guarantee(properties)
    # If rows were lost and duplicates are unknown, "at most once" would promise too much.
    promised = measured in (Guarantee.EXACTLY_ONCE, Guarantee.AT_MOST_ONCE)
    if promised and Outcome.UNKNOWN in properties.values():
        measured = Guarantee.UNKNOWN
    conditions = {each.id: each.guarantee for each in results if each.group is Group.CONDITION}
    return Summary(tuple(results), coverage, axes, measured, conditions, faults or {})


def _properties(axes: Mapping[str, Outcome]) -> dict[str, Outcome]:
    return {"no_loss": axes["lost"], "no_duplicate": axes["duplicate"], "no_unexpected": axes["unexpected"]}


def _proves_nothing(result: Result) -> bool:
    return not result.skipped and (bool(result.unknown) or result.guarantee is Guarantee.UNKNOWN)


def _outcome(axis: str, results: Sequence[Result]) -> Outcome:
    if any(each.rows_of(axis) for each in results):
        return Outcome.VIOLATED
    return Outcome.UNKNOWN if not results or any(_proves_nothing(each) for each in results) else Outcome.HOLDS
