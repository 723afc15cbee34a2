"""Count the processors available to this process, and keep a process to one of them."""

import os

_all: set[int] = set()
"""The processors that this process could use before `keep_to_one`."""


def cores() -> int:
    """Return the number of processors that this process may use; on macOS, the number of all processors."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def keep_to_one(number: int) -> None:
    """Let this process, and the children that it starts from now on, run on one processor only; on macOS, do nothing.

    Processes that only wait for each other answer faster on one processor, because the kernel need not wake an idle
    processor for every message. `number` is the index of the processor, from 0, among those that this process may use.
    """
    if hasattr(os, "sched_setaffinity"):
        _all.update(os.sched_getaffinity(0))
        os.sched_setaffinity(0, {sorted(_all)[number % len(_all)]})


def let_use_all(process: int) -> None:
    """Undo `keep_to_one` for the child process with the id `process`: let it run on all processors again.

    Call this before the child starts its own threads.
    """
    if _all:
        os.sched_setaffinity(process, _all)
