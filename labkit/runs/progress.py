"""Show people the progress of running drivers: a short phrase for every event, and functions that print it.

`words` matches on all events, so that the type check fails for an event without a phrase. Nothing here affects a
run.
"""

from collections.abc import Callable
from typing import assert_never

from labkit.core.arguments import takes
from labkit.host.processes.events import (
    AnyEvent,
    Application,
    AwaitsKill,
    Begun,
    Died,
    DriverFailed,
    DriverStarts,
    Ended,
    ExecutorKilled,
    Failed,
    Idle,
    Killed,
    Parked,
    QueryEvent,
    Ready,
    Recovered,
    SessionUp,
    StandbyStarts,
    Started,
    Stopped,
    Struck,
    Unwanted,
    Waits,
)

Tell = Callable[[AnyEvent], None]
"""A function that receives every event of the drivers, for example to print it."""


@takes("lab.words(event)")
def words(event: AnyEvent, query: str | None = None) -> str:
    """Return a short phrase for an event of a run, such as `append: reached its failpoint`. `query` replaces the
    name of the query (here `append`) in the phrase.
    """
    if isinstance(event, QueryEvent):
        return f"{query or event.query}: {_of_query(event)}"
    return _of_driver(event)


_OfQuery = Begun | Recovered | Parked | Struck | ExecutorKilled | Ended | Failed


def _of_query(event: _OfQuery) -> str:  # noqa: PLR0911  # one line for each event
    match event:
        case Begun():
            return "starting"
        case Recovered():
            return "running"
        case Parked():
            return "reached its failpoint"
        case Struck():
            return "an executor has reached its failpoint"
        case ExecutorKilled():
            return "an executor was killed, the driver continues"
        case Ended():
            return "ran to the end"
        case Failed():
            return f"failed: {event.because}"
        case _:
            assert_never(event)


_OfDriver = (
    DriverStarts
    | StandbyStarts
    | Started
    | Application
    | SessionUp
    | Ready
    | DriverFailed
    | Stopped
    | Idle
    | AwaitsKill
    | Killed
    | Died
    | Unwanted
    | Waits
)


def _of_driver(event: _OfDriver) -> str:  # noqa: C901, PLR0911, PLR0912  # one line for each event
    match event:
        case DriverStarts():
            return "starting a Spark driver"
        case StandbyStarts():
            return "starting a standby driver"
        case Started():
            return "the driver's process is running"
        case Application():
            return "the driver waits for executors"
        case SessionUp():
            return "Spark has started in the driver"
        case Ready():
            return "the standby driver is ready"
        case DriverFailed():
            return f"the driver failed: {event.because}"
        case Stopped():
            return "the driver has stopped itself"
        case Idle():
            return "the driver waits for queries"
        case AwaitsKill():
            return "the driver waits for the kill"
        case Killed():
            return "every process of the driver was killed"
        case Died():
            return "the driver ended without being killed"
        case Unwanted():
            return "the driver was stopped"
        case Waits():
            return f"waiting for a turn on this machine: {event.ahead} run(s) come first"
        case _:
            assert_never(event)


@takes("lab.aloud(event)")
def aloud(event: AnyEvent) -> None:
    """Print a short phrase for the event on a new line."""
    print(words(event), flush=True)


@takes("lab.in_place(event)")
def in_place(event: AnyEvent) -> None:
    """Print a short phrase for the event in place of the previous one, so that a notebook does not fill with lines."""
    print(f"\r{words(event):<70.70}", end="", flush=True)


def silent(_event: AnyEvent) -> None:
    """Do nothing. Pass this function as `tell` to a run that should print no events."""
