"""Defines the interface of a service: a server outside of labkit's processes that can be started, examined and stopped.

A service is either labkit's own server, or the user's (`LABKIT_POSTGRES`, `LABKIT_KAFKA`); labkit never starts, stops
or deletes anything of the user's.
"""

from pathlib import Path
from typing import Literal, NamedTuple, Protocol

from labkit.core.errors import ServiceUnavailable

State = Literal["down", "up", "stale", "yours"]
"""The state of a server.

`stale`: according to its files the server runs, but it does not answer. `yours`: the user's own server, which answers.
"""


class Status(NamedTuple):
    """Whether a server (PostgreSQL or Kafka) runs, and its address, process and version."""

    name: str
    state: State
    address: str = ""
    """The server's address (URI or host:port), never with a password; empty if there is none."""
    pid: int | None = None
    folder: Path | None = None
    """The folder of the server's data and log; None for the user's own server."""
    version: str = ""


class Stopped(NamedTuple):
    """The result of stopping a server: the ids of its processes, and the signal that labkit sent to the server."""

    pids: list[int]
    signal: int


class Service(Protocol):
    """A server, such as PostgreSQL, that labkit can start, examine and stop; a second `up` or `down` does nothing."""

    @property
    def name(self) -> str:
        """Return the name by which users call the server: `postgres` or `kafka`."""

    def up(self) -> Status:
        """Start the server unless it runs, and wait until it answers. Raises `ServiceUnavailable` if it does not."""

    def status(self) -> Status:
        """Return whether the server runs, and where, without changing anything."""

    def down(self) -> Status:
        """Stop the server, keep its data, and return its state. A server of the user's own is not stopped."""

    def stop(self) -> Stopped:
        """Make labkit's own server shut down cleanly, as for an upgrade, and wait for its end.

        Raises `ServiceUnavailable` if the server does not run, is the user's own, or was too slow and was killed.
        """

    def kill(self) -> list[int]:
        """Send SIGKILL to all processes of labkit's own server, wait until they are gone, and return their ids.

        Raises `ServiceUnavailable` if the server does not run, or is the user's own.
        """


def running_pid(status: Status, server: str, action: str) -> int:
    """Return the process id of labkit's own server. Raises `ServiceUnavailable` if the server does not run.

    In the error's message, `server` names the server, and `action` says what the caller wanted to do, such as "kill".
    """
    if status.state != "up" or status.pid is None:
        raise ServiceUnavailable(
            f"labkit has no running {server} to {action} (state: {status.state}); start one with "
            f"`labkit services up {status.name}`, and repeat the run."
        )
    return status.pid
