"""Follows a driver's events until its current queries are over, and returns how they ended."""

from collections.abc import Iterator
from dataclasses import dataclass

from labkit.core.errors import JobFailed, ServiceUnavailable
from labkit.host.processes.events import AnyEvent, Died, DriverFailed, Ending, Failed, Idle, Killed, Stopped, Unwanted


@dataclass(frozen=True)
class Finished:
    """The driver's queries are over, and the driver waits for others."""

    left: list[str]
    """Descriptions of what the sink left open or hanging in the driver."""
    failed: str = ""
    """Why a query failed; empty if none did."""


Outcome = Finished | Stopped | Ending
"""How a driver's queries ended: all over, stopped at a point, or ended together with the driver."""


def follow(events: Iterator[AnyEvent]) -> Outcome:
    """Read events until the driver's queries have ended, and return how.

    Raises `ServiceUnavailable` (exit code 69) or `JobFailed` for a failure of the driver itself, and
    `JobFailed` for events that end too early.
    """
    failed = ""
    for event in events:
        match event:
            case DriverFailed():
                kind = ServiceUnavailable if event.code == 69 else JobFailed
                raise kind(event.because)
            case Failed():
                failed = event.because
            case Idle():
                return Finished(event.left, failed)
            case Killed() | Died() | Unwanted() | Stopped():
                return event
    raise JobFailed("the driver's supervisor ended without reporting that the driver is dead")
