"""The pages and the table that a batch leaves: grades.csv, a page for each student, a summary for the instructor.

All come from the records, and can be made anew from them at any time. A student's page holds no hidden parameter, no
hidden trace and nothing of another student. This module must not grade.
"""

import csv
import io
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median

from jinja2 import Environment, PackageLoader, StrictUndefined

from labkit.grading import records
from labkit.grading.course import Course
from labkit.grading.records import ItemRecord, Record
from labkit.host import durable
from labkit.teach.exercises.contract import Exercise

_FORMULA = ("=", "+", "-", "@", "\t", "\r")
_COMMON = 5


def write_all(out: Path, course: Course) -> list[Record]:
    """Makes the table and all pages of an output folder; the records that they show."""
    found = [
        record
        for path in sorted((out / "records").glob("*.json"))
        if (record := records.read(path)) is not None
    ]
    notebooks = {record.notebook for record in found}
    asked = [
        exercise
        for exercise in course.exercises.values()
        if exercise.notebook in notebooks
    ]
    students = _by_student(found)
    durable.replace(out / "grades.csv", table(students, asked))
    environment = Environment(
        loader=PackageLoader("labkit.grading", "."),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
    )
    page = environment.get_template("feedback.html.jinja")
    for student, theirs in students.items():
        path = out / "feedback" / f"{records.file_name(student, 'feedback')}.html"
        _replace_changed(path, page.render(**feedback(student, theirs, course)))
    summary = environment.get_template("summary.html.jinja")
    _replace_changed(
        out / "summary.html", summary.render(**overview(found, students, asked, course))
    )
    return found


def _replace_changed(path: Path, text: str) -> None:
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        durable.replace(path, text)


def _by_student(found: Sequence[Record]) -> dict[str, list[Record]]:
    students: dict[str, list[Record]] = {}
    for record in sorted(found, key=lambda record: (record.student, record.notebook)):
        students.setdefault(record.student, []).append(record)
    return students


def table(students: Mapping[str, Sequence[Record]], asked: Sequence[Exercise]) -> str:
    """One row a student, one column an exercise; empty where nobody has graded it yet."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(
        ["student", *(exercise.name for exercise in asked), "total", "late"]
    )
    for student, theirs in students.items():
        items = {item.name: item for record in theirs for item in record.items}
        points = [_points(items.get(exercise.name)) for exercise in asked]
        late = "yes" if any(record.late for record in theirs) else "no"
        writer.writerow(
            [_no_formula(student), *points, records.total(list(theirs)), late]
        )
    return text.getvalue()


def _points(item: ItemRecord | None) -> int | str:
    if item is None:
        return 0
    return "" if item.points is None else item.points


def _no_formula(text: str) -> str:
    """A spreadsheet would compute what begins like a formula."""
    return f"'{text}" if text.startswith(_FORMULA) else text


def feedback(
    student: str, theirs: Sequence[Record], course: Course
) -> dict[str, object]:
    """What a student's page shows."""
    return {
        "student": student,
        "points": records.total(list(theirs)),
        "most": sum(item.most for record in theirs for item in record.items),
        "notebooks": [_notebook(record, course) for record in theirs],
    }


def _notebook(record: Record, course: Course) -> dict[str, object]:
    return {
        "name": record.notebook or "no notebook of the course",
        "file": record.file,
        "late": record.late,
        "submitted": record.submitted,
        "notes": record.notes,
        "items": [
            _item(item, course.exercises.get(item.name)) for item in record.items
        ],
    }


def _item(item: ItemRecord, exercise: Exercise | None) -> dict[str, object]:
    """One exercise as its learner reads of it; of hidden variants only how many were passed and what went wrong."""
    return {
        "name": item.name,
        "title": exercise.title if exercise else item.name,
        "points": "-" if item.points is None else item.points,
        "most": item.most,
        "status": item.status,
        "shown": item.shown,
        "public": item.public,
        "hidden": item.hidden,
        "written": item.written,
    }


def overview(
    found: Sequence[Record],
    students: Mapping[str, Sequence[Record]],
    asked: Sequence[Exercise],
    course: Course,
) -> dict[str, object]:
    """What the instructor's page shows."""
    items: dict[str, list[ItemRecord]] = {exercise.name: [] for exercise in asked}
    for record in found:
        for item in record.items:
            items.setdefault(item.name, []).append(item)
    return {
        "course": course.name,
        "students": len(students),
        "submissions": len(found),
        "late": sum(record.late for record in found),
        "seeds": sorted({record.seed for record in found}),
        "levels": Counter(record.isolation.level for record in found),
        "missing": {
            level: why
            for record in found
            for level, why in record.isolation.missing.items()
        },
        "versions": {
            name: version
            for record in found
            for name, version in record.versions.items()
        },
        "seconds": _times([record.seconds for record in found]),
        "limits": Counter(
            limit for record in found for limit in record.limits_hit
        ).most_common(),
        "not_graded": [record.student for record in found if not record.graded()],
        "items": [
            _distribution(name, all_of_it, course.exercises.get(name))
            for name, all_of_it in items.items()
        ],
        "totals": sorted(
            Counter(
                records.total(list(theirs)) for theirs in students.values()
            ).items(),
            reverse=True,
        ),
        "noted": [
            (record.student, record.notebook, note)
            for record in found
            for note in record.notes
        ],
    }


def _times(seconds: Sequence[float]) -> str:
    if not seconds:
        return "nothing was run"
    return f"median {median(seconds):.1f} s, longest {max(seconds):.1f} s, {sum(seconds):.0f} s in all"


def _distribution(
    name: str, items: Sequence[ItemRecord], exercise: Exercise | None
) -> dict[str, object]:
    statuses = Counter(item.status for item in items)
    reasons = Counter(
        _same(item.reason)
        for item in items
        if item.status in {"wrong", "failed", "not graded"}
    )
    return {
        "name": name,
        "title": exercise.title if exercise else name,
        "counts": [
            (status, statuses[status]) for status in _STATUSES if statuses[status]
        ],
        "share": round(100 * statuses["right"] / len(items)) if items else 0,
        "reasons": reasons.most_common(_COMMON),
        "seconds": _times([item.seconds for item in items if item.questions]),
    }


_STATUSES = ("right", "wrong", "failed", "not attempted", "by hand", "not graded")


def _same(reason: str) -> str:
    """A reason without its numbers, so that those of many students can be counted."""
    return re.sub(r"\d+", "#", reason)[:200]
