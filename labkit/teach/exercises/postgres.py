"""The exercises of notebook 08: a crash between two commits, orphaned transactions, and who may finish them."""

from labkit.core.extras import require
from labkit.teach.exercises.constants import Prediction
from labkit.teach.exercises.contract import Answer, Finding, Variant, by, variant
from labkit.teach.study import replay

FIVE = (
    "pipeline~1~order.decision~store.postgres~words.hello-world-hello-world-world~~start-1.resolved-0.plan-0."
    "insert-1.insert-3.insert-4.prepare-1.insert-0.insert-2.prepare-2.store_handles-0.log_commit-0.notify-0."
    "notified_commit-1.crash.start-2.commit-1.commit-2.resolved-0.finish.end"
)
"""A trace with one decided batch of five words: the task that holds `world` commits, and then the driver dies,
before the other task's transaction commits.
"""

PREDICTION = Prediction(
    "predicted_08",
    lambda: replay(FIVE),
    {
        "rows_while_down": lambda walk: walk.until("crash").verdict.rows,
        "rows_in_the_end": lambda walk: walk.verdict.rows,
    },
)


def judge_orphans(answer: Answer, variant: Variant) -> Finding:
    """Check a learner's SQL that finishes orphaned prepared transactions, on a real PostgreSQL.

    Raises `MissingExtra` if psycopg is not installed, and `ServiceUnavailable` if no server can be started or set
    up.
    """
    require("psycopg")
    from labkit.teach.exercises import orphans

    return orphans.judge_orphans(answer, variant)


JUDGES = {
    "08-predict": by(PREDICTION.judge, variant("two_phase, sink.mid_commit (simulated)")),
    "08-finish": by(
        judge_orphans,
        variant("two jobs", job="counts", decided=7, prepared=("counts/6/0", "counts/7/0", "counts/8/0", "sales/7/0")),
        variant("nothing was decided", job="counts", decided=-1, prepared=("counts/0/0", "counts/0/1", "sales/0/0")),
        variant("ten batches", job="counts", decided=9, prepared=("counts/9/0", "counts/10/0", "transfer-north")),
        variant(
            "names alike",
            job="day_1",
            decided=3,
            prepared=("day_1/3/0", "day_11/3/0", "dayx1/4/0"),
            elsewhere=("day_1/2/0",),
        ),
        variant("a quote", job="o'clock", decided=3, prepared=("o'clock/3/0", "o'clock/4/0")),
        variant(
            "a name in other letters, and with blanks",
            job="counts",
            decided=3,
            prepared=("counts/3/0", "Counts/3/0", "counts /4/0", " counts/4/0"),
        ),
        variant(
            "signs in the name",
            job="a.b 1% $$",
            decided=3,
            prepared=("a.b 1% $$/3/0", "a.b 1% $$/4/0", "axb 1% $$/3/0", "a.b 1 of % $$/3/0"),
        ),
    ),
}
