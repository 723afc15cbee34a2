"""A run whose last driver has ended, made without Spark: its store is filled by hand."""

from pathlib import Path

from labkit.core.records import Observation
from labkit.runs.layout import RunFolder
from labkit.runs.run import Run
from labkit.runs.scenario import plan
from labkit.stores import open_store

ROWS = [Observation(0, "hello", 1, 0, 1), Observation(1, "world", 1, 0, 1), Observation(2, "hello", 2, 0, 1)]
CRASH = {
    "point": "sink.mid_write",
    "batch": 0,
    "signal": 9,
    "killed": [1],
    "files": ["offsets/0"],
    "offset_log": [0],
    "commit_log": [],
}


def ended(folder: Path, rows: list[Observation] = ROWS, **options: object) -> Run:
    """A run whose last driver has ended, with these rows in its store."""
    there = RunFolder(folder)
    store = open_store("files", there.store("files"))
    for row in rows:
        store.append(row)
    store.close()
    return Run(
        plan(crashes=["sink.mid_write@0"], **options),
        there,
        drivers=2,
        crashes=[dict(CRASH)],
        readings=[("crash 1", 1)],
        ended=True,
    )
