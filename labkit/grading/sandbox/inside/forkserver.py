"""The fork server: imports the packages that every run needs in advance, and forks one sandbox after the other.

    python -m labkit.grading.sandbox.inside.forkserver

Requests arrive as messages on standard input, a socket: a job, with one connection for the progress of the run and one
for each answer. A second message ends the sandbox; the reply confirms that none of its processes is left. The fork
server ends with its parent. It never runs a learner's code itself.
"""

import gc
import json
import os
import select
import signal
import socket
import sys
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from importlib import import_module
from typing import TYPE_CHECKING, NoReturn

import msgspec

from labkit.grading.sandbox.inside import linux
from labkit.grading.sandbox.inside.frames import FrameError, receive, send
from labkit.grading.sandbox.inside.jobs import Job

if TYPE_CHECKING:
    from labkit.grading.sandbox.inside.running import Telling

MOST_JOB = 1 << 20
MOST_CONNECTIONS = 200
_POLL = 0.01
_END_SECONDS = 1.0
"""The seconds that a sandbox may take to end by itself; then its processes are killed, the orphans one by one."""
_NEVER = ("debugpy", "rfc3987_syntax")
"""Optional imports of kernels and nbformat that no run needs; without them a kernel starts 1.6 s (a third) faster."""
_AHEAD = (
    *(f"labkit.grading.sandbox.inside.{name}" for name in ("confine", "running", "serving")),
    *("ipykernel.kernelapp", "ipykernel.ipkernel", "ipykernel.debugger", "jupyter_client.asynchronous"),
    *("tornado.locks", "tornado.queues", "IPython.core.completer", "IPython.core.completerlib"),
    *("IPython.core.debugger", "IPython.core.logger", "IPython.core.magics", "IPython.core.oinspect"),
    *("IPython.extensions.storemagic", "tornado.platform.asyncio", "sqlite3", "pydoc", "encodings.latin_1"),
)
"""The modules that every run imports."""


def main() -> int:
    """Fork one sandbox after the other, one for each request on standard input, until the grader closes the input."""
    _import_ahead()
    # The garbage collector of a forked process would otherwise write to, and so copy, nearly all memory.
    gc.collect()
    gc.freeze()
    control = socket.socket(fileno=os.dup(0))
    nowhere = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1, 2):
        os.dup2(nowhere, number)
    if sys.platform == "linux":
        linux.adopt_orphans()
        linux.die_with_parent(signal.SIGKILL)
    send(control, b'{"ready": true}')
    while True:
        try:
            job = msgspec.json.decode(receive(control, MOST_JOB), type=Job)
            _, passed, _, _ = socket.recv_fds(control, 1, MOST_CONNECTIONS)
        except FrameError:
            return 0
        pid = os.fork()
        if pid == 0:
            _sandbox(job, control, [socket.socket(fileno=number) for number in passed])
        for number in passed:
            os.close(number)
        code = _until_ended(pid, control)
        with suppress(FrameError):
            send(control, json.dumps({"code": code}).encode())


def _import_ahead() -> None:
    for name in _NEVER:
        sys.modules[name] = None  # type: ignore[assignment]  # makes Python treat the module as missing
    # By name, because the import contracts let no module of the grader import `labkit.lab`.
    for name in (*_AHEAD, *import_module("labkit.lab").HOMES):
        import_module(name)
    # The first validation is slow, because nbformat compiles its validator then.
    nbformat = import_module("nbformat")
    nbformat.validate(nbformat.v4.new_notebook())
    # Last, because the libraries above would otherwise log to the application that it creates.
    import_module("labkit.grading.sandbox.inside.kernels").prepare()


def _until_ended(pid: int, control: socket.socket) -> int:
    """Wait until the sandbox `pid` and all its processes have ended; return the sandbox's exit code.

    The grader sends a message on `control` when it no longer needs the sandbox; the sandbox is then killed. The message
    also comes after a sandbox has ended by itself, so it is read in any case. Only then is the next message a request.
    """
    is_ending = False
    with _ends_of([pid]) as ends:
        while True:
            ended, status = os.waitpid(pid, os.WNOHANG)
            if ended:
                _reap_orphans()
                break
            if is_ending:
                _end(pid)
                select.select(ends, [], [], _POLL)
            elif control.fileno() in select.select([*ends, control.fileno()], [], [], None if ends else _POLL)[0]:
                is_ending = True
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGTERM)
                select.select(ends, [], [], _END_SECONDS if ends else _POLL)
    with suppress(FrameError):
        receive(control, MOST_JOB)
    return os.waitstatus_to_exitcode(status)


@contextmanager
def _ends_of(pids: Iterable[int]) -> Iterator[list[int]]:
    """Yield a list of file descriptors, one for each process; a descriptor becomes readable when its process ends.

    The list is empty on a system without such descriptors (pidfd_open).
    """
    with ExitStack() as opened:
        ends: list[int] = []
        # macOS and old versions of Linux lack this call, and some containers forbid it.
        with suppress(AttributeError, OSError):
            for pid in pids:
                ends.append(os.pidfd_open(pid))
                opened.callback(os.close, ends[-1])
        yield ends


def _end(pid: int) -> None:
    for end in (os.killpg, os.kill):
        with suppress(ProcessLookupError, PermissionError):
            end(pid, signal.SIGKILL)


def _reap_orphans() -> None:
    while True:
        try:
            pid, _ = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if not pid:
            _end_children()


def _end_children() -> None:
    import psutil

    children = psutil.Process().children(recursive=True)
    for child in children:
        with suppress(psutil.Error):
            child.kill()
    # Wait only `_POLL` seconds, because a killed process may have started another one in the meantime.
    with _ends_of(child.pid for child in children[:1]) as ends:
        select.select(ends, [], [], _POLL)


def _sandbox(job: Job, control: socket.socket, connections: list[socket.socket]) -> NoReturn:
    """Run as the forked process of a sandbox: enter new namespaces, fork `_inside`, and wait until `_inside` ends."""
    from labkit.grading.sandbox.inside import confine, running

    try:
        control.close()
        os.setsid()
        telling = running.Telling(connections[0])
        try:
            confine.separate(job)
            if sys.platform == "linux":
                linux.die_with_parent(signal.SIGKILL)
            pid = os.fork()
            if pid == 0:
                _inside(job, telling, connections[1:])
        except OSError as error:
            telling.end("no sandbox", because=str(error))
        # Set after the fork, so only for this process: it kills the sandbox, waits for it, and so leaves no orphans.
        signal.signal(signal.SIGTERM, lambda _number, _frame: os.kill(pid, signal.SIGKILL))
        for connection in connections:
            connection.close()
        os.waitpid(pid, 0)
    finally:
        os._exit(0)


def _inside(job: Job, telling: "Telling", answers: list[socket.socket]) -> NoReturn:
    """Run as the first process of the sandbox: confine it, fork the Jupyter kernel, and execute the notebook."""
    from labkit.grading.sandbox.inside import confine, running, serving
    from labkit.grading.sandbox.inside.kernels import Waiting

    try:
        try:
            confine.confine(job)
        except OSError as error:
            telling.end("no sandbox", because=str(error))
        os.environ.clear()
        os.environ.update(job.environment)
        os.chdir(job.environment["HOME"])

        def only_answers() -> None:
            if sys.platform == "linux":
                linux.hide_memory(hidden=False)
            telling.connection.close()
            serving.connections = list(zip(job.names, answers, strict=True))

        waiting = Waiting(only_answers)
        for connection in answers:
            connection.close()
        running.run(telling, waiting, job.limits)
    finally:
        os._exit(1)


if __name__ == "__main__":
    sys.exit(main())
