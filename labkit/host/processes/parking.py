"""Wait to be killed by another process, because a process that signals itself might run on past its own signal."""

import threading
from typing import Never


def park() -> Never:
    """Wait until the supervisor kills this process by SIGKILL."""
    while True:
        threading.Event().wait()
