"""Find an exercise by its name: the file `texts/NN.toml` contains the tasks of notebook NN.

The file names the module that judges the answers; single exercises may name another module. A file is read, and a
module imported, only when somebody asks for an exercise of that notebook.
"""

import re
import tomllib
from collections.abc import Iterator, Mapping
from functools import cache
from importlib import import_module
from importlib.resources import files
from typing import Any

from labkit.core.errors import InvalidInput
from labkit.core.words import name_in, nearest
from labkit.teach.exercises.contract import Assignment, Exercise, Judging, Kind, Level, by, variant
from labkit.teach.exercises.moved import now

_FOLDER = files("labkit.teach.exercises").joinpath("texts")
_NUMBER = re.compile(r"(\d\d[a-z]?)-")


def assignments() -> dict[str, Assignment]:
    """Return a dict from exercise name to its text, hints and points, in the order of the course."""
    numbers = sorted(each.name.removesuffix(".toml") for each in _FOLDER.iterdir() if each.name.endswith(".toml"))
    return {name: each for number in numbers for name, (each, _) in _of_notebook(number).items()}


def find(name: str) -> Exercise:
    """Return the exercise with this current or former name. Raises `InvalidInput`, which suggests similar names."""
    name = name_in(name, 'lab.check("05-recovery")')
    name = now(name, _beside(name))
    if name not in _beside(name):
        raise InvalidInput(f"there is no exercise {name[:40]!r}; {nearest(name[:40], list(assignments()))}")
    return _exercise(name)


def _beside(name: str) -> "Mapping[str, tuple[Assignment, str]]":
    """Return the exercises of the notebook to which the exercise `name` belongs, as `_of_notebook` returns them."""
    number = _NUMBER.match(name)
    return _of_notebook(number[1]) if number else {}


@cache
def _of_notebook(number: str) -> dict[str, tuple[Assignment, str]]:
    """Return the exercises of the notebook `number`, such as `09b`; the dict is empty if there are none.

    The dict maps an exercise's name to a pair: its text, and the name of the module that checks answers.
    """
    file = _FOLDER.joinpath(f"{number}.toml")
    if not file.is_file():
        return {}
    tables = tomllib.loads(file.read_text(encoding="utf-8"))
    notebook, module = tables.pop("notebook"), tables.pop("module")
    modules = {name: table.pop("module", module) for name, table in tables.items()}
    return {name: (_assignment(name, notebook, table), modules[name]) for name, table in tables.items()}


def _assignment(name: str, notebook: str, table: dict[str, Any]) -> Assignment:
    fields = table | {"kind": Kind(table["kind"]), "level": Level(table["level"]), "task": table["task"].strip()}
    return Assignment(name, notebook, **fields | {"axes": tuple(table.get("axes", {}).items())})


@cache
def _exercise(name: str) -> Exercise:
    assignment, module = _beside(name)[name]
    return Exercise(**vars(assignment), **_judging(assignment, module)._asdict())


def _judging(assignment: Assignment, module: str) -> Judging:
    from labkit.teach.exercises.constants import Statements, Text

    if assignment.by_hand:
        return by(Text(assignment.answer).judge, variant("a text"))
    if assignment.statements:
        reasons = {letter: reason for letter, (_, reason) in assignment.statements.items()}
        return by(Statements(assignment.answer, reasons, assignment.right).judge, variant("statements"))
    judging: Judging = import_module(f"labkit.teach.exercises.{module}").JUDGES[assignment.name]
    return judging


class _Exercises(Mapping[str, Exercise]):
    """A mapping from name to exercise. Each exercise is loaded when it is looked up."""

    def __init__(self, *, only_graded: bool) -> None:
        self._only_graded = only_graded

    def __getitem__(self, name: str) -> Exercise:
        if name not in self:
            raise KeyError(name)
        return _exercise(name)

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and name in _beside(name) and self._has(_beside(name)[name][0])

    def __iter__(self) -> Iterator[str]:
        return (name for name, each in assignments().items() if self._has(each))

    def __len__(self) -> int:
        return sum(map(self._has, assignments().values()))

    def _has(self, assignment: Assignment) -> bool:
        return assignment.is_graded or not self._only_graded


EXERCISES: Mapping[str, Exercise] = _Exercises(only_graded=False)
GRADED: Mapping[str, Exercise] = _Exercises(only_graded=True)
"""The exercises that give points."""
