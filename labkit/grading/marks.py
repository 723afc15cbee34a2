"""Points and comments that a person gives: read from files that are never written again once they are there.

One line is one student's exercise, or one part of it. Points for an exercise that a machine has judged replace the
machine's. What there is to fill in is written under a name that is new. This module must not compute a grade.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from labkit.core.errors import InvalidInput
from labkit.grading import tables
from labkit.grading.course import Course
from labkit.grading.rules import Rules
from labkit.host import durable

TITLES = ("student", "name", "exercise", "part", "of", "points", "comment")
_MOST_POINTS = 10_000.0


@dataclass(frozen=True)
class Mark:
    """What a person says of one student's exercise, or of one part of it."""

    place: str
    student: str
    """As it is written there: a key, an id, an address or a name."""
    exercise: str
    part: str
    points: float | None
    comment: str


@dataclass(frozen=True)
class HandMarks:
    """All that was said of one student's exercise."""

    points: float | None = None
    """`None` while a part of it, or all, is still to be given."""
    comments: tuple[str, ...] = ()
    parts: Mapping[str, float] = field(default_factory=dict)
    place: str = ""


def read(path: Path, course: Course) -> list[Mark]:
    """The marks in a file. Raises `InvalidInput`; a line without points and comment says nothing yet."""
    rows = tables.read(path, "the marks")
    titles = {title for row in rows for title in row.cells}
    if missing := [
        one for one in ("student", "exercise", "points") if rows and one not in titles
    ]:
        raise InvalidInput(
            f"{path}: the marks have no column {missing[0]}; the titles are {', '.join(TITLES)}."
        )
    marks = []
    for row in rows:
        exercise = row.cells.get("exercise", "")
        if exercise not in course.exercises:
            raise InvalidInput(
                f"{row.place}: {exercise or 'nothing'} is no exercise of {course.name}."
            )
        mark = Mark(
            row.place,
            row.cells.get("student", ""),
            exercise,
            row.cells.get("part", ""),
            _points(row),
            row.cells.get("comment", ""),
        )
        if not mark.student:
            raise InvalidInput(f"{row.place}: it does not say which student.")
        if mark.points is not None or mark.comment:
            marks.append(mark)
    return marks


def _points(row: tables.Row) -> float | None:
    written = row.cells.get("points", "").lstrip("'")
    if not written:
        return None
    try:
        points = float(written.replace(",", "."))
    except ValueError:
        points = math.nan
    if not 0 <= points <= _MOST_POINTS:
        raise InvalidInput(
            f"{row.place}: {written} points; write a number from 0 to {_MOST_POINTS:g}."
        )
    return points


def together(marks: Iterable[Mark], rules: Rules) -> HandMarks:
    """What was said of one student's exercise, taken together: the last word on each part counts."""
    listed = list(marks)
    parts = {mark.part: mark.points for mark in listed if mark.points is not None}
    comments = {
        (mark.part, mark.comment): f"{mark.part}: {mark.comment}"
        if mark.part
        else mark.comment
        for mark in listed
        if mark.comment
    }
    asked = rules.rubric.get(listed[0].exercise, {}) if listed else {}
    whole = parts.pop("", None)
    complete = bool(parts) and set(asked) <= set(parts)
    points = sum(parts.values()) if complete else whole
    place = listed[-1].place if listed else ""
    return HandMarks(points, tuple(comments.values()), parts, place)


class Wanted(NamedTuple):
    """A text of one student that nobody has given points for."""

    keys: tuple[str, ...]
    """What the student can be called; the first is written down."""
    name: str
    exercise: str
    most: float


def write_template(folder: Path, wanted: Sequence[Wanted], rules: Rules) -> Path | None:
    """Writes what there is to fill in into a new file.

    What stands in an earlier one is left out, filled in or not. `None` when there is nothing more.
    """
    there = {
        (
            row.cells.get("student", "").lstrip("'"),
            row.cells.get("exercise"),
            row.cells.get("part", ""),
        )
        for path in templates(folder)
        for row in tables.read(path, "the marks")
    }
    lines = [
        (one.keys[0], one.name, one.exercise, part, points, "", "")
        for one in wanted
        for part, points in (rules.rubric.get(one.exercise) or {"": one.most}).items()
        if not any((key, one.exercise, part) in there for key in one.keys)
    ]
    if not lines:
        return None
    durable.make_folder(folder)
    path = _new(folder)
    durable.replace(path, tables.written([TITLES, *lines]))
    return path


def templates(folder: Path) -> list[Path]:
    """The files to fill in that there are, the oldest first."""
    return sorted(
        folder.glob("marks*.csv"), key=lambda path: (len(path.name), path.name)
    )


def _new(folder: Path) -> Path:
    """A name that no file has."""
    number = 1
    while (
        path := folder / (f"marks-{number}.csv" if number > 1 else "marks.csv")
    ).exists():
        number += 1
    return path
