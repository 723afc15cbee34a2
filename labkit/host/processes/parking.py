"""Lets a process wait to be killed by another one, because a process that signals itself may run on for a moment."""

import threading
from typing import Never


def park() -> Never:
    """Wait at a failpoint (planned crash point) until the supervisor kills this process by SIGKILL."""
    while True:
        threading.Event().wait()
