"""The jobs of a test: the runs to perform, each with an id, a title, a group and its crash points."""

from typing import NamedTuple

from labkit.crashtest.instrument.effects import Point
from labkit.crashtest.points import Pair
from labkit.crashtest.verdict import Group, Result

NEVER_REACHED = "the point was never reached"
"""The beginning of the reason why a run proves nothing if its job ended without reaching the crash point."""


class Job(NamedTuple):
    """The description of one run that a test is to perform."""

    id: str
    title: str
    group: Group
    points: tuple[Point, ...] = ()


def unknown(job: Job, why: str) -> Result:
    """Return the result of a job whose run proves nothing; `why` is the reason."""
    return Result(job.id, job.title, job.group, job.points, unknown=why)


def pair_job(pair: Pair) -> Job:
    """Return the job of a run with a crash, and a second crash during its recovery or in the batch after it."""
    when = "in the recovery" if pair.second.batch == pair.first.batch else "after the recovery"
    return Job(pair.id, f"{pair.first}; then, {when}, {pair.second}", Group.PAIR, (pair.first, pair.second))
