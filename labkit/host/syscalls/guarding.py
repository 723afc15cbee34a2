"""Runs a guard process for its watcher: starts it, receives the listener from it, reads its messages, and ends it."""

import os
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import labkit
from labkit.core.errors import InvalidInput, JobFailed, ServiceUnavailable
from labkit.host.processes import wire
from labkit.host.processes.own_python import own_python
from labkit.host.syscalls.dialogue import GuardMessage, Launch, Listening, Refused
from labkit.host.syscalls.filters import Listener
from labkit.host.syscalls.support import refusal
from labkit.host.syscalls.table import architecture, questions

GUARD_SECONDS = 40.0
"""The maximum seconds for a guard's answer to an order; more than the guard itself may take to kill."""


class GuardLate(ServiceUnavailable):
    """Raised if the guard, the process that starts a watched command, was too slow because the machine is busy."""


class Guarded:
    """A running guard, the process that started a command: its socket, and the listener for the command's calls."""

    def __init__(self, channel: socket.socket, root: int, listener: Listener) -> None:
        self.channel = channel
        self.root = root
        self.listener = listener
        self.lines = wire.Lines()

    def receive(self) -> list[GuardMessage] | None:
        """Wait for messages of the guard, and return them; None if the guard has closed the socket."""
        piece = self.channel.recv(65536)
        if not piece:
            return None
        return [_decoded(line) for line in self.lines.feed(piece)]


def _decoded(line: bytes) -> GuardMessage:
    message: GuardMessage = wire.decode(line, GuardMessage)  # type: ignore[arg-type]  # `decode` is typed for one class, but msgspec also accepts a union
    return message


@contextmanager
def guarded(launch: Launch, output: Path) -> Iterator[Guarded]:
    """Start a command under a guard, a process that kills the command's processes at the end of the `with` block.

    `launch` describes the command, and `output` is the file for the guard's own output. Raises an error of labkit if
    the command does not start.
    """
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
            guard = _await_listener(parent_end, launch)
            try:
                yield guard
            finally:
                os.close(guard.listener.descriptor)
        finally:
            parent_end.close()  # so that the guard kills the command
            try:
                process.wait(GUARD_SECONDS)
            except subprocess.TimeoutExpired:  # it is suspended
                process.kill()
                process.wait()


def _await_listener(channel: socket.socket, launch: Launch) -> Guarded:
    """Wait until the guard, the process that starts the command, has done so, and return the running guard.

    If the start fails, raise an error with the guard's reason.
    """
    channel.settimeout(GUARD_SECONDS)
    try:
        line, descriptors, _, _ = socket.recv_fds(channel, 65536, 1)
    except TimeoutError:
        raise GuardLate(
            f"The guard process did not start the command within {GUARD_SECONDS:.0f} s, as this machine is too busy. "
            "Repeat the test when it is less busy."
        ) from None
    if not line:
        raise JobFailed(
            "The guard, the process that should start the command, died before it could do so; see its output in "
            f"{launch.output}, and run the command again."
        )
    message = _decoded(wire.Lines().feed(line)[0])
    if isinstance(message, Refused):
        raise error_of(message)
    assert isinstance(message, Listening)
    machine = architecture()
    assert machine is not None
    listener = Listener(descriptors[0], machine, questions(launch.kinds, machine.numbers))
    return Guarded(channel, message.root, listener)


def error_of(refused: Refused) -> Exception:
    if refused.filtering:
        return ServiceUnavailable(refusal(refused.number))
    return InvalidInput(
        f"The command could not be started ({refused.because}); name a program and a folder that exist."
    )
