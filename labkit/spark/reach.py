"""What a process does at the failpoint of a planned crash: it writes a file as evidence, and waits to be killed.

The evidence says which process reached which failpoint. The process does not kill itself, because it would run on for a
moment after sending the signal; `labkit.host.processes.supervisor` kills from outside.
"""

import itertools
import json
import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from labkit.core.errors import JobFailed
from labkit.core.failpoints import IN_TASK, Crash, FailPoint, Reach
from labkit.core.records import Observation
from labkit.host import durable
from labkit.host.processes.parking import park

PATIENCE = 120.0
"""Seconds for which a task waits for other tasks of its batch, if a planned crash needs an order of the tasks."""

_SHORTEST, _LONGEST = 0.002, 0.05
"""The shortest and the longest pause between two polls, in seconds."""


class Reaction(StrEnum):
    """What a process does at its failpoint, after it has written the evidence that it reached the failpoint."""

    WAIT_FOR_THE_DRIVERS_DEATH = "driver"
    """The process waits forever, until the whole driver is killed."""
    WAIT_FOR_ITS_OWN_DEATH = "executor"
    """The process waits until its executor is killed; the driver continues, and later attempts do not stop here."""
    STOP = "stop"
    """The process suspends itself (SIGSTOP) until SIGCONT, when it may be a zombie (another driver has replaced it)."""


@dataclass(frozen=True)
class Armed:
    """A crash that is planned in one driver.

    `crash` names a failpoint and a batch. The process that reaches this failpoint in this batch writes the file
    `evidence`, and then reacts as `then` says.
    """

    crash: Crash
    evidence: Path
    then: Reaction = Reaction.WAIT_FOR_THE_DRIVERS_DEATH

    def reach(self, point: FailPoint, batch: int) -> None:
        """Let the planned crash happen if `point` and `batch` are those of the crash; otherwise return at once.

        At the crash, this process writes the evidence file. The field `then` says what the process does next: it waits
        to be killed, or it suspends itself (SIGSTOP).
        """
        if point is not self.crash.point or batch != self.crash.batch:
            return
        first = self._leave_evidence(point, batch)
        if self.then is Reaction.STOP:
            if first:
                signal.raise_signal(signal.SIGSTOP)
                self._note("continued")
        elif first or self.then is Reaction.WAIT_FOR_THE_DRIVERS_DEATH:
            park()

    def _leave_evidence(self, point: FailPoint, batch: int) -> bool:
        """Write the file that proves that a process reached the failpoint, unless another task has written it.

        Returns whether this call wrote it.
        """
        # Another task or a second attempt may reach the same point; the first evidence counts.
        if self.evidence.exists():
            return False
        content = {"point": point.value, "batch": batch, "pid": os.getpid(), "session": os.getsid(0)}
        # Written atomically and before the process waits, because the supervisor kills when this file exists.
        durable.replace(self.evidence, json.dumps({**content, "executor": executor()}))
        return True

    @property
    def afterwards(self) -> Path:
        """The path of the file that says how a task ended if its process was suspended (SIGSTOP) and then continued."""
        return self.evidence.with_suffix(".afterwards")

    @contextmanager
    def followed(self) -> Iterator[None]:
        """Run a task in a `with` block. If the planned crash suspended this process, record how the task ended.

        A suspended task can end only after another process has continued it (SIGCONT). The record in the file
        `afterwards` is `ended` or an error message.
        """
        try:
            yield
        except Exception as error:
            if self._was_continued():
                self._note(str(error))
            raise
        if self._was_continued():
            self._note("ended")

    def _was_continued(self) -> bool:
        return self.afterwards.exists() and json.loads(self.afterwards.read_text(encoding="utf-8"))[0] == os.getpid()

    def _note(self, words: str) -> None:
        durable.replace(self.afterwards, json.dumps([os.getpid(), words]))

    def to_json(self) -> dict[str, object]:
        """Return the planned crash as a JSON object, to send it to another process."""
        plain = {"point": self.crash.point.value, "batch": self.crash.batch, "evidence": str(self.evidence)}
        return {**plain, "then": self.then.value}

    @classmethod
    def from_json(cls, data: dict[str, Any] | None) -> "Armed | None":
        """Return the planned crash that `to_json` encoded; None if `data` is None."""
        if data is None:
            return None
        return cls(Crash(FailPoint(data["point"]), data["batch"]), Path(data["evidence"]), Reaction(data["then"]))


def executor() -> int | None:
    """Return the process id of this Python worker's executor, the JVM that started it; None if no JVM started it."""
    import psutil  # here, since a browser loads this module, and has no psutil

    above = (process.pid for process in psutil.Process().parents() if process.name() == "java")
    return next(above, None)


class Turn:
    """Makes the tasks of a batch write one after the other, in the order of their partitions. Each task has a `Turn`.

    Because of this order, a repetition of a run crashes after the same tasks have written. The tasks must run at the
    same time; they communicate by files next to `evidence`. `batch_dies` says that the crash kills all tasks of the
    batch, not only those of one executor.
    """

    def __init__(self, evidence: Path, partition: int, partitions: int, *, batch_dies: bool = True) -> None:
        self._evidence, self._partition = evidence, partition
        self._batch_dies = batch_dies
        self._folder = evidence.with_suffix(".turns")
        self._before = range(partition)
        self._after = range(partition + 1, partitions)

    def take(self, rows: Iterator[Observation]) -> Iterator[Observation]:
        """Wait until all tasks with a lower partition number have finished, then return the rows to write."""
        first = next(rows, None)
        self._say("empty" if first is None else "rows")
        self._wait(lambda: all(self._has_reported(other, "done") for other in self._before), "the earlier tasks")
        return iter(()) if first is None else itertools.chain([first], rows)

    def done(self) -> None:
        """Announce that this task has finished writing, so that the next task can start."""
        self._say("done")

    def is_last(self) -> bool:
        """Wait until all later tasks have announced whether they have rows; return whether none of them has any."""
        spoken = ("empty", "rows")
        self._wait(
            lambda: all(any(self._has_reported(other, word) for word in spoken) for other in self._after),
            "the later tasks",
        )
        return not any(self._has_reported(other, "rows") for other in self._after)

    def _wait(self, condition: Callable[[], bool], what: str) -> None:
        """Wait until `condition` holds. `what` names the condition in an error message.

        If another task reaches the failpoint first, and the crash kills the whole batch (`batch_dies`), wait to be
        killed. Otherwise this task may survive, so it waits for `condition` while Spark runs the killed tasks again.
        """
        wait_until(lambda: condition() or (self._batch_dies and self._evidence.exists()), what)
        # Another task has reached the failpoint: anything that this task wrote now would come after the crash.
        if not condition():
            park()

    def _say(self, word: str) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        # A file, because tasks are separate processes, which share only the disk.
        (self._folder / f"{self._partition}.{word}").touch()

    def _has_reported(self, partition: int, word: str) -> bool:
        return (self._folder / f"{partition}.{word}").exists()


IN_ORDER = (*IN_TASK, FailPoint.MID_COMMIT)
"""The failpoints for which tasks must write one after the other: those in tasks, and the middle of a commit.

In a log, readers see records in order, so they see the committed half of a batch only if it was written first.
"""


def take_turns(armed: Armed | None, batch: int, partition: int, partitions: int) -> Turn | None:
    """Return the object that tells a task when it may write, or None if the task may write at once.

    The tasks of a batch write one after the other only if the batch has a planned crash at a failpoint in `IN_ORDER`.
    """
    if armed is None or armed.crash.point not in IN_ORDER or armed.crash.batch != batch:
        return None
    return Turn(armed.evidence, partition, partitions, batch_dies=armed.then is Reaction.WAIT_FOR_THE_DRIVERS_DEATH)


def reach_in_task(armed: Armed | None, turn: Turn | None) -> Reach:
    """Return the function that a task calls at each of its failpoints; it makes the planned crash happen there.

    A crash in the middle of a write (`MID_WRITE`) happens only in the last task that has rows.
    """

    def reach(point: FailPoint, batch: int) -> None:
        if armed is None or point is not armed.crash.point or batch != armed.crash.batch:
            return
        if point is FailPoint.MID_WRITE and not (turn and turn.is_last()):
            return
        armed.reach(point, batch)

    return reach


def wait_until(condition: Callable[[], bool], what: str, patience: float = PATIENCE) -> None:
    """Wait until the condition holds. After `patience` seconds, raise a `JobFailed` whose message contains `what`."""
    end, pause = time.monotonic() + patience, _SHORTEST
    while not condition():
        if time.monotonic() > end:
            raise JobFailed(
                f"a task of a batch with a planned crash waited {patience:.0f} s for {what}, perhaps because there are "
                "too few cores to run all tasks of the batch at once; give the run more cores."
            )
        time.sleep(pause)
        # Most waits are short; the longer ones should not keep a core busy.
        pause = min(2 * pause, _LONGEST)
