"""Grades many submissions at once: chooses what has changed, deals it to workers, and survives what they die of.

What is done is on disk, record by record; a batch that was killed goes on where it stopped. This module must not look
into submissions.
"""

import fcntl
import os
import queue
import secrets
import shutil
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

import msgspec

from labkit.core.errors import InvalidInput
from labkit.grading import course as courses
from labkit.grading import records, tasks
from labkit.grading.asking import Patience
from labkit.grading.sandbox import levels, root_layout
from labkit.grading.sandbox.inside.frames import receive, send
from labkit.grading.sandbox.inside.jobs import Limits
from labkit.grading.submissions import Submission, collect
from labkit.grading.worker import new_record, none_graded
from labkit.host import durable

HEAD = "grading.json"
_FOLDERS = ("records", "feedback", "executed")
_TRIES = 2

Tell = Callable[[int, int, str], None]
"""Is told how many submissions are done, of how many, and which one was the last."""


class Head(msgspec.Struct):
    """What all records of an output folder have in common."""

    course: str
    seed: int
    format: int = records.FORMAT


@dataclass(frozen=True)
class Order:
    """What a person asked to be graded."""

    given: Sequence[Path]
    out: Path
    course: Path | None = None
    seed: int | None = None
    deadline: datetime | None = None
    isolation: str = "best"
    trust: bool = False
    workers: int = 0
    """0: one for each core."""
    limits: Limits = field(default_factory=Limits)
    patience: Patience = field(default_factory=Patience)


@dataclass(frozen=True)
class Done:
    """What a batch has done."""

    seed: int
    graded: int
    kept: int
    """Submissions whose records were there already."""
    failed: int
    """Submissions that could not be graded."""
    seconds: float
    level: str
    missing: dict[str, str]


def run(order: Order, tell: Tell) -> Done:
    """Grades what has no record yet or has changed. Raises `InvalidInput`, `GradingError`."""
    begun = time.monotonic()
    course = courses.load(order.course)
    with _opened(order.out, course.name, order.seed) as (seed, work):
        (work / "files").mkdir()
        found = collect(order.given, course, work / "files", order.deadline)
        todo = [one for one in found if not _is_kept(one, order.out, course, seed)]
        setting = _setting(order, course, seed, work) if todo else None
        told = _deal(todo, setting, order, work, tell) if setting else []
    level, missing = (setting.level.value, setting.missing) if setting else ("", {})
    failed = sum(not one.graded for one in told)
    return Done(
        seed,
        len(told),
        len(found) - len(todo),
        failed,
        time.monotonic() - begun,
        level,
        missing,
    )


@contextmanager
def _opened(out: Path, course: str, seed: int | None) -> Iterator[tuple[int, Path]]:
    """The output folder with its seed and a folder to work in; nobody else grades into it meanwhile."""
    head = _head(out, course, seed)
    for name in _FOLDERS:
        durable.make_folder(out / name)
    durable.replace(
        out / HEAD, msgspec.json.format(msgspec.json.encode(head), indent=1)
    )
    work = (
        out / ".work"
    ).absolute()  # workers and sandboxes have other working folders
    with (out / HEAD).open("rb") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise InvalidInput(
                f"{out}: another labkit grade writes there; wait, or name another --out."
            ) from None
        shutil.rmtree(work, ignore_errors=True)
        work.mkdir()
        try:
            yield head.seed, work
        finally:
            shutil.rmtree(work, ignore_errors=True)


def _head(out: Path, course: str, seed: int | None) -> Head:
    """What an output folder is for. Raises `InvalidInput` when it is for something else."""
    path = out / HEAD
    if out.exists() and not out.is_dir():
        raise InvalidInput(f"{out}: this is a file; name a folder with --out.")
    if not path.exists():
        if out.exists() and any(out.iterdir()):
            raise InvalidInput(
                f"{out}: there is something else in this folder; name a new one with --out."
            )
        return Head(course, secrets.randbits(32) if seed is None else seed)
    try:
        head: Head = msgspec.json.decode(path.read_bytes(), type=Head)
    except msgspec.DecodeError as error:
        raise InvalidInput(
            f"{path}: damaged ({error}); name a new folder with --out."
        ) from None
    if head.course != course:
        raise InvalidInput(
            f"{out}: it holds grades of the course {head.course}, not of {course}; name another --out."
        )
    if seed is not None and seed != head.seed:
        raise InvalidInput(
            f"{out}: its seed is {head.seed}, not {seed}; leave --seed out, or name another --out."
        )
    return head


def _is_kept(one: Submission, out: Path, course: courses.Course, seed: int) -> bool:
    """Whether the record of a submission still stands; what does not touch its points is brought up to date."""
    path = out / "records" / f"{records.file_name(one.student, one.notebook)}.json"
    record = records.read(path)
    if record is None or not record.graded():
        return False
    if (record.sha256, record.seed, record.digest) != (
        one.sha256,
        seed,
        course.digest,
    ) or not one.sha256:
        return (
            False  # what could not be read has no digest, and is cheap to refuse again
        )
    submitted = one.when.isoformat(timespec="seconds")
    if (record.late, record.submitted, record.file) != (one.late, submitted, one.file):
        record.late, record.submitted, record.file = one.late, submitted, one.file
        records.write(record, path)
    return True


def _setting(
    order: Order, course: courses.Course, seed: int, work: Path
) -> tasks.Setting:
    """What all workers share; chooses the level of isolation."""
    lab = work / "lab"
    root_layout.copy_lab(lab, course.withheld())
    shown = root_layout.shown(lab)
    masked = root_layout.masked(shown, [order.out, *order.given, course.notebooks])
    first = levels.place_of(work, shown, masked, 0)
    level, missing = levels.choose(order.isolation, first, lab, trust=order.trust)
    file = None if order.course is None else str(order.course.absolute())
    return tasks.Setting(
        file,
        seed,
        level,
        missing,
        order.limits,
        order.patience,
        first,
        str(lab),
        str(order.out.absolute()),
    )


def _deal(
    todo: Sequence[Submission],
    setting: tasks.Setting,
    order: Order,
    work: Path,
    tell: Tell,
) -> list[tasks.SubmissionOutcome]:
    """Gives each worker the next submission when it is done with one."""
    waiting: queue.SimpleQueue[tuple[Submission, int]] = queue.SimpleQueue()
    for one in todo:
        waiting.put((one, 1))
    done: queue.SimpleQueue[tuple[Submission, int, tasks.SubmissionOutcome]] = (
        queue.SimpleQueue()
    )
    count = min(len(todo), order.workers or cores())
    hands = [
        _Hand(_placed(setting, work, number), waiting, done) for number in range(count)
    ]
    told: list[tasks.SubmissionOutcome] = []
    try:
        for hand in hands:
            hand.start()
        while len(told) < len(todo):
            one, tries, said = done.get()
            if said.error is not None and tries < _TRIES:
                waiting.put((one, tries + 1))
                continue
            if said.error is not None:
                _write_failure(one, said.error, setting, order)
            told.append(said)
            tell(len(told), len(todo), said.name)
    finally:
        for hand in hands:
            hand.stop()
    return told


def cores() -> int:
    """How many cores this process may use."""
    return (
        len(os.sched_getaffinity(0))
        if hasattr(os, "sched_getaffinity")
        else os.cpu_count() or 1
    )


def _placed(setting: tasks.Setting, work: Path, number: int) -> tasks.Setting:
    first = setting.place
    return msgspec.structs.replace(
        setting, place=levels.place_of(work, first.shown, first.masked, number)
    )


def _write_failure(
    one: Submission, why: str, setting: tasks.Setting, order: Order
) -> None:
    course = courses.load(order.course)
    record = new_record(one, course, setting)
    none_graded(record, course.of_notebook(one.notebook), why)
    records.write(
        record,
        order.out / "records" / f"{records.file_name(one.student, one.notebook)}.json",
    )


class _Hand(threading.Thread):
    """Drives one worker process: hands it a submission, waits, and starts another one when it has died."""

    def __init__(
        self,
        setting: tasks.Setting,
        waiting: "queue.SimpleQueue[tuple[Submission, int]]",
        done: "queue.SimpleQueue[tuple[Submission, int, tasks.SubmissionOutcome]]",
    ) -> None:
        super().__init__(daemon=True)
        self._setting, self._waiting, self._done = setting, waiting, done
        self._process: subprocess.Popen[bytes] | None = None
        self._connection: socket.socket | None = None
        self._stopped = False

    def run(self) -> None:
        """Until it is stopped."""
        while not self._stopped:
            with suppress(queue.Empty):
                one, tries = self._waiting.get(timeout=0.1)
                self._done.put((one, tries, self._graded(one)))

    def _graded(self, one: Submission) -> tasks.SubmissionOutcome:
        limits, patience = self._setting.limits, self._setting.patience
        seconds = 300 + 2 * limits.total_seconds + 20 * patience.search_seconds
        try:
            connection = self._worker()
            send(connection, tasks.encode(one))
            told: tasks.SubmissionOutcome = tasks.decode(
                receive(connection, tasks.MOST, time.monotonic() + seconds),
                tasks.SubmissionOutcome,
            )
        except Exception as error:  # noqa: BLE001 - whatever it is, the batch waits for a word
            self._end()
            name = records.file_name(one.student, one.notebook)
            return tasks.SubmissionOutcome(
                name,
                graded=False,
                error=f"The worker that graded it died or hung ({error}).",
            )
        return told

    def _worker(self) -> socket.socket:
        if self._connection is None:
            self._connection, theirs = socket.socketpair()
            self._process = subprocess.Popen(
                [sys.executable, "-m", "labkit.grading.worker"],
                stdin=theirs.fileno(),
                stdout=subprocess.DEVNULL,
            )
            theirs.close()
            send(self._connection, tasks.encode(self._setting))
        return self._connection

    def stop(self) -> None:
        """Ends the worker, also in the middle of its work; its sandbox ends with it."""
        self._stopped = True
        if self._connection is not None:
            with suppress(OSError):
                self._connection.shutdown(socket.SHUT_RDWR)
        if self._process is not None:
            try:
                self._process.wait(0.5)
            except subprocess.TimeoutExpired:
                self._process.kill()
        self.join(10)
        self._end()

    def _end(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None
