"""Run a Python program, and decide before each of its lines whether it continues or its whole session is killed.

The crash test of a sink uses this where system calls cannot be watched. It needs no kernel feature, but sees less than
`labkit.host.syscalls`: only programs that call `labkit.host.line_trace`, and nothing within a line. It was never tried
on macOS.
"""

import math
import os
import socket
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from labkit.core.errors import InvalidInput
from labkit.host.line_trace import CHANNEL, Held
from labkit.host.processes import wire
from labkit.host.processes.sessions import empty_session, session_members
from labkit.host.python_line import Line
from labkit.host.syscalls.calls import Answer, Call, CallKind, Decision, WatchedRun
from labkit.host.syscalls.watching import EVERY_KIND, LINGER_SECONDS, TICK_SECONDS, go_on

KILL_SECONDS = 40.0
"""The seconds within which every process of a killed command must be dead."""


def watch_lines(
    command: Sequence[str],
    *,
    folder: Path,
    environment: Mapping[str, str],
    output: Path,
    decide: Callable[[Call], Decision],
    tick: Callable[[], Answer] = go_on,
    kinds: frozenset[CallKind] = EVERY_KIND,
    contents: bool = False,  # noqa: ARG001  # a parameter of `labkit.host.syscalls.watching.watch`
    linger: float = LINGER_SECONDS,
) -> WatchedRun:
    """Run a Python program, and call `decide` before each traced line (kind LINE) and before the program exits (EXIT).

    The program must call `Connection.trace` of `labkit.host.line_trace`, which makes the program wait until `decide`
    returns. If `decide` answers KILL, every process in the program's Unix session is killed. After any other answer the
    program continues; a fault that `decide` asks for is not injected. `contents` has no effect, because nobody knows
    which bytes a line will write. All other parameters, the result and the errors are those of
    `labkit.host.syscalls.watching.watch`.
    """
    parent_end, child_end = socket.socketpair()
    with parent_end:
        with child_end, output.open("ab") as log:
            try:
                process = subprocess.Popen(
                    command,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    cwd=folder,
                    env={**environment, CHANNEL: str(child_end.fileno())},
                    pass_fds=[child_end.fileno()],
                    start_new_session=True,
                )
            except OSError as error:
                raise InvalidInput(
                    f"The command could not be started ({error.filename}: {error.strerror}); "
                    "name a program and a folder that exist."
                ) from None
        return _Watch(process, parent_end, decide, tick, kinds).run(linger)


class _Watch:
    def __init__(
        self,
        process: subprocess.Popen[bytes],
        channel: socket.socket,
        decide: Callable[[Call], Decision],
        tick: Callable[[], Answer],
        kinds: frozenset[CallKind],
    ) -> None:
        channel.settimeout(TICK_SECONDS)
        self._process, self._channel, self._lines = process, channel, wire.Lines()
        self._decide, self._tick, self._kinds = decide, tick, kinds
        self._began, self._zero, self._number = time.time(), time.monotonic(), 0

    def run(self, linger: float) -> WatchedRun:
        root, status = self._process.pid, None
        try:
            held = self._serve(linger)
            status = self._process.poll()
        finally:
            emptied = empty_session(root, KILL_SECONDS)
            self._process.wait()
        killed = emptied.killed or emptied.left or held is not None
        return WatchedRun(status, held, emptied if killed else None, self._number, began=self._began, root=root)

    def _serve(self, linger: float) -> Call | None:
        """Answer requests until all processes end or must be killed; return the call at which `decide` said KILL."""
        tick_at, end_at = 0.0, math.inf
        while True:
            for message in self._messages():
                call = self._call(message)
                if call.kind in self._kinds and self._decide(call) is Answer.KILL:
                    return call
                with suppress(OSError):  # the program is dead
                    self._channel.sendall(b"\n")
            now = time.monotonic()
            if now < tick_at:
                continue
            tick_at = now + TICK_SECONDS
            if self._process.poll() is not None:
                end_at = min(end_at, now + linger)
                if now >= end_at or not session_members(self._process.pid):
                    return None
            if self._tick() is Answer.KILL:
                return None

    def _messages(self) -> list[Held]:
        try:
            if piece := self._channel.recv(65536):
                return [wire.decode(line, Held) for line in self._lines.feed(piece)]
        except TimeoutError:
            return []
        except ConnectionError:
            pass
        time.sleep(TICK_SECONDS)  # the connection is closed, so there is nothing to wait for
        return []

    def _call(self, held: Held) -> Call:
        self._number += 1
        path = os.path.realpath(held.file) if held.file else ""
        kind, line = (CallKind.LINE, Line(path, held.number, held.function)) if path else (CallKind.EXIT, None)
        seconds = time.monotonic() - self._zero
        return Call(self._number, held.thread, held.process, kind, held.event, path, "", 0, seconds, line=line)
