"""The grader's side of the sandboxes: it starts them, learns how far they are, and ends them.

A sandbox runs one notebook once. Whatever it says is a claim of code that may be hostile: nothing that is read here is
larger or later than allowed, and nothing of it is a grade. This module must not judge.
"""

import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self

import msgspec

from labkit.core.errors import GradingError
from labkit.grading.sandbox.inside.confine import HOME
from labkit.grading.sandbox.inside.frames import FrameError, receive, send
from labkit.grading.sandbox.inside.jobs import Job, Level, Limits, Place
from labkit.grading.sandbox.limits import Watch

START_SECONDS = 180.0
_END_SECONDS = 20.0
_MOST_SAID = 48 * 1024**2
_SAID = {"timeout", "dead", "output", "no sandbox", "failed"}


class SandboxMessage(msgspec.Struct):
    """What a sandbox says of itself."""

    cell: int | None = None
    ended: str | None = None
    at: int = -1
    because: str = ""
    executed: str | None = None


class RunEnd(NamedTuple):
    """Why a sandbox ended before the grader had all its answers."""

    how: str
    """`timeout`, `dead`, `output`, `memory`, `processes`, `too long`, `no sandbox` or `failed`."""
    at: int
    """The cell at which it ended; -1 before the first."""
    because: str = ""


class Sandbox:
    """A process that forks sandboxes, one at a time, until it is closed. Raises `GradingError` when it cannot start."""

    def __init__(self, level: Level, place: Place, lab: Path, limits: Limits) -> None:
        self.level, self.place, self.limits = level, place, limits
        self._control, theirs = socket.socketpair()
        self._server = subprocess.Popen(
            [sys.executable, "-P", "-m", "labkit.grading.sandbox.inside.forkserver"],
            stdin=theirs.fileno(),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            env=environment(str(lab), lab),
            cwd=lab,
            start_new_session=True,
        )
        theirs.close()
        try:
            receive(self._control, 1000, time.monotonic() + START_SECONDS)
        except FrameError as error:
            self._server.kill()
            assert self._server.stderr is not None
            told = (
                self._server.stderr.read().decode(errors="replace").strip().splitlines()
            )
            self.close()
            raise GradingError(
                f"The process that runs notebooks did not start: {told[-1] if told else error}."
            ) from None

    @contextmanager
    def run(
        self, notebook: str, names: Sequence[str], deadline: float
    ) -> Iterator["Run"]:
        """Executes a notebook, whose last cell then answers for each name. All that it started ends with the block."""
        status, *answers = pairs = [socket.socketpair() for _ in range(1 + len(names))]
        home = (
            tempfile.mkdtemp(prefix="labkit-home-")
            if self.level is Level.PLAIN
            else HOME
        )
        job = Job(self.level, self.place, self.limits, tuple(names), environment(home))
        try:
            send(self._control, json.dumps(asdict(job)).encode())
            socket.send_fds(
                self._control, [b"."], [theirs.fileno() for _, theirs in pairs]
            )
            for _, theirs in pairs:
                theirs.close()
            with Watch(self._server.pid, self.limits) as watch:
                run = Run(status[0], [mine for mine, _ in answers], watch, deadline)
                with suppress(FrameError):
                    send(status[0], notebook.encode(), deadline)
                yield run
        finally:
            for mine, _ in pairs:
                mine.close()
            self._end_run()
            if home != HOME:
                shutil.rmtree(home, ignore_errors=True)

    def _end_run(self) -> None:
        """Ends what is still there of the sandbox, and waits until nothing is."""
        with suppress(FrameError):
            send(self._control, b"{}")
        try:
            receive(self._control, 1000, time.monotonic() + _END_SECONDS)
        except FrameError as error:
            self.close()
            raise GradingError(f"A sandbox could not be ended ({error}).") from None

    def close(self) -> None:
        """Ends the process and whatever sandbox it has."""
        self._control.close()
        try:
            self._server.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            self._server.kill()
            self._server.wait()
        if self._server.stderr is not None:
            self._server.stderr.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


class Run:
    """One notebook that is being executed."""

    def __init__(
        self,
        status: socket.socket,
        answers: Sequence[socket.socket],
        watch: Watch,
        deadline: float,
    ) -> None:
        self._status, self.answers, self._watch, self._deadline = (
            status,
            answers,
            watch,
            deadline,
        )
        self.cell = -1

    def until_cell(self, last: int) -> RunEnd | None:
        """Waits until the cell with that number starts; `None` then, else why the run is over."""
        while self.cell < last:
            said = self._hear(self._deadline)
            if isinstance(said, RunEnd):
                return said
        return None

    def executed(self, seconds: float = 5.0) -> str | None:
        """The executed notebook as it gives it, when every answer has been asked for; `None` if it does not come."""
        said = self._hear(time.monotonic() + seconds)
        return said.executed if isinstance(said, SandboxMessage) else None

    def ended(self) -> RunEnd | None:
        """Why the whole sandbox is gone, if it is."""
        return self._over("dead") if self._watch.breach else None

    def _hear(self, deadline: float) -> SandboxMessage | RunEnd:
        try:
            said = msgspec.json.decode(
                receive(self._status, _MOST_SAID, deadline), type=SandboxMessage
            )
        except FrameError:
            return self._over(
                "too long" if time.monotonic() >= self._deadline else "dead"
            )
        except (msgspec.DecodeError, RecursionError):
            return self._over("dead")
        if said.cell is not None:
            self.cell = max(self.cell, said.cell)
        if said.ended not in {None, "done"}:
            how = said.ended if said.ended in _SAID else "dead"
            return RunEnd(how, self.cell, said.because[:500])
        return said

    def _over(self, how: str) -> RunEnd:
        return RunEnd(self._watch.breach or how, self.cell)


def environment(home: str, lab: Path | None = None) -> dict[str, str]:
    """All that a sandbox has in its environment; with the folder of the lab for the process that imports it."""
    plain = {
        "PATH": os.pathsep.join(
            [str(Path(sys.executable).parent), "/usr/local/bin", "/usr/bin", "/bin"]
        ),
        "HOME": home,
        "USER": "learner",
        "LOGNAME": "learner",
        "LANG": "C.UTF-8",
        "TMPDIR": "/tmp",  # noqa: S108 - the sandbox's own
        "PYTHONHASHSEED": "0",
        "PYTHONDONTWRITEBYTECODE": "1",
        "IPYTHONDIR": f"{home}/.ipython",
        "JUPYTER_RUNTIME_DIR": f"{home}/.runtime",
        "JUPYTER_PLATFORM_DIRS": "1",
        "MPLCONFIGDIR": f"{home}/.matplotlib",
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
    }
    return plain if lab is None else plain | {"PYTHONPATH": str(lab)}
