"""The parent-death guard: something ends with the process that asked for it, even if that is killed by SIGKILL.

    with tethered("labkit.host.servers.tethered", "kafka") as server: ...      the asking process
    serve_tethered(begin, end)                                      the guard, `python -m` that module

The guard, in a session of its own, begins something, says where it is, and then waits at a pipe whose other end only
the asking process holds. The kernel closes that end whatever the process dies of; then the guard ends what it began.
Drivers wait at such a pipe, too (`labkit.host.processes.supervised`), and so do supervisors, which listen to their
driver meanwhile. This module must not know what ends, and whoever uses it must not keep anything there that anybody
wants later.
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
    """Why the guard could not begin."""

    because: str


class TetheredProcess(NamedTuple):
    """What a guard began, as it said itself."""

    line: bytes
    guard: int
    """The guard's process id."""

    def read(self, kind: type[Value]) -> Value:
        """What the guard said, as a value."""
        return wire.decode(self.line, kind)


@contextmanager
def tethered(module: str, *arguments: str, environment: Mapping[str, str] | None = None) -> Iterator[TetheredProcess]:
    """What a guard began, for a block. `environment`: the guard's, if it is not that of this process.

    Raises `ServiceUnavailable` with the guard's reason when it could not begin.
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
                raise ServiceUnavailable("Its guard died while it began.")
            with suppress(wire.Unreadable):
                raise ServiceUnavailable(wire.decode(line, Refusal).because)
            yield TetheredProcess(line, guard.pid)
        finally:
            # This is the whole order to end; the guard's own end is awaited by the
            # `with` above.
            guard.stdin.close()


def serve_tethered(begin: Callable[[], msgspec.Struct], end: Callable[[], object]) -> None:
    """Begins, says what it began, and ends it when the pipe closes, or at once when it could not begin."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # a Ctrl-C is for whoever asked
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
    """Returns when the other end of standard input closes, because its one holder is dead or wants no more.

    `take` gets every line that comes until then.
    """
    for line in sys.stdin.buffer:
        take(line)


def end_with_parent() -> None:
    """From now on this process, whatever it is doing, ends at once after its parent.

    For a worker whose connection closes at its ordinary end as well: it then still has to tidy up, so only the death
    of its parent, seen by the new parent that the kernel gives it, may end it in the middle of its work.
    """
    # Noted now: an orphan gets another parent, and which one that is differs from
    # system to system.
    parent = os.getppid()

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(_EVERY)
        # `sys.exit` would end this thread alone.
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
