"""Reads regrade requests: a student names an exercise and says why its points should be looked at again.

A student writes requests into the text file `regrade.txt` and hands it in with the notebooks, or the instructor lists
them in a table. They change no points: a person answers them in a CSV file of points (`labkit.grading.marks`).
"""

import re
from dataclasses import dataclass
from pathlib import Path, PurePath

import msgspec

from labkit.grading import tables
from labkit.grading.platforms import shown

FILE = "regrade.txt"
"""The name of a student's file with requests; platforms may put other words before it, such as the student's name."""
_MOST_CHARACTERS = 64 * 1024
_MOST = 30
"""The largest number of requests that are read from one student's file."""
_LONGEST = 1000
"""The largest number of characters of a reason that a page shows."""
_LINE = re.compile(r"[\s*+-]*(?P<exercise>\d\d[a-z]?-[a-z]+)\b[\s:,;.-]*(?P<why>.*)", re.IGNORECASE)


class Request(msgspec.Struct, frozen=True):
    """A student's regrade request: the exercise and the student's reason."""

    exercise: str
    why: str


@dataclass(frozen=True)
class Listed:
    """One line of an instructor's CSV table: a regrade request of one student for one exercise."""

    place: str
    student: str
    """The student as written in the file: a key, an id, an address or a name."""
    exercise: str
    why: str


def is_request(file: str) -> bool:
    """Return whether the name of an uploaded file says that it contains regrade requests."""
    return PurePath(file).name.lower().endswith(FILE)


def read_file(content: bytes) -> list[Request]:
    """Return the regrade requests in a student's text file.

    A request begins with a line that starts with the name of an exercise. The text up to the next request is the
    reason. Text before the first exercise becomes a request with an empty exercise name.
    """
    requests: list[list[str]] = []
    for line in tables.decoded(content)[:_MOST_CHARACTERS].splitlines():
        if match := _LINE.fullmatch(line):
            requests.append([match["exercise"].lower(), match["why"]])
        elif requests:
            requests[-1].append(line)
        elif line.strip():
            requests.append(["", line])
    return [Request(exercise, _reason(" ".join(words))) for exercise, *words in requests[:_MOST]]


def _reason(words: str) -> str:
    text = "".join(letter if letter.isprintable() else " " for letter in words)
    return " ".join(text.split())[:_LONGEST] or "no reason given"


def read_table(path: Path) -> list[Listed]:
    """Return the regrade requests in a CSV table with the columns student, exercise and why. Raises `InvalidInput`."""
    return [
        Listed(row.place, row.cells["student"], shown(row.cells["exercise"]), _reason(row.cells.get("why", "")))
        for row in tables.read(path, "the table of regrade requests", needed=("student", "exercise", "why"))
        if row.cells.get("student") and row.cells.get("exercise")
    ]
