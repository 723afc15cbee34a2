"""The exercises of notebook 07: a sink that survives a crash of real Spark, and a text for a person to read."""

from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from labkit.core.errors import InvalidInput
from labkit.core.failpoints import Order
from labkit.core.strategies import POINTS, Strategy, orders
from labkit.runs.crash import crash_each
from labkit.runs.outcome import Outcome
from labkit.runs.progress import silent
from labkit.teach.exercises.asking import Unusable
from labkit.teach.exercises.constants import Chosen, named_values, settings_text
from labkit.teach.exercises.contract import Answer, Finding, Variant, by, variant

CHOSEN = {
    "sink": tuple(each.value for each in Strategy),
    "store": ("files", "sqlite"),
    "order": ("engine", "decision", None),
}


def judge_sink(answer: Answer, variant: Variant) -> Finding:
    """Check a learner's sink settings in one real Spark run, as `judge_sinks` does."""
    [finding] = judge_sinks(answer, [variant])
    return finding


def judge_sinks(answer: Answer, variants: Sequence[Variant]) -> list[Finding]:
    """Check a learner's sink settings in one real Spark run for each configuration in `variants`.

    Returns one result for each run, in the order of `variants`. A configuration has the failpoint and batch of the
    SIGKILL, and the number of records per batch. The runs reuse Spark drivers, to save time. Raises a `LabError` if one
    of the runs fails.
    """
    try:
        chosen = named_values("sink_settings", answer.value(), CHOSEN)
        points = [_point(chosen, variant["point"]) for variant in variants]
        places = [f"{point}@{variant['batch']}" for point, variant in zip(points, variants, strict=True)]
        outcomes = _run(chosen, places, [int(variant["records_per_batch"]) for variant in variants])
    except (Unusable, InvalidInput) as error:
        refused = Finding(False, str(error), general="These settings cannot be combined.")
        return [refused] * len(variants)
    return [_finding(chosen, place, outcome, seen) for place, (outcome, seen) in zip(places, outcomes, strict=True)]


def _finding(chosen: Chosen, place: str, outcome: Outcome, seen: str) -> Finding:
    at = f"With {settings_text(chosen)}, killed at {place}"
    if outcome.verdict.guarantee != "exactly-once":
        general = f"With {settings_text(chosen)}, killed at another point: {outcome.verdict.guarantee}."
        message = f"{at}: {outcome.verdict.guarantee}. {outcome.verdict.because}."
        return Finding(False, message, seen, "exactly-once", general=general)
    if outcome.verdict.regression:
        jump = outcome.verdict.regression[0]
        message = f"{at}: a reader saw a value jump back, at offset {jump}."
        general = f"With {settings_text(chosen)}, killed at another point, a reader saw a value jump back."
        return Finding(False, message, seen, "no value jumps back", general=general)
    message = f"{at}: exactly-once, and no value jumped back. Seen: {seen}."
    return Finding(True, message, seen)


def _point(chosen: Chosen, wanted: str) -> str:
    strategy = Strategy(chosen["sink"])
    possible = [each.value for each in orders(strategy)]
    order = chosen["order"] or possible[0]
    if order not in possible:
        raise InvalidInput(
            f'The sink {strategy} cannot write in the order "{order}"; choose {" or ".join(possible)}, or None for the '
            "sink's default order."
        )
    points = [each.value for each in POINTS[strategy, Order(order)]]
    return wanted if wanted in points else "sink.after_pre_commit"


def _run(chosen: Chosen, places: Sequence[str], records: Sequence[int]) -> list[tuple[Outcome, str]]:
    """Kill one Spark run at each failpoint in `places`, and return a pair for each run.

    A pair has the run's outcome, and a text that says what a reader saw. `records` has for each run the number of
    records per batch.
    """
    cases = {
        str(number): {
            "at": place,
            "sink": chosen["sink"],
            "store": chosen["store"],
            "order": chosen["order"],
            "records_per_batch": count,
        }
        for number, (place, count) in enumerate(zip(places, records, strict=True))
    }
    with TemporaryDirectory(prefix="labkit-exercise-") as folder:
        outcomes = crash_each(cases, folder=Path(folder) / "runs", tell=silent)
        # `seen` reads a file of this folder, which is removed afterwards.
        return [(outcome, outcome.seen) for outcome in outcomes.values()]


JUDGES = {
    "07-sink": by(
        judge_sink,
        variant("committed, not noted", point="sink.after_commit", batch=0, records_per_batch=1_000),
        together=judge_sinks,
    )
}
