"""Sends and receives messages over a stream socket: four bytes of length (big-endian), then that many bytes.

Both sides of a sandbox use it. The other side may be hostile, so the reader sets the largest size and the latest time
for each message.
"""

import socket
import time

_HEADER = 4


class FrameError(Exception):
    """The other side of the connection closed it, sent too much, or was too late; the message says which."""


def send(connection: socket.socket, payload: bytes, deadline: float | None = None) -> None:
    """Send one message before `deadline`, a time of `time.monotonic`. Raises `FrameError`."""
    connection.settimeout(_left(deadline))
    try:
        connection.sendall(len(payload).to_bytes(_HEADER, "big") + payload)
    except TimeoutError:
        raise FrameError("the other side did not accept the message in time") from None
    except OSError:
        raise FrameError("the connection is closed") from None


def receive(connection: socket.socket, most: int, deadline: float | None = None) -> bytes:
    """Return the next message. Raises `FrameError` if the connection closes, or if the message is longer than `most`
    bytes or not complete before `deadline`, a time of `time.monotonic`.
    """
    length = int.from_bytes(_exactly(connection, _HEADER, deadline), "big")
    if length > most:
        raise FrameError(f"a message has {length:,} bytes, but at most {most:,} are allowed")
    return _exactly(connection, length, deadline)


def _exactly(connection: socket.socket, count: int, deadline: float | None) -> bytes:
    parts = bytearray()
    while len(parts) < count:
        connection.settimeout(_left(deadline))
        try:
            part = connection.recv(min(count - len(parts), 1 << 16))
        except TimeoutError:
            raise FrameError("no answer arrived in time") from None
        except OSError:
            part = b""
        if not part:
            raise FrameError("the connection is closed")
        parts += part
    return bytes(parts)


def _left(deadline: float | None) -> float | None:
    if deadline is None:
        return None
    left = deadline - time.monotonic()
    if left <= 0:
        raise FrameError("no answer arrived in time")
    return left
