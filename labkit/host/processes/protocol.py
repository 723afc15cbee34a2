"""Checks the order of events with two state tables, one for a driver and one for each of its queries.

The supervisor checks the events of its driver, and the runner those of the supervisor. An event that cannot be decoded,
or that is out of order, proves nothing, so both refuse it.
"""

from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import get_args

from msgspec import Raw, Struct

from labkit.core.errors import JobFailed
from labkit.host.processes import events, wire
from labkit.host.processes.events import AnyEvent, QueryEvent


class ProtocolError(JobFailed):
    """Raised for an event that cannot be decoded, or that the present state of the driver or query does not allow."""


class DriverState(StrEnum):
    """The state of a Spark driver process, as its events show it. `DRIVER` says which event leads to which state."""

    ABSENT = "not started"
    STARTING = "starting"
    UP = "up"
    WORKING = "at work"
    DOOMED = "waiting for its kill"
    DEAD = "dead"


class QueryState(StrEnum):
    """The state of a streaming query, as its events show it. `QUERY` says which event leads to which state."""

    ABSENT = "not begun"
    OPENING = "opening"
    RUNNING = "running"
    PARKED = "waiting at its failpoint"
    STRUCK = "waiting for the kill of an executor"
    UNPROVEN = "failed while the lab was killing an executor"
    OVER = "over"


_DriverRow = dict[type[events.Event], DriverState]
_QueryRow = dict[type[QueryEvent], QueryState]

_ENDS: _DriverRow = {events.Died: DriverState.DEAD, events.Unwanted: DriverState.DEAD}
_LIVES: _DriverRow = {**_ENDS, events.DriverFailed: DriverState.DOOMED, events.AwaitsKill: DriverState.DOOMED}
_WORKS: _DriverRow = dict.fromkeys((*get_args(events.AnyQueryEvent), events.Stopped, events.Idle), DriverState.WORKING)

DRIVER: Mapping[DriverState, Mapping[type[events.Event], DriverState]] = {
    DriverState.ABSENT: {events.Started: DriverState.STARTING},
    DriverState.STARTING: {
        **_LIVES,
        events.Application: DriverState.STARTING,
        events.SessionUp: DriverState.UP,
        events.Ready: DriverState.WORKING,
    },
    DriverState.UP: {**_LIVES, events.Ready: DriverState.WORKING, events.Begun: DriverState.WORKING},
    DriverState.WORKING: {**_LIVES, **_WORKS},
    DriverState.DOOMED: {**_ENDS, events.Killed: DriverState.DEAD},
    DriverState.DEAD: {},
}
"""For each state of a driver, the events that are allowed in it, each with the state that follows."""

_CLOSES: _QueryRow = {events.Ended: QueryState.OVER, events.Failed: QueryState.OVER}

QUERY: Mapping[QueryState, Mapping[type[QueryEvent], QueryState]] = {
    QueryState.ABSENT: {events.Begun: QueryState.OPENING},
    QueryState.OPENING: {**_CLOSES, events.Recovered: QueryState.RUNNING, events.Parked: QueryState.PARKED},
    QueryState.RUNNING: {**_CLOSES, events.Parked: QueryState.PARKED, events.Struck: QueryState.STRUCK},
    QueryState.PARKED: {},
    QueryState.STRUCK: {events.ExecutorKilled: QueryState.RUNNING, events.Failed: QueryState.UNPROVEN},
    QueryState.UNPROVEN: _CLOSES,
    # The crash test may give a driver another query of the same name.
    QueryState.OVER: {events.Begun: QueryState.OPENING},
}
"""For each state of a query, the events that are allowed in it, each with the state that follows.

Recovery is optional, because a query of the crash test has no recovery by labkit.
"""

STILL: Mapping[type[events.Event], frozenset[QueryState]] = {
    events.Idle: frozenset({QueryState.OVER}),
    events.AwaitsKill: frozenset({QueryState.OVER, QueryState.PARKED}),
}
"""Events that a driver may send only while each of its queries is in one of the states listed here."""

OF_THE_SUPERVISOR: frozenset[type[events.Event]] = frozenset(
    {events.Started, events.ExecutorKilled, events.Killed, events.Died, events.Unwanted}
)
"""Events that only a supervisor may send, because no process can prove its own death."""


class Conversation:
    """A state machine that follows one Spark driver and its queries, and refuses events that are out of order."""

    def __init__(self, forbidden: frozenset[type[events.Event]] = frozenset()) -> None:
        """Begin with a driver that has not started. Events of the types in `forbidden` are refused in every state."""
        self._forbidden = forbidden
        self.state = DriverState.ABSENT
        self.queries: dict[str, QueryState] = {}
        self._lines = wire.Lines()

    def take(self, event: AnyEvent) -> None:
        """Go to the state that follows the event. Raises `ProtocolError` if the present state forbids the event."""
        after = DRIVER[self.state].get(type(event))
        if after is None:
            raise _refused(event, f"the driver is {self.state}")
        allowed = STILL.get(type(event), frozenset(QueryState))
        for name, state in self.queries.items():
            if state not in allowed:
                raise _refused(event, f"the query {name} is {state}")
        if isinstance(event, QueryEvent):
            of_query = self.queries.get(event.query, QueryState.ABSENT)
            if type(event) not in QUERY[of_query]:
                raise _refused(event, f"the query {event.query} is {of_query}")
            self.queries[event.query] = QUERY[of_query][type(event)]
        # Last, so that a refused event leaves the conversation unchanged.
        self.state = after

    def read(self, piece: bytes) -> Iterator[AnyEvent]:
        """Yield each event (a line of JSON) that `piece`, the next bytes of the stream, completes.

        Raises `ProtocolError` if a line is no event, or if the event is out of order or forbidden.
        """
        for line in self._lines.feed(piece):
            try:
                event: AnyEvent = wire.decode(line, AnyEvent)  # type: ignore[arg-type]  # `decode` is typed for one class, but msgspec also accepts a union
            except wire.Unreadable as unreadable:
                raise _refused(unreadable, f"the driver is {self.state}") from None
            if type(event) in self._forbidden:
                raise _refused(event, f"the driver is {self.state}")
            self.take(event)
            yield event

    def finish(self) -> None:
        """Check, after the pipe has closed, that the driver is dead. Raises `ProtocolError` if no event has said so."""
        if self.state is not DriverState.DEAD:
            raise ProtocolError(
                f"the process that watches the driver ended without a report while the driver was {self.state}, so "
                "nobody knows whether the driver is dead, and the result would be unreliable; repeat the run."
            )


def _refused(event: object, state: str) -> ProtocolError:
    if isinstance(event, events.Event):
        config = type(event).__struct_config__
        problem = f"the event {config.tag!r} is out of order"
    else:
        problem = f"an event cannot be decoded ({event})"
    return ProtocolError(f"{problem} while {state}, so the result would be unreliable; repeat the run.")


class Launch(Struct, frozen=True):
    """The message by which a runner (a process that executes a run) tells a supervisor how to start a driver."""

    module: str
    """The module that is the driver's program, as in `python -m MODULE`."""
    scratch: str
    """The path of a folder for temporary files, which does not exist yet and is removed after the driver's death."""
    log: str
    task: Raw
    """Encoded instructions that only the driver's module can decode."""
    environment: dict[str, str] = {}
    own_folder: bool = False
    """Whether only this driver uses the folder of `scratch` and `log`. If so, the folder is removed when the runner
    ends before the driver.
    """


class RunQueries(Struct, frozen=True, tag_field="order", tag="run"):
    """The message that makes a waiting Spark driver run streaming queries."""

    queries: list[Raw]
    """Encoded queries that only the driver's module can decode."""
