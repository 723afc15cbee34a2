"""Reach a failpoint: write the evidence to a file, make it durable, and wait to be killed.

A process that reaches a point must not kill, because the killer would be among the killed and would run on for a moment
after its own signal. `labkit.host.processes.supervisor` kills from outside.
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
"""Seconds that a task waits for the earlier tasks of its batch, if an armed failpoint needs the tasks in order."""

_SHORTEST, _LONGEST = 0.002, 0.05
"""The shortest and the longest pause between two polls, in seconds."""


class Reaction(StrEnum):
    """What a process does at the failpoint where it is to die, after it has written the evidence."""

    WAIT_FOR_THE_DRIVERS_DEATH = "driver"
    """It waits forever, until the whole driver is killed."""
    WAIT_FOR_ITS_OWN_DEATH = "executor"
    """It waits forever, until its executor is killed; the driver continues, and later attempts pass the failpoint."""
    STOP = "stop"
    """It stops itself (SIGSTOP) and continues when somebody wakes it; if it was replaced meanwhile, it is a zombie."""


@dataclass(frozen=True)
class Armed:
    """The failpoint at which one driver is to die (it is armed), and the file that proves that it was reached."""

    crash: Crash
    evidence: Path
    then: Reaction = Reaction.WAIT_FOR_THE_DRIVERS_DEATH

    def reach(self, point: FailPoint, batch: int) -> None:
        """Wait or stop as `then` says if this is the failpoint to die at, in its batch; otherwise return at once."""
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
        """Write the evidence file, unless it exists already. Returns whether it was written."""
        # Another task or a second attempt may pass the point again; the first evidence counts.
        if self.evidence.exists():
            return False
        content = {"point": point.value, "batch": batch, "pid": os.getpid(), "session": os.getsid(0)}
        # Durable before the process waits, because the killer looks at this file, and a half-written one would prove
        # nothing.
        durable.replace(self.evidence, json.dumps({**content, "executor": executor()}))
        return True

    @property
    def afterwards(self) -> Path:
        """Return the path of the file that records how a task ended that stopped itself and was woken."""
        return self.evidence.with_suffix(".afterwards")

    @contextmanager
    def followed(self) -> Iterator[None]:
        """Wrap one task, and record how it ended if it stopped itself at the failpoint and was woken."""
        try:
            yield
        except Exception as error:
            if self._was_continued():
                self._note(str(error))
            raise
        if self._was_continued():
            self._note("ended")

    def _was_continued(self) -> bool:
        """Return whether this process stopped at the failpoint and was woken."""
        return self.afterwards.exists() and json.loads(self.afterwards.read_text(encoding="utf-8"))[0] == os.getpid()

    def _note(self, words: str) -> None:
        durable.replace(self.afterwards, json.dumps([os.getpid(), words]))

    def to_json(self) -> dict[str, object]:
        """Return this object as plain data, for another process."""
        plain = {"point": self.crash.point.value, "batch": self.crash.batch, "evidence": str(self.evidence)}
        return {**plain, "then": self.then.value}

    @classmethod
    def from_json(cls, data: dict[str, Any] | None) -> "Armed | None":
        """Return the object that `to_json` encoded; None stays None."""
        if data is None:
            return None
        return cls(Crash(FailPoint(data["point"]), data["batch"]), Path(data["evidence"]), Reaction(data["then"]))


def executor() -> int | None:
    """Return the process id of the nearest JVM among this process's ancestors (a task's executor), or None."""
    import psutil  # here, since a browser loads this module, and has no psutil

    above = (process.pid for process in psutil.Process().parents() if process.name() == "java")
    return next(above, None)


class Turn:
    """Makes the tasks of one batch write one after the other, in the order of their partitions.

    An armed failpoint in a task needs that order, since only then is it certain what the other tasks have written. All
    tasks must run at once, because each announces whether it has rows before any can know that it is the last one with
    rows.
    """

    def __init__(self, evidence: Path, partition: int, partitions: int, *, batch_dies: bool = True) -> None:
        self._evidence, self._partition = evidence, partition
        self._batch_dies = batch_dies
        self._folder = evidence.with_suffix(".turns")
        self._before = range(partition)
        self._behind = range(partition + 1, partitions)

    def take(self, rows: Iterator[Observation]) -> Iterator[Observation]:
        """Wait until every earlier task of the batch has finished, then return the rows."""
        first = next(rows, None)
        self._say("empty" if first is None else "rows")
        self._wait(lambda: all(self._has_reported(other, "done") for other in self._before), "the earlier tasks")
        return iter(()) if first is None else itertools.chain([first], rows)

    def done(self) -> None:
        """Announce that this task has finished, so that the next one may write."""
        self._say("done")

    def is_last(self) -> bool:
        """Return whether no later task has rows; wait until each has announced whether it has any."""
        spoken = ("empty", "rows")
        self._wait(
            lambda: all(any(self._has_reported(other, word) for word in spoken) for other in self._behind),
            "the later tasks",
        )
        return not any(self._has_reported(other, "rows") for other in self._behind)

    def _wait(self, condition: Callable[[], bool], what: str) -> None:
        """Wait for the condition; once another task has reached the failpoint, wait for the kill.

        If only an executor is killed, the batch continues: the earlier task runs again and finishes.
        """
        wait_until(lambda: condition() or (self._batch_dies and self._evidence.exists()), what)
        # The evidence exists, but it is not this task's turn: anything it did now would come after the crash.
        if not condition():
            park()

    def _say(self, word: str) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        # Tasks are processes that share only the disk. A file's existence is atomic, and it need not survive a loss of
        # power.
        (self._folder / f"{self._partition}.{word}").touch()

    def _has_reported(self, partition: int, word: str) -> bool:
        return (self._folder / f"{partition}.{word}").exists()


class FreeTurn(Turn):
    """The turn of a task in a batch without a failpoint to die at, so that its tasks may write in any order."""

    def __init__(self) -> None:
        super().__init__(Path("free"), 0, 0)

    def take(self, rows: Iterator[Observation]) -> Iterator[Observation]:
        """Return the rows without waiting."""
        return rows

    def done(self) -> None:
        """Do nothing, because nobody waits."""

    def is_last(self) -> bool:
        """Return False; never called, because without an armed failpoint nobody asks for the last task."""
        return False


IN_ORDER = (*IN_TASK, FailPoint.MID_COMMIT)
"""The failpoints at which the order of the tasks matters.

In a log, readers see records in order, so half a commit is visible only if that half came first.
"""


def take_turns(armed: Armed | None, batch: int, partition: int, partitions: int) -> Turn:
    """Return the `Turn` of one task: ordered if the driver is to die at a failpoint that needs it, otherwise free."""
    if armed is None or armed.crash.point not in IN_ORDER or armed.crash.batch != batch:
        return FreeTurn()
    return Turn(armed.evidence, partition, partitions, batch_dies=armed.then is Reaction.WAIT_FOR_THE_DRIVERS_DEATH)


def reach_in_task(armed: Armed | None, turn: Turn) -> Reach:
    """Return the `Reach` callback of one task: only the last task with rows passes the middle of a write."""

    def reach(point: FailPoint, batch: int) -> None:
        if armed is None or point is not armed.crash.point or batch != armed.crash.batch:
            return
        if point is FailPoint.MID_WRITE and not turn.is_last():
            return
        armed.reach(point, batch)

    return reach


def wait_until(condition: Callable[[], bool], what: str, patience: float = PATIENCE) -> None:
    """Poll until the condition holds. Raises `JobFailed` after `patience` seconds; `what` names the missing event."""
    end, pause = time.monotonic() + patience, _SHORTEST
    while not condition():
        if time.monotonic() > end:
            raise JobFailed(
                f"a task at an armed failpoint waited {patience:.0f} s for {what}; perhaps there are too few cores "
                "to run all tasks together."
            )
        time.sleep(pause)
        # Most waits are over at once; long ones need not keep a core busy.
        pause = min(2 * pause, _LONGEST)
