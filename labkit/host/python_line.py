"""Find the line of Python that a stopped thread of another process is executing, so that reports can name it.

The kernel holds the thread in a system call, so its stack does not change meanwhile. PyStack reads the stack from the
process's memory. It runs in this process, because Yama, a security module of Linux, may allow this only to an ancestor
of the process that is read.
"""

import ctypes
import logging
import os
import re
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from labkit.core.extras import is_installed

_LIBRARY = re.compile(r"(^|/)lib(64)?/(python3|pypy)[^/]*/|\.zip/|^<")
"""A pattern for the files of Python itself and of installed packages, and for code without a file."""

# Otherwise PyStack prints a warning about each interpreter that is just ending.
logging.getLogger("pystack").addHandler(logging.NullHandler())

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3
"""Parameters of glibc's malloc. Source: malloc.h."""

MOST_CALLERS = 8
"""How many of its callers a line has at most."""

OWN = Path(__file__).parents[1]
"""The folder of labkit's own code, whose lines are never the user's."""


class Line(NamedTuple):
    """The line of the user's Python code that a thread was executing when its system call was intercepted."""

    file: str
    """The path of the file, absolute, or relative to a folder that the caller knows."""
    number: int
    """The number of the line, from 1."""
    function: str
    """The name of the function; `<module>` for code outside of functions."""
    own: bool = True
    """Whether the stopped thread executes the line; False if it is a library's thread, and another thread does."""
    callers: tuple[tuple[str, int], ...] = ()
    """The lines of the user's code that called this function, as pairs of file and number, the innermost first.

    At most `MOST_CALLERS`. Two statements that a program executes through one helper differ only in these.
    """

    @property
    def stack(self) -> tuple[tuple[str, int], ...]:
        """This line and the lines in `callers`, as pairs of file and line number, the innermost first."""
        return (self.file, self.number), *self.callers

    def __str__(self) -> str:
        other = "" if self.own else ", through another thread"
        function = "" if self.function == "<module>" else f" in {self.function}"
        return f"{Path(self.file).name}:{self.number}{function}{other}"


def can_read() -> bool:
    """Return whether the package PyStack is installed. PyStack shows which line a Python process executes."""
    return is_installed("pystack")


def is_python(process: int) -> bool:
    """Return whether the process with this id is a Python interpreter, judging by its program's name."""
    try:
        program = Path(f"/proc/{process}/exe").readlink()
    except OSError:
        return False
    return program.name.startswith(("python", "pypy"))


def command_line(process: int) -> tuple[str, ...]:
    """Return the words of the command line of the process with this id; empty if the kernel does not show them."""
    try:
        return tuple(Path(f"/proc/{process}/cmdline").read_bytes().decode(errors="replace").split("\0")[:-1])
    except OSError:
        return ()


def line_of(thread: int, process: int) -> Line | None:
    """Return the innermost line of the user's own code, not a library's, that a thread of `process` is executing.

    A library's own thread, such as a Kafka producer's sender, executes no line of the user. In this case the result is
    the line of another thread, if exactly one other thread executes user code. Return None if there is no such line, or
    if the stack is unreadable.
    """
    try:
        folder = Path(f"/proc/{process}/cwd").readlink()
    except OSError:
        folder = Path()
    others = []
    for each in _threads(process):
        own = each.tid == thread
        line = _innermost(each.frames, folder, own=own)
        if line is not None and own:
            return line
        if line is not None:
            others.append(line)
    return others[0] if len(others) == 1 else None


def _threads(process: int) -> list[Any]:
    # Handlers of signals run in the main thread, and PyStack drops an exception that one raises, such as at a SIGTERM.
    with ThreadPoolExecutor(1) as another_thread:
        return another_thread.submit(_read_threads, process).result()


@cache
def _keep_memory() -> None:
    """Make malloc keep freed memory, so that the next reading of stacks is faster.

    PyStack copies whole stacks, of 8 MB each. By default glibc takes new memory from the kernel for each copy, and it
    takes 28 ms instead of 10 to read the stacks of a Spark driver. The setting holds for the whole process and costs up
    to about 100 MB of memory.
    """
    with suppress(OSError, AttributeError):  # other C libraries have no such function
        mallopt = ctypes.CDLL(None).mallopt
        mallopt(_M_TRIM_THRESHOLD, 256 << 20)
        mallopt(_M_MMAP_THRESHOLD, 32 << 20)


def _read_threads(process: int) -> list[Any]:
    _keep_memory()
    from pystack.engine import NativeReportingMode, StackMethod, get_process_threads

    # ELF_DATA first, because AUTO begins with a way that only the newest interpreters support, and takes longer.
    for method in (StackMethod.ELF_DATA, StackMethod.AUTO):
        # An interpreter that is just starting or ending may raise any error; then only the line is unknown.
        with suppress(Exception):
            # Not stopped, because the kernel already holds the thread, and the other threads continue.
            return list(
                get_process_threads(
                    process, stop_process=False, native_mode=NativeReportingMode.OFF, locals=False, method=method
                )
            )
    return []


def _innermost(frames: Iterable[Any], folder: Path, *, own: bool) -> Line | None:
    """Return the innermost line of user code in `frames` (outermost first); None if no frame has user code.

    User code belongs neither to a library nor to labkit. Relative file names refer to `folder`. `own` says whether the
    frames are those of the stopped thread itself, and becomes the result's field `own`.
    """
    found = []
    for frame in reversed(list(frames)):
        path = os.path.normpath(folder / frame.code.filename)
        if not _LIBRARY.search(frame.code.filename) and not Path(path).is_relative_to(OWN):
            found.append((path, frame.code.location.lineno, frame.code.scope))
    if not found:
        return None
    (file, number, function), *callers = found[: 1 + MOST_CALLERS]
    return Line(file, number, function, own, tuple((path, at) for path, at, _ in callers))
