"""Batches of generated submissions, the command that grades them, and what their records say."""

import json
import os
import random
import sys
from pathlib import Path
from typing import Any

import submitted

from labkit.grading import records
from labkit.grading.batch import Done, run
from labkit.grading.order import Order

SEED = 20
DEADLINE = "2027-01-31T18:00"
ON_TIME, LATE = 1_800_000_000 - 10**7, 1_800_000_000 + 10**7


def generate(folder: Path, count: int) -> None:
    """Submissions that are right, wrong, broken, late, handed in twice, or empty."""
    chance = random.Random(7)
    for number in range(count):
        student = f"student-{number:03}"
        cells = submitted.answers(**{
            name.removeprefix("01-"): source for name, source in submitted.WRONG.items() if chance.random() < 0.3
        })  # fmt: skip
        kind = chance.choice(["right", "shuffled", "raises", "exits", "broken", "late", "twice", "empty"])
        if kind == "shuffled":
            chance.shuffle(cells)
        elif kind == "raises":
            cells.insert(chance.randrange(4), "1 / 0")
        elif kind == "exits":
            cells.insert(0, "import os\nos._exit(3)")
        elif kind == "empty":
            cells = []
        path = submitted.hand_in(folder, student, cells)
        if kind == "broken":
            path.write_text(path.read_text()[: chance.randrange(50, 400)])
        if kind == "twice":
            newer = path.with_name("01_sample (1).ipynb")
            newer.write_text(submitted.notebook(*submitted.answers()))
            os.utime(newer, (ON_TIME + 60, ON_TIME + 60))
        os.utime(path, (LATE, LATE) if kind == "late" else (ON_TIME, ON_TIME))


def graded(folder: Path, *, course: Path | None = submitted.COURSE, **more: Any) -> Done:
    """Grades what was handed in in the folder `in` of this folder, into its folder `out`."""
    return run(Order([folder / "in"], folder / "out", course, **more), lambda *_: None)


def record_path(out: Path, student: str, notebook: str = submitted.NOTEBOOK) -> Path:
    """Where a batch keeps the record of a student's notebook."""
    return out / "records" / f"{records.file_name(student, notebook)}.json"


def record_of(out: Path, student: str, notebook: str = submitted.NOTEBOOK) -> records.Record:
    """The record of a student's notebook."""
    found = records.read(record_path(out, student, notebook))
    assert found is not None
    return found


def command(given: Path, out: Path) -> list[str]:
    return [
        *(sys.executable, "-m", "labkit", "grade", str(given), "--out", str(out), "--course", str(submitted.COURSE)),
        *("--seed", str(SEED), "--deadline", DEADLINE, "--json"),
    ]


def grades(out: Path) -> dict[str, object]:
    """Everything of the records that must not depend on when they were made."""
    found = {}
    for path in (out / "records").glob("*.json"):
        plain = json.loads(path.read_text())
        del plain["seconds"]
        for item in plain["items"]:
            del item["seconds"]
        found[path.name] = plain
    return found
