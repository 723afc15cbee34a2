"""States what a test may claim: the guarantee, and how much of what could refute the guarantee was tried.

One run can refute a guarantee. Only all runs together can support one. So `exactly-once` is claimed without a qualifier
only if the job was killed at every crash point and at every directed pair of crash points (those with a reason of their
own), and if every run proved something.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from labkit.core.judge import Guarantee, Outcome, satisfies
from labkit.crashtest.verdict import Coverage, Group, Summary
from labkit.view.signs import LOOKS, Look

SAMPLED = Look("\u25d4", "#1565c0", "#d3e3f5")
"""The sign and colours of a claim that no run refuted although not everything was tried: a circle, a quarter filled."""


class Strength(StrEnum):
    """How much of what could refute the guarantee (crash points, pairs of them) a test has tried."""

    COMPLETE = "complete"
    """Everything was tried and every run proved something, or there is no guarantee at all."""
    SAMPLED = "sampled"
    """No run was weaker than exactly-once, but not everything was tried."""
    REFUTED = "refuted"
    """A run was weaker than exactly-once. The guarantee may be weaker still, because not everything was tried."""
    UNKNOWN = "unknown"
    """No run was weaker than exactly-once, but a run that might have been weaker proves nothing."""


class Goal(StrEnum):
    """The result that a user demands with the option `--expect`."""

    EXACTLY_ONCE = Guarantee.EXACTLY_ONCE.value
    NOT_REFUTED = "not-refuted"
    """No run of the test is weaker than exactly-once; a quick test can show this."""
    AT_LEAST_ONCE = Guarantee.AT_LEAST_ONCE.value
    AT_MOST_ONCE = Guarantee.AT_MOST_ONCE.value
    NONE = Guarantee.NONE.value

    @property
    def guarantee(self) -> Guarantee:
        """The guarantee that every run must have at least, if the goal is to be reached."""
        return Guarantee.EXACTLY_ONCE if self is Goal.NOT_REFUTED else Guarantee(self.value)


@dataclass(frozen=True)
class Claim:
    """The guarantee that one test may claim. Its text has a qualifier unless everything was tried."""

    strength: Strength
    at_best: Guarantee
    """The guarantee that holds if the runs that were not made would show no further violation."""
    coverage: Coverage
    is_stuck: bool = False
    """Whether a run never recovered. The guarantee concerns the rows until then, so it never stands alone."""

    @property
    def guarantee(self) -> Guarantee:
        """The guarantee if it is claimed without a qualifier; otherwise `unknown`."""
        return self.at_best if self.strength is Strength.COMPLETE else Guarantee.UNKNOWN

    def __str__(self) -> str:
        return f"stuck after a crash; of its rows: {self._of_rows()}" if self.is_stuck else self._of_rows()

    def _of_rows(self) -> str:
        if self.strength is Strength.SAMPLED:
            return f"not refuted ({self.coverage.extent})"
        if self.strength is Strength.REFUTED:
            return f"not exactly-once, at best {self.at_best}"
        return self.guarantee.value

    @property
    def look(self) -> Look:
        """The sign and colours of the claim. Only exactly-once without a qualifier has those of a correct result."""
        if self.is_stuck:
            return LOOKS[Guarantee.NONE]
        if self.strength is Strength.SAMPLED:
            return SAMPLED
        return LOOKS[self.at_best if self.strength is Strength.REFUTED else self.guarantee]

    def reaches(self, goal: Goal) -> bool | None:
        """Return whether the claim is at least as strong as the user's goal; None if the test does not know."""
        if not satisfies(self.at_best, goal.guarantee):
            return False
        if goal is Goal.NOT_REFUTED:
            return None if self.strength is Strength.UNKNOWN else True
        return True if self.strength is Strength.COMPLETE else None

    def to_json(self) -> dict[str, Any]:
        """Return the claim as plain data."""
        return {"strength": self.strength.value, "at_best": self.at_best.value}


def claim(summary: Summary) -> Claim:
    """Return the claim that a test with these results may make."""
    at_best, coverage = summary.at_best(), summary.coverage
    return Claim(_strength(summary, at_best), at_best, coverage, summary.axes["stuck"] is Outcome.VIOLATED)


def _strength(summary: Summary, at_best: Guarantee) -> Strength:
    if at_best is Guarantee.NONE or (summary.coverage.complete and not summary.in_doubt):
        return Strength.COMPLETE
    if at_best is not Guarantee.EXACTLY_ONCE:
        return Strength.REFUTED
    about = {*Group} - {Group.HEALTHY, Group.CONDITION}
    tried = any(each.group in about and each.verdict is not None for each in summary.results)
    return Strength.SAMPLED if tried and not summary.in_doubt else Strength.UNKNOWN
