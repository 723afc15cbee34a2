"""Show people the progress of running drivers: a short phrase for every event, and functions that print it.

A test compares the table of phrases with the events. Nothing here affects a run.
"""

from collections.abc import Callable, Mapping

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
    phrase = PHRASES[type(event)].format(event=event)
    return f"{query or event.query}: {phrase}" if isinstance(event, QueryEvent) else phrase


PHRASES: Mapping[type[AnyEvent], str] = {
    Begun: "starting",
    Recovered: "running",
    Parked: "reached its failpoint",
    Struck: "an executor has reached its failpoint",
    ExecutorKilled: "an executor was killed, the driver continues",
    Ended: "ran to the end",
    Failed: "failed: {event.because}",
    DriverStarts: "starting a Spark driver",
    StandbyStarts: "starting a standby driver",
    Started: "the driver's process is running",
    Application: "the driver waits for executors",
    SessionUp: "Spark has started in the driver",
    Ready: "the standby driver is ready",
    DriverFailed: "the driver failed: {event.because}",
    Stopped: "the driver has stopped itself",
    Idle: "the driver waits for queries",
    AwaitsKill: "the driver waits for the kill",
    Killed: "every process of the driver was killed",
    Died: "the driver ended without being killed",
    Unwanted: "the driver was stopped",
    Waits: "waiting for a turn on this machine: {event.ahead} run(s) come first",
}
"""The phrase of each event; after the name of its query if it is about one."""


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
