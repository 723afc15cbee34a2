"""Exercises of notebook 07: a sink that survives on real Spark, and a text for a person to read."""

from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from labkit.core.errors import InvalidInput
from labkit.core.failpoints import Order
from labkit.core.strategies import POINTS, Strategy, orders
from labkit.runs.lifecycle import crash_each
from labkit.runs.outcome import Outcome
from labkit.runs.progress import silent
from labkit.teach.exercises.asking import Unusable
from labkit.teach.exercises.constants import Chosen, Text, named_values, said
from labkit.teach.exercises.contract import Answer, Exercise, Finding, Kind, Level, Variant

NOTEBOOK = "07_crash_spark"
CHOSEN = {
    "sink": tuple(each.value for each in Strategy),
    "store": ("files", "sqlite"),
    "order": ("engine", "decision", None),
}


def judge_sink(answer: Answer, variant: Variant) -> Finding:
    """A real run, killed by SIGKILL at the variant's failpoint. Raises a `LabError` when the run itself failed."""
    [finding] = judge_sinks(answer, [variant])
    return finding


def judge_sinks(answer: Answer, variants: Sequence[Variant]) -> list[Finding]:
    """A real run for each variant, all in drivers that they share. Raises a `LabError` when one of the runs failed."""
    try:
        chosen = named_values("sink_settings", answer.value(), CHOSEN)
        points = [_point(chosen, variant["point"]) for variant in variants]
        places = [f"{point}@{variant['batch']}" for point, variant in zip(points, variants, strict=True)]
        found = _run(chosen, places, [int(variant["records_per_batch"]) for variant in variants])
    except (Unusable, InvalidInput) as error:
        refused = Finding(False, str(error), general="These settings do not go together.")
        return [refused] * len(variants)
    return [_finding(chosen, place, outcome, seen) for place, (outcome, seen) in zip(places, found, strict=True)]


def _finding(chosen: Chosen, place: str, found: Outcome, seen: str) -> Finding:
    at = f"With {said(chosen)}, killed at {place}"
    if found.verdict.guarantee != "exactly-once":
        general = f"With {said(chosen)}, killed once more: {found.verdict.guarantee}."
        message = f"{at}: {found.verdict.guarantee}. {found.verdict.because}."
        return Finding(False, message, seen, "exactly-once", general=general)
    if found.verdict.regression:
        back = found.verdict.regression[0]
        message = f"{at}: a reader saw a value jump back, at offset {back}."
        general = f"With {said(chosen)}, killed once more, a reader saw a value jump back."
        return Finding(False, message, seen, "no value jumps back", general=general)
    message = f"{at}: exactly-once, and no value jumped back. Seen: {seen}."
    return Finding(True, message, seen)


def _point(chosen: Chosen, wanted: str) -> str:
    """The variant's failpoint, or the last that this sink has before it: a sink that commits at once has fewer."""
    strategy = Strategy(chosen["sink"])
    possible = [each.value for each in orders(strategy)]
    order = chosen["order"] or possible[0]
    if order not in possible:
        raise InvalidInput(f'{strategy} takes the order {" or ".join(possible)}, or None; it is "{order}".')
    known = [each.value for each in POINTS[strategy, Order(order)]]
    return wanted if wanted in known else "sink.after_pre_commit"


def _run(chosen: Chosen, places: Sequence[str], records: Sequence[int]) -> list[tuple[Outcome, str]]:
    """The outcomes, each with what a reader could have seen: their folders are gone afterwards."""
    order = None if chosen["order"] in (None, "none") else chosen["order"]
    cases = {
        str(number): {
            "at": place,
            "sink": chosen["sink"],
            "store": chosen["store"],
            "order": order,
            "records_per_batch": count,
        }
        for number, (place, count) in enumerate(zip(places, records, strict=True))
    }
    with TemporaryDirectory(prefix="labkit-exercise-") as folder:
        found = crash_each(cases, folder=Path(folder) / "runs", tell=silent)
        return [(outcome, outcome.seen) for outcome in found.values()]


TEXT = Text("why_text")

EXERCISES = (
    Exercise(
        name="07-sink",
        notebook=NOTEBOOK,
        title="a sink that survives",
        kind=Kind.CONFIGURE,
        level=Level.MEDIUM,
        points=4,
        answer="sink_settings",
        task="Choose sink, store and order so that real Spark, killed when the sink has committed, "
        "gives exactly-once and shows no value that jumps back.",
        hints=(
            "Without commits/0 the batch runs again. Which sinks know that it is there?",
            (
                "In commit-then-log order two_phase does not. In log-then-commit order commits/0 is on disk before any "
                "commit, so the batch does not run again."
            ),
        ),
        lines=1,
        public=(
            Variant(
                "committed, not noted", (("point", "sink.after_commit"), ("batch", 0), ("records_per_batch", 1_000))
            ),
        ),
        judge=judge_sink,
        needs_spark=True,
        judge_together=judge_sinks,
    ),
    Exercise(
        name="07-why",
        notebook=NOTEBOOK,
        title="explain it to a colleague",
        kind=Kind.EXPLAIN,
        level=Level.MEDIUM,
        points=3,
        answer="why_text",
        task="In three to six sentences: why can an idempotent sink be exactly-once in the end and still show a value "
        "that jumps back, and for whom does that matter?",
        hints=(
            "Name the moment of the crash, and what the reader has seen by then.",
            "Who reads a table only at the end of the day, and who reads it all the time?",
        ),
        lines=4,
        public=(Variant("a text"),),
        judge=TEXT.judge,
        by_hand=True,
    ),
)
