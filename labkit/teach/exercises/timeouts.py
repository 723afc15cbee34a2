"""The exercise of notebook 09b: how long a transaction must be allowed to stay open."""

from collections.abc import Sequence
from functools import cache

from labkit.sim.explore import Violation, explore
from labkit.sim.models.kafka_log.timeouts import longest_open
from labkit.sim.trace import make
from labkit.teach.exercises.asking import Asker, Unusable
from labkit.teach.exercises.contract import Answer, Finding, Variant, by, variant
from labkit.teach.exercises.searching import Cases, by_parameter, steady, unusable

TICKS = ("interval", "checkpoint", "tolerated", "downtime")
LONGEST = 20
"""The longest timeout, in ticks, that the simulator accepts; the variants need much shorter ones."""
KEEPS, LOSES = "No schedule loses a record.", "With one of the answers a record can be lost."
NO_LONGER, TOO_LONG = "At most twice the time needed.", "One of the answers is more than twice as long as needed."


def _ticks(ask: Asker, job: Sequence[int]) -> int:
    ticks = ask(*job)
    if type(ticks) is not int or not ticks >= 1:
        raise ask.unusable("a whole number of ticks (steps of the clock), 1 or more", *job)
    return ticks


def _wrong_for_long(ask: Asker, job: Sequence[int]) -> Finding | None:
    """Check a timeout for a job too large to simulate, by a formula that the simulations of smaller jobs confirm."""
    interval, checkpoint, tolerated, downtime, pause = job
    ticks, most = _ticks(ask, job), longest_open(max(interval, checkpoint + pause), checkpoint, tolerated, downtime)
    statement = f"{ask.with_answer(*job)}, and a transaction of this job can be open for {most} ticks"
    if ticks <= most:
        return Finding(False, f"{statement}: a record can be lost.", statement, KEEPS, general=LOSES)
    if ticks > 2 * (most + 1):
        message = f"{statement}: a timeout of less than half would lose nothing either."
        return Finding(False, message, statement, NO_LONGER, general=TOO_LONG)
    return None


LONG_JOBS = Cases(
    "transaction_timeout",
    lambda variant: variant["jobs"],
    _wrong_for_long,
    "The answers for {} longer jobs are long enough, and none is twice too long",
)


def judge_small(answer: Answer, variant: Variant) -> Finding:
    """Check a learner's transaction timeout in every schedule of a simulated job with Kafka transactions."""
    ask, job = Asker(answer, "transaction_timeout"), tuple(int(variant[name]) for name in TICKS)
    try:
        ticks = _ticks(ask, (*job, 0))
    except Unusable as error:
        return unusable(ask.name, error)
    statement = ask.with_answer(*job, 0)
    if loss := _loss(job, min(ticks, LONGEST)):
        at = len(loss.trace.actions)
        message = f"{statement}, and with that a record can be lost: {loss.because}"
        return Finding(False, message, loss.because, KEEPS, str(loss.trace), at, LOSES)
    less_than_half = (ticks - 1) // 2
    if less_than_half and not _loss(job, min(less_than_half, LONGEST)):
        message = (
            f"{statement}, and {less_than_half} loses nothing either: "
            "readers of a hung transaction wait longer than they must."
        )
        return Finding(False, message, statement, NO_LONGER, general=TOO_LONG)
    return steady(ask, f"No schedule loses a record: {statement}")


@cache
def _loss(job: tuple[int, ...], ticks: int) -> Violation | None:
    interval, checkpoint, tolerated, downtime = job
    parameters = {
        "partitions": 1,
        "records": 2 if checkpoint > interval else 1,  # only a checkpoint with a record delays the next one
        "isolation": "read_committed",
        "interval": interval,
        "checkpoint_timeout": checkpoint,
        "lapses": tolerated,
        "crashes": 1 if downtime else 0,
        "downtime": downtime or 1,
        "timeout": ticks,
        "ticks": longest_open(interval, checkpoint, tolerated, downtime) + 2,
    }
    search = explore(make("kafka_log", parameters))
    return next((each for each in search.violations if each.property == "no_loss"), None)


JUDGES = {
    "09b-timeout": by(
        by_parameter(judge_small, jobs=LONG_JOBS.judge),
        variant("nothing fails", interval=2, checkpoint=1, tolerated=0, downtime=0),
        variant("the job may be down", interval=2, checkpoint=1, tolerated=0, downtime=2),
        variant("a checkpoint may take long", interval=1, checkpoint=3, tolerated=0, downtime=0),
        variant("a checkpoint may expire", interval=1, checkpoint=1, tolerated=1, downtime=0),
        variant("jobs with longer times", jobs=((10, 25, 2, 0, 0), (30, 10, 0, 60, 0), (7, 3, 3, 20, 0))),
        variant("jobs with a pause", jobs=((12, 4, 0, 0, 20), (40, 10, 0, 0, 5), (6, 9, 2, 30, 8))),
        variant("jobs of any size", jobs=((5, 2, 1_100, 3, 0), (5, 2, 1, 2**60 + 1, 0), (2**60 + 1, 2, 0, 0, 0))),
    )
}
