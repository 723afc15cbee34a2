"""Provide submissions for measurements: notebooks of the lab with right answers."""

import json
import socket
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

import nbformat
from papermill import execute_notebook

from labkit.core.errors import GradingError
from labkit.grading.asking import RemoteAnswer
from labkit.grading.course import Course, load
from labkit.grading.preparing import PreparedNotebook, as_notebook, prepare
from labkit.grading.reading import read
from labkit.grading.release import solved
from labkit.grading.sandbox import levels, root_layout
from labkit.grading.sandbox.inside.jobs import Limits
from labkit.grading.sandbox.sandbox import Sandbox


@dataclass(frozen=True)
class Specimen:
    """A prepared submission, and a sandbox in which to run it."""

    prepared: PreparedNotebook
    sandbox: Sandbox

    @property
    def notebook(self) -> str:
        """The JSON of the cells to execute, without the last cell, which answers questions."""
        return as_notebook([cell.source for cell in self.prepared.cells])

    def execute(self) -> float:
        """Run the submission, and check that every answer's process replies; return the seconds that this takes."""
        begun = time.perf_counter()
        deadline = time.monotonic() + self.sandbox.limits.total_seconds
        names = [exercise.answer for exercise in self.prepared.attempted]
        with self.sandbox.run(self.prepared.notebook(), names, deadline) as run:
            ended = run.until_cell(len(self.prepared.cells))
            if ended is not None or not all(self._met(connection, deadline) for connection in run.answers):
                raise GradingError(f"The reference solution did not run in its sandbox ({ended}).")
            run.executed()
        return time.perf_counter() - begun

    @staticmethod
    def _met(connection: socket.socket, deadline: float) -> bool:
        met = RemoteAnswer(connection, deadline).greet()
        connection.close()
        return met


@contextmanager
def specimen(work: Path) -> Iterator[Specimen]:
    """Provide a solved notebook and a started sandbox within a `with` block.

    The notebook is the one with the most exercises that do not need Spark.
    """
    course = load(None)
    name, text = _text(course)
    released = read(course.released(name).read_bytes())
    prepared = prepare(read(text.encode()), released, course.of_notebook(name))
    lab = work / "lab"
    root_layout.copy_lab(lab, course.withheld())
    here = levels.place_of(work, root_layout.shown(lab), (), 0)
    level, _ = levels.choose("best", here, lab, trust=True)
    with closing(Sandbox(level, here, lab, Limits())) as sandbox:
        yield Specimen(prepared, sandbox)


def execute_plainly(notebook: str) -> float:
    """Execute a trusted notebook (JSON) by papermill, without isolation; return the seconds that it took."""
    begun = time.perf_counter()
    execute_notebook(nbformat.from_dict(json.loads(notebook)), None, kernel_name="python3", progress_bar=False)
    return time.perf_counter() - begun


def hand_in(folder: Path, count: int) -> None:
    """Write `count` submissions into a folder, each slightly different so that no two files are the same."""
    name, text = _text(load(None))
    for number in range(count):
        path = folder / f"student-{number:03}" / f"{name}.ipynb"
        path.parent.mkdir(parents=True)
        plain = json.loads(text)
        plain["metadata"]["number"] = number
        path.write_text(json.dumps(plain), encoding="utf-8")


def _text(course: Course) -> tuple[str, str]:
    names = sorted({exercise.notebook for exercise in course.exercises.values()})

    def exercises(name: str) -> tuple[bool, int]:
        asked = course.of_notebook(name)
        return not any(exercise.needs_spark for exercise in asked), len(asked)

    name = max(names, key=exercises)
    return name, solved(course.released(name))
