"""A pool of warm drivers for a test, each under a supervisor: one driver is used while others get warm.

A driver that ended its query and left nothing open begins the next run, in which it dies; so one start of a driver is
paid for each kill.
"""

from collections.abc import Iterator
from pathlib import Path

import psutil

from labkit.core.errors import LabError
from labkit.crashtest.harness.leftovers import MARK, end, strays
from labkit.crashtest.harness.tasks import DriverTask, QueryTask
from labkit.crashtest.subject import SUBJECT
from labkit.host.cores import cores
from labkit.host.processes import wire
from labkit.host.processes.events import AnyEvent, Ending
from labkit.host.processes.protocol import Launch, RunQueries
from labkit.spark.fast.standby import Standby, check_memory

PATIENCE = 300.0
"""Seconds without an event from a driver. The driver's own limit for a hanging sink is shorter."""

BYTES = 1_300_000_000
"""Memory of one driver with its workers, in bytes."""

RESERVED = 3
"""Drivers for which memory is left beside those that get warm: the one that runs, the one that takes over, and the
rest.
"""


class Driver:
    """One driver, from its start to the proof of its end."""

    def __init__(self, task: DriverTask, scratch: Path, log: Path, *, project: str, mark: str) -> None:
        self.mark, self.log = mark, log
        launch = Launch(
            module="labkit.crashtest.harness.driver",
            scratch=str(scratch),
            log=str(log),
            task=wire.raw(task),
            environment={MARK: mark, SUBJECT: project},
        )
        self._standby = Standby(launch, PATIENCE)
        self._standby.__enter__()

    def await_ready(self) -> None:
        """Waits until the driver is warm."""
        self._standby.await_ready()

    def give(self, queries: list[QueryTask], dead: Ending | None = None) -> Iterator[AnyEvent]:
        """Hands queries to the driver, and returns their events. `dead` proves the end of the driver before it."""
        order = RunQueries([wire.raw(query) for query in queries])
        if dead is None:
            return self._standby.hand(order)
        return self._standby.take_over(dead, order)

    @property
    def events(self) -> Iterator[AnyEvent]:
        """Events of the current queries, from where the last reader of events stopped."""
        return self._standby.events

    def close(self) -> list[int]:
        """Ends the driver and the processes that its sink left outside of its session; returns the latter's ids."""
        self._standby.__exit__(None, None, None)
        left = strays(self.mark)
        end(left)
        return left


def at_once(memory: int, cores: int) -> int:
    """How many drivers get warm at once, with so many bytes free.

    Runs share the user's one store, so each waits for the one before it; but a start takes far longer than a run and keeps a core busy.
    """
    return max(1, min(cores, memory // BYTES - RESERVED))


class DriverPool:
    """Starts drivers ahead of time, so that warm ones are ready. `close` ends the drivers that were not taken."""

    def __init__(self, task: DriverTask, folder: Path, *, project: str, mark: str) -> None:
        """`project`: the user's project as text (`labkit.crashtest.project`)."""
        self._task, self._folder, self._mark = task, folder, mark
        self._project = project
        self._waiting: list[Driver] = []
        self._count = 0
        self.wanted: int | None = None
        """About how many drivers will still be taken; None: unknown. No more drivers than this get warm in advance."""
        check_memory(1)
        self._most = at_once(psutil.virtual_memory().available, cores())

    def take(self) -> Driver:
        """Returns a warm driver, and starts others in its place. An error quotes the end of the driver's log."""
        self.fill(1)
        driver = self._waiting.pop(0)
        try:
            driver.await_ready()
        except LabError as error:
            driver.close()
            because = str(error).replace(f"{driver.log} says why", "").rstrip("; .")
            raise type(error)(f"{because}; {last_words(driver.log)}") from error
        if self.wanted is not None:
            self.wanted = max(self.wanted - 1, 0)
        self.fill(self._most if self.wanted is None else min(self._most, self.wanted))
        return driver

    def fill(self, most: int) -> None:
        """Starts drivers until `most` of them wait."""
        while len(self._waiting) < most:
            self._count += 1
            name = f"driver-{self._count}"
            log = self._folder / f"{name}.log"
            mark = f"{self._mark}-{self._count}"
            self._waiting.append(Driver(self._task, self._folder / name, log, project=self._project, mark=mark))

    def close(self) -> None:
        """Ends the drivers that wait."""
        while self._waiting:
            self._waiting.pop().close()


def last_words(log: Path) -> str:
    """The last line of a driver's log as a sentence, since a test's folder is removed unless the user named one."""
    text = log.read_text(encoding="utf-8", errors="replace") if log.exists() else ""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    sentence = f'its log ends with "{lines[-1][:200]}"' if lines else "its log is empty"
    return f"{sentence} (--out DIR keeps all of it, in drivers/{log.name})."
