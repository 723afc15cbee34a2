"""Find out whether a program can go on while one of its threads is held in a system call.

If all other threads wait without a timeout (for a child process, a lock, a pipe), the program's order is fixed: none of
them does anything before the held thread continues. Otherwise the order of their calls depends on chance.
"""

import os
import platform
import time
from collections.abc import Container, Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import psutil

MOST_LOOKS, STEADY, PAUSE = 60, 5, 0.01
"""The most looks at the threads, the number of equal looks in a row that suffice, and the seconds between two looks."""
RUNNING = "running"


class Wait(NamedTuple):
    """A system call that waits: which of its arguments is the timeout, and which timeouts mean forever."""

    timeout: int = -1
    """The index of the argument from 0; -1 if the call has no timeout."""
    forever: Container[int] = ()
    """The values of this argument with which the call waits without a limit."""
    on_files: bool = False
    """Whether the call waits for open files, among which a socket may get data from outside of the program."""


_NULL = (0,)
_MINUS_ONE = (0xFFFFFFFF, 0xFFFFFFFFFFFFFFFF)

_CALLS = (
    ("read 0 63", Wait(on_files=True)),
    ("poll 7 -", Wait(2, _MINUS_ONE, on_files=True)),
    ("ppoll 271 73", Wait(2, _NULL, on_files=True)),
    ("select 23 -, pselect6 270 72", Wait(4, _NULL, on_files=True)),
    ("epoll_wait 232 -, epoll_pwait 281 22", Wait(3, _MINUS_ONE, on_files=True)),
    ("futex 202 98", Wait(3, _NULL)),
    ("wait4 61 260, waitid 247 95, pause 34 -, rt_sigsuspend 130 133, flock 73 32, fcntl 72 25", Wait()),
)
"""Calls that wait: `name NUMBER NUMBER` for each, the first on x86_64 and the second on aarch64 (`-`: no such call).

`fcntl` waits for a lock of a file (F_SETLKW). The numbers come from the same tables of the kernel as those in
`labkit.host.syscalls.table`.
"""

_COLUMN = {"x86_64": 1, "aarch64": 2}
_WAITS = {
    number: wait
    for calls, wait in _CALLS
    for call in calls.split(", ")
    if (number := call.split()[_COLUMN.get(platform.machine(), 1)]) != "-"
}
"""The calls that wait on this processor, by their numbers as text."""


def others_can_go_on(thread: int, process: int) -> bool:
    """Return whether another thread of the watched program can go on while `thread` is held in a system call.

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
    with suppress(psutil.Error, ValueError):  # it has just ended
        line = [psutil.Process(process), *psutil.Process(process).parents()]
        own = [each.pid for each in line].index(os.getpid())
        # The one below labkit is the guard, which is no part of the program.
        for each in line[own - 1].children(recursive=True):
            with suppress(OSError):
                yield from (task for task in Path(f"/proc/{each.pid}/task").iterdir() if task.name != str(but))


def _activity(task: Path) -> str:
    """If a thread can go on by itself, return its system call as text, or `RUNNING` without a call; otherwise ''."""
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
    wait = _WAITS.get(number)
    is_endless = wait is not None and (wait.timeout < 0 or int(arguments[wait.timeout], 16) in wait.forever)
    if wait is not None and is_endless and not (wait.on_files and _has_socket(task)):
        return ""
    return f"{task} {call}"


def _has_socket(task: Path) -> bool:
    """Return whether the process has a socket open, perhaps to a server, which may answer at any time."""
    with suppress(OSError):
        return any(str(each.readlink()).startswith("socket:") for each in (task / "fd").iterdir())
    return True
