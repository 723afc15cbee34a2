"""Selects the cells of a submitted notebook to execute: set-up cells and the learner's own, in the learner's order.

`labkit.teach.exercises.cells` assigns cells to exercises, as it does for the learner's own checks. Unusual notebooks
are graded too, with notes for the instructor. Apart from set-up, cells unchanged since their release are left out,
because they contain no answer and cost time.
"""

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from labkit.grading.reading import Notebook
from labkit.grading.sandbox.inside import serving
from labkit.teach.exercises import cells as marks
from labkit.teach.exercises.contract import Exercise
from labkit.teach.exercises.moved import now


@dataclass(frozen=True)
class ChosenCell:
    """A cell of a submitted notebook to execute; `exercise` names the exercise that it answers, if any."""

    source: str
    exercise: str | None = None


@dataclass
class PreparedNotebook:
    """The parts of a submitted notebook to grade: the cells to execute, and the exercises that they answer."""

    cells: list[ChosenCell] = field(default_factory=list)
    attempted: list[Exercise] = field(default_factory=list)
    missing: dict[str, str] = field(default_factory=dict)
    """By exercise name, the reason why there is no answer to grade, such as a missing cell."""
    troubles: dict[str, str] = field(default_factory=dict)
    """By exercise name, a sentence for the learner about names that the answer uses but no executed cell defines."""
    texts: dict[str, str] = field(default_factory=dict)
    """By exercise that a person grades, the source of the learner's cell, if any of its lines is the learner's own."""
    notes: list[str] = field(default_factory=list)

    def notebook(self, without: Iterable[int] = ()) -> str:
        """Return the JSON of the notebook to execute. Its last cell answers the questions of the check functions.

        `without` has the indices of the cells (in `cells`) to leave out.
        """
        sources = [self.cells[number].source for number in self.numbers(without)]
        return as_notebook([*sources, serving.CELL])

    def numbers(self, without: Iterable[int] = ()) -> list[int]:
        """Return the indices, in `cells`, of the cells to execute: all indices except those in `without`."""
        left_out = set(without)
        return [number for number in range(len(self.cells)) if number not in left_out]


def as_notebook(sources: Sequence[str]) -> str:
    """Return the JSON of a notebook with these sources as its code cells."""
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
        {"cells": cells, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5},
        # With \u escapes a notebook of the allowed size could exceed the limit of the sandbox.
        ensure_ascii=False,
    )


def prepare(submitted: Notebook, released: Notebook, exercises: Sequence[Exercise]) -> PreparedNotebook:
    """Select the cells of a submitted notebook to execute, and find the exercises that the learner has answered."""
    prepared = PreparedNotebook()
    answers = {exercise.name: exercise.answer for exercise in exercises}
    chosen = marks.select(submitted.cells, released.cells, answers)
    # The released notebook may have exercises without points, or outside of the assignment.
    of_release = {now(name, answers) for name in map(marks.named_exercise, released.cells) if name}
    prepared.notes += [
        f"A cell names the exercise {name}, which this notebook does not have."
        for name in chosen.strangers
        if name not in of_release
    ]
    owners: dict[int, str] = {}
    for name, place in chosen.counts.items():
        owners.setdefault(place, name)
    for place, cell in enumerate(submitted.cells):
        if chosen.is_run(place, cell):
            # Replaces lone surrogates, which cannot be sent to a kernel.
            source = cell.source.encode("utf-8", "replace").decode()
            prepared.cells.append(ChosenCell(source, owners.get(place)))
            prepared.cells += [
                ChosenCell(serving.KEEP.format(answers[name]))
                for name, counting in chosen.counts.items()
                if counting == place and _is_bound_later(answers[name], place, submitted, chosen)
            ]
    for exercise in exercises:
        name = exercise.name
        if name in chosen.counts:
            prepared.attempted.append(exercise)
            place = chosen.counts[name]
            troubles = marks.troubles(place, submitted.cells, released.cells, chosen)
            prepared.troubles |= {name: " ".join(troubles)} if troubles else {}
        elif name in chosen.names:
            prepared.missing[name] = "its cell has not been changed since the release"
        else:
            prepared.missing[name] = "its cell is missing from the notebook"
        if exercise.by_hand and (own := _own_cell(name, submitted, released, chosen)):
            prepared.texts[name] = own
    prepared.notes += _elsewhere(chosen, answers)
    rivals = (marks.competition(submitted.cells, chosen, name, answer) for name, answer in answers.items())
    prepared.notes += filter(None, rivals)
    ungraded = {name for name in of_release if name not in answers}
    prepared.notes += _oddities(submitted, chosen, released, list(answers), ungraded)
    return prepared


def _own_cell(name: str, submitted: Notebook, released: Notebook, chosen: marks.Selection) -> str:
    """Return the source of the learner's cell for a free-text exercise, or "" if the learner wrote no line of it.

    A new comment counts as a line, because the person who grades the text may accept a comment as the answer.
    """
    marked = [place for place, named in enumerate(chosen.names) if named == name]
    given = {piece.strip() for cell in released.cells for line in cell.source.splitlines() for piece in _pieces(line)}
    for place in (*([chosen.counts[name]] if name in chosen.counts else []), *reversed(marked)):
        source = submitted.cells[place].source
        lines = [line.strip() for line in source.splitlines()]
        if any(line not in given and not marks.MARK.match(line) for line in lines if line):
            return source
    return ""


def _pieces(line: str) -> Sequence[str]:
    code, sign, comment = line.partition("#")
    return line, code, f"{sign}{comment}"


def _is_bound_later(answer: str, place: int, submitted: Notebook, chosen: marks.Selection) -> bool:
    return any(
        chosen.is_run(later, cell) and answer in marks.bound(cell.source)
        for later, cell in enumerate(submitted.cells)
        if later > place
    )


def _elsewhere(chosen: marks.Selection, answers: Mapping[str, str]) -> list[str]:
    """Return a note on each answer that was taken from a cell that is not marked with the exercise's name."""
    notes = []
    for name, place in chosen.counts.items():
        if chosen.names[place] == name:
            continue
        if name in chosen.names:
            notes.append(
                f"{name}: the cell of this exercise does not define {answers[name]}, so the answer was taken from "
                "another cell that does."
            )
        else:
            notes.append(f"{name}: no cell names the exercise, so the answer was found by its name {answers[name]}.")
    return notes


def _oddities(
    submitted: Notebook, chosen: marks.Selection, released: Notebook, names: Sequence[str], ungraded: Collection[str]
) -> list[str]:
    """Return notes on what is unusual in a submitted notebook but tolerated, such as cells in another order.

    `names` are the exercises to grade. `ungraded` are the other exercises of the released notebook; their cells do not
    count as cells that the student has added.
    """
    released_order = [name for name in map(marks.named_exercise, released.cells) if name in names]
    order = [name for name, changed in zip(chosen.names, chosen.changed, strict=True) if name is not None and changed]
    notes = [
        f"{name}: {order.count(name)} cells answer it; the last one counts."
        for name in dict.fromkeys(order)
        if order.count(name) > 1
    ]
    marked = [name for name in chosen.names if name is not None]
    answered = [name for name in dict.fromkeys(reversed(marked)) if name in released_order][::-1]
    if answered != [name for name in released_order if name in answered]:
        notes.append("The exercises are not in the order of the released notebook.")
    owned = set(chosen.counts.values())
    added = sum(
        chosen.changed[place]
        and chosen.names[place] is None
        and place not in owned
        and bool(cell.source.strip())
        and marks.named_exercise(cell) not in ungraded
        for place, cell in enumerate(submitted.cells)
    )
    if added:
        notes.append(f"The student has added or edited {added} cells that belong to no exercise.")
    texts = {marks.normal(cell.source) for cell in submitted.cells}
    missing = sum(
        marks.named_exercise(cell) is None and marks.normal(cell.source) not in texts for cell in released.cells
    )
    if missing:
        notes.append(f"{missing} cells of the released notebook are missing or edited.")
    return notes
