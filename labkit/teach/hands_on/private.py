"""The user's own server, or a private one that is started when it is first asked for and ends with this process.

Its address goes into this process's environment, so that crash runs which are started here use the same server. This
module must not know what anybody does there.
"""

import atexit
import os
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path
from typing import NamedTuple

from labkit.host.servers.tethered import TetheredServer


class Server(NamedTuple):
    """Where a server is. `folder` is where a private one lies; None for the user's own."""

    address: str
    folder: Path | None


_ending = ExitStack()
_private: dict[str, tuple[int, Server]] = {}

atexit.register(_ending.close)


def find(
    variable: str, start: Callable[[], AbstractContextManager[TetheredServer]]
) -> Server:
    """The server that this environment variable names; started where it names none. Raises `ServiceUnavailable`."""
    pid, known = _private.get(variable, (0, None))
    given = os.environ.get(variable, "").strip()
    if known is not None and pid == os.getpid() and given in ("", known.address):
        os.environ[variable] = known.address
        return known
    if given:
        return Server(given, None)
    tethered = _ending.enter_context(start())
    found = Server(tethered.address, tethered.folder)
    _private[variable] = (os.getpid(), found)
    os.environ[variable] = found.address
    return found


def at_end(close: Callable[[], object]) -> None:
    """Before the private servers end, does this."""
    _ending.callback(close)
