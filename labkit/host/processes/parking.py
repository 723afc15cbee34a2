"""Waits to be killed from outside. Whoever waits so must not kill itself: it would run on behind its own signal."""

import threading
from typing import Never


def park() -> Never:
    """Waits for the SIGKILL that is coming."""
    while True:
        threading.Event().wait()
