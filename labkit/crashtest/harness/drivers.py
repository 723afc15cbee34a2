"""Warm drivers for a test, each under a supervisor: one is used, others get warm meanwhile.

A driver that ended its query and left nothing open begins the next run, in which it dies; so one start of a driver is
paid for each kill. This module must not know what a run is for, and must not judge.
"""

from collections.abc import Iterator
from pathlib import Path

import psutil

from labkit.core.errors import LabError
from labkit.crashtest.harness.leftovers import MARK, end, strays
from labkit.crashtest.harness.subject import SUBJECT
from labkit.crashtest.harness.tasks import DriverTask, QueryTask
from labkit.host.processes import wire
from labkit.host.processes.events import AnyEvent, Ending
from labkit.host.processes.protocol import Launch, RunQueries
from labkit.spark.fast.standby import Standby, check_memory

PATIENCE = 300.0
"""Seconds without any news from a driver; the limit of a hanging sink is shorter and is the driver's own."""

BYTES = 1_300_000_000
"""Memory of one driver with its workers."""


class Driver:
    """One driver, from its start to the proof of its end."""

    def __init__(
        self, task: DriverTask, scratch: Path, log: Path, *, project: str, mark: str
    ) -> None:
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
        """Waits until it is warm."""
        self._standby.await_ready()

    def give(
        self, queries: list[QueryTask], dead: Ending | None = None
    ) -> Iterator[AnyEvent]:
        """Hands it queries; what happens to them. `dead` proves the end of the driver that it takes over from."""
        order = RunQueries([wire.raw(query) for query in queries])
        if dead is None:
            return self._standby.hand(order)
        return self._standby.take_over(dead, order)

    @property
    def events(self) -> Iterator[AnyEvent]:
        """What happens to the queries that it was given, from where its last reader stopped reading."""
        return self._standby.events

    def close(self) -> list[int]:
        """Ends it; returns the processes outside of its session that its sink left behind, which are ended too."""
        self._standby.__exit__(None, None, None)
        left = strays(self.mark)
        end(left)
        return left


class DriverPool:
    """Keeps drivers getting warm. Closing it ends those that nobody took."""

    def __init__(
        self, task: DriverTask, folder: Path, *, project: str, mark: str
    ) -> None:
        """`project`: the text of whose code counts (`labkit.crashtest.instrument.project`)."""
        self._task, self._folder, self._mark = task, folder, mark
        self._project = project
        self._waiting: list[Driver] = []
        self._count = 0
        self.wanted: int | None = None
        """About how many drivers will still be taken; None: nobody knows. No more than that get warm in advance."""
        check_memory(1)
        self._most = 2 if psutil.virtual_memory().available > 5 * BYTES else 1

    def take(self) -> Driver:
        """A warm driver; others are started in its place."""
        self.fill(1)
        taken = self._waiting.pop(0)
        try:
            taken.await_ready()
        except LabError as error:
            taken.close()
            told = str(error).replace(f"{taken.log} says why", "").rstrip("; .")
            raise type(error)(f"{told}; {last_words(taken.log)}") from error
        if self.wanted is not None:
            self.wanted = max(self.wanted - 1, 0)
        self.fill(self._most if self.wanted is None else min(self._most, self.wanted))
        return taken

    def fill(self, most: int) -> None:
        """Starts drivers until so many wait."""
        while len(self._waiting) < most:
            self._count += 1
            name = f"driver-{self._count}"
            log = self._folder / f"{name}.log"
            mark = f"{self._mark}-{self._count}"
            self._waiting.append(
                Driver(
                    self._task,
                    self._folder / name,
                    log,
                    project=self._project,
                    mark=mark,
                )
            )

    def close(self) -> None:
        """Ends the drivers that wait."""
        while self._waiting:
            self._waiting.pop().close()


def last_words(log: Path) -> str:
    """The end of a driver's log, since the folder of a test is removed unless the user named one."""
    text = log.read_text(encoding="utf-8", errors="replace") if log.exists() else ""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    said = f'its log ends with "{lines[-1][:200]}"' if lines else "its log is empty"
    return f"{said} (--out DIR keeps all of it, in drivers/{log.name})."
