"""Defines the messages between the watcher of a command and its guard process: lines of JSON over one socket."""

from msgspec import Struct


class Message(Struct, frozen=True, tag_field="says", forbid_unknown_fields=True):
    """A line of JSON between the watcher, which decides on a command's system calls, and the guard process."""


class Launch(Message, frozen=True, tag="launch"):
    """The watcher's first message to the guard: the command to start, and the kinds of system calls to intercept."""

    command: list[str]
    folder: str
    environment: dict[str, str]
    output: str
    kinds: list[str]


class Kill(Message, frozen=True, tag="kill"):
    """The watcher's order to the guard, the process that started the command, to kill all processes of the command."""


class Listening(Message, frozen=True, tag="listening"):
    """The guard reports that the command is about to start.

    With this message comes the file descriptor that will report the command's system calls.
    """

    root: int


class Refused(Message, frozen=True, tag="refused"):
    """The guard reports that it could not start the command."""

    because: str
    number: int
    """The errno of the failure."""
    filtering: bool = False
    """Whether the kernel refused the filter of system calls, rather than the command."""


class RootEnded(Message, frozen=True, tag="ended"):
    """The guard reports that the command's own process has ended; processes that it started may still run."""

    status: int


class AllEnded(Message, frozen=True, tag="all ended"):
    """The guard's last message: all processes of the command are dead, except those whose ids are in `left`."""

    killed: list[int]
    left: list[int]
    begun: float


GuardMessage = Listening | Refused | RootEnded | AllEnded
"""Any message that a guard sends."""
