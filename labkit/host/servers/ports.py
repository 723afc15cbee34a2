"""Choose a port for a server that starts some seconds later.

The kernel assigns ports from its own range to outgoing connections. So on a busy machine, a server whose port was
chosen in that range finds it taken about once in a few hundred starts. This module therefore chooses ports below that
range, which the kernel assigns to no connection.
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
"""The lowest port that labkit chooses, because well-known servers use lower ones."""
USUAL_START = 32_768
"""The port at which the kernel's range for outgoing connections usually starts."""
TRIES = 50
_RANGE = Path("/proc/sys/net/ipv4/ip_local_port_range")
_CHANCE = random.SystemRandom()


def hold(stack: ExitStack, wanted: int = 0) -> int:
    """Return a free port on the loopback interface: `wanted` if it is free, otherwise any.

    The function opens a socket that occupies the port until `stack` is closed, so that several calls return different
    ports. Close `stack` right before a server uses the port. Raises `ServiceUnavailable` if no port is free.
    """
    for port in chain([wanted] if wanted else [], islice(_quiet_ports(), TRIES), [0]):
        with suppress(OSError):
            listener = stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_STREAM))
            # Otherwise old connections keep the port for a minute, and a restart would need another one.
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind((HOST, port))
            # Because of SO_REUSEADDR, another process could bind this port as well until the socket listens.
            listener.listen()
            chosen: int = listener.getsockname()[1]
            return chosen
    raise ServiceUnavailable(
        f"No TCP port is free on {HOST}; end programs that listen there. `labkit doctor` checks whether you may listen."
    )


def free_port() -> int:
    """Return a port on which nobody listens, if possible one that the kernel does not use for outgoing connections.

    Raises `ServiceUnavailable` if no port is free.
    """
    with ExitStack() as stack:
        return hold(stack)


def lowest_connection_port() -> int:
    """Return the lowest port that the kernel uses for outgoing connections (`ip_local_port_range`)."""
    with suppress(OSError, ValueError, IndexError):
        return int(_RANGE.read_text(encoding="ascii").split()[0])
    return USUAL_START


def _quiet_ports() -> Iterator[int]:
    end = lowest_connection_port()
    while end > LOWEST:
        yield _CHANCE.randrange(LOWEST, end)
