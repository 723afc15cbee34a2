"""Reads the points and comments that a person gives by hand, from files that labkit never overwrites.

Each line of such a CSV file is about one exercise of one student, or about one part of the exercise. These points
replace labkit's own. If a person has more to grade, labkit writes the lines to fill in to a new file.
"""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

from labkit.core.errors import InvalidInput
from labkit.core.words import nearest
from labkit.grading import tables
from labkit.grading.course import Course
from labkit.grading.rules import Rules
from labkit.host import durable

TITLES = ("student", "name", "exercise", "part", "of", "points", "comment", "answers")
_MOST_POINTS = 10_000.0
_EXCUSED = {"excused", "ex"}
"""The words for an exercise that does not count for a student; Canvas writes EX."""
REGRADE = "regrade"
"""The word that marks, in the column `answers`, a line with the instructor's answer to a regrade request."""
BONUS = "bonus"
"""The word that a person writes after points that exceed those of the exercise, as in `3 bonus`."""
_NUMBERED = re.compile(r"marks-(\d+)")
_MOST_MISTAKES = 10
"""The largest number of mistakes of one file that a message lists."""


@dataclass(frozen=True)
class Mark:
    """One line of a CSV file of points: a person's points or comment for a student's exercise, or for a part of it."""

    place: str
    student: str
    """The student as written in the file: a key, an id, an address or a name."""
    exercise: str
    part: str
    points: float | None
    comment: str
    excused: bool = False
    """Whether the exercise does not count for this student."""
    bonus: bool = False
    """Whether the points may exceed those of the exercise."""
    answers: str = ""
    """The column `answers` of a line that answers regrade requests, otherwise empty.

    It is the result of `answer_to`, or `REGRADE` alone, which answers all requests about the exercise.
    """
    file: str = ""


@dataclass(frozen=True)
class HandMarks:
    """All points and comments that people gave by hand for one student's exercise, combined from several CSV lines."""

    points: float | None = None
    """The points for the exercise, or None while points are missing for it or for one of its parts."""
    comments: tuple[str, ...] = ()
    parts: Mapping[str, float] = field(default_factory=dict)
    place: str = ""
    excused: bool = False
    """Whether the exercise does not count for this student."""
    bonus: bool = False
    """Whether the points may exceed those of the exercise."""
    whole: tuple[str, ...] = ()
    """The comments on the exercise as a whole, which are among `comments`."""
    answers: tuple[str, ...] = ()
    """The column `answers` of each line that answers regrade requests."""
    replies: tuple[str, ...] = ()
    """The comments of the lines that answer regrade requests, which are among `whole`."""

    def has_answered(self, why: str) -> bool:
        """Return whether a person has answered the student's regrade request whose reason is `why`."""
        return any(words == REGRADE or _digest(why) in words.split() for words in self.answers)


def answer_to(reasons: Iterable[str]) -> str:
    """Return the text in column `answers` that marks a CSV line as the answer to regrade requests with these `reasons`.

    The text has a digest of each reason, so a later request with another reason still counts as unanswered.
    """
    return " ".join([REGRADE, *map(_digest, reasons)])


def _digest(why: str) -> str:
    return sha256(why.encode()).hexdigest()[:8]


def read(path: Path, course: Course) -> list[Mark]:
    """Return the points and comments in a CSV file; a line about a notebook counts for each of its exercises.

    Raises `InvalidInput` with up to ten mistakes, one per line, so that a person can correct them together.
    """
    marks, mistakes = [], []
    for row in tables.read(path, "the table of marks", needed=("student", "exercise", "points")):
        try:
            found = _marks(row, course)
        except InvalidInput as mistake:
            mistakes.append(str(mistake))
            continue
        marks += [mark for mark in found if mark.points is not None or mark.comment or mark.excused]
    if mistakes:
        more = f"\nAnd {len(mistakes) - _MOST_MISTAKES} more mistakes." if len(mistakes) > _MOST_MISTAKES else ""
        message = "\n".join(mistakes[:_MOST_MISTAKES]) + more
        raise InvalidInput(message)
    return marks


def _marks(row: tables.Row, course: Course) -> list[Mark]:
    """Parse one CSV line with points into a `Mark` for each exercise that the line is about. Raises `InvalidInput`."""
    named, student = row.cells.get("exercise", ""), row.cells.get("student", "")
    exercises = course.of_notebook(named) or [each for each in course.exercises.values() if each.name == named]
    if not exercises:
        raise InvalidInput(
            f"{row.place}: {named or 'an empty text'} is not an exercise of {course.name}; "
            f"{nearest(named, list(course.exercises))}"
        )
    if not student:
        raise InvalidInput(f"{row.place}: the column student is empty; enter the student's id.")
    excused = row.cells.get("points", "").casefold() in _EXCUSED
    points, bonus = (None, False) if excused else _points(row)
    if named not in course.exercises and points:
        raise InvalidInput(
            f"{row.place}: {named} is a whole notebook, and the only marks for that are 0 and excused. To give other "
            f"points, write one line for each exercise, for example {exercises[0].name}."
        )
    most = exercises[0].points
    if points is not None and points > most and not bonus:
        raise InvalidInput(
            f"{row.place}: {points:g} points, but {named} has at most {most}; correct the number, or write "
            f"{points:g} {BONUS} to give more than the maximum."
        )
    # labkit wrote the part, and added apostrophes so that no spreadsheet takes it for a formula. A person wrote the
    # comment, so its apostrophes may belong to it.
    part, comment = tables.as_written(row.cells.get("part", "")), tables.unguarded(row.cells.get("comment", ""))
    answers, file = row.cells.get("answers", "").casefold(), row.place.rpartition(", line ")[0]
    answers = answers if answers.split()[:1] == [REGRADE] else ""
    return [
        Mark(row.place, student, each.name, part, points, comment, excused, bonus, answers, file) for each in exercises
    ]


def _points(row: tables.Row) -> tuple[float | None, bool]:
    """Return the number in a CSV line's column `points`, and whether the word `bonus` follows the number.

    The number is None if the column is empty. Raises `InvalidInput` if the column contains anything else.
    """
    written = row.cells.get("points", "").lstrip("'")
    number = written.casefold().removesuffix(BONUS).strip()
    bonus = number != written.casefold()
    if not written:
        return None, False
    try:
        points = float(number.replace(",", "."))
    except ValueError:
        points = math.nan
    if not 0 <= points <= _MOST_POINTS:
        raise InvalidInput(
            f"{row.place}: the points are {written!r}; write a number from 0 to {_MOST_POINTS:g} or 'excused'."
        )
    return points, bonus


def together(marks: Iterable[Mark], rules: Rules) -> HandMarks:
    """Combine all CSV lines with points or comments for one student's exercise.

    Later points replace earlier points for the same part, and points that answer a regrade request replace all earlier
    points. If several files have comments on the same part, only the comments of the last file count.
    """
    listed = list(marks)
    # An answer to a request is about the whole exercise: it replaces the points of all lines before it.
    answer = [n for n, mark in enumerate(listed) if mark.answers and not mark.part and mark.points is not None]
    counted = {mark.part: mark.points for mark in listed[max(answer, default=0) :] if mark.points is not None}
    parts = {mark.part: mark.points for mark in listed if mark.part and mark.points is not None}
    last_file = {mark.part: mark.file for mark in listed if mark.comment}
    commented = [mark for mark in listed if mark.comment and mark.file == last_file[mark.part]]
    comments = dict.fromkeys(f"{mark.part}: {mark.comment}" if mark.part else mark.comment for mark in commented)
    whole = dict.fromkeys(mark.comment for mark in commented if not mark.part)
    replies = dict.fromkeys(mark.comment for mark in commented if mark.answers and not mark.part)
    rubric = rules.rubric.get(listed[0].exercise, {}) if listed else {}
    total = counted.pop("", None)
    complete = bool(counted) and set(rubric) <= set(counted)
    points = sum(counted.values()) if complete else total
    place = listed[-1].place if listed else ""
    # For `excused` the last line counts, as it does for points.
    given = [mark for mark in listed if mark.excused or mark.points is not None]
    excused, bonus = bool(given) and given[-1].excused, any(mark.bonus for mark in given)
    answers = tuple(mark.answers for mark in listed if mark.answers)
    return HandMarks(points, tuple(comments), parts, place, excused, bonus, tuple(whole), answers, tuple(replies))


class Wanted(NamedTuple):
    """Work of one student that a person must grade: a free text, a regrade request or an unreadable file."""

    keys: tuple[str, ...]
    """The keys and ids that identify the student; the first one is written to the file."""
    name: str
    exercise: str
    """The name of the exercise, or of a notebook for all its exercises."""
    most: float | None
    """The largest number of points for the exercise; None for a whole notebook."""
    answers: str = ""
    """The result of `answer_to` if a regrade request waits; otherwise empty."""


def write_template(folder: Path, wanted: Sequence[Wanted], rules: Rules) -> None:
    """Write a CSV file in which a person enters points for the work in `wanted` that no earlier file lists.

    If earlier files list all of the work, nothing is written. But the first file is always written, even if it contains
    only column titles. The next file replaces a file that contains only these.
    """
    listed = {
        (
            row.cells.get("student", "").lstrip("'"),
            row.cells.get("exercise"),
            tables.as_written(row.cells.get("part", "")),
            row.cells.get("answers", ""),
        )
        for path in templates(folder)
        for row in tables.read(path, "the table of marks")
    }
    lines = [
        (
            tables.printable(one.keys[0]),
            one.name,
            one.exercise,
            part,
            "" if points is None else points,
            "",
            "",
            one.answers,
        )
        for one in wanted
        for part, points in _parts(one, rules).items()
        if not any((tables.printable(key), one.exercise, part, one.answers) in listed for key in one.keys)
    ]
    before, empty = templates(folder), tables.written([TITLES])
    if before and not lines:
        return
    durable.make_folder(folder)
    is_unused = bool(before) and before[-1].read_text(encoding="utf-8", errors="replace") == empty
    path = before[-1] if is_unused else folder / next_name(folder)
    durable.replace(path, tables.written([TITLES, *lines]))


def _parts(one: Wanted, rules: Rules) -> Mapping[str, float | None]:
    """Return a dict from each part of an exercise to its maximum points; without parts, the only key is ""."""
    parts = {} if one.answers else rules.rubric.get(one.exercise, {})
    return dict(parts) or {"": one.most}


def templates(folder: Path) -> list[Path]:
    """Return the CSV files in `folder` in which a person enters points, oldest first.

    The number in a file's name decides the order. A browser may rename a download, so `marks-2 (1).csv` comes after
    `marks-2.csv` and before `marks-3.csv`.
    """
    return sorted(folder.glob("marks*.csv"), key=lambda path: (_number(path), len(path.name), path.name))


def _number(path: Path) -> int:
    found = _NUMBERED.match(path.name)
    return int(found[1]) if found else 1


def next_name(folder: Path) -> str:
    """Return the name for a new CSV file of points. The name sorts after the names of all such files in `folder`."""
    number = 1 + max(map(_number, templates(folder)), default=0)
    return f"marks-{number}.csv" if number > 1 else "marks.csv"
