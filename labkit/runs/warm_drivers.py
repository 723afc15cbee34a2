"""Start Spark drivers in advance (warm drivers), so that runs in a notebook and their recoveries begin at once.

A warm driver is a standby driver (`labkit.spark.fast.standby`) that has run a trial query and waits for real ones. A
run takes a warm driver for each driver that it needs, kills it like any other, and the pool starts new ones in the
background. Proof and verdict are as in every other run: a warm driver takes over queries only after labkit has proven
that their previous driver is dead.

The drivers end with this process, after `IDLE_SECONDS` without a run, and when the machine is short of memory.
LABKIT_FAST without `warm` turns them off.
"""

import atexit
import contextlib
import os
import shutil
import tempfile
import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import psutil

from labkit.core.errors import LabError
from labkit.host.doctor import MEMORY_NEEDED
from labkit.host.fast_start import fast_start
from labkit.host.java import find_java
from labkit.host.processes import wire
from labkit.host.processes.protocol import Launch
from labkit.host.turns import Rank, turn
from labkit.runs.driver_task import ACTIVE, PATIENCE, DriverTask
from labkit.runs.run import Run
from labkit.spark.fast.standby import Standby
from labkit.spark.options import PARTITIONS, Job
from labkit.view.front_end import is_watched

KEPT = 2
"""The number of drivers that are kept warm: a run with one crash needs two."""
IDLE_SECONDS = 600.0
"""The seconds without a run after which the drivers end."""
LEAST_FREE = MEMORY_NEEDED / 2
"""The drivers end when the machine has less free memory than this, in bytes."""
THREADS = (PARTITIONS + 1) * ACTIVE
"""The threads of a warm driver, enough for a run with the usual number of tasks."""
_JOBS = {Job.RUNNING, Job.SHOP}
"""The jobs that a warm driver can execute, because they need the Spark settings with which it was started."""
_LOOK = 1.0
"""The seconds after which the background thread checks the clock and the machine's free memory again."""


class WarmDriver:
    """A Spark driver process that was started in advance and waits for queries, with a temporary folder of its own."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="labkit-warm-"))
        self.environment = dict(os.environ)
        master = f"local[{THREADS}]"
        task = DriverTask(master, "small", ACTIVE, archive=True, queries=[], standby=Job.RUNNING)
        log, scratch = self.folder / "driver.log", self.folder / "driver"
        launch = Launch("labkit.runs.driver", str(scratch), str(log), wire.raw(task), own_folder=True)
        try:
            self.standby = Standby(launch, PATIENCE)
        except BaseException:
            self.remove()
            raise
        self.is_warm = threading.Event()
        self.error: LabError | None = None

    @property
    def is_usable(self) -> bool:
        """Whether the driver works and was started with the environment variables that this process has now.

        With other variables, such as LABKIT_KAFKA, the driver could write to other servers than this process.
        """
        return self.error is None and self.standby.driver.is_alive and self.environment == dict(os.environ)

    def warm_up(self) -> None:
        """Wait until the driver is ready for queries or has failed; if it failed, set `error`."""
        try:
            self.standby.await_ready()
        except LabError as error:
            self.error = error
        finally:
            self.is_warm.set()

    def end(self) -> None:
        """Kill the driver and remove its temporary folder."""
        self.standby.driver.let_go()
        # Another thread may still read the driver's events in `warm_up`; it finishes when the driver has ended.
        self.is_warm.wait()
        with contextlib.suppress(LabError), self.standby.driver:
            pass
        self.remove()

    def remove(self) -> None:
        """Remove the temporary folder; the driver must have ended."""
        shutil.rmtree(self.folder, ignore_errors=True)


class _Unneeded(Exception):
    """Raised to leave the queue of LABKIT_TURNS (the limit on simultaneous runs), as no driver is to be started now."""


class WarmDrivers:
    """The Spark drivers that a thread starts in advance, and ends when they are idle or memory is short."""

    def __init__(self, idle: float = IDLE_SECONDS) -> None:
        self._idle = idle
        self._drivers: deque[WarmDriver] = deque()
        # Guards the fields below, which the thread `_keeper` and the threads of runs change.
        self._changed = threading.Condition()
        self._wanted = False
        self._keeper: threading.Thread | None = None
        self._used = time.monotonic()
        self._runs = 0
        atexit.register(self.end)

    @contextmanager
    def run(self) -> Iterator[None]:
        """Provide a `with` block for one run, during which no driver is started in advance.

        After the block, new drivers replace those that the run used.
        """
        with self._changed:
            self._runs += 1
        try:
            yield
        finally:
            with self._changed:
                self._runs -= 1
            self.want()

    def want(self) -> None:
        """Start drivers in the background until `KEPT` drivers are waiting for queries."""
        with self._changed:
            self._used = time.monotonic()
            self._wanted = True
            if self._keeper is None or not self._keeper.is_alive():
                self._keeper = threading.Thread(target=self._keep, name="labkit warm drivers", daemon=True)
                self._keeper.start()
            self._changed.notify()

    @property
    def are_warm(self) -> bool:
        """Whether as many drivers as a run with one crash needs (`KEPT`) are ready for queries."""
        return len(self._drivers) == KEPT and all(each.is_warm.is_set() for each in self._drivers)

    def take(self, run: Run) -> WarmDriver | None:
        """Take a driver that can execute this run out of the pool, and return it; None if there is none.

        The caller must end the driver. If the driver is still starting, the method waits, because a new driver would
        take longer.
        """
        if run.scenario.job not in _JOBS or run.scenario.master is not None:
            return None
        if (run.scenario.most_tasks + 1) * ACTIVE > THREADS:
            return None
        while driver := self._next():
            driver.is_warm.wait()
            if driver.is_usable:
                return driver
            driver.end()
        return None

    def end(self) -> None:
        """Kill every driver that waits for a run. New drivers replace them only after the next call of `want`."""
        with self._changed:
            self._wanted = False
            self._changed.notify()
        while driver := self._next():
            driver.end()

    def _next(self) -> WarmDriver | None:
        with self._changed:
            return self._drivers.popleft() if self._drivers else None

    def _keep(self) -> None:
        while True:
            with self._changed:
                if not self._wanted:
                    self._keeper = None
                    return
                if not self._lacks_one():
                    self._changed.wait(_LOOK)
            driver = None
            try:
                with turn(self._waits, Rank.PREPARATION):
                    # One after the other, so that the first one is warm as soon as possible.
                    if driver := self._start():
                        driver.warm_up()
            except _Unneeded:
                continue
            except (LabError, OSError):  # a bad LABKIT_TURNS or a full disk; the next run reports it and tries again
                self.end()
            is_idle = time.monotonic() - self._used > self._idle
            if is_idle or psutil.virtual_memory().available < LEAST_FREE or (driver is not None and driver.error):
                self.end()

    def _lacks_one(self) -> bool:
        return self._wanted and len(self._drivers) < KEPT and not self._runs and _may_start()

    def _waits(self, _ahead: int) -> None:
        with self._changed:
            if not self._lacks_one():
                raise _Unneeded

    def _start(self) -> WarmDriver | None:
        with self._changed:
            if not self._lacks_one():
                return None
            driver = WarmDriver()
            self._drivers.append(driver)
            return driver


def _may_start() -> bool:
    return psutil.virtual_memory().available >= MEMORY_NEEDED + LEAST_FREE


@cache
def _pool() -> WarmDrivers:
    return WarmDrivers()


def warm_drivers() -> WarmDrivers | None:
    """Return this notebook's pool of Spark drivers that are started in advance; None if there is no pool.

    There is none without Java, without a person at the notebook, or if LABKIT_FAST turns it off.
    """
    try:
        if not is_watched() or not fast_start().warm:
            return None
        find_java()
    except LabError:
        return None
    return _pool()
