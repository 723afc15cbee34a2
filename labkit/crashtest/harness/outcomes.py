"""What becomes of the queries that a driver under test was given, taken from its events.

This module must not end a driver, and must not judge.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from labkit.core.errors import JobFailed, ServiceUnavailable
from labkit.host.processes.events import (
    AnyEvent,
    Died,
    DriverFailed,
    Ending,
    Failed,
    Idle,
    Killed,
    Stopped,
    Unwanted,
)


@dataclass(frozen=True)
class Finished:
    """The queries that a driver was given are over, and it waits for others."""

    left: list[str]
    """What the sink left open or hanging in the driver."""
    failed: str = ""
    """Why a query failed; empty if none did."""


Outcome = Finished | Stopped | Ending
"""What becomes of the queries that a driver was given."""


def follow(events: Iterator[AnyEvent]) -> Outcome:
    """What becomes of the queries that a driver was given.

    Raises what the driver failed with if it was not a query's failure.
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
    raise JobFailed("the driver's supervisor ended without a word")
