"""Jobs: the runs that a test is to make, each with its name, its title, its group and its points."""

from typing import NamedTuple

from labkit.crashtest.instrument.effects import Point
from labkit.crashtest.points import Pair
from labkit.crashtest.verdict import Group, Result

NEVER_REACHED = "the point was never reached"
"""The reason why a run proves nothing whose job ended without coming to its crash."""


class Job(NamedTuple):
    """One run to be made."""

    id: str
    title: str
    group: Group
    points: tuple[Point, ...] = ()


def unknown(job: Job, why: str) -> Result:
    """The result of a job that proves nothing, with the reason."""
    return Result(job.id, job.title, job.group, job.points, unknown=why)


def pair_job(pair: Pair) -> Job:
    """The job of a crash, and of a second one during its recovery."""
    return Job(pair.id, f"{pair.first}; then, in the recovery, {pair.second}", Group.PAIR, (pair.first, pair.second))
