"""Grades many submissions in parallel: sends those without a valid record to worker processes, and replaces dead ones.

The record (stored result) of each finished submission is on disk, so the same command continues a killed batch.
"""

import queue
import socket
import subprocess
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec

from labkit.core.errors import InvalidInput
from labkit.grading import course as courses
from labkit.grading import records, shards, tasks
from labkit.grading.order import Order
from labkit.grading.outputs import drop_stray, earlier, is_kept, opened, record_path
from labkit.grading.sandbox import levels, root_layout
from labkit.grading.sandbox.inside.frames import receive, send
from labkit.grading.submissions import Submission, collect
from labkit.grading.worker import new_record, none_graded, settle
from labkit.host.cores import cores
from labkit.host.processes.own_python import own_python
from labkit.teach.exercises.moved import now

_TRIES = 2

Tell = Callable[[int, int, str], None]
"""A function that shows progress: it gets the numbers of finished and of all submissions, and the latest one's name."""


@dataclass(frozen=True)
class Done:
    """The result of one `labkit grade` command: counts of submissions, duration, and isolation of the sandboxes."""

    seed: int
    graded: int
    kept: int
    """The number of submissions that already had a valid record."""
    failed: int
    """The number of submissions for which grading itself failed."""
    seconds: float
    level: str
    missing: dict[str, str]
    taken: int = 0
    """The number of records that were copied from the output folders of shards."""
    unread: int = 0
    """The number of submissions without a notebook that can be graded, even if unchanged; `graded` excludes them."""


def run(order: Order, tell: Tell) -> Done:
    """Grade all submissions that have no valid record (stored result).

    Raises `InvalidInput` for unusable options or files, and `GradingError` if no sandbox works.
    """
    begun = time.monotonic()
    course = courses.load(order.course).only(order.asked)
    order = replace(order, exercises=[now(name, course.exercises) for name in order.exercises])
    _check_exercises(order, course)
    parts = shards.expanded(order.parts, order.out, alone=order.shard is None)
    seed = shards.seed_of(parts, course, order.seed)
    with opened(order.out, course.name, seed, order.options) as output, ExitStack() as ends:
        files = output.work / "files"
        files.mkdir()
        submissions = collect(order.given, course, files, order.deadline, order.out)
        if order.shard is not None:
            submissions = [one for one in submissions if order.shard.has(one)]
        taken_over = shards.take_over(parts, order.out, submissions, course, output.seed)
        todo = _chosen(order, course, submissions, output.seed)
        # The workers start now, so that they import their packages while this process prepares the sandboxes.
        workers: list[_Worker] = []
        for _ in range(min(len(todo), order.workers or cores())):
            workers.append(_Worker())
            ends.callback(workers[-1].end)
        setting = _setting(order, course, output.seed, output.work) if todo else None
        outcomes = []
        if setting is not None:
            # With a worker for every processor, each stays on its own.
            every = len(workers) == cores()
            for number, worker in enumerate(workers):
                worker.setting = _placed(setting, output.work, number, one_core=every)
            outcomes = _deal(todo, workers, order, tell)
        drop_stray(order.out, submissions)
    level, missing = (setting.level.value, setting.missing) if setting else ("", {})
    unread = {records.file_name(one.key, one.notebook) for one in submissions if one.problem}
    return Done(
        output.seed,
        sum(one.graded and one.name not in unread for one in outcomes),
        len(submissions) - len(todo) - taken_over,
        sum(not one.graded for one in outcomes),
        time.monotonic() - begun,
        level,
        missing,
        taken_over,
        len(unread),
    )


def on_spark(order: Order, master: str, count: int) -> Order:
    """Grade the submissions on Spark in `count` shards; return the options for a local run that merges the results.

    The caller starts the local run. Raises `JobFailed`, `ServiceUnavailable` or `InvalidInput`.
    """
    course = courses.load(order.course)
    # The seed is stored before Spark starts, so that the same command continues with it after a crash.
    with opened(order.out, course.name, order.seed, order.options) as output:
        seed = output.seed
    limits = order.limits
    words = ["grade", *(str(path.absolute()) for path in order.given), "--seed", str(seed)]
    words += ["--isolation", order.isolation, "--workers", "1", "--json"]
    words += ["--cell-seconds", str(limits.cell_seconds), "--total-seconds", str(limits.total_seconds)]
    words += ["--trust"] if order.trust else []
    words += ["--course", str(order.course.absolute())] if order.course else []
    parts = shards.run_on_spark(master, count, words, order.out)
    return replace(order, seed=seed, parts=[*order.parts, parts])


def _chosen(order: Order, course: courses.Course, submissions: Sequence[Submission], seed: int) -> list[Submission]:
    """Return the submissions that --only and --exercise select, or by default those that have no valid record."""
    if not order.only and not order.exercises:
        return [one for one in submissions if not is_kept(one, order.out, course, seed)]
    keys = {_called(name, submissions) for name in order.only}
    notebooks = {course.exercises[name].notebook for name in order.exercises}
    return [
        one for one in submissions if (not keys or one.key in keys) and (not notebooks or one.notebook in notebooks)
    ]


def _called(name: str, submissions: Sequence[Submission]) -> str:
    """Return the key of the student with this name, id or account. Raises `InvalidInput` unless exactly one fits."""
    if any(one.key == name for one in submissions):
        return name
    keys = sorted({one.key for one in submissions if name in {one.origin.shown, one.origin.account}})
    if not keys:
        raise InvalidInput(
            f"--only {name}: no student of this name has submitted anything; use a name from the columns "
            "student and id of grades.csv."
        )
    if len(keys) > 1:
        raise InvalidInput(f"--only {name}: {len(keys)} students have this name; name one of {', '.join(keys)}.")
    return keys[0]


def _check_exercises(order: Order, course: courses.Course) -> None:
    for name in order.exercises:
        if name not in course.exercises:
            raise InvalidInput(
                f"--exercise {name}: {course.name} has no exercise of this name; choose from "
                f"{', '.join(course.exercises)}."
            )


def _setting(order: Order, course: courses.Course, seed: int, work: Path) -> tasks.Setting:
    lab = work / "lab"
    root_layout.copy_lab(lab, course.withheld())
    shown = root_layout.shown(lab)
    file = None if order.course is None else order.course.absolute()
    private = [order.out, *order.given, course.notebooks, *([file.parent] if file else [])]
    masked = root_layout.masked(shown, private)
    first = levels.place_of(work, shown, masked, 0)
    level, missing = levels.choose(order.isolation, first, lab, trust=order.trust)
    out, limits, patience, again = order.out.absolute(), order.limits, order.patience, list(order.exercises)
    return tasks.Setting(file, seed, level, missing, limits, patience, first, lab, out, again)


def _deal(
    todo: Sequence[Submission], workers: Sequence["_Worker"], order: Order, tell: Tell
) -> list[tasks.SubmissionOutcome]:
    """Distribute the submissions `todo` to the workers, and return the outcome of each submission.

    A submission whose answers took too long is graded again at the end, when no other submission can slow it down; only
    this result counts.
    """
    outcomes: list[tasks.SubmissionOutcome] = []
    slow: list[Submission] = []
    free: queue.SimpleQueue[_Worker] = queue.SimpleQueue()
    for worker in workers:
        free.put(worker)

    def graded(one: Submission) -> tuple[Submission, tasks.SubmissionOutcome]:
        worker = free.get()
        try:
            return one, worker.grade(one)
        finally:
            free.put(worker)

    def finish(one: Submission, outcome: tasks.SubmissionOutcome) -> None:
        if outcome.error is not None:
            outcome.graded = _write_failure(one, outcome.error, workers[0].setting, order)
        outcomes.append(outcome)
        tell(len(outcomes), len(todo), outcome.name)

    with ThreadPoolExecutor(len(workers)) as pool:
        try:
            for future in as_completed([pool.submit(graded, one) for one in todo]):
                one, outcome = future.result()
                if outcome.out_of_time:
                    slow.append(one)
                else:
                    finish(one, outcome)
            for one in slow:
                finish(*graded(one))
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
            for worker in workers:
                worker.stop()
    return outcomes


def _placed(setting: tasks.Setting, work: Path, number: int, *, one_core: bool) -> tasks.Setting:
    first = setting.place
    place = levels.place_of(work, first.shown, first.masked, number)
    return msgspec.structs.replace(setting, place=place, core=number if one_core else None)


def _write_failure(one: Submission, why: str, setting: tasks.Setting, order: Order) -> bool:
    """Write the record (stored result) of a submission that could not be graded.

    Returns whether the record is final. If it is not, the next `labkit grade` command tries again.
    """
    course = courses.load(order.course)
    path = record_path(order.out, one)
    record = new_record(one, course, setting)
    none_graded(record, course.of_notebook(one.notebook), why)
    settle(record, earlier(path), order.exercises)
    records.write(record, path)
    return record.graded()


class _Worker:
    """A worker process that grades one submission at a time. If it dies, another process replaces it."""

    setting: tasks.Setting

    def __init__(self) -> None:
        self._is_stopped = False
        self._start()

    def _start(self) -> None:
        self._connection, child_end = socket.socketpair()
        self._process = subprocess.Popen(
            own_python("-m", "labkit.grading.worker"), stdin=child_end.fileno(), stdout=subprocess.DEVNULL
        )
        child_end.close()
        self._has_ended = self._has_setting = False

    def grade(self, one: Submission) -> tasks.SubmissionOutcome:
        """Grade a submission. If the process dies or hangs each time, the outcome has an error."""
        why = ""
        for _ in range(0 if self._is_stopped else _TRIES):
            try:
                return self._answer(one)
            except Exception as error:  # noqa: BLE001 - the batch waits for an answer, whatever the error is
                why = f"The worker process died or hung while grading this file ({error})."
                self.end()
        return tasks.SubmissionOutcome(records.file_name(one.key, one.notebook), graded=False, error=why)

    def _answer(self, one: Submission) -> tasks.SubmissionOutcome:
        limits, patience = self.setting.limits, self.setting.patience
        seconds = 300 + 2 * limits.total_seconds + 20 * patience.search_seconds
        if self._has_ended and not self._is_stopped:
            self._start()
        if not self._has_setting:
            send(self._connection, tasks.encode(self.setting))
            self._has_setting = True
        send(self._connection, tasks.encode(one))
        raw = receive(self._connection, tasks.MOST, time.monotonic() + seconds)
        return tasks.decode(raw, tasks.SubmissionOutcome)

    def stop(self) -> None:
        """Let the worker process end itself and its sandbox, even while it is grading."""
        self._is_stopped = True
        with suppress(OSError):
            self._connection.shutdown(socket.SHUT_RDWR)
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(0.5)

    def end(self) -> None:
        self._has_ended = True
        self._connection.close()
        self._process.kill()
        self._process.wait()
