"""Find out whether a program can go on while one of its threads is held in a system call.

If all other threads wait without a timeout (for a child process, a lock, a pipe), the program's order is fixed: none of
them does anything before the held thread continues. Otherwise the order of their calls depends on chance.
"""

import os
import platform
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import psutil

MOST_LOOKS, STEADY, PAUSE = 60, 5, 0.01
"""Look at the threads at most so often, until they have done the same at so many looks, so many seconds apart."""
RUNNING = "running"


class Wait(NamedTuple):
    """A system call that waits: which of its arguments is the timeout, and which timeouts mean forever."""

    timeout: int = -1
    """The index of the argument from 0; -1 if the call has no timeout."""
    forever: frozenset[int] = frozenset()
    """The values of this argument with which the call waits without a limit."""


_ENDLESS = Wait()
_NULL = frozenset({0})
_MINUS_ONE = frozenset({0xFFFFFFFF, 0xFFFFFFFFFFFFFFFF})

_WAITS = {
    ("x86_64", 0): _ENDLESS,  # read
    ("x86_64", 7): Wait(2, _MINUS_ONE),  # poll
    ("x86_64", 23): Wait(4, _NULL),  # select
    ("x86_64", 34): _ENDLESS,  # pause
    ("x86_64", 61): _ENDLESS,  # wait4
    ("x86_64", 72): _ENDLESS,  # fcntl (F_SETLKW)
    ("x86_64", 73): _ENDLESS,  # flock
    ("x86_64", 130): _ENDLESS,  # rt_sigsuspend
    ("x86_64", 202): Wait(3, _NULL),  # futex
    ("x86_64", 232): Wait(3, _MINUS_ONE),  # epoll_wait
    ("x86_64", 247): _ENDLESS,  # waitid
    ("x86_64", 270): Wait(4, _NULL),  # pselect6
    ("x86_64", 271): Wait(2, _NULL),  # ppoll
    ("x86_64", 281): Wait(3, _MINUS_ONE),  # epoll_pwait
    ("aarch64", 22): Wait(3, _MINUS_ONE),  # epoll_pwait
    ("aarch64", 25): _ENDLESS,  # fcntl (F_SETLKW)
    ("aarch64", 32): _ENDLESS,  # flock
    ("aarch64", 63): _ENDLESS,  # read
    ("aarch64", 72): Wait(4, _NULL),  # pselect6
    ("aarch64", 73): Wait(2, _NULL),  # ppoll
    ("aarch64", 95): _ENDLESS,  # waitid
    ("aarch64", 98): Wait(3, _NULL),  # futex
    ("aarch64", 133): _ENDLESS,  # rt_sigsuspend
    ("aarch64", 260): _ENDLESS,  # wait4
}
"""The calls that wait, by architecture and number (the kernel's tables of system calls, as in `table`)."""


def others_can_go_on(thread: int, process: int) -> bool:
    """Return whether any thread of the watched program can do something although `thread` is held in a system call.

    `process` is the held thread's process. The program is everything that the guard, a child of the calling process,
    has started. A thread that sleeps, computes, or waits with a timeout or for a server can go on. A thread that is
    running may be about to wait, so the function looks several times before it decides.
    """
    looks: list[frozenset[str]] = []
    while len(looks) < MOST_LOOKS:
        free = [each for each in map(_activity, _tasks(process, thread)) if each]
        if not free:
            return False
        looks.append(frozenset(free))
        if len(looks) >= STEADY and len({*looks[-STEADY:]}) == 1 and RUNNING not in looks[-1]:
            return True
        time.sleep(PAUSE)
    return True


def _tasks(process: int, but: int) -> Iterator[Path]:
    """Yield the folder `/proc/<process>/task/<thread>` of each thread of the watched program, except the thread `but`.

    `process` is the id of any process of the program.
    """
    with suppress(psutil.Error):
        line = [psutil.Process(process), *psutil.Process(process).parents()]
        own = [each.pid for each in line].index(os.getpid())
        # The one below labkit is the guard, which is no part of the program.
        for each in line[own - 1].children(recursive=True):
            with suppress(OSError):
                yield from (task for task in Path(f"/proc/{each.pid}/task").iterdir() if task.name != str(but))


def _activity(task: Path) -> str:
    """Return the text of a thread's system call, or `RUNNING`, if the thread can go on by itself; otherwise ''."""
    try:
        call = (task / "syscall").read_text().strip()
        state = (task / "stat").read_text().rpartition(")")[2].split()[0]
    except (PermissionError, FileNotFoundError):  # it has just ended, or the kernel does not tell
        return RUNNING if task.exists() else ""
    except ProcessLookupError:
        return ""
    number, *arguments = call.split() or ["-1"]
    if state in "ZXT":
        return ""
    if number in (RUNNING, "-1"):
        return RUNNING
    wait = _WAITS.get((platform.machine(), int(number)))
    if wait is None or (wait.timeout >= 0 and int(arguments[wait.timeout], 16) not in wait.forever):
        return f"{task} {call}"
    return ""
