"""Show people the progress of running drivers: a short phrase for every event, and functions that print it.

A test compares the table of phrases with the events. Nothing here affects a run.
"""

from collections.abc import Callable, Mapping

from labkit.core.arguments import takes
from labkit.host.processes import events
from labkit.host.processes.events import AnyEvent, QueryEvent

Tell = Callable[[AnyEvent], None]
"""A function that receives every event of the drivers, for example to print it."""


@takes("lab.words(event)")
def words(event: AnyEvent, query: str | None = None) -> str:
    """Return a short phrase for an event of a run, such as `append: reached its failpoint`.

    If the event is about one query, the phrase begins with its name (here `append`), or with `query` if that is given.
    """
    phrase = PHRASES[type(event)].format(event=event)
    return f"{query or event.query}: {phrase}" if isinstance(event, QueryEvent) else phrase


PHRASES: Mapping[type[AnyEvent], str] = {
    events.Begun: "starting",
    events.Recovered: "running",
    events.Parked: "reached its failpoint",
    events.Struck: "an executor has reached its failpoint",
    events.ExecutorKilled: "an executor was killed, the driver continues",
    events.Ended: "ran to the end",
    events.Failed: "failed: {event.because}",
    events.DriverStarts: "starting a Spark driver",
    events.StandbyStarts: "starting a standby driver",
    events.Started: "the driver's process is running",
    events.Application: "the driver waits for executors",
    events.SessionUp: "Spark has started in the driver",
    events.Ready: "the standby driver is ready",
    events.DriverFailed: "the driver failed: {event.because}",
    events.Stopped: "the driver has stopped itself",
    events.Idle: "the driver waits for queries",
    events.AwaitsKill: "the driver waits for the kill",
    events.Killed: "every process of the driver was killed",
    events.Died: "the driver ended without being killed",
    events.Unwanted: "the driver was stopped",
    events.Waits: "waiting for a turn on this machine: {event.ahead} run(s) come first",
}
"""The phrase for each kind of event; if an event is about one query, the query's name precedes the phrase."""


@takes("lab.aloud(event)")
def aloud(event: AnyEvent) -> None:
    """Print a short phrase about an event of a run, on a line of its own."""
    print(words(event), flush=True)


@takes("lab.in_place(event)")
def in_place(event: AnyEvent) -> None:
    """Print a short phrase about an event over the previous phrase, so that a notebook does not fill with lines."""
    print(f"\r{words(event):<70.70}", end="", flush=True)


def silent(_event: AnyEvent) -> None:
    """Do nothing. Pass this function as `tell` to a run that should print no events."""
