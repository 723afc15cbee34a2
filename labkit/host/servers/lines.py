"""A small TCP server, in a thread, that sends each line only once: a source that cannot be read again after a crash."""

import contextlib
import socket
import threading
import time
from collections.abc import Callable, Sequence
from typing import Self

_POLL = 0.01


class LineServer:
    """A TCP server on a free loopback port, within a `with` block, that sends every line only once.

    Client number n (from 0) receives the lines `portions[n]` as soon as `ready()` returns True; clients without a
    portion receive nothing. Connections stay open until the block ends, because closing a connection would end the
    client's stream.
    """

    def __init__(self, portions: Sequence[Sequence[str]], ready: Callable[[], bool] = lambda: True) -> None:
        self._ready, self._closed = ready, False
        self._portions = [("".join(f"{line}\n" for line in portion)).encode() for portion in portions]
        self._connections: list[socket.socket] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._thread = threading.Thread(target=self._serve, daemon=True)

    @property
    def port(self) -> int:
        """Return the port on which the server listens."""
        port: int = self._listener.getsockname()[1]
        return port

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._closed = True
        with contextlib.suppress(OSError):
            # To close the socket alone would not wake the thread that waits in `accept`.
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join()
        # The thread has ended, so nobody adds a connection any more.
        for connection in self._connections:
            connection.close()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            number = len(self._connections)
            self._connections.append(connection)
            while not (self._ready() or self._closed):
                time.sleep(_POLL)
            if number < len(self._portions):
                with contextlib.suppress(OSError):  # a client that hung up has lost its lines
                    self.send(connection, self._portions[number])

    def send(self, connection: socket.socket, lines: bytes) -> None:
        """Send `lines` to a client. The server calls this method once per client, after `ready()` has returned True."""
        connection.sendall(lines)
