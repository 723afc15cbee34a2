"""Count the processors available to this process."""

import os


def cores() -> int:
    """Return the number of processors that this process may use; on macOS, the number of all processors."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
