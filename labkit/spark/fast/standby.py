"""A warm standby: a driver that has run a small query of the same kind and waits to continue a dead driver's queries.

Switch: `--standby`, off by default. A batch is committed 1.0 s after the crash instead of 6 s (quiet machine, two
cores).

The standby starts before the crash, under its own supervisor. It receives its queries only with the proof that the old
driver was killed and that its session is empty, and only then opens the checkpoint and recovers. If it recovered
earlier, it could commit or abort transactions that a living driver still writes. The checkpoint's lock
(`labkit.spark.checkpoint.DriverLock`) also prevents that.
"""

from collections.abc import Iterator
from pathlib import Path

import psutil

from labkit.core.errors import JobFailed, ServiceUnavailable
from labkit.host.doctor import GIGABYTE, MEMORY_NEEDED
from labkit.host.processes.child import SupervisedDriver
from labkit.host.processes.events import AnyEvent, DriverFailed, Ending, Ready
from labkit.host.processes.protocol import Launch, RunQueries
from labkit.spark.crash_proof import check_dead


class Standby:
    """A driver that was started before a crash and waits to continue the queries of the crashed driver.

    Creating the object starts the driver. Use the attribute `driver` in a `with` statement; the end of the block ends
    the driver. The driver counts as failed after `patience` seconds without an event.
    """

    def __init__(self, launch: Launch, patience: float) -> None:
        self.log = Path(launch.log)
        self.driver = SupervisedDriver(launch, patience)
        self.events = self.driver.events()

    def await_ready(self) -> None:
        """Wait until the driver is ready for queries. Raises `JobFailed` if it fails, or ends before it is ready."""
        for event in self.events:
            if isinstance(event, Ready):
                return
            if isinstance(event, DriverFailed):
                raise JobFailed(f"the standby driver failed: {event.because}")
        raise JobFailed(f"the standby driver ended before it was ready; see its log {self.log}.")

    def hand(self, order: RunQueries) -> Iterator[AnyEvent]:
        """Let the standby driver run the queries in `order`, which no driver has run before, and return its events."""
        self.driver.order(order)
        return self.events

    def take_over(self, dead: Ending, order: RunQueries) -> Iterator[AnyEvent]:
        """Let the standby driver continue the queries in `order`, which a dead driver ran; return the standby's events.

        `dead` is the report on the end of that driver. Raises `JobFailed` unless the report proves that the driver was
        killed and that none of its processes is left.
        """
        check_dead(dead)
        return self.hand(order)


def check_memory(standbys: int) -> None:
    """Raise `ServiceUnavailable` if the free memory is too small for one driver and `standbys` standby drivers."""
    available, needed = (psutil.virtual_memory().available, (1 + standbys) * MEMORY_NEEDED)
    if available < needed:
        raise ServiceUnavailable(
            f"--standby: {1 + standbys} drivers at once need about {needed / GIGABYTE:.1f} GB of memory, but "
            f"only {available / GIGABYTE:.1f} GB are available; close other programs, or leave --standby out."
        )
