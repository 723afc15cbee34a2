"""Defines the events that labkit's own processes exchange: a driver's reports, and its supervisor's additions.

On a pipe, each event is one line of JSON whose field `event` names it. `labkit.host.processes.protocol` defines which
event may follow which.
"""

from msgspec import Struct


class Event(Struct, frozen=True, tag_field="event", forbid_unknown_fields=True):
    """Something that happened to a Spark driver process, such as its start or its death."""


class QueryEvent(Event, frozen=True):
    """Something that happened to one streaming query of a Spark driver."""

    query: str
    """The name of the query, unique within its driver."""


class Waits(Event, frozen=True, tag="waits"):
    """The run waits because LABKIT_TURNS limits how many runs may be under way on this machine."""

    ahead: int
    """The number of runs that must end before this one starts."""


class DriverStarts(Event, frozen=True, tag="driver"):
    """The process that executes a run is about to start a Spark driver.

    The event is not sent through a pipe: this process passes it only to its own function `tell`.
    """


class StandbyStarts(Event, frozen=True, tag="standby"):
    """The process that executes a run is about to start a standby: a second Spark driver that waits for a crash."""


class Started(Event, frozen=True, tag="started"):
    """The supervisor, which watches and later kills a Spark driver, has started the driver's process."""

    session: int


class Application(Event, frozen=True, tag="application"):
    """The cluster has registered the Spark driver as an application, and the driver waits for executors."""

    id: str


class SessionUp(Event, frozen=True, tag="session"):
    """The driver's Spark session has been created."""


class Ready(Event, frozen=True, tag="ready"):
    """The Spark driver has warmed up and waits for its queries."""


class Begun(QueryEvent, frozen=True, tag="begun"):
    """The Spark driver begins with a streaming query: first the query's sink recovers, then the query starts."""


class Recovered(QueryEvent, frozen=True, tag="recovered"):
    """The sink of a streaming query has recovered from the last crash, and now the query starts."""

    steps: list[str]
    """The steps of the recovery, each as a sentence."""
    at: float | None = None
    """The time of the event in seconds since the epoch, by the driver's clock; the query starts after it."""


class Parked(QueryEvent, frozen=True, tag="parked"):
    """A streaming query has reached its failpoint (planned crash point) and waits until its driver is killed."""


class Struck(QueryEvent, frozen=True, tag="struck"):
    """A task has reached its failpoint (planned crash point) and waits for the supervisor to kill its executor."""

    executor: int | None
    """The process id of the executor; None if the task found no executor among its ancestors."""


class ExecutorKilled(QueryEvent, frozen=True, tag="executor_killed"):
    """The supervisor has killed the executor of a task that waited at a failpoint; the streaming query continues."""

    executor: int
    killed: list[int]
    left: list[int]
    begun: float
    """The time of the first SIGKILL, in seconds since the epoch."""


class Ended(QueryEvent, frozen=True, tag="ended"):
    """A streaming query has run to its end."""


class Failed(QueryEvent, frozen=True, tag="failed"):
    """A streaming query has failed; other queries of the same Spark driver continue."""

    because: str
    code: int
    """The exit code of the command line for this failure."""


class DriverFailed(Event, frozen=True, tag="driver_failed"):
    """The whole Spark driver has failed, or has sent an event that its state does not allow (`protocol.DRIVER`)."""

    because: str
    code: int
    """The exit code of the command line for this failure."""


class Stopped(Event, frozen=True, tag="stopped"):
    """The Spark driver is about to suspend itself (SIGSTOP) at a planned crash point. SIGCONT will resume it."""


class Idle(Event, frozen=True, tag="idle"):
    """All streaming queries of the Spark driver have ended, and the driver waits for new queries."""

    left: list[str]
    """Descriptions of what the queries left behind in the driver, such as open connections and threads that hang."""


class AwaitsKill(Event, frozen=True, tag="awaits_kill"):
    """The Spark driver has finished its work, or waits at a failpoint, and asks its supervisor to kill it."""


class ExecutorsEnd(Struct, frozen=True):
    """How the Spark executors on this host ended after the death of their driver."""

    outlived: list[int]
    """The ids of the executor processes that were still alive when the driver was dead."""
    seconds: float
    """The seconds from the driver's death to the end of the last of these processes."""
    left: list[int]
    """The ids of the executor processes that did not end at all."""


class Proof(Struct, frozen=True):
    """How a Spark driver died, and the evidence that no process of its session is left."""

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
    """The supervisor has killed the Spark driver and its whole session: the driver failed or asked to be killed."""

    proof: Proof


class Died(Event, frozen=True, tag="died"):
    """The Spark driver's process ended without a kill. Then the supervisor killed all that was left of its session."""

    proof: Proof


class Unwanted(Event, frozen=True, tag="unwanted"):
    """Nobody needs the Spark driver any more, so its supervisor has killed it with all processes of its session."""

    proof: Proof


Ending = Killed | Died | Unwanted
"""The last event of a driver, which says how the driver ended."""

ObserverEvent = DriverStarts | StandbyStarts | Waits
"""Events for observers of a run, such as a progress bar, that no process sends to another one."""

AnyQueryEvent = Begun | Recovered | Parked | Struck | ExecutorKilled | Ended | Failed
AnyDriverEvent = Started | Application | SessionUp | Ready | DriverFailed | Stopped | Idle | AwaitsKill
AnyEvent = ObserverEvent | AnyQueryEvent | AnyDriverEvent | Ending
"""Every event. If a function matches on this union and leaves out an event, the type check fails."""
