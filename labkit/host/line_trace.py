"""Makes a Python program ask a watching process before it executes each of its lines.

`labkit.host.line_watch` starts the program and answers. When that process dies, the connection closes, and the program
kills its whole session, itself included.
"""

import atexit
import functools
import inspect
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from types import FrameType
from typing import Any, Literal

from msgspec import Struct

from labkit.host.processes import wire
from labkit.host.processes.sessions import empty_session

CHANNEL = "LABKIT_LINES"
"""The environment variable with the file descriptor by which a traced program reaches the process that watches it."""
END_SECONDS = 5.0
"""The most seconds that a program may take to kill its session after its watcher's death, before it kills itself."""

WITHIN_LINE = ("<genexpr>", "<listcomp>", "<setcomp>", "<dictcomp>")
"""The names of code objects, such as comprehensions, that run within a line of the enclosing code."""

Tracer = Callable[[FrameType, str, Any], Any]


class Held(Struct, frozen=True):
    """The message by which a thread of a traced program asks for permission to execute a line, to return or to exit."""

    event: Literal["line", "return", "exit"]
    process: int
    thread: int
    file: str = ""
    number: int = 0
    function: str = ""


class Connection:
    """A traced program's socket to the watcher, the process that permits each line before the program executes it."""

    def __init__(self, channel: socket.socket) -> None:
        channel.set_inheritable(False)
        self._channel, self._process = channel, os.getpid()
        self._turn, self._answers = threading.Lock(), threading.Semaphore(0)
        threading.Thread(target=self._listen, daemon=True).start()

    def ask(self, event: Literal["line", "return", "exit"], frame: FrameType | None = None) -> None:
        """Tell the watcher what this thread is about to do, and wait until the watcher permits it.

        `frame` is the frame of a line or a return. A forked child neither asks nor waits, because it shares the socket.
        """
        process = os.getpid()
        if process != self._process:
            return
        held = Held(event, process, threading.get_native_id())
        if frame is not None:
            code = frame.f_code
            held = Held(event, process, held.thread, code.co_filename, frame.f_lineno, code.co_name)
        with self._turn:
            with suppress(OSError):  # the watcher is dead, so `_listen` kills this process
                self._channel.sendall(wire.encode(held))
            self._answers.acquire()

    def trace(self, counts: Callable[[str], bool]) -> None:
        """Make the program wait for the watcher's permission before each line of its functions, and before its exit.

        Only functions in files that `counts` accepts are traced. Tracing begins with the next call of such a function,
        in this thread and in threads that start later. The return from the outermost traced function also needs
        permission, because the function's last line has been executed only then. Code at the top level of a module or
        class is not traced; a comprehension counts as part of its line.
        """
        known = functools.cache(counts)

        def is_ours(frame: FrameType) -> bool:
            code = frame.f_code
            defines = not code.co_flags & inspect.CO_OPTIMIZED
            return not defines and code.co_name not in WITHIN_LINE and known(code.co_filename)

        def called(frame: FrameType, _event: str, _argument: object) -> Tracer | None:
            if not is_ours(frame):
                return None
            last = 0

            def executed(frame: FrameType, event: str, _argument: object) -> Tracer:
                nonlocal last
                if event == "line" and frame.f_lineno != last:
                    last = frame.f_lineno
                    self.ask("line", frame)
                elif event == "return" and not any(map(is_ours, _callers(frame))):
                    self.ask("return", frame)
                return executed

            return executed

        atexit.register(self.ask, "exit")
        threading.settrace(called)
        sys.settrace(called)

    def _listen(self) -> None:
        with suppress(OSError):
            while self._channel.recv(1):
                self._answers.release()
        empty_session(os.getsid(0), END_SECONDS, spare=self._process)
        os.kill(self._process, signal.SIGKILL)


def _callers(frame: FrameType) -> Iterator[FrameType]:
    while (caller := frame.f_back) is not None:
        yield caller
        frame = caller


def connection() -> Connection | None:
    """Return the socket to the watcher, the process that traces this program's lines; None if nobody traces it."""
    descriptor = os.environ.pop(CHANNEL, "")
    return Connection(socket.socket(fileno=int(descriptor))) if descriptor else None
