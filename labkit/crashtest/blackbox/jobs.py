"""The jobs of a pipeline's test: a crash, a second crash, and a loss of power."""

from labkit.crashtest.blackbox.outage import POWER
from labkit.crashtest.blackbox.points import Pair, Point
from labkit.crashtest.jobs import Job
from labkit.crashtest.verdict import Group

LATER = "later"
"""The name of the run with one more start after the recovery from a crash at the command's end."""


def later_job() -> Job:
    """Return the job of a plain start after the recovery."""
    return Job(LATER, "a plain start after the recovery from a crash at the end of the command", Group.IDENTITY)


def single_job(point: Point) -> Job:
    """Return the job of one crash."""
    return Job(point.name, str(point), Group.CRASH)


def pair_job(pair: Pair) -> Job:
    """Return the job of a crash and a second one during its recovery."""
    title = f"{pair.first}; then, in the recovery, {pair.second}"
    return Job(pair.name, title, Group.PAIR)


def outage_job(point: Point) -> Job:
    """Return the job of a loss of power."""
    return Job(f"{POWER}{point.name}", f"the power fails {point}", Group.POWER)
