"""The runs of a test that are to be made: what each is called, what is done in it, and where it is killed.

This module must not run anything.
"""

from typing import NamedTuple

from labkit.crashtest.instrument.effects import Point
from labkit.crashtest.points import Pair
from labkit.crashtest.verdict import Group, Result


class Job(NamedTuple):
    """One run that is to be made."""

    id: str
    title: str
    group: Group
    points: tuple[Point, ...] = ()


def unknown(job: Job, why: str) -> Result:
    """A run that proves nothing."""
    return Result(job.id, job.title, job.group, job.points, unknown=why)


def pair_job(pair: Pair) -> Job:
    return Job(
        pair.id,
        f"{pair.first}; then, in the recovery, {pair.second}",
        Group.PAIR,
        (pair.first, pair.second),
    )
