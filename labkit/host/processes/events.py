"""Defines the events that labkit's own processes exchange: a driver's reports, and its supervisor's additions.

On a pipe, each event is one line of JSON whose field `event` names it. `labkit.host.processes.protocol` defines which
event may follow which.
"""

from msgspec import Struct


class Event(Struct, frozen=True, tag_field="event", forbid_unknown_fields=True):
    """An event in the life of one driver process."""


class QueryEvent(Event, frozen=True):
    """An event in the life of one query that a driver runs."""

    query: str
    """The name of the query, unique within its driver."""


class Waits(Event, frozen=True, tag="waits"):
    """The runner waits for its turn on a machine that several learners share (`labkit.host.turns`).

    Only observers in the runner receive this event; it never crosses a pipe.
    """

    ahead: int
    """The number of runs that must end before this one starts."""


class DriverStarts(Event, frozen=True, tag="driver"):
    """The runner, the parent of the supervisor, is about to start a driver.

    Only observers in the runner receive this event; it never crosses a pipe.
    """


class StandbyStarts(Event, frozen=True, tag="standby"):
    """The runner, the parent of the supervisor, is about to start a standby driver.

    Only observers in the runner receive this event; it never crosses a pipe.
    """


class Started(Event, frozen=True, tag="started"):
    """The supervisor has started the driver's process."""

    session: int


class Application(Event, frozen=True, tag="application"):
    """The driver is registered with a Spark cluster and waits for executors."""

    id: str


class SessionUp(Event, frozen=True, tag="session"):
    """The driver's Spark session is up."""


class Ready(Event, frozen=True, tag="ready"):
    """The driver has warmed up and waits for its queries."""


class Begun(QueryEvent, frozen=True, tag="begun"):
    """The driver begins with the query."""


class Recovered(QueryEvent, frozen=True, tag="recovered"):
    """The recovery of the query's sink is complete, and the query starts."""

    steps: list[str]
    """The steps of the recovery, each as a sentence."""
    at: float | None = None
    """The time of the event in seconds since the epoch, by the driver's clock; the query starts after it."""


class Parked(QueryEvent, frozen=True, tag="parked"):
    """The query has reached its crash point (failpoint), and waits there until the driver is killed."""


class Struck(QueryEvent, frozen=True, tag="struck"):
    """A task of the query has reached its crash point (failpoint), and waits there until its executor is killed."""

    executor: int | None
    """The process id of the executor; None if the task found no executor among its ancestors."""


class ExecutorKilled(QueryEvent, frozen=True, tag="executor_killed"):
    """The supervisor has killed the executor of a task that waited for this; the query continues."""

    executor: int
    killed: list[int]
    left: list[int]
    begun: float
    """The time of the first SIGKILL, in seconds since the epoch."""


class Ended(QueryEvent, frozen=True, tag="ended"):
    """The query has run to its end."""


class Failed(QueryEvent, frozen=True, tag="failed"):
    """The query has failed; other queries of the driver continue."""

    because: str
    code: int
    """The exit code of the command line for this failure."""


class DriverFailed(Event, frozen=True, tag="driver_failed"):
    """The driver as a whole has failed, or sent an event that it may not send."""

    because: str
    code: int
    """The exit code of the command line for this failure."""


class Stopped(Event, frozen=True, tag="stopped"):
    """The driver's process has reached a point at which it stops itself (SIGSTOP); it will be continued later."""


class Idle(Event, frozen=True, tag="idle"):
    """All queries of the driver have ended, and the driver waits for others."""

    left: list[str]
    """Descriptions of what the queries left behind in the driver, such as open connections and threads that hang."""


class AwaitsKill(Event, frozen=True, tag="awaits_kill"):
    """The driver has nothing left to do and waits to be killed."""


class ExecutorsEnd(Struct, frozen=True):
    """How the Spark executors on this host ended after the death of their driver."""

    outlived: list[int]
    """The ids of the processes that were still alive when the driver was dead."""
    seconds: float
    """The seconds from the driver's death to the end of the last of these processes."""
    left: list[int]
    """The ids of the processes that did not end at all."""


class Proof(Struct, frozen=True):
    """How a driver died, and the evidence that no process of its session is left."""

    session: int
    signal: int
    """The signal that ended the driver's process; 0 if it ended by itself."""
    killed: list[int]
    left: list[int]
    """The ids of the processes of the session that could not be killed in time."""
    begun: float
    """The time of the first SIGKILL, in seconds since the epoch."""
    executors: ExecutorsEnd | None = None
    """How the executors ended; None unless the driver ran on a cluster."""


class Killed(Event, frozen=True, tag="killed"):
    """The supervisor has killed a driver that waited for this, with its whole session."""

    proof: Proof


class Died(Event, frozen=True, tag="died"):
    """The driver's process ended without its supervisor's kill; the supervisor then killed the rest of the session."""

    proof: Proof


class Unwanted(Event, frozen=True, tag="unwanted"):
    """The runner no longer needed the driver, so the supervisor has killed the driver's whole session."""

    proof: Proof


Ending = Killed | Died | Unwanted
"""The last event of a driver, which says how the driver ended."""

AnyEvent = (
    DriverStarts
    | StandbyStarts
    | Waits
    | Started
    | Application
    | SessionUp
    | Ready
    | Begun
    | Recovered
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
"""Every event. If a function matches on this union and leaves out an event, the type check fails."""
