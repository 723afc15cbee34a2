"""Exercises of notebook 08: what an orphan holds, and who may end it."""

from labkit.teach.exercises.constants import Prediction, Statements
from labkit.teach.exercises.contract import Exercise, Kind, Level, Plain, Variant
from labkit.teach.study import simulate

NOTEBOOK = "08_postgres"


def _prepared(_variant: Variant) -> tuple[dict[str, Plain], str | None]:
    walk = simulate("sink.after_pre_commit", sink="two_phase", store="postgres")
    down, end = walk.until("crash"), walk.verdict
    return {"rows_while_down": down.verdict.rows, "rows_in_the_end": end.rows}, str(
        walk.trace
    )


PREDICTION = Prediction(
    "predicted_08", {"rows_while_down": int, "rows_in_the_end": int}, _prepared
)

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
        title="prepared, and nobody there",
        kind=Kind.PREDICT,
        level=Level.EASY,
        points=1,
        answer="predicted_08",
        task="two_phase on PostgreSQL, three records, killed between pre-commit and commit. How many rows does a "
        "reader find while the job is down, and how many in the end?",
        hints=("Who sees the rows of a prepared transaction?", "Was anything decided?"),
        lines=1,
        public=(Variant("two_phase, sink.after_pre_commit (simulated)"),),
        judge=PREDICTION.judge,
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
        hints=(
            "Who knows whether it was decided?",
            "Look at what labkit.spark.start does before the query starts.",
        ),
        lines=1,
        public=(Variant("statements"),),
        judge=STATEMENTS.judge,
    ),
)
