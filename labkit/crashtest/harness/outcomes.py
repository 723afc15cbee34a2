"""Follows the events that a driver reports until its current queries are over, and returns how they ended."""

from collections.abc import Iterator
from dataclasses import dataclass

from labkit.core.errors import JobFailed, ServiceUnavailable
from labkit.host.processes.events import AnyEvent, Died, DriverFailed, Ending, Failed, Idle, Killed, Stopped, Unwanted


@dataclass(frozen=True)
class Finished:
    """The outcome in which the driver's queries are over and the driver waits for others."""

    left: list[str]
    """Descriptions of everything that the sink left open or hanging in the driver."""
    failed: str = ""
    """The reason why a query failed; empty if none failed."""


Outcome = Finished | Stopped | Ending
"""How a driver's queries ended: all are over, one stopped at its crash point, or they ended together with
the driver.
"""


def follow(events: Iterator[AnyEvent]) -> Outcome:
    """Read a driver's events until its queries have ended, and return how they ended.

    Raises `ServiceUnavailable` (exit code 69) or `JobFailed` if the driver itself fails, and `JobFailed` if the events
    stop too early.
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
