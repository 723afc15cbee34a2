"""A worker process, which grades one submission after the other as the main process of `labkit grade` sends them.

    python -m labkit.grading.worker

The worker ends with its parent. If it dies, the main process tries its submission once more in another worker.
"""

import gc
import importlib.metadata
import os
import platform
import socket
import sys
import tempfile
import time
from collections.abc import Collection, Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from random import Random

from labkit import __version__
from labkit.core.errors import LabError
from labkit.grading import course as courses
from labkit.grading import records, tasks
from labkit.grading.examining import Examination, ExaminationResult, is_function, without_answer
from labkit.grading.explaining import explain
from labkit.grading.marking import failed, hand_over, not_graded
from labkit.grading.outputs import earlier, facts
from labkit.grading.preparing import prepare
from labkit.grading.reading import Notebook, read_file, stored
from labkit.grading.records import Isolation, ItemRecord, Record
from labkit.grading.redacting import private_paths, without_paths
from labkit.grading.sandbox.inside.frames import FrameError, receive, send
from labkit.grading.sandbox.sandbox import Sandbox
from labkit.grading.similarity import structure
from labkit.grading.spark_judging import SparkJudge
from labkit.grading.submissions import Submission
from labkit.host import durable
from labkit.host.cores import keep_to_one
from labkit.host.processes.tether import end_with_parent
from labkit.teach.exercises.contract import Exercise, Variant

_MOST_CODE = 20_000
_PACKAGES = ("papermill", "nbclient", "ipykernel", "jupyter_client")


def main() -> int:
    """Grade submissions that arrive on standard input (a socket) until it is closed; return the exit code."""
    end_with_parent()
    # Imported modules are never freed, so the garbage collector need not examine them again and again.
    gc.freeze()
    connection = socket.socket(fileno=os.dup(0))
    try:
        setting = tasks.decode(receive(connection, tasks.MOST), tasks.Setting)
        if setting.core is not None:
            # The judge, the learner's code and the store exchange thousands of messages, and one works at a time.
            keep_to_one(setting.core)
        # A killed worker removes no temporary folder, so all of them are in the batch's folder, which is removed later.
        place = Path(setting.place.root)
        scratch = place.with_name(f"scratch-{place.name}")
        scratch.mkdir(exist_ok=True)
        tempfile.tempdir = str(scratch)
        grader = Grader(setting)
        with grader:
            is_first = True
            while True:
                outcome = grader.grade(tasks.decode(receive(connection, tasks.MOST), Submission))
                send(connection, tasks.encode(outcome))
                if is_first and outcome.graded:
                    # The judges have now computed what they need for every submission of this notebook.
                    gc.collect()
                    gc.freeze()
                    is_first = False
    except FrameError:
        return 0


class Grader:
    """Grades submissions in a worker process, and runs each submission in new sandboxes."""

    def __init__(self, setting: tasks.Setting) -> None:
        self.setting, self.out = setting, setting.out
        self.course = courses.load(setting.course)
        self._hidden: dict[str, Sequence[Variant]] = {}
        self._released: dict[str, Notebook] = {}
        self._sandboxes: dict[int, Sandbox] = {}
        root = Path(setting.place.root)
        self._private = private_paths(setting)
        spark = root.with_name(f"spark-{setting.place.user}")
        self._spark = SparkJudge(setting.course, spark, shared=root.with_name("spark-findings"))

    def grade(self, submission: Submission) -> tasks.SubmissionOutcome:
        """Grade a submission and return the outcome. A record (grading result) is written even if grading fails."""
        begun = time.monotonic()
        name = records.file_name(submission.key, submission.notebook)
        path = self.out / "records" / f"{name}.json"
        before = earlier(path)
        record = new_record(submission, self.course, self.setting)
        kept = self._kept(record, before)
        out_of_time = False
        try:
            examined = self._examine(submission, record, kept)
            if examined is not None:
                out_of_time = examined.out_of_time
            if examined is not None and examined.executed is not None:
                record.executed = f"{name}.ipynb"
                durable.replace(self.out / "executed" / record.executed, examined.executed)
        except Exception as error:  # noqa: BLE001 - the batch continues after any error
            self._close_sandboxes()
            why = str(error) if isinstance(error, LabError) else f"{type(error).__name__}: {error}"
            none_graded(record, self.course.of_notebook(submission.notebook), why)
        settle(record, before, self.setting.exercises)
        record.seconds = round(time.monotonic() - begun, 3)
        records.write(record, path)
        return tasks.SubmissionOutcome(name, record.graded(), out_of_time)

    def _kept(self, record: Record, before: Record | None) -> dict[str, ItemRecord]:
        """Return, by exercise name, the results in `before` that stay valid when only other exercises are graded."""
        if not self.setting.exercises or before is None:
            return {}
        if (before.sha256, before.seed) != (record.sha256, record.seed):
            return {}
        record.digest, record.executed = before.digest, before.executed
        return {item.name: item for item in before.items if item.name not in self.setting.exercises}

    def _examine(
        self, submission: Submission, record: Record, kept: Mapping[str, ItemRecord]
    ) -> ExaminationResult | None:
        """Execute and judge a submission, and write the results into `record`.

        The exercises in `kept` are not judged again; their results are copied into `record`. Returns the result of
        the examination, or None if the submission cannot be executed.
        """
        exercises = self.course.of_notebook(submission.notebook)
        problem, notebook = submission.problem, None
        if not problem and submission.path is not None:
            notebook = stored(submission.path)
            problem = _foreign(notebook)
        if problem or notebook is None:
            record.notes.append(problem)
            record.items = [without_answer(exercise, problem) for exercise in exercises]
            return None
        prepared = prepare(notebook, self._as_released(submission.notebook), exercises)
        prepared.attempted = [one for one in prepared.attempted if one.name not in kept]
        record.notes += _versions(notebook) + prepared.notes
        if not prepared.attempted and not kept:
            record.notes.append("The notebook contains no answer.")
        self._start_processes(prepared.attempted)
        examination = Examination(
            prepared, self._variants, self.sandbox, self.setting.patience, self._spark, partial(self._salted, 1)
        )
        examined = examination.run()
        why = prepared.missing
        missing = {each.name: without_answer(each, why[each.name]) for each in exercises if each.name in why}
        items = missing | examined.items | dict(kept)
        record.items = [items[exercise.name] for exercise in exercises]
        record.notes += examined.notes
        record.limits_hit = examined.limits_hit
        for cell in prepared.cells:
            if cell.exercise in items:
                items[cell.exercise].code = cell.source[:_MOST_CODE]
                items[cell.exercise].structure = structure(cell.source)
        for exercise in exercises:
            if exercise.name in prepared.texts and exercise.name not in kept:
                hand_over(items[exercise.name], exercise, prepared.texts[exercise.name][:_MOST_CODE])
        try:
            explain(examined.items, prepared, examination.without, self.sandbox)
        except Exception:  # noqa: BLE001 - the grade is valid without an explanation
            self._close_sandboxes()
        for item in record.items:
            item.shown, item.error = (without_paths(words, self._private) for words in (item.shown, item.error))
            item.written = None if item.written is None else without_paths(item.written, self._private)
        return examined

    def _variants(self, exercise: Exercise) -> Sequence[Variant]:
        if exercise.name not in self._hidden:
            public = [variant.parameters for variant in exercise.public]
            variants = self.course.variants(exercise.name, self.setting.seed)
            hidden = any(variant.parameters not in public for variant in variants)
            # A course may give the public variants again; judging these twice would prove nothing more.
            self._hidden[exercise.name] = variants if hidden else []
        return self._hidden[exercise.name]

    def _as_released(self, notebook: str) -> Notebook:
        if notebook not in self._released:
            self._released[notebook] = read_file(self.course.released(notebook))
        return self._released[notebook]

    @property
    def sandbox(self) -> Sandbox:
        """The process that forks this worker's sandboxes; the first access starts it in the background."""
        return self._salted(0)

    def _start_processes(self, attempted: Sequence[Exercise]) -> None:
        """If the answer to an exercise is a function, start both fork servers, one for each run of the notebook.

        A fork server is a process that forks sandboxes. The second run, with another hash seed, tests only functions.
        If no answer is a function, nothing is started here; the first fork server then starts at its first use.
        """
        for number in range(2 if any(map(is_function, attempted)) else 0):
            self._salted(number)

    def _salted(self, number: int) -> Sandbox:
        """Return fork server 0 or 1, which forks sandboxes; start it if necessary. Each has its own hash seed."""
        if number not in self._sandboxes:
            setting = self.setting
            # From the batch's seed, so that a grade can be repeated.
            salt = Random(f"salt {number} {setting.seed}").randrange(1, 2**32)
            self._sandboxes[number] = Sandbox(setting.level, setting.place, setting.lab, setting.limits, salt)
        return self._sandboxes[number]

    def _close_sandboxes(self) -> None:
        while self._sandboxes:
            self._sandboxes.popitem()[1].close()

    def __enter__(self) -> "Grader":  # noqa: PYI034 - nobody inherits from it
        return self

    def __exit__(self, *_: object) -> None:
        self._close_sandboxes()
        self._spark.close()


def new_record(submission: Submission, course: courses.Course, setting: tasks.Setting) -> Record:
    """Return a submission's record (stored result) with all facts about the submission, but no points yet."""
    return Record(
        course=course.name,
        notebook=submission.notebook,
        sha256=submission.sha256,
        seed=setting.seed,
        digest=course.digest,
        versions=dict(versions()),
        isolation=Isolation(setting.level.value, setting.missing),
        notes=list(submission.notes),
        key=submission.key,
        **facts(submission),
    )


@cache
def versions() -> dict[str, str]:
    """Return the versions of labkit, Python and other packages that may affect a grade, by name."""
    packages = {name: importlib.metadata.version(name) for name in _PACKAGES}
    return {"labkit": __version__, "python": platform.python_version(), **packages}


def _foreign(notebook: Notebook) -> str:
    if notebook.language and not notebook.language.lower().startswith(("python", "ipython")):
        return (
            f"The notebook is for the kernel {notebook.kernel or '?'} ({notebook.language}), but the exercises are in "
            "Python."
        )
    return ""


def _versions(notebook: Notebook) -> list[str]:
    notes = []
    if notebook.lab_version and notebook.lab_version != __version__:
        notes.append(
            f"The notebook comes from version {notebook.lab_version} of the lab, but version {__version__} graded it."
        )
    if notebook.kernel not in {"", "python3"}:
        notes.append(f"The notebook names the kernel {notebook.kernel}, but Python {platform.python_version()} ran it.")
    return notes


def none_graded(record: Record, exercises: Sequence[Exercise], why: str) -> None:
    """Mark every exercise in a record as not graded, because grading itself failed for the reason `why`."""
    record.notes.append(f"Grading itself failed: {why}"[:1000])
    record.items = []
    for exercise in exercises:
        item = ItemRecord(exercise.name, exercise.points)
        not_graded(item, why)
        record.items.append(item)


def settle(record: Record, before: Record | None, requested: Collection[str]) -> None:
    """Give 0 points, and ask the instructor, if the grader itself has failed on the same file `MOST_TRIES` times.

    Only exercises without a result get 0 points. `before` is the previous record of the submission. If `requested` is
    not empty, only these exercises were to be graded, so all others keep their results from `before`.
    """
    if record.graded():
        return
    if requested and before is not None and before.sha256 == record.sha256:
        earlier_items = {item.name: item for item in before.items}
        record.items = [item if item.name in requested else earlier_items.get(item.name, item) for item in record.items]
    again = (
        before is not None and not before.graded() and (before.sha256, before.digest) == (record.sha256, record.digest)
    )
    record.tries = 1 + (before.tries if again and before is not None else 0)
    if record.tries < records.MOST_TRIES:
        return
    names = []
    for item in record.items:
        if item.status == "not graded":
            why = item.reason
            failed(item, f"grading failed in {record.tries} batches: {why}", "could not be graded")
            item.shown = "Grading itself failed several times; your instructor knows, and can give points by hand."
            names.append(item.name)
    record.doubts.append(
        f"{records.GIVEN_UP} {record.tries} times at {', '.join(names)}, so these exercises have 0 points; look "
        "at the executed notebook and give points with --marks, or try again with --only."
    )
    record.settled_by[record.doubts[-1]] = names


if __name__ == "__main__":
    sys.exit(main())
