"""The events between the lab's own processes: a driver's reports, and its supervisor's additions.

On a pipe, each event is one line of JSON whose field `event` names it. `labkit.host.processes.protocol` defines
which event may follow which.
"""

from msgspec import Struct


class Event(Struct, frozen=True, tag_field="event", forbid_unknown_fields=True):
    """An event in the life of one driver."""


class QueryEvent(Event, frozen=True):
    """An event in the life of one query of a driver."""

    query: str
    """The name of the query, unique within its driver."""


class DriverStarts(Event, frozen=True, tag="driver"):
    """A runner starts a driver. Only observers of the runner receive this event; it never crosses a pipe."""


class StandbyStarts(Event, frozen=True, tag="standby"):
    """A runner starts a standby driver. Only observers of the runner receive this event; it never crosses a pipe."""


class Started(Event, frozen=True, tag="started"):
    """The supervisor has started the driver's process."""

    session: int


class Application(Event, frozen=True, tag="application"):
    """The driver is registered with a cluster and waits for executors."""

    id: str


class SessionUp(Event, frozen=True, tag="session"):
    """The driver's Spark session is up."""


class Ready(Event, frozen=True, tag="ready"):
    """The driver is warm and waits for its queries."""


class Begun(QueryEvent, frozen=True, tag="begun"):
    """The driver opens the query."""


class Recovered(QueryEvent, frozen=True, tag="recovered"):
    """The recovery of the query has ended, and the query starts."""

    steps: list[str]
    """The steps of the recovery, one sentence each."""
    at: float | None = None
    """The time in seconds since the epoch, by the driver's own clock; nothing of the query has run before it."""


class TableRead(QueryEvent, frozen=True, tag="table"):
    """The driver has read the memory table of the query."""

    rows: list[tuple[int, str, int]]
    """The rows as (offset, word, count)."""


class Parked(QueryEvent, frozen=True, tag="parked"):
    """The query has reached its failpoint and waits there for the driver's death."""


class Struck(QueryEvent, frozen=True, tag="struck"):
    """A task of the query has reached its failpoint and waits there for the death of its executor."""

    executor: int | None
    """The executor's process id; None if the task found no executor among its ancestors."""


class ExecutorKilled(QueryEvent, frozen=True, tag="executor_killed"):
    """The supervisor has killed the executor that the driver named; the query continues."""

    executor: int
    killed: list[int]
    left: list[int]
    begun: float
    """When the first SIGKILL was sent, in seconds since the epoch."""


class Ended(QueryEvent, frozen=True, tag="ended"):
    """The query ran to its end."""


class Failed(QueryEvent, frozen=True, tag="failed"):
    """The query failed; the others continue."""

    because: str
    code: int
    """The exit code of this failure on the command line."""


class DriverFailed(Event, frozen=True, tag="driver_failed"):
    """The driver as a whole is unusable, or sent an event that it may not send."""

    because: str
    code: int
    """The exit code of this failure on the command line."""


class Stopped(Event, frozen=True, tag="stopped"):
    """The driver's process has reached a point at which it stops itself (SIGSTOP), to be continued later."""


class Idle(Event, frozen=True, tag="idle"):
    """All queries of the driver have ended, and it waits for others."""

    left: list[str]
    """Descriptions of what queries left open or hanging in the driver."""


class AwaitsKill(Event, frozen=True, tag="awaits_kill"):
    """The driver has nothing left to do and waits to be killed."""


class ExecutorsEnd(Struct, frozen=True):
    """How the executors on this host ended after their driver's death."""

    outlived: list[int]
    """The processes that were still alive when the driver was dead."""
    seconds: float
    """How long the last of them lived on."""
    left: list[int]
    """The processes that did not end at all."""


class Proof(Struct, frozen=True):
    """How a driver died, and evidence that nothing of its session is left."""

    session: int
    signal: int
    """The signal that ended the driver's process; 0 if it ended by itself."""
    killed: list[int]
    left: list[int]
    """The processes of the session that could not be killed in time."""
    begun: float
    """When the first SIGKILL was sent, in seconds since the epoch."""
    executors: ExecutorsEnd | None = None
    """The end of the executors; None unless the driver ran on a cluster."""


class Killed(Event, frozen=True, tag="killed"):
    """The supervisor has killed a driver that waited for it, with its whole session."""

    proof: Proof


class Died(Event, frozen=True, tag="died"):
    """The driver's process ended without its supervisor, which killed the rest of the session."""

    proof: Proof


class Unwanted(Event, frozen=True, tag="unwanted"):
    """Nobody needed the driver any longer, so the supervisor has killed its whole session."""

    proof: Proof


Ending = Killed | Died | Unwanted
"""The last event of every driver."""

AnyEvent = (
    DriverStarts
    | StandbyStarts
    | Started
    | Application
    | SessionUp
    | Ready
    | Begun
    | Recovered
    | TableRead
    | Parked
    | Struck
    | ExecutorKilled
    | Ended
    | Failed
    | DriverFailed
    | Stopped
    | Idle
    | AwaitsKill
    | Killed
    | Died
    | Unwanted
)
"""All events. A function that matches on this union and forgets one fails the type check."""
