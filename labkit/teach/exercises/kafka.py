"""The exercises of notebook 09: a half visible transaction, and the offsets that a reader gets."""

from labkit.teach.exercises.constants import Prediction
from labkit.teach.exercises.contract import Plain, Variant, by, variant
from labkit.teach.exercises.visibility import judge_visible
from labkit.teach.study import replay


def _half_visible(_variant: Variant) -> tuple[dict[str, Plain], str | None]:
    walk = replay("kafka_log.half_visible")
    down, end = walk.until("poll_committed(0)").verdict.rows, walk.verdict.rows
    facts: dict[str, Plain] = {"records_while_down": down, "records_in_the_end": end}
    return facts, str(walk.trace)


PREDICTION = Prediction("predicted_09", {"records_while_down": int, "records_in_the_end": int}, _half_visible)


JUDGES = {
    "09-predict": by(PREDICTION.judge, variant("kafka_log.half_visible")),
    "09-visible": by(
        judge_visible, variant("one writer", names=("a",), length=5), variant("two writers", names=("a", "b"), length=4)
    ),
}
