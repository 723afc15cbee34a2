"""From a submitted notebook to what is executed of it: the set-up and what the learner wrote, in the learner's order.

Answers are found by the name of their exercise, wherever they stand. What is out of the ordinary is tolerated and
named. Cells that are as they were released are left out, for they hold no answer and cost time. This module must not
execute anything.
"""

import ast
import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from labkit.grading.reading import Cell, Notebook
from labkit.grading.sandbox.inside import serving
from labkit.teach.exercises.contract import Exercise

SET_UP = {"parameters", "setup"}
MARK = re.compile(r"#\s*exercise[:\s]\s*([\w.-]+)")


@dataclass(frozen=True)
class ChosenCell:
    """A cell that is executed, and the exercise that it answers, if it answers one."""

    source: str
    exercise: str | None = None


@dataclass
class PreparedNotebook:
    """What is executed of a notebook and asked afterwards."""

    cells: list[ChosenCell] = field(default_factory=list)
    attempted: list[Exercise] = field(default_factory=list)
    missing: dict[str, str] = field(default_factory=dict)
    """Why an exercise is not asked, by its name."""
    notes: list[str] = field(default_factory=list)

    def notebook(self, without: Iterable[int] = ()) -> str:
        """The notebook to execute, as JSON, with the cell that answers at its end."""
        left_out = set(without)
        sources = [
            cell.source
            for number, cell in enumerate(self.cells)
            if number not in left_out
        ]
        return as_notebook([*sources, serving.CELL])

    def numbers(self, without: Iterable[int] = ()) -> list[int]:
        """Which of the cells each cell of that notebook is."""
        left_out = set(without)
        return [number for number in range(len(self.cells)) if number not in left_out]


def as_notebook(sources: Sequence[str]) -> str:
    """A notebook of code cells, as JSON."""
    cells: list[dict[str, object]] = [
        {
            "cell_type": "code",
            "id": str(number),
            "metadata": {},
            "source": source,
            "outputs": [],
            "execution_count": None,
        }
        for number, source in enumerate(sources)
    ]
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    return json.dumps(
        {
            "cells": cells,
            "metadata": {"kernelspec": kernel},
            "nbformat": 4,
            "nbformat_minor": 5,
        },
        ensure_ascii=False,  # else what was allowed to come in could be three times too long to be run
    )


def prepare(
    submitted: Notebook, released: Notebook, exercises: Sequence[Exercise]
) -> PreparedNotebook:
    """Chooses what to execute. `exercises` are those of this notebook."""
    made = PreparedNotebook()
    known = {exercise.name: exercise for exercise in exercises}
    as_released = {_normal(cell.source) for cell in released.cells}
    owners = _owners(submitted.cells, known, as_released, made.notes)
    counts = {name: number for number, name in enumerate(owners) if name is not None}
    for number, (cell, name) in enumerate(zip(submitted.cells, owners, strict=True)):
        changed = _normal(cell.source) not in as_released
        if (name is None and (changed or cell.tags & SET_UP)) or (
            name is not None and changed and counts[name] == number
        ):
            made.cells.append(ChosenCell(_plain_source(cell.source), name))
    for name, exercise in known.items():
        if name not in counts:
            made.missing[name] = "its cell is missing from the notebook"
        elif _normal(submitted.cells[counts[name]].source) in as_released:
            made.missing[name] = "its cell is as it was released"
        else:
            made.attempted.append(exercise)
    made.notes += _oddities(submitted, owners, released, known)
    return made


def _owners(
    cells: Sequence[Cell],
    known: dict[str, Exercise],
    as_released: set[str],
    notes: list[str],
) -> list[str | None]:
    """Which exercise each cell answers: what it says, else what it defines."""
    owners = [said_exercise(cell) for cell in cells]
    for number, name in enumerate(owners):
        if name is not None and name not in known:
            notes.append(
                f"A cell says that it answers {name}, which is no exercise of this notebook."
            )
            owners[number] = None
    for name, exercise in known.items():
        if name in owners:
            continue
        for number, cell in enumerate(cells):
            if (
                owners[number] is None
                and _normal(cell.source) not in as_released
                and defines(cell.source, exercise.answer)
            ):
                owners[number] = name
        if name in owners:
            notes.append(
                f"{name}: its cell has lost its mark and was found by the name {exercise.answer}."
            )
    return owners


def said_exercise(cell: Cell) -> str | None:
    """The exercise that a cell says it answers, in its first line or its metadata."""
    if "check" in cell.tags:
        return None
    found = MARK.match(cell.source.lstrip())
    return found.group(1) if found else cell.exercise


def defines(source: str, name: str) -> bool:
    """Whether a cell gives something this name at its top level."""
    try:
        body = ast.parse(source).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    for statement in body:
        if (
            isinstance(statement, ast.FunctionDef | ast.ClassDef)
            and statement.name == name
        ):
            return True
        targets = (
            statement.targets
            if isinstance(statement, ast.Assign)
            else [getattr(statement, "target", None)]
        )
        if any(
            isinstance(target, ast.Name) and target.id == name for target in targets
        ):
            return True
    return False


def _plain_source(source: str) -> str:
    return source.encode(
        "utf-8", "replace"
    ).decode()  # a lone surrogate could not be sent to a kernel


def _normal(source: str) -> str:
    """A source without what changes when a notebook is only opened and saved."""
    return "\n".join(line.rstrip() for line in source.strip().splitlines())


def _oddities(
    submitted: Notebook,
    owners: Sequence[str | None],
    released: Notebook,
    known: dict[str, Exercise],
) -> list[str]:
    """What is tolerated, and named."""
    asked = [name for name in map(said_exercise, released.cells) if name in known]
    order = [name for name in owners if name is not None]
    found = [
        f"{name}: {order.count(name)} cells answer it, and the last one counts."
        for name in dict.fromkeys(order)
        if order.count(name) > 1
    ]
    kept = [name for name in dict.fromkeys(reversed(order)) if name in asked][::-1]
    if kept != [name for name in asked if name in kept]:
        found.append("Its exercises are in another order than they were released in.")
    texts = {_normal(cell.source) for cell in released.cells}
    added = sum(
        owner is None
        and bool(cell.source.strip())
        and _normal(cell.source) not in texts
        for cell, owner in zip(submitted.cells, owners, strict=True)
    )
    if added:
        found.append(f"{added} of its cells were added or edited.")
    there = {_normal(cell.source) for cell in submitted.cells}
    gone = sum(
        said_exercise(cell) is None and _normal(cell.source) not in there
        for cell in released.cells
    )
    if gone:
        found.append(f"{gone} of the released cells are missing or edited.")
    return found
