"""Lists the executors of one Spark application on this host, from outside; kills one, or waits for their end.

An executor of a standalone cluster is a child of a worker and not of the driver. It ends by itself once it notices that
its driver is dead, and may write until then. This module cannot observe executors on other hosts; only the store can
refuse their writes (`labkit.stores.contract.Fencing`). The module kills neither drivers nor workers.
"""

import contextlib
import time
from collections.abc import Iterable, Iterator

import psutil

from labkit.core.errors import JobFailed
from labkit.host.processes.events import ExecutorsEnd
from labkit.host.processes.sessions import Emptied, kill_all

GONE_SECONDS = 45.0
"""The maximum seconds that executors may outlive their driver; about one second is usual."""

KILL_SECONDS = 30.0
_BACKEND = "org.apache.spark.executor.CoarseGrainedExecutorBackend"
_GONE = (psutil.NoSuchProcess, psutil.AccessDenied)


class Executors:
    """All executor processes of one Spark application on this host. They do not belong to the driver's Unix session."""

    def __init__(self, application: str) -> None:
        self._application = application
        self._members: set[psutil.Process] = set()

    def look(self) -> list[int]:
        """Return the process ids of the living executors and of their child processes, sorted."""
        # Added to earlier results, because nothing shows to which executor a process belongs once the executor is dead.
        for backend in self._backends():
            self._members.update(_family(backend))
        self._members = set(_living(self._members))
        return sorted(process.pid for process in self._members)

    def kill(self, pid: int) -> Emptied:
        """Kill an executor and its Python processes, and wait until all are dead.

        Raises `JobFailed` if the process `pid` is not an executor of this application.
        """
        backend = next((each for each in self._backends() if each.pid == pid), None)
        if backend is None:
            raise JobFailed(
                f"the driver asked labkit to kill process {pid}, but this process is not an executor of "
                f"{self._application}, so labkit did not kill it; repeat the run."
            )
        family = {backend, *_family(backend)}

        def living() -> list[int]:
            alive = list(_living(family))
            # Read again at each look, because an executor may fork a Python worker in between.
            for process in alive:
                family.update(_family(process))
            return sorted(process.pid for process in alive)

        return kill_all(living, KILL_SECONDS)

    def await_end(self, outlived: list[int]) -> ExecutorsEnd:
        """Wait, at most `GONE_SECONDS`, until all executors have ended, and return how they ended.

        `outlived` has the ids of the executor processes that were still alive when the driver was dead. The result
        contains these ids, and also the ids of processes that did not end in time.
        """
        begun = time.monotonic()
        while (left := self.look()) and time.monotonic() - begun < GONE_SECONDS:
            time.sleep(0.01)
        return ExecutorsEnd(outlived, round(time.monotonic() - begun, 3), left)

    def _backends(self) -> Iterator[psutil.Process]:
        for process in psutil.process_iter():
            with contextlib.suppress(*_GONE):
                # The application's id distinguishes it from executors of others on the same worker.
                command = process.cmdline()
                if _BACKEND in command and self._application in command:
                    yield process


def _family(process: psutil.Process) -> list[psutil.Process]:
    try:
        return [process, *process.children(recursive=True)]
    except _GONE:
        return []


def _living(processes: Iterable[psutil.Process]) -> Iterator[psutil.Process]:
    for process in processes:
        with contextlib.suppress(*_GONE):
            if process.is_running() and process.status() != psutil.STATUS_ZOMBIE:
                yield process
