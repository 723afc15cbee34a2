"""Ends a server or another resource when the process that asked for it ends, even by SIGKILL: with a guard process.

    with tethered(TetheredServer, "labkit.host.servers.tethered", "kafka") as server: ...    the asking process
    serve_tethered(begin, end)                                                 the guard, `python -m` that module

The guard, in its own session, creates the resource, reports it, and waits on a pipe whose other end only the asking
process holds. The kernel closes that end however the process dies; then the guard ends the resource. Drivers
(`labkit.host.processes.supervised`) and supervisors wait on such a pipe as well. A tethered resource is deleted in the
end, so keep nothing in it.
"""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import TypeVar

import msgspec

from labkit.core.errors import LabError, ServiceUnavailable
from labkit.host.processes import wire
from labkit.host.processes.own_python import own_python

Value = TypeVar("Value", bound=msgspec.Struct)
_EVERY = 0.2


class Refusal(msgspec.Struct, frozen=True):
    """The message of a guard process (see `tethered`) that it could not start its resource, with the reason."""

    because: str


@contextmanager
def tethered(
    kind: type[Value], module: str, *arguments: str, environment: Mapping[str, str] | None = None
) -> Iterator[Value]:
    """Run a guard in a `with` block: a process that starts a server, and stops it after the block.

    The guard runs `python -m MODULE ARGUMENTS`. The block gets the guard's report on the server, such as its address,
    as a value of type `kind`. The guard also stops the server if this process dies. `environment` replaces the guard's
    environment. Raises `ServiceUnavailable` with the guard's reason if the server does not start.
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
                raise ServiceUnavailable(
                    "The process that starts and guards the server died before the server was ready; try again."
                )
            with suppress(wire.Unreadable):
                raise ServiceUnavailable(wire.decode(line, Refusal).because)
            yield wire.decode(line, kind)
        finally:
            # When this pipe closes, the guard ends the server; the outer `with` waits until the guard has ended.
            guard.stdin.close()


def serve_tethered(begin: Callable[[], msgspec.Struct], end: Callable[[], object]) -> None:
    """Run this process as a guard: start a resource by `begin`, report it, and stop it by `end` when stdin closes.

    Stdin closes at the latest when the process that needs the resource dies. If `begin` fails, the guard reports the
    reason instead of the resource. It still waits for stdin to close, and then calls `end`.
    """
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
    """Call `take` with each line of standard input, until the parent process dies or closes the pipe."""
    for line in sys.stdin.buffer:
        take(line)


def end_with_parent() -> None:
    """Start a thread that ends this process at once when its parent dies, whatever this process is doing.

    The thread watches the parent's process id. It does not watch the pipe from the parent, because the pipe also closes
    in normal operation, when this process must still clean up.
    """
    # Recorded now, because an orphan gets another parent, and which one depends on the system.
    parent = os.getppid()

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(_EVERY)
        # `sys.exit` would end only this thread.
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
