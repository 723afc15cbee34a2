"""Keeps a pool of warm Spark drivers for a test, so that some warm up while another one runs.

Each driver has its own supervisor. A driver whose query ended and left nothing open also begins the next run and dies
in it, so each kill costs only one start of a driver.
"""

from collections.abc import Iterator
from pathlib import Path

import psutil

from labkit.core.errors import LabError
from labkit.core.words import telling_line
from labkit.crashtest.harness.leftovers import MARK, end, marked_processes
from labkit.crashtest.harness.tasks import DriverTask, QueryTask
from labkit.crashtest.subject import SUBJECT
from labkit.host.cores import cores
from labkit.host.processes import wire
from labkit.host.processes.events import AnyEvent, Ending
from labkit.host.processes.protocol import Launch, RunQueries
from labkit.spark.fast.standby import Standby, check_memory

PATIENCE = 300.0
"""A driver that reports nothing for this many seconds has failed. Its own limit for a hanging sink is shorter."""

BYTES = 1_300_000_000
"""The memory that one driver needs with its workers, in bytes."""

RESERVED = 3
"""The number of drivers for which memory is kept free: the running one, the next one, and one for other needs."""


class Driver:
    """One Spark driver under test, from its start until it has provably ended."""

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
        """Wait until the driver has warmed up."""
        self._standby.await_ready()

    def give(self, queries: list[QueryTask], dead: Ending | None = None) -> Iterator[AnyEvent]:
        """Pass queries to the driver, and return the events that it reports; `dead` proves that the previous driver has
        ended.
        """
        order = RunQueries([wire.raw(query) for query in queries])
        if dead is None:
            return self._standby.hand(order)
        return self._standby.take_over(dead, order)

    @property
    def events(self) -> Iterator[AnyEvent]:
        """The events that the driver reported on its current queries and that nobody has read yet."""
        return self._standby.events

    def close(self) -> list[int]:
        """End the driver, and the processes that its sink started outside of its session; return the ids of these
        processes.
        """
        self._standby.__exit__(None, None, None)
        left = marked_processes(self.mark)
        end(left)
        return left


def at_once(memory: int, cores: int) -> int:
    """Return how many drivers can warm up in parallel if `memory` bytes are free.

    Runs share the user's one store and therefore wait for each other. But a start takes far longer than a run and keeps
    a core busy, so it is worth starting several drivers.
    """
    return max(1, min(cores, memory // BYTES - RESERVED))


class DriverPool:
    """Starts drivers before a run needs them, so that warm ones are ready. `close` ends the drivers that no
    run took.
    """

    def __init__(self, task: DriverTask, folder: Path, *, project: str, mark: str) -> None:
        """Prepare the pool, and check that memory suffices for one driver.

        `project` is the user's project as text (`labkit.crashtest.project`).
        """
        self._task, self._folder, self._mark = task, folder, mark
        self._project = project
        self._waiting: list[Driver] = []
        self._count = 0
        self.wanted: int | None = None
        """The estimated number of drivers that the test still needs, which limits those started in advance; None:
        unknown.
        """
        check_memory(1)
        self._most = at_once(psutil.virtual_memory().available, cores())

    def take(self) -> Driver:
        """Return a warm driver, and start others for later runs. If it fails to start, the error quotes the driver's
        log.
        """
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
        """Start drivers until `most` of them are waiting for a run."""
        while len(self._waiting) < most:
            self._count += 1
            name = f"driver-{self._count}"
            log = self._folder / f"{name}.log"
            mark = f"{self._mark}-{self._count}"
            self._waiting.append(Driver(self._task, self._folder / name, log, project=self._project, mark=mark))

    def close(self) -> None:
        """End the drivers that are waiting for a run."""
        while self._waiting:
            self._waiting.pop().close()


def last_words(log: Path) -> str:
    """Return a sentence that quotes the first error in a driver's log, as the log is deleted unless the user gave
    `--out`.
    """
    line = telling_line(log.read_text(encoding="utf-8", errors="replace") if log.exists() else "")
    sentence = f'its log says "{line[:200]}"' if line else "its log is empty"
    return f"{sentence} (--out DIR keeps all of it, in drivers/{log.name})."
