"""States what a test may claim: the guarantee, and how much of what could refute the guarantee was tried.

One run can refute a guarantee. Only all runs together can support one. So `exactly-once` is claimed without a qualifier
only if the job was killed at every crash point (of points that leave equal files, at one) and at every directed pair of
crash points (those with a reason of their own), and if every run proved something.
"""

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from labkit.core.judge import Guarantee, Outcome, satisfies
from labkit.crashtest.verdict import Coverage, Group, Result, Summary, summarise
from labkit.host.syscalls.faults import Fault
from labkit.view.signs import LOOKS, Look

SAMPLED = Look("\u25d4", "#1565c0")
"""The sign and colours of a claim that no run refuted although not everything was tried: a circle, a quarter filled."""


_COMPLETE = {
    Guarantee.AT_LEAST_ONCE: "rows come out twice, and none gets lost",
    Guarantee.AT_MOST_ONCE: "rows get lost, and none comes out twice",
    Guarantee.NONE: "rows get lost and come out twice, or rows come out that nobody expects",
}


class Strength(StrEnum):
    """How firmly a test supports a guarantee: whether it tried everything, and whether a run refuted exactly-once."""

    COMPLETE = "complete"
    """Everything was tried and every run proved something, or there is no guarantee at all."""
    SAMPLED = "sampled"
    """No run was weaker than exactly-once, but not everything was tried."""
    REFUTED = "refuted"
    """A run was weaker than exactly-once. The guarantee may be weaker still, because not everything was tried."""
    UNKNOWN = "unknown"
    """No run was weaker than exactly-once, but a run that might have been weaker proves nothing."""


class Goal(StrEnum):
    """A value of the option `--expect`: the result that a user demands of a crash test."""

    EXACTLY_ONCE = Guarantee.EXACTLY_ONCE.value
    NOT_REFUTED = "not-refuted"
    """No run of the test is weaker than exactly-once; a quick test can show this."""
    AT_LEAST_ONCE = Guarantee.AT_LEAST_ONCE.value
    AT_MOST_ONCE = Guarantee.AT_MOST_ONCE.value
    NONE = Guarantee.NONE.value

    @property
    def guarantee(self) -> Guarantee:
        """The guarantee that this goal demands of every run; for the goal `not-refuted` it is exactly-once."""
        return Guarantee.EXACTLY_ONCE if self is Goal.NOT_REFUTED else Guarantee(self.value)


@dataclass(frozen=True)
class Claim:
    """The guarantee that a crash test claims, with a qualifier such as `not refuted` if the test left something out."""

    strength: Strength
    at_best: Guarantee
    """The guarantee that holds if the runs that were not made would show no further violation."""
    coverage: Coverage
    is_stuck: bool = False
    """Whether a run never recovered. The guarantee concerns the rows until then, so it never stands alone."""
    is_stuck_alone: bool = False
    """Whether all runs that are stuck had no crash, such as one with two queries."""

    @property
    def guarantee(self) -> Guarantee:
        """The claimed guarantee, or `unknown` if the test can state it only with a qualifier such as `not refuted`."""
        return self.at_best if self.strength is Strength.COMPLETE else Guarantee.UNKNOWN

    def __str__(self) -> str:
        when = "without a crash" if self.is_stuck_alone else "after a crash"
        return f"stuck {when}; of its rows: {self._of_rows()}" if self.is_stuck else self._of_rows()

    def _of_rows(self) -> str:
        if self.strength is Strength.SAMPLED:
            return f"not refuted ({self.coverage.extent})"
        if self.strength is Strength.REFUTED:
            return f"not exactly-once, at best {self.at_best}"
        if self.is_stuck and self.guarantee is Guarantee.EXACTLY_ONCE:
            return "none is wrong until then"  # the word exactly-once would look like a success
        return self.guarantee.value

    @property
    def meaning(self) -> str:
        """A sentence, without full stop, that explains the words of this claim; empty if they need no explanation."""
        if self.is_stuck:
            return "a start fails again and again; the rest concerns the rows that could be read until then"
        if self.strength is Strength.REFUTED:
            doubt = f"{self.at_best} may be too strong as well, since not all was tried"
            return f"a run refutes exactly-once; {doubt} ({self.coverage.extent})"
        if self.strength is Strength.COMPLETE and self.at_best is not Guarantee.EXACTLY_ONCE:
            return _COMPLETE[self.at_best]
        return ""

    @property
    def look(self) -> Look:
        """The sign and colours of this claim on report pages; only an unqualified exactly-once looks like a success."""
        if self.is_stuck:
            return LOOKS[Guarantee.NONE]
        if self.strength is Strength.SAMPLED:
            return SAMPLED
        return LOOKS[self.at_best if self.strength is Strength.REFUTED else self.guarantee]

    def reaches(self, goal: Goal) -> bool | None:
        """Return whether the claimed guarantee is as strong as `goal`; None if too little was tried to know."""
        if not satisfies(self.at_best, goal.guarantee):
            return False
        if goal is Goal.NOT_REFUTED:
            return None if self.strength is Strength.UNKNOWN else True
        return True if self.strength is Strength.COMPLETE else None


def claim(summary: Summary) -> Claim:
    """Return the guarantee that a crash test supports, with a qualifier if needed, from the summary of its runs."""
    at_best, coverage = summary.at_best(), summary.coverage
    is_stuck = summary.axes["stuck"] is Outcome.VIOLATED
    alone = is_stuck and not any(each.stuck and each.evidence for each in summary.results if not each.group.is_apart)
    return Claim(_strength(summary, at_best), at_best, coverage, is_stuck, alone)


def _strength(summary: Summary, at_best: Guarantee) -> Strength:
    if at_best is Guarantee.NONE or (summary.coverage.complete and not summary.in_doubt):
        return Strength.COMPLETE
    if at_best is not Guarantee.EXACTLY_ONCE:
        return Strength.REFUTED
    about = {each for each in Group if not each.is_apart} - {Group.HEALTHY}
    tried = any(each.group in about and each.verdict is not None for each in summary.results)
    return Strength.SAMPLED if tried and not summary.in_doubt else Strength.UNKNOWN


@dataclass(frozen=True)
class FaultClaim:
    """What a crash test claims about one kind of fault, such as a full disk, apart from the guarantee under crashes.

    `withstood` means: every call that can suffer the fault suffered it in some run, and no run violated a property.
    """

    fault: Fault
    at_best: Guarantee
    """The guarantee that holds in the runs with this fault."""
    tried: int
    """The number of calls that suffered the fault, each in a run that proves something."""
    found: int | None
    """The number of calls that can suffer it; None if the user did not ask for this kind of fault."""
    worst: Result | None = None
    """The weakest run with this fault that violates a property; None if there is none."""
    overdue: int = 0
    """The number of runs in which the command got SIGTERM and had to be killed after the grace period."""
    in_doubt: bool = False
    """Whether a run with this fault proves nothing, or the test did not see all that the pipeline does."""

    @property
    def is_silent(self) -> bool:
        """Whether, in the worst run with this fault, the command reported success although its rows are wrong."""
        return self.worst is not None and any(each.get("silent") for each in self.worst.evidence)

    @property
    def is_violated(self) -> bool:
        """Whether a run with this fault ended with wrong rows, or the command never recovered from the fault."""
        return self.at_best is not Guarantee.EXACTLY_ONCE or bool(self.worst and self.worst.stuck)

    def __str__(self) -> str:
        late = f", not stopped in time in {self.overdue}" if self.overdue else ""
        extent = f"{self.tried} of {self.found} calls{late}"
        if self.found is None:
            return "unknown (not tried)"
        if self.is_violated:
            stuck = "stuck; of its rows: " if self.worst and self.worst.stuck else ""
            silent = ", although the command ended well" if self.is_silent else ""
            return f"{stuck}at best {self.at_best}{silent} ({extent})"
        if self.found == 0 and not self.in_doubt:
            return "none of the observed calls can suffer it"
        if self.in_doubt or not self.tried:
            return f"unknown ({extent})"
        return f"{'withstood' if self.tried >= self.found else 'not refuted'} ({extent})"

    def reaches(self, goal: Goal) -> bool | None:
        """Return whether the pipeline reaches the user's goal under this fault; None if the test cannot tell."""
        if self.is_violated and (not satisfies(self.at_best, goal.guarantee) or (self.worst and self.worst.stuck)):
            return False
        if self.found == 0 and not self.in_doubt:
            return True
        if self.in_doubt or not self.tried:
            return None
        return True if goal is Goal.NOT_REFUTED or self.tried >= (self.found or 0) else None

    def to_json(self) -> dict[str, Any]:
        """Return the claim about this fault as a dict for JSON."""
        return {
            "claim": str(self),
            "at_best": self.at_best.value if self.tried else Guarantee.UNKNOWN.value,
            "tried": self.tried,
            "found": self.found,
            "silent": self.is_silent,
            "overdue": self.overdue,
            "weakest": self.worst.id if self.worst else None,
        }


def fault_claims(summary: Summary) -> tuple[FaultClaim, ...]:
    """Return the claim about each kind of fault, in the order of `Fault`; `unknown` for a kind that was not tried."""
    doubts = [each for each in summary.results if each.group is Group.SEEING]
    return tuple(_fault_claim(fault, summary, in_doubt=bool(doubts)) for fault in Fault)


def _proves(result: Result) -> bool:
    """Return whether a run with a fault proves anything, from its result.

    A run with an unknown result proves nothing. After a failed sync, a disk may lose the unsynced bytes. If the command
    ignored the failure and labkit could not imitate this loss, only a run that did harm proves something.
    """
    unseen = any(each.get("silent") and each.get("unmodelled") for each in result.evidence)
    return not result.unknown and (not unseen or bool(result.violated or result.stuck))


def _fault_claim(fault: Fault, summary: Summary, *, in_doubt: bool) -> FaultClaim:
    results = [each for each in summary.results if each.fault == fault]
    proven = [each for each in results if (each.verdict is not None or each.stuck) and _proves(each)]
    # Judges these runs like runs with a crash, as if there were no others.
    alone = summarise([replace(each, group=Group.CRASH) for each in proven], summary.coverage)
    worst = next((each for each in alone.ranked() if each.violated), None)
    return FaultClaim(
        fault,
        alone.at_best() if proven else Guarantee.EXACTLY_ONCE,
        len(proven),
        summary.faults.get(fault),
        next((each for each in proven if worst and each.id == worst.id), None),
        sum(any(one.get("overdue") for one in each.evidence) for each in proven),
        in_doubt or any(each.unknown and not each.skipped for each in results),
    )
