"""What every service of the lab can do: start, say how it is, stop. This module must not start anything."""

from pathlib import Path
from typing import NamedTuple, Protocol


class Status(NamedTuple):
    """How a service is.

    `state` is `down`, `up`, `stale` (its files say that it runs, and it does not answer) or `yours` (an environment
    variable points to a server of the user's own, which the lab neither starts nor stops). `address` is where clients
    connect, without a password; empty when it is down. `folder` holds its data and its log.
    """

    name: str
    state: str
    address: str
    pid: int | None
    folder: Path | None
    version: str


class Service(Protocol):
    """A server that the lab can own."""

    name: str

    def up(self) -> Status:
        """Starts it unless it is up. Raises `ServiceUnavailable` with the remedy when that is impossible."""

    def status(self) -> Status:
        """How it is now; changes nothing."""

    def down(self) -> Status:
        """Stops it unless it is down, or the user's own."""
