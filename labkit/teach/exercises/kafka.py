"""Exercises of notebook 09: a half visible transaction, how long one may be open, and whose offsets count."""

from collections.abc import Sequence
from functools import cache

from labkit.sim.explore import Violation, explore
from labkit.sim.models.kafka_log.timeouts import longest_open
from labkit.sim.trace import make
from labkit.teach.exercises.asking import Asker, Unusable, shown
from labkit.teach.exercises.constants import Prediction, Statements
from labkit.teach.exercises.contract import (
    Answer,
    Exercise,
    Finding,
    Kind,
    Level,
    Plain,
    Variant,
)
from labkit.teach.exercises.searching import steady, unusable
from labkit.teach.study import replay

NOTEBOOK = "09_kafka"
TICKS = ("interval", "checkpoint", "tolerated", "downtime")
LONGEST = 20
"""Ticks of the longest timeout that the simulator takes; what the variants need is shorter by far."""


def judge_timeout(answer: Answer, variant: Variant) -> Finding:
    """Every schedule of a job that commits Kafka transactions with its checkpoints, with the answered timeout.

    A variant with `jobs` instead has jobs that are too long for a search. They are judged by how long a transaction
    of theirs can be open (`longest_open`), which the searches of small jobs confirm.
    """
    ask = Asker(answer, "transaction_timeout")
    chosen = dict(variant.parameters)
    try:
        if "jobs" in chosen:
            return _judge_long(ask, chosen["jobs"])
        return _judge_small(ask, tuple(int(chosen[name]) for name in TICKS))
    except Unusable as error:
        return unusable(ask.name, error)


def _ticks(ask: Asker, asked: Sequence[int]) -> int:
    """The answered timeout. Raises `Unusable`."""
    ticks = ask(*asked)
    if type(ticks) is not int or not ticks >= 1:
        raise Unusable(
            f"{ask.call(*asked)} returned {shown(ticks)}; return a whole number of ticks, 1 or more."
        )
    return ticks


def _judge_long(ask: Asker, jobs: Sequence[Sequence[int]]) -> Finding:
    for asked in jobs:
        ticks, most = _ticks(ask, asked), int(longest_open(*asked))
        told = f"{ask.told(*asked)}, and a transaction of this job can be open for {most} ticks"
        if ticks <= most:
            return Finding(
                False,
                f"{told}: a record can be lost.",
                told,
                "No schedule loses a record.",
                general="With one of the answers a record can be lost.",
            )
        if ticks // 2 > most:
            return Finding(
                False,
                f"{told}: half of the answer loses nothing either.",
                told,
                "At most twice of what is needed.",
                general="One of the answers is more than twice as long as needed.",
            )
    return steady(
        ask,
        f"The answers for {len(jobs)} longer jobs are long enough, and none is twice too long",
    )


def _judge_small(ask: Asker, asked: tuple[int, ...]) -> Finding:
    ticks = _ticks(ask, asked)
    told = ask.told(*asked)
    if loss := _loss(asked, min(ticks, LONGEST)):
        at = len(loss.trace.actions)
        message = f"{told}, and with that a record can be lost: {loss.because}"
        expected, general = (
            "No schedule loses a record.",
            "With one of the answers a record can be lost.",
        )
        return Finding(
            False, message, loss.because, expected, str(loss.trace), at, general
        )
    if ticks > 1 and not _loss(asked, min(ticks // 2, LONGEST)):
        message = f"{told}, and half of it loses nothing either: readers of a hung transaction wait longer than they must."
        general = "One of the answers is more than twice as long as needed."
        return Finding(
            False, message, told, "At most twice of what is needed.", general=general
        )
    return steady(ask, f"No schedule loses a record: {told}")


@cache
def _loss(asked: tuple[int, ...], ticks: int) -> Violation | None:
    interval, checkpoint, tolerated, downtime = asked
    given = {
        "partitions": 1,
        "records": 2
        if checkpoint > interval
        else 1,  # an earlier checkpoint delays one only if it has a record
        "isolation": "read_committed",
        "interval": interval,
        "checkpoint_timeout": checkpoint,
        "lapses": tolerated,
        "crashes": 1 if downtime else 0,
        "downtime": downtime or 1,
        "timeout": ticks,
        "ticks": longest_open(interval, checkpoint, tolerated, downtime) + 2,
    }
    found = explore(make("kafka_log", given))
    return next((each for each in found.violations if each.property == "no_loss"), None)


def _half_visible(_variant: Variant) -> tuple[dict[str, Plain], str | None]:
    walk = replay("kafka_log.half_visible")
    down, end = walk.until("poll_committed(0)").verdict.rows, walk.verdict.rows
    told: dict[str, Plain] = {"records_while_down": down, "records_in_the_end": end}
    return told, str(walk.trace)


PREDICTION = Prediction(
    "predicted_09",
    {"records_while_down": int, "records_in_the_end": int},
    _half_visible,
)

STATEMENTS = Statements(
    "offsets_answer",
    {
        "a": "It would be so if the job asked the group where to go on. A job that recovers from its checkpoint does "
        "not, which the four copies above show: its offset is in the checkpoint.",
        "b": "The offsets in the checkpoint go with the transactions that it decided. The group's offsets tell a "
        "dashboard how far the job is; falsified or deleted, they change nothing.",
        "c": "A consume-transform-produce loop without a checkpoint must put them there. A job with checkpoints has "
        "them in its checkpoint already.",
        "d": "auto.offset.reset is asked by a consumer that has no offset at all. This job has one, in its checkpoint.",
    },
    "b",
)

EXERCISES = (
    Exercise(
        name="09-predict",
        notebook=NOTEBOOK,
        title="two partitions, one marker",
        kind=Kind.PREDICT,
        level=Level.EASY,
        points=1,
        answer="predicted_09",
        task="A committed transaction has a record in each of two partitions, and the coordinator dies when one of them "
        "has its marker. How many records does a reader at read_committed get then, and how many in the end?",
        hints=(
            "Which partition's last stable offset has moved?",
            "Is the commit in the coordinator's log?",
        ),
        lines=1,
        public=(Variant("kafka_log.half_visible"),),
        judge=PREDICTION.judge,
    ),
    Exercise(
        name="09-timeout",
        notebook=NOTEBOOK,
        title="how long may a transaction be open?",
        kind=Kind.CONFIGURE,
        level=Level.HARD,
        points=4,
        answer="transaction_timeout",
        task="transaction_timeout(interval, checkpoint, tolerated, downtime) gives a timeout, in ticks, with which no "
        "schedule loses a record, and which is at most twice as long as needed.",
        hints=(
            "The clock starts with the first record, and that may come right after a barrier.",
            "An expired checkpoint leaves its transaction to the next, which starts when interval and expiry are over.",
            "Then the job may die before the commit, and be down. At the last tick it is too late.",
        ),
        lines=1,
        public=(
            Variant(
                "nothing fails",
                (("interval", 2), ("checkpoint", 1), ("tolerated", 0), ("downtime", 0)),
            ),
            Variant(
                "the job may be down",
                (("interval", 2), ("checkpoint", 1), ("tolerated", 0), ("downtime", 2)),
            ),
            Variant(
                "a checkpoint may take long",
                (("interval", 1), ("checkpoint", 3), ("tolerated", 0), ("downtime", 0)),
            ),
            Variant(
                "a checkpoint may expire",
                (("interval", 1), ("checkpoint", 1), ("tolerated", 1), ("downtime", 0)),
            ),
            Variant(
                "jobs with longer times",
                (("jobs", ((10, 25, 2, 0), (30, 10, 0, 60), (7, 3, 3, 20))),),
            ),
        ),
        judge=judge_timeout,
        withheld=(
            "labkit.sim.models.kafka_log.timeouts",
            "labkit.sim.models.kafka_log.model",
        ),
    ),
    Exercise(
        name="09-offsets",
        notebook=NOTEBOOK,
        title="whose offsets count",
        kind=Kind.EXPLAIN,
        level=Level.EASY,
        points=1,
        answer="offsets_answer",
        task="A job with checkpoints copies from Kafka to Kafka. Its consumer group is deleted, and the job crashes. What "
        "happens at its restart?",
        hints=(
            "Which offsets did the job look at when it started again?",
            "Look at the four copies above.",
        ),
        lines=1,
        public=(Variant("statements"),),
        judge=STATEMENTS.judge,
    ),
)
