"""Exercises of notebook 09: a half visible transaction, and whose offsets count."""

from labkit.teach.exercises.constants import Prediction, Statements
from labkit.teach.exercises.contract import Exercise, Kind, Level, Plain, Variant
from labkit.teach.exercises.visibility import judge_visible
from labkit.teach.study import replay

NOTEBOOK = "09_kafka"


def _half_visible(_variant: Variant) -> tuple[dict[str, Plain], str | None]:
    walk = replay("kafka_log.half_visible")
    down, end = walk.until("poll_committed(0)").verdict.rows, walk.verdict.rows
    told: dict[str, Plain] = {"records_while_down": down, "records_in_the_end": end}
    return told, str(walk.trace)


PREDICTION = Prediction("predicted_09", {"records_while_down": int, "records_in_the_end": int}, _half_visible)

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
        task="A committed transaction has a record in each of two partitions, and the coordinator "
        "dies when one of them "
        "has its marker. How many records does a reader at read_committed get then, and how many in the end?",
        hints=("Which partition's last stable offset has moved?", "Is the commit in the coordinator's log?"),
        lines=1,
        public=(Variant("kafka_log.half_visible"),),
        judge=PREDICTION.judge,
    ),
    Exercise(
        name="09-visible",
        notebook=NOTEBOOK,
        title="what a reader gets",
        kind=Kind.COMPLETE,
        level=Level.MEDIUM,
        points=4,
        answer="visible",
        task="visible(log) gives the offsets that a reader at read_committed gets from a partition with this log.",
        hints=(
            "Two questions for each record: is its transaction still open, and how did it end?",
            "A name is used again: the next marker of that name behind a record is the one that counts for it.",
            "Stop at the first record whose transaction is open.",
        ),
        lines=9,
        public=(
            Variant("one writer", (("names", ("a",)), ("length", 5))),
            Variant("two writers", (("names", ("a", "b")), ("length", 4))),
        ),
        judge=judge_visible,
        withheld=(
            "labkit.sim.models.kafka_log.log",
            "labkit.sim.models.kafka_log.readers",
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
        task="A job with checkpoints copies from Kafka to Kafka. Its consumer group is deleted, and "
        "the job crashes. What "
        "happens at its restart?",
        hints=("Which offsets did the job look at when it started again?", "Look at the four copies above."),
        lines=1,
        public=(Variant("statements"),),
        judge=STATEMENTS.judge,
    ),
)
