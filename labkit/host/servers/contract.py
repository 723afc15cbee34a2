"""The contract of a service: a server outside the lab's processes that can be started, examined and stopped.

A service is the lab's own, or the user's (`LABKIT_POSTGRES`, `LABKIT_KAFKA`); the lab never starts, stops or
deletes anything of the user's.
"""

from pathlib import Path
from typing import Literal, NamedTuple, Protocol, runtime_checkable

State = Literal["down", "up", "stale", "yours"]
"""`stale`: files claim that it runs, but no such process answers; `yours`: it is the user's own, and it answers."""


class Status(NamedTuple):
    """The state of a service."""

    name: str
    state: State
    address: str = ""
    """The server's address (URI or host:port), never with a password; empty if there is none."""
    pid: int | None = None
    folder: Path | None = None
    """The folder of its data and log; None for the user's own."""
    version: str = ""


class Service(Protocol):
    """One server. All three verbs are idempotent."""

    @property
    def name(self) -> str:
        """Return the server's name on the command line."""

    def up(self) -> Status:
        """Start the server unless it runs, and wait until it answers. Raises `ServiceUnavailable`."""

    def status(self) -> Status:
        """Examine the server without changing anything."""

    def down(self) -> Status:
        """Stop the server if it is the lab's own; its data stay."""


class Stopped(NamedTuple):
    """How a server ended."""

    pids: list[int]
    signal: int
    """The signal that it received."""


@runtime_checkable
class Endable(Protocol):
    """A server of the lab's own that can crash and can stop in an orderly way."""

    def stop(self) -> Stopped:
        """Ask the server to stop, as for an upgrade, and wait until it has.

        Raises `ServiceUnavailable` if it is not up, not the lab's own, or had to be killed because it did not stop.
        """

    def kill(self) -> list[int]:
        """Send SIGKILL to all of the server's processes and return their ids once all are gone.

        Raises `ServiceUnavailable` if it is not up, or not the lab's own.
        """
