"""Sends and receives messages over a stream socket: four bytes of length (big-endian), then that many bytes.

The grader and its sandboxes talk in such messages. The other side may be hostile, so the reader sets the largest size
and the latest time for each message.
"""

import socket
import time

_HEADER = 4
_MOST_READ = 1 << 16


class FrameError(Exception):
    """Raised if the connection is closed, or if a message is too long or late; the error message names the cause."""


class TooLate(FrameError):
    """Raised if a message does not arrive in time, or if the other process does not accept a message in time."""


def send(connection: socket.socket, payload: bytes, deadline: float | None = None) -> None:
    """Send one message before `deadline`, in seconds of `time.monotonic`. Raises `FrameError`."""
    connection.settimeout(_left(deadline))
    try:
        connection.sendall(len(payload).to_bytes(_HEADER, "big") + payload)
    except TimeoutError:
        raise TooLate("the receiving process did not accept the message in time") from None
    except OSError:
        raise FrameError("the connection is closed") from None


def receive(connection: socket.socket, most: int, deadline: float | None = None) -> bytes:
    """Return the next message.

    Raises `FrameError` if the connection closes, or if the message is longer than `most` bytes or not complete before
    `deadline` (in seconds of `time.monotonic`).
    """
    length = int.from_bytes(_exactly(connection, _HEADER, deadline), "big")
    _check(length, most)
    return _exactly(connection, length, deadline)


def _check(length: int, most: int) -> None:
    if length > most:
        raise FrameError(f"a message has {length:,} bytes, but at most {most:,} are allowed")


class Receiver:
    """Receives messages from a connection and reads ahead, so that one system call fetches many small messages."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection, self._ahead, self._at = connection, b"", 0

    def receive(self, most: int, deadline: float | None = None) -> bytes:
        """Return the next message. Raises `FrameError` if it is longer than `most` bytes, late or incomplete."""
        length = int.from_bytes(self._take(_HEADER, deadline), "big")
        _check(length, most)
        return self._take(length, deadline)

    def _take(self, count: int, deadline: float | None) -> bytes:
        if len(self._ahead) - self._at < count:
            parts = bytearray(self._ahead[self._at :])
            while len(parts) < count:
                parts += _some(self._connection, _MOST_READ, deadline)
            self._ahead, self._at = bytes(parts), 0
        self._at += count
        return self._ahead[self._at - count : self._at]


def _exactly(connection: socket.socket, count: int, deadline: float | None) -> bytes:
    parts = bytearray()
    while len(parts) < count:
        parts += _some(connection, min(count - len(parts), _MOST_READ), deadline)
    return bytes(parts)


def _some(connection: socket.socket, most: int, deadline: float | None) -> bytes:
    """Receive 1 to `most` bytes; raise `FrameError` if none arrives in time or the connection is closed."""
    connection.settimeout(_left(deadline))
    try:
        part = connection.recv(most)
    except TimeoutError:
        raise TooLate("no answer arrived in time") from None
    except OSError:
        part = b""
    if not part:
        raise FrameError("the connection is closed")
    return part


def _left(deadline: float | None) -> float | None:
    if deadline is None:
        return None
    left = deadline - time.monotonic()
    if left <= 0:
        raise TooLate("no answer arrived in time")
    return left
