"""Processes by session: who is in one, and how it is emptied. Here is the only loop of the lab that kills.

A server that makes process groups of its own (each PySpark daemon does) is not ended by killing its group, but all
its processes stay in the session in which it was started. This module must not decide who deserves to die.
"""

import contextlib
import os
import signal
import time
from collections.abc import Callable, Iterator
from typing import NamedTuple

import psutil

_PAUSE = 0.005
"""Seconds between two looks at who is still alive."""


def session_members(session: int) -> list[int]:
    """The living processes of a session, in numerical order; zombies have ended and do not count."""
    return sorted(_members(session))


def _members(session: int) -> Iterator[int]:
    for process in psutil.process_iter():
        try:
            # The session first: it is one system call, the state is a file to be read,
            # and most processes are of other sessions.
            if os.getsid(process.pid) == session and process.status() != psutil.STATUS_ZOMBIE:
                yield process.pid
        # POSIX lets a system refuse to name the session of a process of another one.
        except (psutil.NoSuchProcess, ProcessLookupError, PermissionError):
            continue


class Emptied(NamedTuple):
    """What came of killing processes until none is left."""

    killed: list[int]
    """Every process that got a SIGKILL, in numerical order."""
    left: list[int]
    """Those that were still alive when the time was over."""
    begun: float
    """When the first SIGKILL was sent, in seconds since the epoch."""


def kill_all(living: Callable[[], list[int]], seconds: float) -> Emptied:
    """SIGKILL to every process that `living` finds, again until it finds none, for at most so many seconds."""
    begun, end = time.time(), time.monotonic() + seconds
    killed: set[int] = set()
    # A process that is about to be killed may still fork, so one look is never enough;
    # a look that finds nobody is.
    while left := living():
        for pid in left:
            _kill(pid)
        killed.update(left)
        if time.monotonic() > end:
            break
        time.sleep(_PAUSE)
    return Emptied(sorted(killed), left, begun)


def empty_session(session: int, seconds: float, *, spare: int | None = None) -> Emptied:
    """SIGKILL to every process of a session, again until none is left but the one that is to be spared."""
    return kill_all(lambda: [pid for pid in session_members(session) if pid != spare], seconds)


def signal_session(session: int, number: signal.Signals) -> None:
    """One signal to every process of a session: to stop all of them, or to let them go on."""
    for pid in session_members(session):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)


def await_stopped(pid: int, seconds: float) -> bool:
    """Waits until a process that stops itself has done so, for at most so many seconds; whether it has.

    Who continues a process that has not yet stopped itself continues it too early: it stops, and nobody comes again.
    """
    end = time.monotonic() + seconds
    with contextlib.suppress(psutil.NoSuchProcess):
        process = psutil.Process(pid)
        while time.monotonic() < end:
            if process.status() == psutil.STATUS_STOPPED:
                return True
            time.sleep(_PAUSE)
    return False


def _kill(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
