"""What a watcher and its guard say to each other, one line of JSON each, over one socket.

This module holds values only.
"""

from msgspec import Struct


class Message(Struct, frozen=True, tag_field="says", forbid_unknown_fields=True):
    """One line."""


class Launch(Message, frozen=True, tag="launch"):
    """The watcher's first line: what is to be started."""

    command: list[str]
    folder: str
    environment: dict[str, str]
    output: str
    kinds: list[str]


class Kill(Message, frozen=True, tag="kill"):
    """The watcher wants every process gone. Says the same as its end of the socket closing, and is answered."""


class Listening(Message, frozen=True, tag="listening"):
    """The command's process is about to begin; the listener comes with this line."""

    root: int


class Refused(Message, frozen=True, tag="refused"):
    """The command could not be started."""

    because: str
    number: int
    """The error's number."""
    filtering: bool = False
    """Whether the filter was refused, and not the command."""


class RootEnded(Message, frozen=True, tag="ended"):
    """The command's own process has ended; others may still run."""

    status: int


class AllEnded(Message, frozen=True, tag="all ended"):
    """No process is left; whoever was killed for it is named."""

    killed: list[int]
    left: list[int]
    begun: float


Said = Listening | Refused | RootEnded | AllEnded
"""What a guard says."""

Order = Launch | Kill
"""What a watcher says."""
