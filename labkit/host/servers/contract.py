"""What a service is: a server outside the lab's processes that is started, asked for its state, and stopped.

A service is the lab's own, or the user's (`LABKIT_POSTGRES`, `LABKIT_KAFKA`): then nothing of it is started, stopped or
deleted. This module must not start anything.
"""

from pathlib import Path
from typing import Literal, NamedTuple, Protocol, runtime_checkable

State = Literal["down", "up", "stale", "yours"]
"""`stale`: files say that it runs, and no such process answers; `yours`: the user's own, and it answers."""


class Status(NamedTuple):
    """What could be found out about a service."""

    name: str
    state: State
    address: str = ""
    """The address of the server (URI or host:port), never with a password; empty where it is nowhere."""
    pid: int | None = None
    folder: Path | None = None
    """The folder of its data and its log; None for the user's own."""
    version: str = ""


class Service(Protocol):
    """One server. All three verbs may be repeated: what is done already is not done again."""

    @property
    def name(self) -> str:
        """The name of the server on the command line."""

    def up(self) -> Status:
        """Starts it, unless it runs, and waits until it answers. Raises `ServiceUnavailable`."""

    def status(self) -> Status:
        """Looks, and changes nothing."""

    def down(self) -> Status:
        """Stops it if it is the lab's own; the data stay."""


class Stopped(NamedTuple):
    """How a server came to its end."""

    pids: list[int]
    signal: int
    """What it was sent."""


@runtime_checkable
class Endable(Protocol):
    """A server of the lab's own that can be crashed, and can be stopped in order."""

    def stop(self) -> Stopped:
        """Asks it to stop, as for an upgrade, and waits until it has.

        Raises `ServiceUnavailable` if it is not up, not the lab's own, or had to be killed because it did not stop.
        """

    def kill(self) -> list[int]:
        """SIGKILL to every process of it; gives their ids once all are gone.

        Raises `ServiceUnavailable` if it is not up, or not the lab's own.
        """
