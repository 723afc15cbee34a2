"""Lists the processes of a Unix session, and kills all of them. No other module kills in a loop.

Killing a server's process group is not enough if the server creates groups of its own, as each PySpark daemon does. But
all its processes stay in the session in which the server was started.
"""

import contextlib
import os
import signal
import time
from collections.abc import Callable
from typing import NamedTuple

_PAUSE = 0.005
"""The seconds between two checks of which processes are still alive."""


def session_members(session: int) -> list[int]:
    """Return the ids of the living processes of a Unix session, sorted. A zombie (dead, unreaped) is not living."""
    import psutil  # here, because a browser loads this module and has no psutil

    members = []
    for process in psutil.process_iter():
        # POSIX allows a system to refuse the session of a process in another session.
        with contextlib.suppress(psutil.NoSuchProcess, ProcessLookupError, PermissionError):
            # The session first, because it needs one system call, and the state a file.
            if os.getsid(process.pid) == session and process.status() != psutil.STATUS_ZOMBIE:
                members.append(process.pid)
    return sorted(members)


def is_alive(pid: int) -> bool:
    """Return whether a process with this id exists and is no zombie."""
    import psutil  # here, as above

    with contextlib.suppress(psutil.Error):
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    return False


class Emptied(NamedTuple):
    """The result of sending SIGKILL to a group of processes until no process is left, or until the time is over."""

    killed: list[int]
    """The ids of all processes that received a SIGKILL, in numerical order."""
    left: list[int]
    """The ids of the processes that were still alive when the time was over."""
    begun: float
    """The time of the first SIGKILL, in seconds since the epoch."""


def kill_all(living: Callable[[], list[int]], seconds: float) -> Emptied:
    """Send SIGKILL to the processes that `living()` returns until it returns none, for at most `seconds`."""
    begun, end = time.time(), time.monotonic() + seconds
    killed: set[int] = set()
    # A process that is about to be killed may still fork, so the loop ends only when it finds no process.
    while left := living():
        for pid in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        killed.update(left)
        if time.monotonic() > end:
            break
        time.sleep(_PAUSE)
    return Emptied(sorted(killed), left, begun)


def empty_session(session: int, seconds: float, *, spare: int | None = None) -> Emptied:
    """Kill all processes of a Unix session by SIGKILL, except the process `spare`, until none is left.

    Give up after `seconds`.
    """
    return kill_all(lambda: [pid for pid in session_members(session) if pid != spare], seconds)
