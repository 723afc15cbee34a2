"""How many processors there are for us. This module must not decide what is done with them."""

import os


def cores() -> int:
    """The number of processors that this process may use; macOS only says how many there are."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
