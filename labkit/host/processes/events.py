"""The events between the lab's own processes, as values: what a driver reports, and what its supervisor adds.

On a pipe each event is one line of JSON whose field `event` names it. Which event may follow which is said in
`labkit.host.processes.protocol`. This module must not know what the queries of a driver are.
"""

from msgspec import Struct


class Event(Struct, frozen=True, tag_field="event", forbid_unknown_fields=True):
    """Something that happened in, or to, one driver."""


class QueryEvent(Event, frozen=True):
    """Something that happened to one query of a driver."""

    query: str
    """The name of the query, distinct among those of its driver."""


class DriverStarts(Event, frozen=True, tag="driver"):
    """A runner starts a driver. Told to whoever watches the runner; it never crosses a pipe."""


class StandbyStarts(Event, frozen=True, tag="standby"):
    """A runner starts a standby driver. Told to whoever watches the runner; it never crosses a pipe."""


class Started(Event, frozen=True, tag="started"):
    """The supervisor has started the driver's process."""

    session: int


class Application(Event, frozen=True, tag="application"):
    """The driver is known to a cluster, and waits for executors."""

    id: str


class SessionUp(Event, frozen=True, tag="session"):
    """The driver's Spark session is up."""


class Ready(Event, frozen=True, tag="ready"):
    """The driver is warm, and waits for the queries that it will be handed."""


class Begun(QueryEvent, frozen=True, tag="begun"):
    """The driver opens the query."""


class Recovered(QueryEvent, frozen=True, tag="recovered"):
    """The recovery of the query is over, and the query starts."""

    steps: list[str]
    """What was resolved, one sentence each."""
    at: float | None = None
    """When that was, in seconds since the epoch, by the driver's own clock: nothing of the query has run before."""


class TableRead(QueryEvent, frozen=True, tag="table"):
    """The driver has read the memory table of the query."""

    rows: list[tuple[int, str, int]]
    """The rows as (offset, word, count)."""


class Parked(QueryEvent, frozen=True, tag="parked"):
    """The query has reached its failpoint, and waits there for the driver's death."""


class Struck(QueryEvent, frozen=True, tag="struck"):
    """A task of the query has reached its failpoint, and waits there for the death of its executor."""

    executor: int | None
    """Process id; None where the task found no executor above itself."""


class ExecutorKilled(QueryEvent, frozen=True, tag="executor_killed"):
    """The supervisor has killed the executor that the driver pointed out; the query goes on."""

    executor: int
    killed: list[int]
    left: list[int]
    begun: float
    """When the first SIGKILL was sent, in seconds since the epoch."""


class Ended(QueryEvent, frozen=True, tag="ended"):
    """The query ran to its end."""


class Failed(QueryEvent, frozen=True, tag="failed"):
    """The query failed; the others go on."""

    because: str
    code: int
    """The exit code that such a failure has on the command line."""


class DriverFailed(Event, frozen=True, tag="driver_failed"):
    """The driver as a whole is of no use, or said what it must not say."""

    because: str
    code: int
    """The exit code that such a failure has on the command line."""


class Stopped(Event, frozen=True, tag="stopped"):
    """The driver's process has reached a point at which it stops itself (SIGSTOP), to be continued later."""


class Idle(Event, frozen=True, tag="idle"):
    """Every query that the driver was handed is over, and it waits for others."""

    left: list[str]
    """What queries left open or hanging in the driver."""


class AwaitsKill(Event, frozen=True, tag="awaits_kill"):
    """Nothing is left for the driver to do but to be killed."""


class ExecutorsEnd(Struct, frozen=True):
    """How the executors on this host ended after the death of their driver."""

    outlived: list[int]
    """Processes that were still alive when the driver was dead."""
    seconds: float
    """How long the last of them went on."""
    left: list[int]
    """Processes that did not end at all."""


class Proof(Struct, frozen=True):
    """How a driver died, and that nothing of its session is left."""

    session: int
    signal: int
    """By which the driver's process died; 0 if it ended by itself."""
    killed: list[int]
    left: list[int]
    """Processes of the session that could not be killed in time."""
    begun: float
    """When the first SIGKILL was sent, in seconds since the epoch."""
    executors: ExecutorsEnd | None = None
    """On a cluster only."""


class Killed(Event, frozen=True, tag="killed"):
    """The supervisor has killed a driver that awaited it, with its whole session."""

    proof: Proof


class Died(Event, frozen=True, tag="died"):
    """The driver's process ended without the supervisor; what it left of its session was killed."""

    proof: Proof


class Unwanted(Event, frozen=True, tag="unwanted"):
    """Nobody wanted the driver any more, so the supervisor has killed its whole session."""

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
"""Every event: a function over this union that forgets one does not pass the type checker."""
