"""The exercises of notebook 13: how long records wait, the longest interval within all limits, and the cheapest one."""

import statistics
from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from operator import itemgetter
from typing import Any

from labkit.teach.exercises.asking import Asker, Unusable, shown
from labkit.teach.exercises.contract import Finding, Judge, Plain, by, variant
from labkit.teach.exercises.searching import Cases

ARRIVALS = 50
"""The number of arrival times that the judge tries within an interval."""
NEAR = 0.05
"""The largest allowed relative error of a learner's answer for a wait."""
COST_LIMIT = 1.01
"""The factor by which the cost of an answer may exceed the cost of the cheapest interval."""
TRIED = 4_000
"""The number of intervals that the judge tries to find the cheapest one."""


def really_waits(first: Sequence[float], second: Sequence[float]) -> list[float]:
    """Return the median and the longest wait of records that pass through two jobs, one after the other.

    The arrivals of the records are spread evenly over the commit intervals. Each job is `[commit interval, duration of
    a commit]`; all times are in seconds.
    """
    places = [(number + 0.5) / ARRIVALS for number in range(ARRIVALS)]
    commits = first[1] + second[1]
    waits = [first[0] * one + second[0] * other + commits for one in places for other in places]
    return [statistics.median(waits), max(waits)]


def really_longest(job: Mapping[str, int]) -> int | None:
    """Return the longest commit interval, in whole seconds, within the limits of a `job`; None if there is none."""

    def is_too_long(interval: int) -> bool:
        longer = interval + job["commit"]
        return longer > job["latency"] or interval * job["rate"] > job["again"] or longer >= job["timeout"]

    # No interval may be longer than `latency`; and if an interval is too long, so is every longer one.
    return bisect_left(range(1, job["latency"] + 1), True, key=is_too_long) or None


def lost(interval: float, cost: float, between: float) -> float:
    """Return the fraction of its time that a job loses to commits and to work that it repeats after crashes.

    `interval` is the time between two commits, `cost` the duration of a commit, and `between` the time between two
    crashes, all in the same unit. After a crash the job repeats half an interval on average.
    """
    return cost / interval + interval / 2 / between


def cheapest(cost: float, between: float) -> float:
    """Return the smallest fraction of its time that a job can lose, found by trying `TRIED` commit intervals.

    `cost` is the duration of a commit, and `between` the time between two crashes, as in `lost`.
    """
    least, most = cost / 100, between * 100
    step = (most / least) ** (1 / TRIED)
    return min(lost(least * step**number, cost, between) for number in range(TRIED))


def _number(ask: Asker, value: Plain, *arguments: Plain) -> float:
    if type(value) not in (int, float):
        raise Unusable(f"{ask.call(*arguments)} returned {shown(value)}; return a number.")
    assert isinstance(value, int | float)
    return value


def _wrong_wait(ask: Asker, case: Sequence[Sequence[float]]) -> Finding | None:
    jobs: list[Plain] = [list(each) for each in case]
    answer = ask(*jobs)
    if type(answer) is not list or len(answer) != 2:
        raise ask.unusable("a list of two numbers, [typical, longest]", *jobs)
    for name, one, right in zip(("typical", "longest"), answer, really_waits(*case), strict=True):
        if abs(_number(ask, one, *jobs) - right) > NEAR * right:
            statement = f"{ask.with_answer(*jobs)}, but the {name} wait of {ARRIVALS**2:,} arrivals is {right:.2f} s"
            general = f"The {name} wait is wrong for one pair of jobs."
            return Finding(False, f"{statement}.", statement, f"{right:.2f} s", general=general)
    return None


def _wrong_longest(ask: Asker, job: dict[str, Plain]) -> Finding | None:
    answer, right = ask(dict(job)), really_longest(job)  # type: ignore[arg-type]  # the values of a job are whole numbers
    if answer is not None and type(answer) is not int:
        raise ask.unusable("whole seconds, or None", dict(job))
    if answer == right:
        return None
    statement = f"{ask.with_answer(dict(job))}, but the right answer is {right}"
    general = "For one of the jobs the answer is not the longest interval that keeps all limits."
    return Finding(False, f"{statement}.", statement, str(right), general=general)


def _wrong_best(ask: Asker, case: Sequence[float]) -> Finding | None:
    answer, least = _number(ask, ask(*case), *case), cheapest(*case)
    if answer > 0 and lost(answer, *case) <= COST_LIMIT * least:
        return None
    part = f"{100 * lost(answer, *case):.1f} %" if answer > 0 else "everything"
    statement = f"{ask.with_answer(*case)}, which loses {part} of the time; {100 * least:.1f} % is possible"
    general = "For one of the jobs another interval costs clearly less."
    return Finding(False, f"{statement}.", statement, f"{100 * least:.1f} %", general=general)


def job(latency: int, commit: int, rate: int, again: int, timeout: int) -> dict[str, int]:
    """Return a job and its limits as a dict, the argument of the learner's function; times are in seconds.

    A commit takes `commit`, and `rate` records arrive per second. The limits are `latency`, the longest wait of a
    record; `again`, the most records that a crash may repeat; and `timeout`, the transaction timeout.
    """
    return {"latency": latency, "commit": commit, "rate": rate, "again": again, "timeout": timeout}


def _jobs(function: str, wrong: Callable[[Asker, Any], Finding | None]) -> Judge:
    return Cases(function, itemgetter("cases"), wrong, "It is right about {} jobs").judge


JUDGES = {
    "13-wait": by(
        _jobs("waits", _wrong_wait),
        variant("short commits", cases=(((1, 0.2), (2, 0.5)),)),
        variant("a commit that takes long", cases=(((3, 4), (0.5, 2)),)),
        variant("commits that take no time", cases=(((4, 0), (2, 0)), ((6, 0), (90, 0)))),
        variant("very short and very long", cases=(((0.01, 0.002), (0.03, 0.001)), ((700_000, 20), (0.5, 0.1)))),
    ),
    "13-longest": by(
        _jobs("longest", _wrong_longest),
        variant("readers do not wait", cases=(job(12, 2, 5, 900, 600),)),
        variant("little is read again", cases=(job(90, 1, 20, 510, 600),)),
        variant("a short timeout", cases=(job(900, 3, 1, 900, 60),)),
        variant("just possible, and not", cases=(job(3, 2, 1, 9, 60), job(2, 2, 1, 9, 60), job(2, 4, 1, 9, 60))),
        variant("days", cases=(job(200_000, 2, 1, 300_000, 300_000),)),
        variant("very many records", cases=(job(2_000_000, 2, 10**12 + 7, (10**12 + 7) * 1_234_568 - 1, 3_000_000),)),
    ),
    "13-best": by(
        _jobs("best_interval", _wrong_best),
        variant("a crash a day", cases=((0.5, 86_400), (30, 86_400))),
        variant("a crash an hour", cases=((2, 3_600),)),
        variant("a crash every ten seconds", cases=((0.01, 10), (1, 10))),
        variant("very short and very long", cases=((0.000_01, 0.5), (0.002, 800), (3_600, 2_600_000))),
    ),
}
