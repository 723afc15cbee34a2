"""Reads the TOML file of an assignment: which exercises count, and the rules that turn points into a grade.

[assignment]
title = "Sheet 5"
notebooks = ["05", "06"]      # all their exercises count; or name exercises = ["05-recovery", ...]
deadline = 2027-01-31T18:00:00

[weights]
"05-recovery" = 2.0

[late]
percent_a_day = 10
most_percent = 50
grace_minutes = 15

[drop]
lowest = 1                   # each student's weakest exercise does not count

[partial]
"05-recovery" = 1            # points if every visible check passes and a hidden one does not

[rubric."07-why"]
"names the moment of the crash" = 1
"says what recovery does" = 2

[export]
canvas = "Exercise 5 (4711)"  # the title of the existing column there; otherwise a new one
"""

import math
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path

from labkit.core.errors import InvalidInput
from labkit.grading.course import Course
from labkit.grading.platforms import text

_SECTIONS = {"assignment", "drop", "weights", "late", "partial", "rubric", "export"}
_ASSIGNMENT = ("title", "notebooks", "exercises", "deadline")
_EXPORT = {"canvas", "blackboard", "brightspace"}
"""The platforms for which the section `export` can name the column that gets the points."""
_LATE = {"percent_a_day": 100.0, "most_percent": 100.0, "grace_minutes": 525_600.0}
"""The keys of the section `late` in a rules file, each with its largest value."""


@dataclass(frozen=True)
class Rules:
    """An instructor's rules about points, read from a TOML file. The defaults count all points and ignore lateness."""

    weights: Mapping[str, float] = field(default_factory=dict)
    percent_a_day: float = 0.0
    """The percentage of points deducted for each day after deadline and `grace`; a begun day counts in full."""
    most_percent: float = 100.0
    grace: timedelta = timedelta()
    partial: Mapping[str, float] = field(default_factory=dict)
    rubric: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    export: Mapping[str, str] = field(default_factory=dict)
    """By platform, the title of the existing column that gets the points; any other platform gets a new column."""
    title: str = ""
    asked: tuple[str, ...] = ()
    """The exercises that count, in the order of the course; if empty, those of all notebooks that were handed in."""
    deadline: datetime | None = None
    lowest: int = 0
    """The number of each student's weakest exercises that do not count."""

    def weight(self, exercise: str) -> float:
        """Return the factor by which an exercise's points are multiplied; 1 unless a rule sets it."""
        return self.weights.get(exercise, 1.0)

    def share_taken(self, when: datetime, deadline: datetime) -> float:
        """Return the share of the points (0 to 1) that a submission handed in at `when` loses because it is late."""
        over = when - deadline - self.grace
        if over <= timedelta():
            return 0.0
        days = math.ceil(over / timedelta(days=1))
        return min(self.percent_a_day * days, self.most_percent) / 100


def read(path: Path, course: Course) -> Rules:
    """Read the rules about points from a TOML file. Raises `InvalidInput` for an unreadable file or a wrong rule."""
    name = text(str(path))
    try:
        sections = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InvalidInput(f"{name}: the rules cannot be read ({error.strerror}); name a TOML file.") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InvalidInput(f"{name}: the rules are not valid TOML ({error}); correct the file.") from None
    if unknown := sorted(set(sections) - _SECTIONS):
        raise InvalidInput(f"{name}: unknown section [{unknown[0]}]; choose from {', '.join(sorted(_SECTIONS))}.")
    late = _numbers(sections, "late", name, _LATE)
    rubric = sections.get("rubric", {})
    if not isinstance(rubric, dict):
        raise InvalidInput(f'{name}: rubric must be a section for each exercise, such as [rubric."07-why"].')
    rules = Rules(
        _of_exercises(sections, "weights", name, course),
        late.get("percent_a_day", 0.0),
        late.get("most_percent", 100.0),
        timedelta(minutes=late.get("grace_minutes", 0.0)),
        _of_exercises(sections, "partial", name, course),
        {exercise: _numbers(rubric, exercise, name) for exercise in rubric},
        _titles(sections, name),
        *_assignment(sections, name, course),
        _lowest(sections, name),
    )
    _check(rules, name, course)
    counting = len(rules.asked or course.exercises)
    if "drop" in sections and not rules.lowest < counting:
        raise InvalidInput(
            f"{name}: [drop] leaves out {rules.lowest} exercises, but only {counting} count; lower the key `lowest`."
        )
    return rules


def _assignment(
    sections: Mapping[str, object], name: str, course: Course
) -> tuple[str, tuple[str, ...], datetime | None]:
    """Return the title, the exercises and the deadline that the rules file states for the assignment."""
    section = sections.get("assignment", {})
    if not isinstance(section, dict) or (unknown := sorted(set(section) - set(_ASSIGNMENT))):
        problem = f"has no key {unknown[0]}" if isinstance(section, dict) else "must be a table"
        raise InvalidInput(f"{name}: [assignment] {problem}; the possible keys are {', '.join(_ASSIGNMENT)}.")
    title, deadline = section.get("title", ""), section.get("deadline")
    if not isinstance(title, str):
        raise InvalidInput(f"{name}: title in [assignment] must be a text in quotes.")
    if empty := [key for key in ("notebooks", "exercises") if section.get(key) == []]:
        raise InvalidInput(
            f"{name}: {empty[0]} in [assignment] is empty, so nothing would count; remove this key to count all "
            f"{empty[0]}."
        )
    asked = set[str]()
    for word in _words(section, "notebooks", name):
        asked |= {each.name for each in course.of_notebook(notebook_named(word, course, name))}
    exercises = _words(section, "exercises", name)
    _check_exercises(dict.fromkeys(exercises), name, course)
    if asked and (surplus := [each for each in exercises if each not in asked]):
        raise InvalidInput(
            f"{name}: [assignment] asks for the exercise {surplus[0]}, but its key `notebooks` does not list the "
            "notebook of that exercise; add the notebook, or remove the key `notebooks`."
        )
    asked = set(exercises) or asked
    due = None if deadline is None else moment(str(deadline), f"{name}: deadline in [assignment]").astimezone()
    return title, tuple(each for each in course.exercises if each in asked), due


def _lowest(sections: Mapping[str, object], name: str) -> int:
    number = _numbers(sections, "drop", name, {"lowest": 100.0}).get("lowest", 0.0)
    if not number.is_integer():
        raise InvalidInput(f"{name}: lowest in [drop] is {number:g}; write a whole number of exercises to drop.")
    return int(number)


def _words(section: Mapping[str, object], key: str, name: str) -> Sequence[str]:
    words = section.get(key, [])
    if not isinstance(words, list) or not all(isinstance(each, str) for each in words):
        raise InvalidInput(f'{name}: {key} in [assignment] must be a list of names, as in {key} = ["05"].')
    return words


def moment(written: str, place: str) -> datetime:
    """Parse a date and time in ISO format. Raises `InvalidInput`, whose message begins with `place`."""
    try:
        when = datetime.fromisoformat(written)
        when.astimezone()  # fails for some dates in the first or last year of the calendar
    except (ValueError, OverflowError):
        raise InvalidInput(f"{place}: {written[:40]} is not a date and time; write it as 2027-01-31T18:00.") from None
    return when


def notebook_named(word: str, course: Course, place: str) -> str:
    """Return the notebook that a name, file name or number such as 05 means. Raises `InvalidInput`."""
    names = list(dict.fromkeys(each.notebook for each in course.exercises.values()))
    found = [each for each in names if word.removesuffix(".ipynb") in {each, each.partition("_")[0]}]
    if len(found) != 1:
        raise InvalidInput(f"{place}: {word[:60]} is not a notebook with exercises; choose from {', '.join(names)}.")
    return found[0]


def _titles(sections: Mapping[str, object], name: str) -> dict[str, str]:
    titles = sections.get("export", {})
    if (
        not isinstance(titles, dict)
        or not set(titles) <= _EXPORT
        or not all(isinstance(title, str) and title for title in titles.values())
    ):
        raise InvalidInput(
            f"{name}: [export] may only contain {', '.join(sorted(_EXPORT))}, each with a column title in quotes."
        )
    return titles


def _of_exercises(sections: Mapping[str, object], section: str, name: str, course: Course) -> dict[str, float]:
    numbers = _numbers(sections, section, name)
    _check_exercises(numbers, name, course)
    return numbers


def _numbers(
    sections: Mapping[str, object], section: str, name: str, most: Mapping[str, float] | None = None
) -> dict[str, float]:
    table = sections.get(section, {})
    if not isinstance(table, dict):
        raise InvalidInput(f"{name}: [{section}] must be a table of numbers.")
    for key, value in table.items():
        if most is not None and key not in most:
            raise InvalidInput(f"{name}: {key} is not a key of [{section}]; choose from {', '.join(most)}.")
        limit = 10_000.0 if most is None else most[key]
        if type(value) not in {int, float} or not 0 <= value <= limit:
            raise InvalidInput(f"{name}: {key} in [{section}] is {value}; choose a number from 0 to {limit:g}.")
    return {key: float(value) for key, value in table.items()}


def _check_exercises(names: Mapping[str, object], file: str, course: Course) -> None:
    for exercise in names:
        if exercise not in course.exercises:
            raise InvalidInput(
                f"{file}: {exercise} is not an exercise of {course.name} with points (predictions and single choices "
                "have none); see the table in docs/reference/exercises.md."
            )


def _check(rules: Rules, name: str, course: Course) -> None:
    """Raise `InvalidInput` if a rubric's parts or the partial credit of an exercise do not fit the maximum points."""
    _check_exercises(rules.rubric, name, course)
    for exercise, parts in rules.rubric.items():
        most = course.exercises[exercise].points
        if parts and round(sum(parts.values()), 6) != most:
            raise InvalidInput(
                f"{name}: the parts of {exercise} in [rubric] add up to {sum(parts.values()):g} points, but the "
                f"exercise has {most}; correct them."
            )
    for exercise, points in rules.partial.items():
        if points > course.exercises[exercise].points:
            raise InvalidInput(
                f"{name}: [partial] gives {points:g} points for {exercise}, but the exercise has only "
                f"{course.exercises[exercise].points}; lower the number."
            )
