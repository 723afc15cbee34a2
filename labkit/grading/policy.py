"""An instructor's options about a class, read from files before grading starts and remembered for the next batch.

A later batch without these options still uses them, because points that a person has given must not vanish when
a command omits an option.
"""

from collections.abc import Mapping
from pathlib import Path

from labkit.grading import marks, outputs, requests, roster, rules
from labkit.grading.course import Course
from labkit.grading.gradebook import BY_HAND
from labkit.grading.scoring import Policy

NONE = "none"
"""The value of an option that removes the value which an earlier command has stored."""


def options(out: Path, chosen: Mapping[str, str | None]) -> dict[str, str]:
    """Return the options about the class: this command's, or else the stored ones.

    The value `none` removes an option.
    """
    before = outputs.remembered(out)
    now = before | {name: value for name, value in chosen.items() if value is not None}
    return {name: value for name, value in now.items() if value != NONE}


def read(out: Path, chosen: Mapping[str, str], course: Course) -> Policy:
    """Read roster, points by hand, requests and rules from their files. Raises `InvalidInput` for an unusable file.

    If points by hand in the output folder and in a named file differ, those in the named file count.
    """
    named = [Path(path) for path in chosen.get("marks", "").split("\n") if path]
    templates = marks.templates(out / BY_HAND)
    named = [path for path in named if not any(path.exists() and path.samefile(one) for one in templates)]
    class_rules = rules.read(Path(chosen["rules"]), course) if "rules" in chosen else rules.Rules()
    due = chosen.get("deadline")
    return Policy(
        class_rules.deadline if due is None else rules.moment(due, "--deadline").astimezone(),
        roster.read(Path(chosen["roster"])) if "roster" in chosen else (),
        [mark for path in (*templates, *named) for mark in marks.read(path, course)],
        class_rules,
        [each for path in chosen.get("requests", "").split("\n") if path for each in requests.read_table(Path(path))],
    )
