"""What the runs of one test have said so far, how many there are to be, and how much of its time is left."""

import time
from collections.abc import Callable, Sequence

from labkit.crashtest.jobs import Job, unknown
from labkit.crashtest.verdict import Coverage, Group, Result, Summary, summarise

Tell = Callable[[str, str], None]
"""Told the title of a run that begins, or what came out of it, for progress only."""


def silent(_what: str, _said: str) -> None:
    """Tells nobody."""


class Ledger:
    """The results of a test, with its budget of time, which begins now."""

    def __init__(self, budget: float, tell: Tell) -> None:
        """`budget`: seconds for all runs."""
        self.budget, self.tell = budget, tell
        self.results: list[Result] = []
        self.planned = 0
        self.side_by_side = 1
        """How many runs are made at a time."""
        self._under_way: set[str] = set()
        """Runs that have begun and whose results are not in."""
        self.total = 0
        """About how many runs there will be, the one without a crash among them."""
        self._begun = time.monotonic()

    def is_over(self) -> bool:
        """Whether the time is over."""
        return time.monotonic() - self._begun > self.budget

    def seconds_left(self) -> float:
        """What is left of the time."""
        return max(self.budget - (time.monotonic() - self._begun), 0.0)

    def progress(self, job: Job) -> str:
        """Which run begins, of how many, and about how long they will take."""
        runs = [each for each in self.results if each.group is not Group.SEEING]
        number = len(runs) + len(self._under_way - {job.id}) + 1
        total = max(self.total, number)
        mean = sum(each.seconds for each in runs) / len(runs) if runs else 0.0
        left = mean * (total - number + 1) / self.side_by_side
        left = min(left, self.seconds_left())
        return f"run {number} of {total}, about {left:.0f} s left"

    def begin(self, job: Job) -> None:
        """Tells that a run begins."""
        self.tell("run", f"{self.progress(job)}: {job.title}")
        self._under_way.add(job.id)

    def skip(self, job: Job) -> Result:
        """A run for which there is no time."""
        budget = f"{self.budget:.0f} s were over"
        return self.keep(unknown(job, f"not run: {budget} (--seconds gives more)"))

    def keep(self, result: Result) -> Result:
        """Takes in what came out of a run."""
        self.results.append(result)
        self._under_way.discard(result.id)
        violated = ", ".join(result.violated)
        self.tell("done", f"{result.guarantee}{f' ({violated})' if violated else ''}: {result.title}")
        return result

    def summary(self, points: int, pairs: int, unjudged: Sequence[str] = ()) -> Summary:
        """What the runs say together, of a test that has so many points and pairs of points."""
        hit = sum(not each.unknown for each in self.results if each.group not in (Group.HEALTHY, Group.SEEING))
        groups = [each.group for each in self.results if not each.unknown]
        tried, twice = groups.count(Group.CRASH), groups.count(Group.PAIR)
        coverage = Coverage(points, pairs, self.planned, hit, tried, twice)
        return summarise(self.results, coverage, unjudged)
