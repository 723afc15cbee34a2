"""What notebooks import: a crash, its verdict, and the checkpoint's own files, in a few names.

Everything that the command line does has its equal here. Nothing here knows a protocol.
"""

from collections.abc import Mapping
from pathlib import Path

from labkit.outcome import (
    Outcome,
    aloud,
    crash,
    crash_each,
    finish,
    fresh_folder,
    in_place,
    judged,
    prepare_checked,
    resumed,
    run_all,
    silent,
    words,
)
from labkit.panel import panel
from labkit.services.doctor import Finding, examine
from labkit.services.java import find_java
from labkit.spark.flight import Tell
from labkit.spark.memory import Life, live
from labkit.spark.run import history
from labkit.spark.runner import PATIENCE
from labkit.study import Prediction, Search, Walk, columns, explore, predict, replay
from labkit.view import charts
from labkit.view.show import explorer, show
from labkit.view.timeline import by_key

__all__ = [
    "Outcome",
    "Prediction",
    "Search",
    "Walk",
    "aloud",
    "columns",
    "crash",
    "crash_each",
    "doctor",
    "explore",
    "explorer",
    "finish",
    "fresh_folder",
    "in_place",
    "judged",
    "memory_sink",
    "panel",
    "predict",
    "prepare_checked",
    "replay",
    "resumed",
    "run_all",
    "seen_over_time",
    "show",
    "silent",
    "table",
    "words",
]


def doctor() -> list[Finding]:
    """What this machine has and lacks, one finding a prerequisite."""
    return examine()


def table(outcomes: Mapping[str, Outcome | Walk], predictions: Mapping[str, str | None] | None = None) -> str:
    """The verdicts of real or simulated runs as lines of text, and beside them what was predicted, if anything was."""
    rows: list[tuple[str, ...]] = [("", "guarantee", "lost", "duplicate", "jumped back", "you said")]
    for name, outcome in outcomes.items():
        verdict, said = outcome.verdict, (predictions or {}).get(name)
        counts = (str(len(found)) for found in (verdict.lost, verdict.duplicate, verdict.regression))
        rows.append((name, verdict.guarantee.value, *counts, said or ""))
    width = None if predictions and any(predictions.values()) else -1
    return columns([row[:width] for row in rows])


def seen_over_time(outcomes: Mapping[str, Outcome], key: str) -> charts.Seen:
    """A figure of what an outside reader could have seen of `key` in each run, and the data that it shows."""
    tracks = {name: by_key(history(outcome.run).events).get(key, []) for name, outcome in outcomes.items()}
    return charts.seen_over_time(tracks, key)


def memory_sink(folder: Path | None = None, *, tell: Tell = in_place, patience: float = PATIENCE) -> list[Life]:
    """Counts the three records into Spark's memory sink without a checkpoint, kills the driver, and does it again.

    Gives for both drivers what could be read inside it, and what was left on disk after its death.
    """
    find_java()
    place = fresh_folder("memory-sink") if folder is None else folder.absolute()
    place.mkdir(parents=True)
    return [live(place, number, tell, patience) for number in (1, 2)]
