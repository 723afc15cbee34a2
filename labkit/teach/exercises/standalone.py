"""Check a saved notebook without opening it: its graded cells run in a separate process, with the public variants.

    python -m labkit.teach.exercises.standalone NOTEBOOK

is that process. It prints one line of JSON for each exercise. `checked` starts it and reads its output; if the
process ends early, the remaining exercises count as failed. The code runs with the user's own rights, so use
`labkit grade` for notebooks of other people.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from labkit.core.errors import InvalidInput
from labkit.host.processes.own_python import own_python
from labkit.teach.exercises.alone import execute, fresh
from labkit.teach.exercises.cells import Selection, competition, named_exercise, select, troubles
from labkit.teach.exercises.check import judged
from labkit.teach.exercises.contract import Assignment
from labkit.teach.exercises.moved import now
from labkit.teach.exercises.registry import assignments, find
from labkit.teach.shipped import Cell, code_cells, released_cells

SECONDS = 900.0
"""The number of seconds that a notebook may take; one exercise runs real Spark."""


class Checked(msgspec.Struct, frozen=True):
    """The result of checking a learner's answer to one exercise of a notebook file."""

    name: str
    state: str
    """`passed`, `failed`, `not attempted`, or `by hand` for a text that a person reads."""
    message: str = ""

    @property
    def is_passed(self) -> bool:
        """Whether the answer is right, or is a text that a person will grade."""
        return self.state in {"passed", "by hand"}


class Opened(NamedTuple):
    """A learner's notebook file: its exercises, its cells, the original cells, and which of its cells are graded."""

    exercises: list[Assignment]
    cells: Sequence[Cell]
    released: Sequence[Cell]
    chosen: Selection


def checked(path: Path) -> list[Checked]:
    """Check every exercise of a notebook file in a separate process. Raises the errors of `opened`."""
    exercises = opened(path).exercises
    words = own_python("-m", "labkit.teach.exercises.standalone", str(path))
    try:
        ended = subprocess.run(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, timeout=SECONDS, check=False)
        output, why = ended.stdout, "a cell of the notebook ended the process"
    except subprocess.TimeoutExpired as late:
        output, why = late.stdout or b"", f"it took longer than {SECONDS:.0f} seconds"
    results = {each.name: each for each in _read(output)}
    return [
        results.get(exercise.name, Checked(exercise.name, "failed", f"Not checked: {why}.")) for exercise in exercises
    ]


def _read(output: bytes) -> Iterator[Checked]:
    for line in output.splitlines():
        try:
            yield msgspec.json.decode(line, type=Checked)
        except msgspec.DecodeError:
            continue  # a line that the notebook itself has printed


def opened(path: Path) -> Opened:
    """Read a notebook file and determine which cells are graded as answers.

    Raises `InvalidInput` if the file cannot be read or is not a notebook of the lab.
    """
    try:
        cells = code_cells(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InvalidInput(f"{path}: this file cannot be read ({error.strerror}); choose a notebook.") from None
    except (ValueError, KeyError, TypeError, AttributeError):
        raise InvalidInput(f"{path}: this is not a notebook; save it with JupyterLab and try again.") from None
    names = {name for cell in cells if (name := named_exercise(cell))}
    # If an exercise has moved since this copy was made, the copy has exercises of two notebooks, and those that did not
    # move decide.
    notebooks = (
        _asking(names)
        or _asking(map(now, names))
        or {each.notebook for each in assignments().values() if each.notebook == path.stem}
    )
    if not notebooks:
        raise InvalidInput(
            f"{path}: this notebook has no cell that belongs to an exercise of the lab; choose one with exercises."
        )
    if len(notebooks) != 1:
        raise InvalidInput(
            f"{path}: this file mixes exercises of several notebooks of the lab; choose a copy of only one of them, "
            "such as 05_two_phase_commit.ipynb."
        )
    [notebook] = notebooks
    released = released_cells(notebook)
    if released is None:
        raise InvalidInput(f"{path}: the released copy of {notebook} is missing; reinstall the lab.")
    exercises = [each for each in assignments().values() if each.notebook == notebook]
    answers = {each.name: each.answer for each in exercises}
    return Opened(exercises, cells, released, select(cells, released, answers))


def _asking(names: Iterable[str]) -> set[str]:
    by_name = assignments()
    return {by_name[name].notebook for name in names if name in by_name}


def check_all(path: Path) -> Iterator[Checked]:
    """Run the graded cells of a notebook in this process, and check every answer with the visible configurations."""
    notebook = opened(path)
    namespace, failed = fresh(), dict[int, str]()
    given = dict[str, object]()
    for place, cell in enumerate(notebook.cells):
        if notebook.chosen.is_run(place, cell):
            failed[place] = execute(cell.source, namespace)
        for exercise in notebook.exercises:
            if notebook.chosen.counts.get(exercise.name) == place and exercise.answer in namespace:
                given[exercise.name] = namespace[exercise.answer]
    for exercise in notebook.exercises:
        # A later cell may use the answer's name for something else, but the answer counts, as in grading.
        end = namespace.pop(exercise.answer, None)
        if exercise.name in given:
            namespace[exercise.answer] = given[exercise.name]
        yield _judged(exercise, notebook, namespace, failed)
        namespace[exercise.answer] = end


def _judged(exercise: Assignment, notebook: Opened, namespace: dict[str, object], failed: dict[int, str]) -> Checked:
    place = notebook.chosen.counts.get(exercise.name)
    if place is None:
        return Checked(exercise.name, "not attempted")
    if exercise.answer not in namespace and failed[place]:
        return Checked(exercise.name, "failed", f"{failed[place]}.")
    sources = [notebook.cells[each].source for each in failed]
    findings = judged(find(exercise.name), namespace, sources, list(failed).index(place))
    if findings is None:
        return Checked(exercise.name, "not attempted")
    last = findings[-1]
    rivals = competition(notebook.cells, notebook.chosen, exercise.name, exercise.answer)
    if last.passed:
        return Checked(exercise.name, "by hand" if exercise.by_hand else "passed", rivals)
    complaints = troubles(place, notebook.cells, notebook.released, notebook.chosen)
    return Checked(exercise.name, "failed", " ".join(filter(None, [last.message, *complaints, rivals])))


def main(path: Path) -> None:
    """Print one line of JSON for each exercise of a notebook, on a descriptor that the cells cannot write to."""
    channel = os.dup(1)
    os.dup2(2, 1)
    for each in check_all(path):
        os.write(channel, json.dumps(msgspec.to_builtins(each)).encode() + b"\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
