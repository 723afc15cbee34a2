"""Wait to be killed from outside. A process that signals itself might run on past its own signal."""

import threading
from typing import Never


def park() -> Never:
    """Wait for the SIGKILL that the supervisor will send."""
    while True:
        threading.Event().wait()
