"""Keeps the jobs and results of one test, the number of runs still to come, and the time that is left."""

import time
from collections import Counter
from collections.abc import Callable, Collection
from dataclasses import replace
from typing import Any, NamedTuple

from labkit.core.judge import Guarantee
from labkit.crashtest.verdict import Coverage, Group, Result

COUNTED = {each for each in Group if not each.is_apart} - {Group.HEALTHY, Group.SEEING}
"""The kinds of runs that count toward the guarantee, except the run without a crash."""

ABOUT, AT_LEAST, EXACT = "about ", "at least ", ""
"""How sure the number of runs is: before the restarts have shown further crashes, then while more runs may follow."""

Tell = Callable[[str, str], None]
"""Reports progress; its arguments are `run` or `done`, and a sentence on the run that begins or ended."""


def silent(_what: str, _text: str) -> None:
    """Ignore a progress message."""


class Job(NamedTuple):
    """One run that a crash test is to make: its id, its title, its kind, and the function that performs it."""

    id: str
    title: str
    group: Group
    perform: Callable[[Any, Any], None] | None = None
    """Performs the run, given the harness and the record of the run (`labkit.crashtest.blackbox.runs`).

    None for a doubt whether the test saw every write, which needs no run, and for a power cut, which needs several.
    """
    fault: str = ""
    """The kind of fault that a call suffers in the run; empty for a run without one."""
    crashes: tuple[Any, ...] = ()
    """The crash points of the run in order (`labkit.crashtest.blackbox.points`), if the run is named after them."""


def unknown(job: Job, why: str) -> Result:
    """Return the result of a run that proves nothing; `why` is the reason."""
    return Result(job.id, job.title, job.group, unknown=why)


class Ledger:
    """Collects the results of one crash test, and watches its time budget."""

    def __init__(self, budget: float, tell: Tell) -> None:
        """Start the clock. All runs together may take `budget` seconds; `tell` is called with each progress message."""
        self.budget, self.tell = budget, tell
        self.results: list[Result] = []
        self.planned = 0
        self.side_by_side = 1
        """The number of runs that go on in parallel."""
        self._numbers: dict[str, int] = {}
        """The running number of each run that has begun, by id; the run without a crash, number 1, is not listed."""
        self.total = 0
        """The number of runs, including the one without a crash; `sureness` says how sure this number is."""
        self.sureness = ABOUT
        self._begun = time.monotonic()

    @property
    def begun(self) -> int:
        """The number of runs that have begun, of every kind, besides the run without a crash."""
        return len(self._numbers)

    def is_over(self) -> bool:
        """Return whether the time budget is used up."""
        return time.monotonic() - self._begun > self.budget

    def progress(self, job: Job) -> str:
        """Return how far the test is, such as "run 3 of at least 20, at least 95 s left"; at first without a time."""
        number = self._numbers.setdefault(job.id, len(self._numbers) + 2)
        total = max(self.total, number)
        place = f"run {number} of {self.sureness}{total}"
        # The run without a crash takes several times as long as others, because its reader is called at every effect.
        alike = [each.seconds for each in self.results if each.group not in (Group.HEALTHY, Group.SEEING)]
        if not alike:
            return place
        budget_left = max(self.budget - (time.monotonic() - self._begun), 0.0)
        left = sum(alike) / len(alike) * (total - number + 1) / self.side_by_side
        time_left = f"{self.sureness or ABOUT}{left:.0f}" if left < budget_left else f"{ABOUT}{budget_left:.0f}"
        return f"{place}, {time_left} s left"

    def plan(self, job: Job) -> None:
        """Count `job` as a planned run if it counts toward the guarantee."""
        self.planned += job.group in COUNTED

    def forget_unmade(self) -> None:
        """Count as planned only the runs that have a result, because the test was stopped."""
        self.planned = sum(each.group in COUNTED for each in self.results)

    def begin(self, job: Job) -> None:
        """Send a progress message that the run `job` begins."""
        self.tell("run", f"{self.progress(job)}: {job.title}")

    def skip(self, job: Job) -> Result:
        """Store and return the result of a run that was left out because the time budget was used up."""
        why = f"not run: the {self.budget:.0f} s for all runs were used up (--seconds allows more)"
        return self.keep(replace(unknown(job, why), skipped=True))

    def keep(self, result: Result) -> Result:
        """Store the result of a run, send it as a progress message, and return it."""
        self.results.append(result)
        violated = ", ".join(result.violated)
        # One run with nothing wrong is no guarantee, so it is not called exactly-once.
        is_right = result.guarantee is Guarantee.EXACTLY_ONCE and not violated
        word = "not run" if result.skipped else "nothing wrong" if is_right else result.guarantee
        if result.stuck:
            word, violated = "stuck", ""
        self.tell("done", f"{word}{f' ({violated})' if violated else ''}: {result.title}")
        return result

    def coverage(self, pairs: Collection[str], directed: Collection[str], found: int) -> Coverage:
        """Return how much of the crash test has been tried.

        `found` is the number of crash points. `pairs` are the ids of all possible runs with a second crash. `directed`
        are the ids of the runs, such as crash loops, that a complete test needs in addition to runs with one crash.
        """
        proven = {each.id: each.group for each in self.results if not each.unknown}
        groups = Counter(proven.values())
        # A pair that was tried counts as possible even if a later look at the recoveries does not show it.
        possible = {*pairs, *(name for name, group in proven.items() if group is Group.PAIR)}
        return Coverage(
            found=found,
            pairs=len(possible),
            planned=self.planned,
            hit=sum(not each.unknown for each in self.results if each.group in COUNTED),
            tried=groups[Group.CRASH],
            pairs_tried=groups[Group.PAIR],
            directed=len(directed),
            directed_tried=len(proven.keys() & set(directed)),
        )
