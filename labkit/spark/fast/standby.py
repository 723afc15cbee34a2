"""A warm standby: a driver that has run a scratch query of the same shape and waits for the work of a dead one.

Switch: `--standby`, off by default. A batch is committed 1.0 s after the crash and not 6 s (quiet, two cores).

It is started before the crash, under a supervisor of its own. It gets its queries only against the proof that the old
driver was killed and that its session is empty, and it opens the checkpoint and recovers only then: a standby that
looked at anything earlier could resolve what a living driver is still writing. The checkpoint's lock
(`labkit.spark.checkpoint.DriverLock`) refuses it a second time. This module must not kill and must not judge.
"""

from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Self

import psutil

from labkit.core.errors import JobFailed, ServiceUnavailable
from labkit.host.doctor import GIGABYTE, MEMORY_NEEDED
from labkit.host.processes.child import SupervisedDriver
from labkit.host.processes.events import AnyEvent, DriverFailed, Ending, Ready
from labkit.host.processes.protocol import Launch, RunQueries
from labkit.spark.crash_proof import check_dead


class Standby:
    """One waiting driver. Leaving the block ends it, whether it was used or not."""

    def __init__(self, launch: Launch, patience: float) -> None:
        self.log = Path(launch.log)
        self.driver = SupervisedDriver(launch, patience)
        self.events = self.driver.events()

    def __enter__(self) -> Self:
        self.driver.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.driver.__exit__(kind, error, trace)

    def await_ready(self) -> None:
        """Waits until it is warm. Raises `JobFailed` when it ends instead."""
        for event in self.events:
            if isinstance(event, Ready):
                return
            if isinstance(event, DriverFailed):
                raise JobFailed(f"the standby driver failed: {event.because}")
        raise JobFailed(f"the standby driver ended by itself; {self.log} says why.")

    def hand(self, order: RunQueries) -> Iterator[AnyEvent]:
        """Hands it queries that no driver has run; returns what happens to them from now on."""
        self.driver.order(order)
        return self.events

    def take_over(self, dead: Ending, order: RunQueries) -> Iterator[AnyEvent]:
        """Hands it the queries of a driver that is proven dead. Raises `JobFailed` if that is not proven."""
        # The last look before the hand-over: whatever was proven earlier, a process of
        # the old driver may not be there now.
        check_dead(dead)
        return self.hand(order)


def check_memory(standbys: int) -> None:
    """Raises `ServiceUnavailable` where one driver and so many standbys do not fit into the free memory."""
    available, needed = (psutil.virtual_memory().available, (1 + standbys) * MEMORY_NEEDED)
    if available < needed:
        raise ServiceUnavailable(
            f"--standby: {1 + standbys} drivers at once need about {needed / GIGABYTE:.1f} GB of memory and "
            f"{available / GIGABYTE:.1f} GB are available; close other programs, or leave --standby out."
        )
