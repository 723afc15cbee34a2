"""Serve a folder by a plain static web server, like any web host."""

import functools
import http.server
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


class Quiet(http.server.SimpleHTTPRequestHandler):
    """An HTTP handler that serves files and prints nothing."""

    def log_message(self, format: str, *args: object) -> None:
        """Print no line for a request."""

    def handle(self) -> None:
        """Answer requests until the browser disconnects, even in the middle of a file."""
        with suppress(ConnectionError):
            super().handle()


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """Serve a folder on a free local port within a `with` block; yield the address."""
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(folder))) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/"
        finally:
            server.shutdown()
            thread.join()
