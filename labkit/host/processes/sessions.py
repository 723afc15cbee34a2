"""Processes by session: who is in one, and how it is emptied.

A server that makes process groups of its own (each PySpark daemon does) is not ended by killing its group, but all
its processes stay in the session in which it was started. This module must not decide who deserves to die.
"""

import contextlib
import os
import signal
import time
from collections.abc import Iterator

import psutil


def session_members(session: int) -> list[int]:
    """The living processes of a session, in numerical order; zombies have ended and do not count."""
    return sorted(_members(session))


def _members(session: int) -> Iterator[int]:
    for process in psutil.process_iter():
        try:
            if (
                os.getsid(process.pid) == session
                and process.status() != psutil.STATUS_ZOMBIE
            ):
                yield process.pid
        except (psutil.NoSuchProcess, ProcessLookupError, PermissionError):
            continue


def empty_session(session: int, seconds: float) -> list[int]:
    """SIGKILL to every process of a session, again until none is left; returns those that are left after that time."""
    end = time.monotonic() + seconds
    while living := session_members(session):
        for pid in living:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        if time.monotonic() > end:
            break
        time.sleep(0.01)
    return living
