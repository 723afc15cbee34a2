"""Writes an assignment's TOML file, for `labkit grade --rules`, and its table of exercises, for learners."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from labkit.grading import rules
from labkit.grading.course import Course
from labkit.teach.exercises.contract import Exercise

FILE = "assignment.toml"


@dataclass(frozen=True)
class Plan:
    """An assignment that `labkit release` hands out: its notebooks, title and deadline."""

    notebooks: tuple[str, ...]
    """The names of its notebooks, in the order of the course."""
    title: str = ""
    deadline: datetime | None = None


def plan(words: Sequence[str], course: Course, title: str = "", deadline: str = "") -> Plan:
    """Return an assignment of notebooks. Each of `words` is the name, the file name or the number of a notebook.

    Raises `InvalidInput` if there is no such notebook, or if `deadline` is not a date and time in ISO format.
    """
    named = {rules.notebook_named(word, course, "--notebook") for word in words}
    due = rules.moment(deadline, "--deadline") if deadline else None
    notebooks = dict.fromkeys(each.notebook for each in course.exercises.values() if each.notebook in named)
    return Plan(tuple(notebooks), title.encode("utf-8", "backslashreplace").decode(), due)


def note_on(assignment: Plan, now: datetime) -> str:
    """Return a warning if the assignment's deadline is already past at the time `now`, otherwise an empty text."""
    if assignment.deadline is None or assignment.deadline.astimezone() > now:
        return ""
    return f"Note: the deadline {assignment.deadline.isoformat(timespec='minutes')} is over, so all work will be late."


def write(folder: Path, assignment: Plan, course: Course) -> Path:
    """Write the assignment's TOML file into `folder`, and append its table to the README there.

    Returns the path of the TOML file.
    """
    path = folder / FILE
    path.write_text(_file(assignment, course), encoding="utf-8")
    with (folder / "README.md").open("a", encoding="utf-8") as readme:
        readme.write(_table(assignment, course))
    return path


def _file(assignment: Plan, course: Course) -> str:
    lines = [
        "# The exercises of an assignment, for: labkit grade SUBMISSIONS --out grades --rules assignment.toml",
        "[assignment]",
    ]
    if assignment.title:
        # TOML's basic strings are those of JSON, except that TOML must escape DEL. (`plan` has escaped surrogates.)
        title = json.dumps(assignment.title, ensure_ascii=False).replace("\x7f", "\\u007f")
        lines.append(f"title = {title}")
    if assignment.deadline is not None:
        lines.append(f"deadline = {assignment.deadline.isoformat()}")
    lines.append("exercises = [  # with their points; delete a line, and the exercise does not count")
    lines += [f'    "{each.name}",  # {each.points}: {each.title}' for each in _exercises(assignment, course)]
    lines += ["]", "", "# [weights]", '# "05-recovery" = 2.0  # its points count twice', ""]
    return "\n".join(lines)


def _exercises(assignment: Plan, course: Course) -> list[Exercise]:
    return [each for notebook in assignment.notebooks for each in course.of_notebook(notebook)]


def _table(assignment: Plan, course: Course) -> str:
    due = f" They are due on {assignment.deadline:%Y-%m-%d at %H:%M}." if assignment.deadline is not None else ""
    exercises = _exercises(assignment, course)
    rows = [f"| `{each.notebook}` | `{each.name}` | {each.title} | {each.points} |" for each in exercises]
    most = sum(each.points for each in exercises)
    return "\n".join(
        [
            "",
            f"## {' '.join(assignment.title.split()) or 'Your assignment'}",
            "",
            f"These exercises count, {most} points in total.{due} Hand in these notebooks and no others.",
            "",
            "| notebook | exercise | what is asked | points |",
            "|---|---|---|---|",
            *rows,
            "",
        ]
    )
