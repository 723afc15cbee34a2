"""The jobs of a pipeline's crash test; each job describes one run: a crash, a second crash, or a loss of power."""

from labkit.crashtest.blackbox.outage import POWER
from labkit.crashtest.blackbox.points import LOOP, THEN, Pair, Point
from labkit.crashtest.jobs import Job
from labkit.crashtest.verdict import Group

TWO = "two_instances"
"""The id of the run in which a second instance runs while the first one is held before the effect that first changes
rows.
"""
NEW_INPUT = "new_input"
"""The id of the run in which new input comes after the recovery from a crash."""
LATER = "later"
"""The id of the run that crashes at the command's end, recovers, and then starts the command once more."""


def later_job() -> Job:
    """Return the job that starts the command once more after the recovery from a crash at its end."""
    return Job(LATER, "a plain start after the recovery from a crash at the end of the command", Group.IDENTITY)


def new_input_job(at: Point) -> Job:
    """Return the job in which new input comes after the recovery from a crash at this point."""
    return Job(NEW_INPUT, f"new input after the recovery from a crash {at}", Group.IDENTITY)


def two_instances_job(held: str) -> Job:
    """Return the job with two instances at the same time, one of them held before the effect with the name `held`.

    It shows a condition of the guarantee, since many schedulers never start a second instance.
    """
    return Job(TWO, f"two instances at the same time, one of them held before {held}", Group.CONDITION)


def single_job(point: Point) -> Job:
    """Return the job of a run with one crash, at this point."""
    return Job(point.name, str(point), Group.CRASH)


def pair_job(pair: Pair) -> Job:
    """Return the job of a run with a crash, and a second crash during the recovery from it."""
    title = f"{pair.first}; then, in the recovery, {pair.second}"
    return Job(pair.name, title, Group.PAIR)


def loop_job(point: Point) -> Job:
    """Return the job of a run that crashes several times in a row at the same point, as in a crash loop."""
    return Job(THEN.join([point.name] * LOOP), f"{point}, {LOOP} times in a row", Group.PAIR)


def outage_job(point: Point) -> Job:
    """Return the job of a run in which the power fails at this point."""
    return Job(f"{POWER}{point.name}", f"the power fails {point}", Group.POWER)
