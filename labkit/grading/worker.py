"""A process that grades one submission after the other, as the batch tells it.

    python -m labkit.grading.worker

It ends with the process that started it. A worker that dies costs the batch one more try of one submission. It must not
choose what is graded.
"""

import importlib.metadata
import os
import platform
import socket
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from labkit import __version__
from labkit.core.errors import LabError
from labkit.grading import course as courses
from labkit.grading import records, tasks
from labkit.grading.examining import Examination, unattempted
from labkit.grading.marking import not_attempted, not_graded
from labkit.grading.preparing import prepare
from labkit.grading.reading import NotANotebook, Notebook, read_file
from labkit.grading.records import Isolation, ItemRecord, Record
from labkit.grading.sandbox.inside.frames import FrameError, receive, send
from labkit.grading.sandbox.sandbox import Sandbox
from labkit.grading.spark_judging import SparkJudge
from labkit.grading.submissions import Submission
from labkit.host import durable
from labkit.host.processes.tether import end_with_parent
from labkit.teach.exercises.contract import Exercise, Variant

_PACKAGES = ("papermill", "nbclient", "ipykernel", "jupyter_client")


def main() -> int:
    """Grades until nobody asks any more."""
    end_with_parent()
    connection = socket.socket(fileno=os.dup(0))
    try:
        grader = Grader(tasks.decode(receive(connection, tasks.MOST), tasks.Setting))
        with grader:
            while True:
                told = grader.grade(
                    tasks.decode(receive(connection, tasks.MOST), Submission)
                )
                send(connection, tasks.encode(told))
    except FrameError:
        return 0


class Grader:
    """Grades submissions of one batch, in one sandbox after the other."""

    def __init__(self, setting: tasks.Setting) -> None:
        self.setting, self.out = setting, Path(setting.out)
        file = Path(setting.course) if setting.course else None
        self.course = courses.load(file)
        self._hidden: dict[str, Sequence[Variant]] = {}
        self._released: dict[str, Notebook] = {}
        self._sandbox: Sandbox | None = None
        self._spark = SparkJudge(
            file, Path(setting.place.root).with_name(f"spark-{setting.place.user}")
        )

    def grade(self, submission: Submission) -> tasks.SubmissionOutcome:
        """Writes the record of a submission, whatever it is."""
        begun = time.monotonic()
        name = records.file_name(submission.student, submission.notebook)
        record = new_record(submission, self.course, self.setting)
        try:
            executed = self._examine(submission, record)
            if executed is not None:
                record.executed = f"{name}.ipynb"
                durable.replace(self.out / "executed" / record.executed, executed)
        except Exception as error:  # noqa: BLE001 - whatever it is, the batch goes on
            self._close_sandbox()
            why = (
                str(error)
                if isinstance(error, LabError)
                else f"{type(error).__name__}: {error}"
            )
            none_graded(record, self.course.of_notebook(submission.notebook), why)
        record.seconds = round(time.monotonic() - begun, 3)
        records.write(record, self.out / "records" / f"{name}.json")
        return tasks.SubmissionOutcome(
            name, records.total([record]), record.seconds, record.graded()
        )

    def _examine(self, submission: Submission, record: Record) -> str | None:
        """Fills the items of a record; the executed notebook, if there is one."""
        exercises = self.course.of_notebook(submission.notebook)
        problem, notebook = submission.problem, None
        if not problem and submission.path is not None:
            try:
                notebook = read_file(submission.path)
                problem = _foreign(notebook)
            except NotANotebook as error:
                problem = str(error)
        if problem or notebook is None:
            record.notes.append(problem)
            record.items = [_nothing(exercise, problem) for exercise in exercises]
            return None
        prepared = prepare(notebook, self._as_released(submission.notebook), exercises)
        record.notes += _versions(notebook) + prepared.notes
        if not prepared.attempted:
            record.notes.append("It holds no answer.")
        examined = Examination(
            prepared, self._variants, self.sandbox, self.setting.patience, self._spark
        ).run()
        found = unattempted(prepared, exercises) | examined.items
        record.items = [found[exercise.name] for exercise in exercises]
        record.notes += examined.notes
        record.limits_hit = examined.limits_hit
        return examined.executed

    def _variants(self, exercise: Exercise) -> Sequence[Variant]:
        if exercise.name not in self._hidden:
            public = [variant.parameters for variant in exercise.public]
            found = self.course.variants(exercise.name, self.setting.seed)
            hidden = any(variant.parameters not in public for variant in found)
            self._hidden[exercise.name] = (
                found if hidden else []
            )  # the public ones again: nothing is hidden
        return self._hidden[exercise.name]

    def _as_released(self, notebook: str) -> Notebook:
        if notebook not in self._released:
            self._released[notebook] = read_file(self.course.released(notebook))
        return self._released[notebook]

    @property
    def sandbox(self) -> Sandbox:
        """The process that makes sandboxes, started when it is needed first."""
        if self._sandbox is None:
            setting = self.setting
            self._sandbox = Sandbox(
                setting.level, setting.place, Path(setting.lab), setting.limits
            )
        return self._sandbox

    def _close_sandbox(self) -> None:
        if self._sandbox is not None:
            self._sandbox.close()
            self._sandbox = None

    def __enter__(self) -> "Grader":  # noqa: PYI034
        return self

    def __exit__(self, *_: object) -> None:
        self._close_sandbox()
        self._spark.close()


def new_record(
    submission: Submission, course: courses.Course, setting: tasks.Setting
) -> Record:
    """A record without any item yet."""
    return Record(
        course.name,
        submission.student,
        submission.notebook,
        submission.file,
        submission.sha256,
        setting.seed,
        course.digest,
        versions(),
        Isolation(setting.level.value, setting.missing),
        notes=list(submission.notes),
        late=submission.late,
        submitted=submission.when.isoformat(timespec="seconds"),
    )


def versions() -> dict[str, str]:
    """Of what a grade may depend on."""
    found = {name: importlib.metadata.version(name) for name in _PACKAGES}
    return {"labkit": __version__, "python": platform.python_version(), **found}


def _foreign(notebook: Notebook) -> str:
    """Why a notebook cannot be run here, in a sentence; empty when it can."""
    if notebook.language and notebook.language.lower() != "python":
        return f"It is for the kernel {notebook.kernel or '?'} ({notebook.language}), and the exercises are in Python."
    return ""


def _versions(notebook: Notebook) -> list[str]:
    found = []
    if notebook.lab_version and notebook.lab_version != __version__:
        found.append(
            f"It was made with version {notebook.lab_version} of the lab, and this is {__version__}."
        )
    if notebook.kernel not in {"", "python3"}:
        found.append(
            f"It names the kernel {notebook.kernel}; it was run with Python {platform.python_version()}."
        )
    return found


def _nothing(exercise: Exercise, why: str) -> ItemRecord:
    item = ItemRecord(exercise.name, exercise.points)
    not_attempted(item, why)
    return item


def none_graded(record: Record, exercises: Sequence[Exercise], why: str) -> None:
    """Says of every exercise that grading itself failed."""
    record.notes.append(f"Grading itself failed: {why}")
    record.items = []
    for exercise in exercises:
        item = ItemRecord(exercise.name, exercise.points)
        not_graded(item, why)
        record.items.append(item)


if __name__ == "__main__":
    sys.exit(main())
