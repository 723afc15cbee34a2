"""What a person is told while drivers run: a sentence for every event, and who may be told.

The sentences are one function over all events, so an event without a sentence does not pass the type checker. This
module must not decide anything by an event.
"""

from collections.abc import Callable
from typing import assert_never

from labkit.core.asked import takes
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
    TableRead,
    Unwanted,
)

Tell = Callable[[AnyEvent], None]
"""Told every event, for progress only."""


@takes("lab.words(event)")
def words(event: AnyEvent, query: str | None = None) -> str:
    """What happened, for a person. `query` names the event's query where its own name says nothing."""
    if isinstance(event, QueryEvent):
        return f"{query or event.query}: {_of_query(event)}"
    return _of_driver(event)


_OfQuery = Begun | Recovered | TableRead | Parked | Struck | ExecutorKilled | Ended | Failed


def _of_query(event: _OfQuery) -> str:  # noqa: PLR0911  # one line for each event
    match event:
        case Begun():
            return "starting"
        case Recovered():
            return "running"
        case TableRead():
            return "counted everything"
        case Parked():
            return "reached its failpoint"
        case Struck():
            return "an executor has reached its failpoint"
        case ExecutorKilled():
            return "an executor is dead, the driver goes on"
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
)


def _of_driver(event: _OfDriver) -> str:  # noqa: C901, PLR0911, PLR0912  # one line for each event
    match event:
        case DriverStarts():
            return "starting a Spark driver"
        case StandbyStarts():
            return "starting a standby driver"
        case Started():
            return "the driver's process is there"
        case Application():
            return "the driver waits for executors"
        case SessionUp():
            return "the driver is up"
        case Ready():
            return "the standby driver is warm"
        case DriverFailed():
            return f"the driver: failed: {event.because}"
        case Stopped():
            return "the driver has stopped itself"
        case Idle():
            return "the driver waits for queries"
        case AwaitsKill():
            return "the driver waits for its death"
        case Killed():
            return "every process of the driver is dead"
        case Died():
            return "the driver ended by itself"
        case Unwanted():
            return "the driver was stopped"
        case _:
            assert_never(event)


@takes("lab.aloud(event)")
def aloud(event: AnyEvent) -> None:
    """A `Tell` that prints a line for everything that happens."""
    print(words(event), flush=True)


@takes("lab.in_place(event)")
def in_place(event: AnyEvent) -> None:
    """A `Tell` whose every line takes the place of the one before: for a notebook, where many runs go on at once."""
    print(f"\r{words(event):<70.70}", end="", flush=True)


def silent(_event: AnyEvent) -> None:
    """A `Tell` that shows nothing."""
