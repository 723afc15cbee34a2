"""Exercises of notebook 08: a crash between two commits, the orphans of one job, and who may end an orphan."""

from labkit.teach.exercises.constants import Prediction, Statements
from labkit.teach.exercises.contract import Exercise, Kind, Level, Plain, Variant
from labkit.teach.exercises.orphans import judge_orphans
from labkit.teach.study import replay

NOTEBOOK = "08_postgres"


FIVE = (
    "pipeline~1~order.decision~store.postgres~words.hello-world-hello-world-world~~start-1.resolved-0.plan-0."
    "insert-1.insert-3.insert-4.prepare-1.insert-0.insert-2.prepare-2.store_handles-0.log_commit-0.notify-0."
    "notified_commit-1.crash.start-2.commit-1.commit-2.resolved-0.finish.end"
)
"""Five words in one batch, decided; the task with world commits, and the driver dies before the other commit."""


def _half_committed(_variant: Variant) -> tuple[dict[str, Plain], str | None]:
    walk = replay(FIVE)
    down, end = walk.until("crash").verdict.rows, walk.verdict.rows
    told: dict[str, Plain] = {"rows_while_down": down, "rows_in_the_end": end}
    return told, str(walk.trace)


PREDICTION = Prediction("predicted_08", {"rows_while_down": int, "rows_in_the_end": int}, _half_committed)

STATEMENTS = Statements(
    "orphan_answer",
    {
        "a": "Waiting does not help: PostgreSQL never ends a prepared transaction by itself, and its locks and dead "
        "rows stay, also across a restart of the server.",
        "b": "It may have been decided: if commits/N is there, its rows count as written and the job will not write "
        "them again. Whoever rolls it back has lost them.",
        "c": "The job's checkpoint knows which transactions were decided, so recovery commits those and rolls the "
        "others of its query back; that is why recovery runs before the query.",
        "d": "It may never have been decided: then its batch runs again, and its rows are there twice.",
    },
    "c",
)

EXERCISES = (
    Exercise(
        name="08-predict",
        notebook=NOTEBOOK,
        title="a crash between two commits",
        kind=Kind.PREDICT,
        level=Level.EASY,
        points=1,
        answer="predicted_08",
        task="two_phase on PostgreSQL, five records, decided, and killed between the commits of two tasks. How many "
        "rows does a reader find while the job is down, and how many in the end?",
        hints=("Who sees the rows of a prepared transaction?", "Is the batch decided, and does it run again?"),
        lines=1,
        public=(Variant("two_phase, sink.mid_commit (simulated)"),),
        judge=PREDICTION.judge,
    ),
    Exercise(
        name="08-finish",
        notebook=NOTEBOOK,
        title="finish the orphans of one job",
        kind=Kind.COMPLETE,
        level=Level.MEDIUM,
        points=4,
        answer="finish_sql",
        task="finish_sql is one SELECT with one column: the statements with which a restarted job finishes its own "
        "prepared transactions, COMMIT PREPARED up to the batch that was decided last and ROLLBACK PREPARED behind it.",
        hints=(
            (
                'Begin with the query under "Finish the orphan"; name job in its FROM, too: its row '
                "then stands beside each."
            ),
            (
                "CASE WHEN ... THEN ... ELSE ... END chooses the verb; split_part(gid, '/', 2)::int is "
                "the batch, a number."
            ),
        ),
        lines=5,
        public=(
            Variant(
                "two jobs",
                (
                    ("job", "counts"),
                    ("decided", 7),
                    ("prepared", ("counts/6/0", "counts/7/0", "counts/8/0", "sales/7/0")),
                ),
            ),
            Variant(
                "nothing was decided",
                (("job", "counts"), ("decided", -1), ("prepared", ("counts/0/0", "counts/0/1", "sales/0/0"))),
            ),
            Variant(
                "ten batches",
                (("job", "counts"), ("decided", 9), ("prepared", ("counts/9/0", "counts/10/0", "transfer-north"))),
            ),
            Variant(
                "names alike",
                (
                    ("job", "day_1"),
                    ("decided", 3),
                    ("prepared", ("day_1/3/0", "day_11/3/0", "dayx1/4/0")),
                    ("elsewhere", ("day_1/2/0",)),
                ),
            ),
            Variant("a quote", (("job", "o'clock"), ("decided", 3), ("prepared", ("o'clock/3/0", "o'clock/4/0")))),
        ),
        judge=judge_orphans,
    ),
    Exercise(
        name="08-orphan",
        notebook=NOTEBOOK,
        title="an orphan in the morning",
        kind=Kind.EXPLAIN,
        level=Level.MEDIUM,
        points=1,
        answer="orphan_answer",
        task="In the morning pg_prepared_xacts lists a transaction of a job that died at night. What do you do?",
        hints=("Who knows whether it was decided?", "Look at what recovery did in the two runs of two_phase."),
        lines=1,
        public=(Variant("statements"),),
        judge=STATEMENTS.judge,
    ),
)
