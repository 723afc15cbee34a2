"""Judges answers that need Spark in a separate process, so that a crash there harms nothing else.

The answer is a constant that the sandbox has already returned, so no learner's code runs in this process. The same
answer is judged only once per variant, and one run of Spark may judge all variants of an exercise. Every judgement has
its own empty folder, and so its own checkpoint and store.

    python -m labkit.grading.spark_judging FOLDER [FILE]
"""

import hashlib
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
import psutil

from labkit.core.errors import GradingError, LabError
from labkit.grading import course as courses
from labkit.grading.asking import Unanswered
from labkit.grading.marking import KnownAnswer
from labkit.grading.sandbox.inside.frames import FrameError, receive, send
from labkit.host import durable
from labkit.host.cores import let_use_all
from labkit.host.processes.own_python import own_python
from labkit.host.processes.tether import end_with_parent
from labkit.teach.exercises.contract import Answer, Exercise, Finding, Variant

SECONDS = 300.0
"""The seconds that judging an answer by one variant of the question may take."""
_MOST = 1 << 24


class Question(msgspec.Struct):
    """A request to the Spark worker: test `value` with these variants, each a name and its parameters."""

    exercise: str
    variants: list[tuple[str, list[tuple[str, object]]]]
    value: Any


class Judgement(msgspec.Struct):
    """The worker's result for one variant: the judge's finding, or the reason why there is no finding."""

    finding: Finding | None = None
    error: str = ""
    of_answer: bool = False
    """Whether the answer caused the error rather than the judge."""


class SparkJudge:
    """Judges answers to exercises that need Spark, in a worker process. If this process dies, a new one is started."""

    def __init__(self, file: Path | None, work: Path, shared: Path | None = None) -> None:
        """Judge answers to the course that `file` defines, or to labkit's own course if `file` is None.

        The judge keeps its files in the folder `work`, which `close` removes. Judges with the same folder `shared`
        reuse each other's findings.
        """
        self._file, self._work, self._shared = file, work, shared
        self._worker: subprocess.Popen[bytes] | None = None
        self._connection: socket.socket | None = None
        self._judgements: dict[bytes, Judgement] = {}

    def __call__(self, exercise: Exercise, answer: Answer, variant: Variant) -> Finding:
        """Test one variant. Raises `GradingError` if the judge fails, `Unanswered` if the answer cannot be judged."""
        question = _question(exercise, answer, [variant])
        if not self._knows(question):
            [judgement] = self._ask(question, 1)
            self._keep(question, judgement)
        judgement = self._judgements[question]
        if judgement.finding is not None:
            return judgement.finding
        if judgement.of_answer:
            raise Unanswered(judgement.error, "could not be judged")
        raise GradingError(judgement.error)

    def together(self, exercise: Exercise, answer: Answer, variants: Sequence[Variant]) -> None:
        """Test several variants in one Spark run, which is faster than one run for each.

        The findings (results) are kept for later calls of the judge. If the test of a variant fails with an error, no
        finding is kept, so each variant is tested alone later.
        """
        if exercise.judge_together is None:
            return
        single = [_question(exercise, answer, [variant]) for variant in variants]
        if len(variants) < 2 or any(map(self._knows, single)):
            return
        judgements = self._ask(_question(exercise, answer, variants), len(variants))
        if all(judgement.finding is not None for judgement in judgements):
            for question, judgement in zip(single, judgements, strict=True):
                self._keep(question, judgement)

    def _knows(self, question: bytes) -> bool:
        """Return whether this judge or one with the same shared folder has already answered this request (JSON)."""
        if question not in self._judgements and self._shared is not None:
            with suppress(OSError):
                written = self._file_of(question).read_bytes()
                self._judgements[question] = msgspec.json.decode(written, type=Judgement)
        return question in self._judgements

    def _keep(self, question: bytes, judgement: Judgement) -> None:
        self._judgements[question] = judgement
        # An error may be temporary, so other judges do not get it.
        if self._shared is not None and judgement.finding is not None:
            self._shared.mkdir(parents=True, exist_ok=True)
            durable.replace(self._file_of(question), msgspec.json.encode(judgement))

    def _file_of(self, question: bytes) -> Path:
        assert self._shared is not None
        return self._shared / hashlib.sha256(question).hexdigest()

    def _ask(self, question: bytes, count: int) -> list[Judgement]:
        seconds = SECONDS * count
        for _ in range(2):
            connection = self._started()
            begun = time.monotonic()
            try:
                send(connection, question, begun + seconds)
                judged: list[Judgement] = msgspec.json.decode(
                    receive(connection, _MOST, begun + seconds), type=list[Judgement]
                )
            except FrameError:
                self.close()
                if time.monotonic() - begun >= seconds:
                    late = f"its run took longer than {seconds:g} seconds"
                    return [Judgement(error=late, of_answer=True)] * count
            else:
                return judged
        died = "The process that judges runs on Spark died twice."
        return [Judgement(error=died)] * count

    def _started(self) -> socket.socket:
        if self._connection is None:
            self._connection, child_end = socket.socketpair()
            self._work.mkdir(parents=True, exist_ok=True)
            command = own_python("-m", "labkit.grading.spark_judging", str(self._work.absolute()))
            command += [] if self._file is None else [str(self._file.absolute())]
            self._worker = subprocess.Popen(
                command, stdin=child_end.fileno(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
            )
            let_use_all(self._worker.pid)
            child_end.close()
        return self._connection

    def close(self) -> None:
        """End the worker process and every process that it started, and remove this judge's folder."""
        if self._connection is not None and self._worker is not None:
            self._connection.close()
            with suppress(psutil.Error):
                for child in psutil.Process(self._worker.pid).children(recursive=True):
                    with suppress(psutil.Error):
                        child.kill()
            self._worker.kill()
            self._worker.wait()
            self._connection = self._worker = None
            shutil.rmtree(self._work, ignore_errors=True)


def _question(exercise: Exercise, answer: Answer, variants: Sequence[Variant]) -> bytes:
    parameters = [(variant.name, list(variant.parameters)) for variant in variants]
    return msgspec.json.encode(Question(exercise.name, parameters, answer.value()), order="sorted")


def main(work: str, file: str | None = None) -> int:
    """Judge the requests that arrive on standard input (a socket) until it is closed; `file` defines the course."""
    end_with_parent()
    course = courses.load(None if file is None else Path(file))
    connection = socket.socket(fileno=os.dup(0))
    with suppress(FrameError):
        while True:
            question = msgspec.json.decode(receive(connection, _MOST), type=Question)
            send(connection, msgspec.json.encode(_judge(course, question, work)))
    return 0


def _judge(course: courses.Course, question: Question, work: str) -> list[Judgement]:
    exercise = course.exercises[question.exercise]
    variants = [
        Variant(name, tuple((each, _frozen(value)) for each, value in parameters))
        for name, parameters in question.variants
    ]
    answer = KnownAnswer(question.value)
    with tempfile.TemporaryDirectory(dir=work, ignore_cleanup_errors=True) as folder:
        os.chdir(folder)
        try:
            if len(variants) > 1 and exercise.judge_together is not None:
                findings = exercise.judge_together(answer, variants)
            else:
                findings = [exercise.judge(answer, variant) for variant in variants]
            return [Judgement(finding) for finding in findings]
        except LabError as error:
            return [Judgement(error=str(error), of_answer=error.exit_code == 1)] * len(variants)
        except Exception as error:  # noqa: BLE001 - this worker continues after any error
            why = f"The check function of {exercise.name} failed ({type(error).__name__}: {error}); correct it."
            return [Judgement(error=why)] * len(variants)
        finally:
            os.chdir(work)


def _frozen(value: object) -> object:
    return tuple(_frozen(part) for part in value) if isinstance(value, list) else value


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
