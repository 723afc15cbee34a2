"""Reaching a failpoint: write the evidence, make it durable, and wait to be killed.

Whoever reaches a point must not kill: the killer would be among the killed, and would run on for a moment behind
its own signal. `labkit.host.processes.supervisor` kills, from outside.
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

import psutil

from labkit.core.errors import JobFailed
from labkit.core.failpoints import IN_TASK, Crash, FailPoint, Reach
from labkit.core.records import Observation
from labkit.host import durable
from labkit.host.processes.parking import park

PATIENCE = 120.0
"""Seconds that a task waits for the tasks before it when an armed point needs them in order."""

_SHORTEST, _LONGEST = 0.002, 0.05
"""Seconds between two looks."""


class Reaction(StrEnum):
    """What whoever reaches the armed point does after it has left its evidence."""

    WAIT_FOR_THE_DRIVERS_DEATH = "driver"
    """Waits for ever; the whole driver is killed."""
    WAIT_FOR_ITS_OWN_DEATH = "executor"
    """Waits for ever; its executor is killed, the driver goes on, and who comes by later passes."""
    STOP = "stop"
    """Stops itself (SIGSTOP) and goes on where it was when somebody continues it: a zombie, if it was replaced."""


@dataclass(frozen=True)
class Armed:
    """The one point that one driver is to die at, and the file that proves that it was reached."""

    crash: Crash
    evidence: Path
    then: Reaction = Reaction.WAIT_FOR_THE_DRIVERS_DEATH

    def reach(self, point: FailPoint, batch: int) -> None:
        """Does as `then` says if this is the armed point and batch; returns at once otherwise."""
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
        """Leaves the evidence. False where somebody has done so before."""
        # The point may be passed again, by another task or by a second attempt; the
        # first evidence is the one that counts.
        if self.evidence.exists():
            return False
        content = {"point": point.value, "batch": batch, "pid": os.getpid(), "session": os.getsid(0)}
        # Durable before it waits: whoever kills looks at this file, and a half-written
        # one would prove nothing.
        durable.replace(self.evidence, json.dumps({**content, "executor": executor()}))
        return True

    @property
    def afterwards(self) -> Path:
        """The file that says what became of a task that stopped itself and was continued."""
        return self.evidence.with_suffix(".afterwards")

    @contextmanager
    def followed(self) -> Iterator[None]:
        """A block around one task: if it is the task that stopped itself, the block notes how the task ended."""
        try:
            yield
        except Exception as error:
            if self._was_continued():
                self._note(str(error))
            raise
        if self._was_continued():
            self._note("ended")

    def _was_continued(self) -> bool:
        """Whether this very process stopped at the point, and goes on."""
        return self.afterwards.exists() and json.loads(self.afterwards.read_text(encoding="utf-8"))[0] == os.getpid()

    def _note(self, words: str) -> None:
        durable.replace(self.afterwards, json.dumps([os.getpid(), words]))

    def to_json(self) -> dict[str, object]:
        """The arming as plain data, for another process."""
        plain = {"point": self.crash.point.value, "batch": self.crash.batch, "evidence": str(self.evidence)}
        return {**plain, "then": self.then.value}

    @classmethod
    def from_json(cls, data: dict[str, Any] | None) -> "Armed | None":
        """The arming that `to_json` gave; None stays None."""
        if data is None:
            return None
        return cls(Crash(FailPoint(data["point"]), data["batch"]), Path(data["evidence"]), Reaction(data["then"]))


def executor() -> int | None:
    """The JVM that started this process or one above it: a task's executor. None where there is no such."""
    above = (process.pid for process in psutil.Process().parents() if process.name() == "java")
    return next(above, None)


class Turn:
    """Lets the tasks of one batch write one after the other, in partition order.

    An armed point in a task needs that: only then is it certain what the other tasks have written. All tasks must
    be running at once, since each says whether it has rows before the first may tell that it is the last with any.
    """

    def __init__(self, evidence: Path, partition: int, partitions: int, *, batch_dies: bool = True) -> None:
        self._evidence, self._partition = evidence, partition
        self._batch_dies = batch_dies
        self._folder = evidence.with_suffix(".turns")
        self._before = range(partition)
        self._behind = range(partition + 1, partitions)

    def take(self, rows: Iterator[Observation]) -> Iterator[Observation]:
        """Waits until every task before this one has finished; gives the rows back."""
        first = next(rows, None)
        self._say("empty" if first is None else "rows")
        self._wait(lambda: all(self._has_said(other, "done") for other in self._before), "the tasks before it")
        return iter(()) if first is None else itertools.chain([first], rows)

    def done(self) -> None:
        """Lets the next task write."""
        self._say("done")

    def is_last(self) -> bool:
        """Whether no task behind this one has any rows; waits until all of them have said so."""
        spoken = ("empty", "rows")
        self._wait(
            lambda: all(any(self._has_said(other, word) for word in spoken) for other in self._behind),
            "the tasks behind it",
        )
        return not any(self._has_said(other, "rows") for other in self._behind)

    def _wait(self, condition: Callable[[], bool], what: str) -> None:
        """Waits for the condition; once the point is reached there is nothing left to wait for but the kill.

        Where only an executor is killed, the batch goes on: whoever was in front comes again, and ends.
        """
        wait_until(lambda: condition() or (self._batch_dies and self._evidence.exists()), what)
        # The evidence is there, and this task's turn is not: whatever it did now would
        # be behind the crash.
        if not condition():
            park()

    def _say(self, word: str) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        # Tasks are processes that share nothing but the disk, and a file's existence is
        # atomic; it need not survive a loss of power.
        (self._folder / f"{self._partition}.{word}").touch()

    def _has_said(self, partition: int, word: str) -> bool:
        return (self._folder / f"{partition}.{word}").exists()


class FreeTurn(Turn):
    """The turn of a task in a batch in whose tasks nothing is armed: everybody writes at once."""

    def __init__(self) -> None:
        super().__init__(Path("free"), 0, 0)

    def take(self, rows: Iterator[Observation]) -> Iterator[Observation]:
        """The rows, without waiting."""
        return rows

    def done(self) -> None:
        """Nobody waits."""

    def is_last(self) -> bool:
        """Never asked for."""
        return False


IN_ORDER = (*IN_TASK, FailPoint.MID_COMMIT)
"""Where it matters who wrote first. A log shows its records in order: half a commit is seen if it was written first."""


def take_turns(armed: Armed | None, batch: int, partition: int, partitions: int) -> Turn:
    """A turn for one task: ordered where an armed point of this batch needs it, free everywhere else."""
    if armed is None or armed.crash.point not in IN_ORDER or armed.crash.batch != batch:
        return FreeTurn()
    return Turn(armed.evidence, partition, partitions, batch_dies=armed.then is Reaction.WAIT_FOR_THE_DRIVERS_DEATH)


def reach_in_task(armed: Armed | None, turn: Turn) -> Reach:
    """`reach` for one task: the middle of a write is passed only by the last task that has rows."""

    def reach(point: FailPoint, batch: int) -> None:
        if armed is None or point is not armed.crash.point or batch != armed.crash.batch:
            return
        if point is FailPoint.MID_WRITE and not turn.is_last():
            return
        armed.reach(point, batch)

    return reach


def wait_until(condition: Callable[[], bool], what: str, patience: float = PATIENCE) -> None:
    """Polls until the condition holds. Raises `JobFailed` after `patience` seconds."""
    end, pause = time.monotonic() + patience, _SHORTEST
    while not condition():
        if time.monotonic() > end:
            raise JobFailed(f"a task at an armed failpoint waited {patience:.0f} s for {what}: too few cores?")
        time.sleep(pause)
        # Most waits are over at once; long ones need not keep a core busy.
        pause = min(2 * pause, _LONGEST)
