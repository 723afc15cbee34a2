"""Starts and ends the guard of a watched command, and reads the guard's messages; the watcher uses this module.

The watcher decides on a command's system calls; the guard (`labkit.host.syscalls.guard`) is a process that starts the
command and kills it. Their messages are lines of JSON over one socket.
"""

import os
import socket
import subprocess
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from msgspec import Struct

import labkit
from labkit.core.errors import InvalidInput, JobFailed, ServiceUnavailable
from labkit.host.processes import wire
from labkit.host.processes.own_python import own_python
from labkit.host.processes.sessions import Emptied
from labkit.host.syscalls.filters import Listener
from labkit.host.syscalls.support import refusal, supported
from labkit.host.syscalls.table import architecture

GUARD_SECONDS = 40.0
"""The seconds in which a guard must answer an order; longer than `guard.KILL_SECONDS`, its time to kill."""


class Message(Struct, frozen=True, tag_field="says", forbid_unknown_fields=True):
    """A message between a watcher and its guard process."""


class Launch(Message, frozen=True, tag="launch"):
    """The watcher's first message: the command to start, and the kinds of system calls to intercept."""

    command: list[str]
    folder: str
    environment: dict[str, str]
    output: str
    kinds: list[str]
    protecting: bool
    """Whether to intercept `mprotect` and `pkey_mprotect` as well, which can make mapped memory writable."""


class Kill(Message, frozen=True, tag="kill"):
    """The watcher's order to kill all processes of the command."""


class Listening(Message, frozen=True, tag="listening"):
    """The guard's message that the command is about to start.

    The guard sends a file descriptor with the message. On this descriptor, the kernel reports the command's system
    calls.
    """

    root: int


class Refused(Message, frozen=True, tag="refused"):
    """The guard could not start the command."""

    because: str
    number: int
    """The errno of the failure."""
    filtering: bool = False
    """Whether the kernel refused the filter of system calls, rather than the command."""

    def error(self) -> Exception:
        """Return the exception that tells the user why the command was not started, and what to do."""
        if self.filtering:
            return ServiceUnavailable(refusal(self.number))
        return InvalidInput(
            f"The command could not be started ({self.because}); name a program and a folder that exist."
        )


class RootEnded(Message, frozen=True, tag="ended"):
    """The command's own process has ended; processes that it started may still run."""

    status: int


class AllEnded(Message, frozen=True, tag="all ended"):
    """The guard's last message: all processes of the command are dead, except those whose ids are in `emptied.left`."""

    emptied: Emptied


GuardMessage = Listening | Refused | RootEnded | AllEnded
"""Any message that a guard sends."""


class GuardLate(ServiceUnavailable):
    """Raised if the guard, the process that starts a watched command, was too slow because the machine is busy."""


class Guarded:
    """A running guard (the process that starts a command), with its socket and the listener for system calls."""

    def __init__(self, channel: socket.socket, root: int, listener: Listener) -> None:
        self.channel = channel
        self.root = root
        self.listener = listener
        self.lines = wire.Lines()

    def receive(self) -> list[GuardMessage] | None:
        """Wait for messages of the guard, and return them; None if the guard has closed the socket."""
        piece = self.channel.recv(65536)
        return [_decoded(line) for line in self.lines.feed(piece)] if piece else None


def _decoded(line: bytes) -> GuardMessage:
    message: GuardMessage = wire.decode(line, GuardMessage)  # type: ignore[arg-type]  # `decode` is typed for one class, but msgspec also accepts a union
    return message


@contextmanager
def guarded(
    command: Sequence[str],
    *,
    folder: Path,
    environment: Mapping[str, str],
    output: Path,
    kinds: Iterable[str],
    protecting: bool = True,
) -> Iterator[Guarded]:
    """Start a command under a guard, a process that kills the command's processes at the end of the `with` block.

    The file `output` gets the output of the command and of the guard. `kinds` are the kinds of system calls to
    intercept; `protecting` adds `mprotect` and `pkey_mprotect`. Raises `ServiceUnavailable` if this machine cannot
    watch system calls, and another error of labkit if the command does not start.
    """
    if why := supported():
        raise ServiceUnavailable(why)
    launch = Launch(list(command), str(folder), dict(environment), str(output), sorted(kinds), protecting)
    parent_end, child_end = socket.socketpair()
    home = Path(labkit.__file__).parent.parent
    path = os.pathsep.join(filter(None, [str(home), os.environ.get("PYTHONPATH")]))
    with parent_end, child_end, output.open("ab") as log:
        process = subprocess.Popen(
            own_python("-m", "labkit.host.syscalls.guard"),
            stdin=child_end.fileno(),
            stdout=log,
            stderr=log,
            env={**os.environ, "PYTHONPATH": path},
            start_new_session=True,
        )
        child_end.close()
        try:
            parent_end.sendall(wire.encode(launch))
            guard = _await_listener(parent_end, output)
            try:
                yield guard
            finally:
                os.close(guard.listener.descriptor)
        finally:
            parent_end.close()  # so that the guard kills the command
            try:
                process.wait(GUARD_SECONDS)
            except subprocess.TimeoutExpired:  # for example because SIGSTOP suspended it
                process.kill()
                process.wait()


def _await_listener(channel: socket.socket, output: Path) -> Guarded:
    """Wait until the guard has started the command. If the start fails, raise an error with the guard's reason."""
    channel.settimeout(GUARD_SECONDS)
    try:
        line, descriptors, _, _ = socket.recv_fds(channel, 65536, 1)
    except TimeoutError:
        raise GuardLate(
            f"The guard process did not start the command within {GUARD_SECONDS:.0f} s, as this machine is too busy. "
            "Repeat the test when it is less busy."
        ) from None
    except ConnectionError:  # it died before it had read the order
        line, descriptors = b"", []
    if not line:
        raise JobFailed(
            "The guard, the process that should start the command, died before it could do so; see its output in "
            f"{output}, and run the command again."
        )
    message = _decoded(wire.Lines().feed(line)[0])
    if isinstance(message, Refused):
        raise message.error()
    assert isinstance(message, Listening)
    machine = architecture()
    assert machine is not None
    return Guarded(channel, message.root, Listener(descriptors[0], machine))
