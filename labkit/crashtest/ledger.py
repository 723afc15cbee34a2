"""Keeps the results of one test's runs, the number of runs to come, and the time that is left."""

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

from labkit.crashtest.jobs import Job, unknown
from labkit.crashtest.verdict import Coverage, Group, Result, Summary, summarise

Tell = Callable[[str, str], None]
"""A function that reports progress; it gets `run` or `done` and a sentence on the run that begins or has ended."""


def silent(_what: str, _text: str) -> None:
    """Report no progress."""


class Extent(NamedTuple):
    """What a complete test would try."""

    points: int
    """The number of points of the run without a crash."""
    pairs: int
    """The number of pairs of a point and another one in the recovery from it."""
    directed: frozenset[str] = frozenset()
    """The ids of the pairs that a complete test tries."""
    selected: bool = False
    """Whether the user selected single runs with `--only`."""


class Ledger:
    """The results of a test and its time budget. The time begins when the ledger is created."""

    def __init__(self, budget: float, tell: Tell) -> None:
        """Start the clock; `budget` is the number of seconds for all runs."""
        self.budget, self.tell = budget, tell
        self.results: list[Result] = []
        self.planned = 0
        self.side_by_side = 1
        """The number of runs made in parallel."""
        self._under_way: set[str] = set()
        """The ids of runs that have begun and have no result yet."""
        self.total = 0
        """The estimated number of runs, including the one without a crash."""
        self._begun = time.monotonic()

    def is_over(self) -> bool:
        """Return whether the time budget is spent."""
        return time.monotonic() - self._begun > self.budget

    def seconds_left(self) -> float:
        """Return the seconds that are left of the budget."""
        return max(self.budget - (time.monotonic() - self._begun), 0.0)

    def progress(self, job: Job) -> str:
        """Return as text the number of the run that begins, the number of all runs, and the estimated seconds left."""
        runs = [each for each in self.results if each.group is not Group.SEEING]
        number = len(runs) + len(self._under_way - {job.id}) + 1
        total = max(self.total, number)
        mean = sum(each.seconds for each in runs) / len(runs) if runs else 0.0
        left = mean * (total - number + 1) / self.side_by_side
        left = min(left, self.seconds_left())
        return f"run {number} of {total}, about {left:.0f} s left"

    def begin(self, job: Job) -> None:
        """Report that a run begins."""
        self.tell("run", f"{self.progress(job)}: {job.title}")
        self._under_way.add(job.id)

    def skip(self, job: Job) -> Result:
        """Return and keep the result of a job that had no time left to run."""
        budget = f"{self.budget:.0f} s were over"
        return self.keep(replace(unknown(job, f"not run: {budget} (--seconds allows more)"), skipped=True))

    def keep(self, result: Result) -> Result:
        """Keep the result of a run and report it."""
        self.results.append(result)
        self._under_way.discard(result.id)
        violated = ", ".join(result.violated)
        self.tell("done", f"{result.guarantee}{f' ({violated})' if violated else ''}: {result.title}")
        return result

    def summary(self, extent: Extent, unjudged: Sequence[str] = ()) -> Summary:
        """Return the summary of all results. `unjudged` are the axes that this kind of test cannot judge."""
        hit = sum(not each.unknown for each in self.results if each.group not in (Group.HEALTHY, Group.SEEING))
        proven = [each for each in self.results if not each.unknown]
        groups = [each.group for each in proven]
        coverage = Coverage(
            extent.points,
            extent.pairs,
            self.planned,
            hit,
            groups.count(Group.CRASH),
            groups.count(Group.PAIR),
            len(extent.directed),
            len(extent.directed & {each.id for each in proven}),
            extent.selected,
        )
        return summarise(self.results, coverage, unjudged)
