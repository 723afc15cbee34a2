"""The grader's side of the sandboxes: it starts them, follows their progress, and ends them.

A sandbox runs one notebook once. Its messages come from code that may be hostile, so the grader limits their size and
time, and no message can be a grade.
"""

import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

import msgspec

from labkit.core.errors import GradingError
from labkit.grading.sandbox.inside.confine import HOME
from labkit.grading.sandbox.inside.frames import FrameError, receive, send
from labkit.grading.sandbox.inside.jobs import Job, Level, Limits, Place
from labkit.grading.sandbox.limits import Watch
from labkit.host.processes.own_python import own_python

START_SECONDS = 180.0
_END_SECONDS = 20.0
_MOST_OUTPUT = 48 * 1024**2
_END_WORDS = {"timeout", "dead", "output", "no sandbox", "failed"}


class SandboxMessage(msgspec.Struct):
    """A message from a sandbox to the grader: a cell starts, or the execution has ended."""

    cell: int | None = None
    ended: str | None = None
    at: int = -1
    because: str = ""
    executed: str | None = None


class RunEnd(NamedTuple):
    """Describes how, and at which cell, a sandbox ended before the grader had received all answers."""

    how: str
    """One of `timeout`, `dead`, `output`, `memory`, `processes`, `too long`, `no sandbox` and `failed`."""
    at: int
    """The number of the cell at which the sandbox ended, or -1 if it ended before the first."""
    because: str = ""


class Sandbox:
    """The fork server: a process that forks sandboxes, one at a time, until `close`.

    `salt` is the seed for hashes of strings (PYTHONHASHSEED) in every sandbox. The process starts in the background.
    Only the first run waits for the start, and raises `GradingError` if the start fails.
    """

    def __init__(self, level: Level, place: Place, lab: Path, limits: Limits, salt: int = 0) -> None:
        self.level, self.place, self.limits, self._salt = level, place, limits, salt
        self._control, child_end = socket.socketpair()
        self._server = subprocess.Popen(
            own_python("-m", "labkit.grading.sandbox.inside.forkserver"),
            stdin=child_end.fileno(),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            env=environment(str(lab), lab, salt),
            cwd=lab,
            start_new_session=True,
        )
        child_end.close()
        self._is_ready = False

    def wait_until_ready(self) -> None:
        """Wait until the process can fork sandboxes. Raises `GradingError` if it does not start.

        Call this before the time limit of a submission begins, so that the start of the process does not count.
        """
        if self._is_ready:
            return
        try:
            receive(self._control, 1000, time.monotonic() + START_SECONDS)
        except FrameError as error:
            self._server.kill()
            assert self._server.stderr is not None
            lines = self._server.stderr.read().decode(errors="replace").strip().splitlines()
            self.close()
            raise GradingError(
                f"The process that runs notebooks did not start: {lines[-1] if lines else error}."
            ) from None
        self._is_ready = True

    @contextmanager
    def run(self, notebook: str, names: Sequence[str], deadline: float) -> Iterator["Run"]:
        """Execute a notebook in a new sandbox. Use it in a `with` block, whose end also ends the sandbox.

        `names` are the variables that hold the learner's answers. The block gets a `Run` whose `answers` has one
        connection to the sandbox for each name. `deadline` is in seconds of `time.monotonic`.
        """
        self.wait_until_ready()
        status, *answers = pairs = [socket.socketpair() for _ in range(1 + len(names))]
        home = tempfile.mkdtemp(prefix="labkit-home-") if self.level is Level.PLAIN else HOME
        job = Job(self.level, self.place, self.limits, tuple(names), environment(home, salt=self._salt))
        try:
            send(self._control, msgspec.json.encode(job))
            socket.send_fds(self._control, [b"."], [child_end.fileno() for _, child_end in pairs])
            for _, child_end in pairs:
                child_end.close()
            with Watch(self._server.pid, self.limits) as watch:
                run = Run(status[0], [parent_end for parent_end, _ in answers], watch, deadline)
                with suppress(FrameError):
                    send(status[0], notebook.encode(), deadline)
                yield run
        finally:
            for parent_end, _ in pairs:
                parent_end.close()
            self._end_run()
            if home != HOME:
                shutil.rmtree(home, ignore_errors=True)

    def _end_run(self) -> None:
        """End the remaining processes of the sandbox, and wait until all have ended."""
        with suppress(FrameError):
            send(self._control, b"{}")
        try:
            receive(self._control, 1000, time.monotonic() + _END_SECONDS)
        except FrameError as error:
            self.close()
            raise GradingError(
                f"A sandbox could not be stopped ({error}); end its processes by hand and grade again."
            ) from None

    def close(self) -> None:
        """End the process that forks sandboxes, together with a sandbox that is still running."""
        self._control.close()
        if not self._is_ready:  # then it has no sandbox to end first
            self._server.kill()
        try:
            self._server.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            self._server.kill()
            self._server.wait()
        if self._server.stderr is not None:
            self._server.stderr.close()


class Run:
    """One notebook that is running in a sandbox, from the grader's point of view."""

    def __init__(self, status: socket.socket, answers: Sequence[socket.socket], watch: Watch, deadline: float) -> None:
        self._status, self.answers, self._watch, self._deadline = status, answers, watch, deadline
        self.cell = -1

    def until_cell(self, last: int) -> RunEnd | None:
        """Wait until cell number `last` starts, then return None; return a `RunEnd` if the sandbox ends earlier."""
        while self.cell < last:
            message = self._receive(self._deadline)
            if isinstance(message, RunEnd):
                return message
        return None

    def executed(self, seconds: float = 5.0) -> str | None:
        """Return the executed notebook as JSON, or None if the sandbox does not send it within `seconds` seconds."""
        message = self._receive(time.monotonic() + seconds)
        return message.executed if isinstance(message, SandboxMessage) else None

    def ended(self) -> RunEnd | None:
        """Return a `RunEnd` if the sandbox was killed because it exceeded a limit, otherwise None."""
        return self._over("dead") if self._watch.breach else None

    def _receive(self, deadline: float) -> SandboxMessage | RunEnd:
        try:
            message = msgspec.json.decode(receive(self._status, _MOST_OUTPUT, deadline), type=SandboxMessage)
        except FrameError:
            return self._over("too long" if time.monotonic() >= self._deadline else "dead")
        except (msgspec.DecodeError, RecursionError):
            return self._over("dead")
        if message.cell is not None:
            self.cell = max(self.cell, message.cell)
        if message.ended not in {None, "done"}:
            how = message.ended if message.ended in _END_WORDS else "dead"
            return RunEnd(how, self.cell, message.because[:500])
        return message

    def _over(self, how: str) -> RunEnd:
        return RunEnd(self._watch.breach or how, self.cell)


def environment(home: str, lab: Path | None = None, salt: int = 0) -> dict[str, str]:
    """Return all environment variables of a sandbox; `lab` is its copy of labkit, and `salt` its PYTHONHASHSEED."""
    plain = {
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), "/usr/local/bin", "/usr/bin", "/bin"]),
        "HOME": home,
        "USER": "learner",
        "LOGNAME": "learner",
        "LANG": "C.UTF-8",
        "TMPDIR": "/tmp",  # noqa: S108 - the sandbox's own
        "PYTHONHASHSEED": str(salt),
        "PYTHONDONTWRITEBYTECODE": "1",
        "IPYTHONDIR": f"{home}/.ipython",
        "JUPYTER_RUNTIME_DIR": f"{home}/.runtime",
        "JUPYTER_PLATFORM_DIRS": "1",
        "MPLCONFIGDIR": f"{home}/.matplotlib",
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
    }
    return plain if lab is None else plain | {"PYTHONPATH": str(lab)}
