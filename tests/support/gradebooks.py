"""Gradebooks for tests, from records as a batch leaves them, so that no test needs a sandbox for one."""

from collections.abc import Mapping
from pathlib import Path

import submitted
from batches import record_path

from labkit.grading import records
from labkit.grading.course import Course, load
from labkit.grading.gradebook import write_book
from labkit.grading.records import Isolation, ItemRecord, Record
from labkit.grading.scoring import Gradebook, Policy

COURSE = load(submitted.COURSE)
TEXT = "Because the table is durable."
ON_TIME, LATE = "2027-01-30T12:00:00+00:00", "2027-02-02T12:00:00+00:00"


def record(key: str, points: Mapping[str, int] | None = None, **more: object) -> Record:
    """What a batch leaves of a submission; right where nothing else is said, its text not read yet."""
    items = []
    for exercise in COURSE.exercises.values():
        item = ItemRecord(exercise.name, exercise.points, code=submitted.RIGHT[exercise.name])
        if exercise.by_hand:
            item.points, item.status, item.written = None, "by hand", TEXT
        else:
            item.points = (points or {}).get(exercise.name, exercise.points)
            item.status = "right" if item.points else "wrong"
            item.public, item.hidden = (1, 1), (3 if item.points else 0, 3)
        items.append(item)
    fields: dict[str, object] = {"student": key, "key": key, "file": f"{key}/01_sample.ipynb", "submitted": ON_TIME}
    fields |= {
        "sha256": key,
        "items": items,
        "course": "sample",
        "notebook": submitted.NOTEBOOK,
        "seed": 1,
        "digest": "d",
        "versions": {},
    }
    fields["isolation"] = Isolation("namespaces")
    return Record(**(fields | more))


def booked(folder: Path, *kept: Record, course: Course = COURSE, **said: object) -> Gradebook:
    (folder / "records").mkdir(parents=True, exist_ok=True)
    (folder / "feedback").mkdir(exist_ok=True)
    for one in kept:
        records.write(one, record_path(folder, one.key, one.notebook))
    return write_book(folder, course, Policy(**said))[1]
