"""A parent-death guard: it ends a resource together with the process that asked for it, even after SIGKILL.

    with tethered("labkit.host.servers.tethered", "kafka") as server: ...      the asking process
    serve_tethered(begin, end)                                      the guard, `python -m` that module

The guard, in its own session, creates the resource, reports it, and waits on a pipe whose other end only the
asking process holds. The kernel closes that end whatever the process dies of; then the guard ends the resource.
Drivers wait on such a pipe too (`labkit.host.processes.supervised`), and so do supervisors. A tethered resource
is deleted in the end, so keep nothing in it.
"""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import NamedTuple, TypeVar

import msgspec

from labkit.core.errors import LabError, ServiceUnavailable
from labkit.host.processes import wire
from labkit.host.processes.own_python import own_python

Value = TypeVar("Value", bound=msgspec.Struct)
_EVERY = 0.2


class Refusal(msgspec.Struct, frozen=True):
    """The reason why the guard could not create its resource."""

    because: str


class TetheredProcess(NamedTuple):
    """A guard's report of its resource."""

    line: bytes
    guard: int
    """The guard's process id."""

    def read(self, kind: type[Value]) -> Value:
        """Decode the guard's report."""
        return wire.decode(self.line, kind)


@contextmanager
def tethered(module: str, *arguments: str, environment: Mapping[str, str] | None = None) -> Iterator[TetheredProcess]:
    """Keep a guard's resource for a block. `environment` replaces this process's environment for the guard.

    Raises `ServiceUnavailable` with the guard's reason if it could not create the resource.
    """
    command = own_python("-m", module, *arguments)
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment, start_new_session=True
    ) as guard:
        assert guard.stdin is not None
        assert guard.stdout is not None
        try:
            line = guard.stdout.readline()
            if not line:
                raise ServiceUnavailable("The guard process of the server died while it was starting.")
            with suppress(wire.Unreadable):
                raise ServiceUnavailable(wire.decode(line, Refusal).because)
            yield TetheredProcess(line, guard.pid)
        finally:
            # Closing this pipe is the whole order to end; the `with` above waits for the guard's end.
            guard.stdin.close()


def serve_tethered(begin: Callable[[], msgspec.Struct], end: Callable[[], object]) -> None:
    """Create a resource, report it, and end it when the pipe closes, or at once if the creation failed."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # a Ctrl-C is meant for the process that started this guard
    try:
        try:
            begun = begin()
        except (LabError, OSError) as error:
            begun = Refusal(str(error))
        with suppress(BrokenPipeError):
            wire.write(1, wire.encode(begun))
        until_parent_ends()
    finally:
        end()


def until_parent_ends(take: Callable[[bytes], None] = lambda _line: None) -> None:
    """Return when the other end of standard input closes, because its one holder died or released it.

    `take` receives every line that arrives until then.
    """
    for line in sys.stdin.buffer:
        take(line)


def end_with_parent() -> None:
    """Make this process end at once after its parent's death, whatever it is doing.

    For a worker whose connection also closes at its ordinary end: it then still has to clean up, so only its
    parent's death, detected by a changed parent process id, may interrupt its work.
    """
    # Recorded now, because an orphan gets another parent, and which one depends on the system.
    parent = os.getppid()

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(_EVERY)
        # `sys.exit` would end only this thread.
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
