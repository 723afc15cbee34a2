"""The messages between a watcher and its guard: one line of JSON each, over one socket."""

from msgspec import Struct


class Message(Struct, frozen=True, tag_field="says", forbid_unknown_fields=True):
    """One line."""


class Launch(Message, frozen=True, tag="launch"):
    """The watcher's first message: the command to start."""

    command: list[str]
    folder: str
    environment: dict[str, str]
    output: str
    kinds: list[str]


class Kill(Message, frozen=True, tag="kill"):
    """The watcher asks the guard to kill every process. Closing the socket means the same, but gets no answer."""


class Listening(Message, frozen=True, tag="listening"):
    """The command is about to start; this message carries the listener's descriptor."""

    root: int


class Refused(Message, frozen=True, tag="refused"):
    """The command could not be started."""

    because: str
    number: int
    """The errno."""
    filtering: bool = False
    """Whether the kernel refused the filter rather than the command."""


class RootEnded(Message, frozen=True, tag="ended"):
    """The command's own process has ended; others may still run."""

    status: int


class AllEnded(Message, frozen=True, tag="all ended"):
    """The guard's report that it has ended every process, with those that were killed and those that are left."""

    killed: list[int]
    left: list[int]
    begun: float


GuardMessage = Listening | Refused | RootEnded | AllEnded
"""The messages of a guard."""

Order = Launch | Kill
"""The messages of a watcher."""
