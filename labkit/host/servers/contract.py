"""Defines the interface of a service: a server outside of labkit's processes that can be started, examined and stopped.

A service is either labkit's own server, or the user's (`LABKIT_POSTGRES`, `LABKIT_KAFKA`); labkit never starts, stops
or deletes anything of the user's.
"""

from pathlib import Path
from typing import Literal, NamedTuple, Protocol, runtime_checkable

State = Literal["down", "up", "stale", "yours"]
"""The state of a server.

`stale`: files say that it runs, but no such process answers. `yours`: it is the user's own server, and it answers.
"""


class Status(NamedTuple):
    """The result of examining a service: the state of its server, and where it is."""

    name: str
    state: State
    address: str = ""
    """The server's address (URI or host:port), never with a password; empty if there is none."""
    pid: int | None = None
    folder: Path | None = None
    """The folder of the server's data and log; None for the user's own server."""
    version: str = ""


class Service(Protocol):
    """A server that can be started, examined and stopped; repeating any of these does no harm."""

    @property
    def name(self) -> str:
        """Return the name of the server on the command line."""

    def up(self) -> Status:
        """Start the server unless it runs, and wait until it answers. Raises `ServiceUnavailable` if it does not."""

    def status(self) -> Status:
        """Examine the server without changing anything, and return its state."""

    def down(self) -> Status:
        """Stop the server if it is labkit's own, and return its state; its data stay."""


class Stopped(NamedTuple):
    """The processes of a server that was stopped, and the signal that stopped them."""

    pids: list[int]
    signal: int
    """The number of the signal that the server received."""


@runtime_checkable
class Endable(Protocol):
    """A server of labkit's own that can be killed, as in a crash, or stopped in an orderly way."""

    def stop(self) -> Stopped:
        """Make the server stop in an orderly way, as for an upgrade, and wait until it has.

        Raises `ServiceUnavailable` if it is not up, is not labkit's own, or had to be killed because it did not stop.
        """

    def kill(self) -> list[int]:
        """Send SIGKILL to all processes of the server, wait until they are gone, and return their ids.

        Raises `ServiceUnavailable` if the server is not up, or is not labkit's own.
        """
