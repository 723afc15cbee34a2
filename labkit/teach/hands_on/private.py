"""Find the user's own server, or start a private one, which ends with this process.

The private server's address goes into this process's environment, so that crash runs started here use it as well.
"""

import atexit
import os
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path
from typing import NamedTuple, Protocol, TypeVar

from labkit.host.servers.tethered import TetheredServer


class Server(NamedTuple):
    """The address of a server and its data folder. The folder is None for a user's own server."""

    address: str
    folder: Path | None


_ending = ExitStack()
_private: dict[str, tuple[int, Server]] = {}

atexit.register(_ending.close)


def find(variable: str, start: Callable[[], AbstractContextManager[TetheredServer]]) -> Server:
    """Return the user's own server or, if there is none, a private server, which the first call starts.

    `variable` is the environment variable with the address of the user's server, and `start` starts a private one.
    Raises `ServiceUnavailable` if no private server can be started.
    """
    pid, server = _private.get(variable, (0, None))
    named = os.environ.get(variable, "").strip()
    if server is not None and pid == os.getpid() and named in ("", server.address):
        os.environ[variable] = server.address
        return server
    if named:
        return Server(named, None)
    tethered = _ending.enter_context(start())
    fresh = Server(tethered.address, Path(tethered.folder))
    _private[variable] = (os.getpid(), fresh)
    os.environ[variable] = fresh.address
    return fresh


class Client(Protocol):
    """Connects a learner's experiments to a server; `clean` removes the tables or topics that the client created."""

    def clean(self) -> None:
        """Remove everything that this client created on its server."""


ClientT = TypeVar("ClientT", bound=Client)
_clients: dict[str, Client] = {}


def client(
    variable: str, start: Callable[[], AbstractContextManager[TetheredServer]], make: Callable[[Server], ClientT]
) -> ClientT:
    """Return a new client of the user's own server or, if there is none, of a private server.

    First, the client from an earlier call with the same `variable` removes its tables or topics. Then
    `find(variable, start)` chooses the server, and `make` creates the client. On the user's own server, the
    new client removes its tables or topics at the latest when this process ends.
    """
    if variable in _clients:
        _clients.pop(variable).clean()
    server = find(variable, start)
    new = _clients[variable] = make(server)
    if server.folder is None:
        _ending.callback(new.clean)
    return new
