"""A port for a server that starts some seconds after its port was chosen.

The kernel gives ports of its own range to every connection that a process opens. A server whose port was chosen there
finds it taken, rarely: once in some hundred starts beside busy neighbours. So ports are chosen below that range, where
only a server that names one can be. This module must not start a server.
"""

import random
import socket
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from itertools import chain, islice
from pathlib import Path

from labkit.core.errors import ServiceUnavailable

HOST = "127.0.0.1"
LOWEST = 10_000
"""Below it lie the ports that well-known servers use."""
USUAL_START = 32_768
"""Where the kernel's own range begins unless a machine says otherwise."""
TRIES = 50
_RANGE = Path("/proc/sys/net/ipv4/ip_local_port_range")
_CHANCE = random.SystemRandom()


def hold(held: ExitStack, wanted: int = 0) -> int:
    """A port that is free now: the wanted one, or any. The stack keeps it until all are chosen, so that they differ.

    Raises `ServiceUnavailable` where none can be had.
    """
    first = [wanted] if wanted else []
    for port in chain(first, islice(_quiet_ports(), TRIES), [0]):
        with suppress(OSError):
            listener = held.enter_context(socket.socket(socket.AF_INET, socket.SOCK_STREAM))
            # Connections of the last server keep its port for a minute otherwise, and a restart
            # would move.
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind((HOST, port))
            # Until a socket listens, another one may take its port, too.
            listener.listen()
            chosen: int = listener.getsockname()[1]
            return chosen
    raise ServiceUnavailable(f"No port is free on {HOST}; run labkit doctor.")


def free_port() -> int:
    """A port that nobody listens on and that no connection is given. Raises `ServiceUnavailable`."""
    with ExitStack() as held:
        return hold(held)


def lowest_connection_port() -> int:
    """The lowest port that the kernel gives to a connection."""
    with suppress(OSError, ValueError, IndexError):
        return int(_RANGE.read_text(encoding="ascii").split()[0])
    return USUAL_START


def _quiet_ports() -> Iterator[int]:
    """Ports by chance, without end; none where the kernel's own range leaves no room."""
    end = lowest_connection_port()
    while end > LOWEST:
        yield _CHANCE.randrange(LOWEST, end)
