"""Warm drivers for a test, each under a supervisor: one is used, others get warm meanwhile.

A driver that ended its query and left nothing open begins the next run, in which it dies; so one start of a driver is
paid for each kill. This module must not know what a run is for, and must not judge.
"""

import os
import signal
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil

from labkit.core.errors import JobFailed
from labkit.crashtest.harness.leftovers import MARK, end, strays
from labkit.crashtest.harness.subject import SUBJECT, Door
from labkit.host.processes.sessions import session_members
from labkit.spark.fast.standby import Standby, check_dead, check_memory

PATIENCE = 300.0
"""Seconds without any news from a driver; the limit of a hanging sink is shorter and is the driver's own."""

BYTES = 1_300_000_000
"""Memory of one driver with its workers."""


class Driver:
    """One driver, from its start to the proof of its end."""

    def __init__(
        self, door: Door, scratch: Path, log: Path, *, file: str, mark: str
    ) -> None:
        self.mark, self.log = mark, log
        self._standby = Standby(
            {
                "module": "labkit.crashtest.harness.driver",
                "door": door.value,
                "scratch": str(scratch),
                "log": str(log),
                "cwd": str(Path.cwd()),
                "environment": {MARK: mark, SUBJECT: file},
            },
            PATIENCE,
        )
        self._standby.__enter__()
        self._events: Iterator[dict[str, Any]] | None = None

    def await_ready(self) -> None:
        """Waits until it is warm."""
        self._standby.await_ready()

    def give(
        self, cells: list[dict[str, Any]], dead: dict[str, Any] | None = None
    ) -> Iterator[dict[str, Any]]:
        """Hands it queries; what happens to them. `dead` proves the end of the driver that it takes over from."""
        if dead is not None:
            check_dead(dead)
        if self._events is None:
            self._events = (
                self._standby.take_over(dead, cells) if dead else self._fresh(cells)
            )
        else:
            self._standby.drive.order({"cells": cells})
        return self._events

    @property
    def events(self) -> Iterator[dict[str, Any]]:
        """What happens to the queries that it was given, from where its last reader stopped reading."""
        assert self._events is not None
        return self._events

    def _fresh(self, cells: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
        self._standby.drive.order({"cells": cells})
        return self._standby.events

    def close(self) -> list[int]:
        """Ends it; returns the processes outside of its session that its sink left behind, which are ended too."""
        self._standby.__exit__(None, None, None)
        left = strays(self.mark)
        end(left)
        return left

    def signal(self, session: int, number: signal.Signals) -> None:
        """Stops or continues every process of its session."""
        for pid in session_members(session):
            with suppress(ProcessLookupError):
                os.kill(pid, number)


class Stable:
    """Keeps drivers getting warm. Closing it ends those that nobody took."""

    def __init__(self, door: Door, folder: Path, *, file: str, mark: str) -> None:
        self._door, self._folder, self._file, self._mark = door, folder, file, mark
        self._waiting: list[Driver] = []
        self._count = 0
        check_memory(1)
        self._most = 2 if psutil.virtual_memory().available > 5 * BYTES else 1

    def take(self) -> Driver:
        """A warm driver; others are started in its place."""
        self.fill(1)
        taken = self._waiting.pop(0)
        try:
            taken.await_ready()
        except JobFailed:
            taken.close()
            raise
        self.fill(self._most)
        return taken

    def fill(self, most: int) -> None:
        """Starts drivers until so many wait."""
        while len(self._waiting) < most:
            self._count += 1
            name = f"driver-{self._count}"
            log = self._folder / f"{name}.log"
            mark = f"{self._mark}-{self._count}"
            self._waiting.append(
                Driver(self._door, self._folder / name, log, file=self._file, mark=mark)
            )

    def close(self) -> None:
        """Ends the drivers that wait."""
        while self._waiting:
            self._waiting.pop().close()
