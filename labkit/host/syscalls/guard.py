"""Starts one watched command, and kills all of its processes when its watcher dies or asks for it.

    python -m labkit.host.syscalls.guard

The guard is the subreaper of everything that the command starts: a daemon that leaves its session and its parent
becomes the guard's own child. So the guard kills until it has no children left, because then nothing is left of the
command. Its standard input is a socket to the watcher; when that closes, the guard kills everything. The watcher, and
not the guard, receives the held system calls.
"""

import contextlib
import ctypes
import os
import select
import signal
import socket
import threading
import time
from typing import Never

import psutil

from labkit.host.processes import wire
from labkit.host.processes.sessions import Emptied, is_alive, kill_all
from labkit.host.syscalls.filters import install, program
from labkit.host.syscalls.guarding import AllEnded, Launch, Listening, Message, Refused, RootEnded
from labkit.host.syscalls.table import architecture, questions

_SUBREAPER = 36  # PR_SET_CHILD_SUBREAPER
KILL_SECONDS = 30.0
_LOOK_AGAIN = 0.001
_NOT_STARTED = 127


class Guard:
    """Starts one command. At the end, even if the watcher has died, the guard kills all processes of the command."""

    def __init__(self, channel: socket.socket, launch: Launch) -> None:
        """Fork a process that becomes the command."""
        self._channel = channel
        self._root = os.fork()
        if not self._root:
            become(launch, channel)

    def serve(self) -> None:
        """Wait until the command ends or the watcher asks to end it; then kill the remaining processes, and report."""
        awake, wake = socket.socketpair()
        wake.settimeout(0)
        signal.set_wakeup_fd(wake.fileno(), warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda _number, _frame: None)
        emptied = Emptied([], [], time.time())
        while self._reap():
            ready, _, _ = select.select([self._channel, awake], [], [])
            if awake in ready:
                awake.recv(4096)
            if self._channel in ready:  # the watcher asks for the end, or is dead
                emptied = kill_all(self._living, KILL_SECONDS)
                break
        self._say(AllEnded(emptied))

    def _reap(self) -> bool:
        try:
            while True:
                pid, status = os.waitpid(-1, os.WNOHANG)
                if not pid:
                    return True
                if pid == self._root:
                    self._say(RootEnded(os.waitstatus_to_exitcode(status)))
        except ChildProcessError:
            return False

    def _living(self) -> list[int]:
        """Return the ids of the command's processes that still run.

        When a process dies, its children get a new parent and cannot be found for a moment, so the function looks until
        it finds a process or the guard has no children left.
        """
        own = psutil.Process()
        end = time.monotonic() + KILL_SECONDS
        while self._reap() and time.monotonic() < end:
            living = [each.pid for each in own.children(recursive=True) if is_alive(each.pid)]
            if living:
                return living
            time.sleep(_LOOK_AGAIN)
        return []

    def _say(self, message: Message) -> None:
        with contextlib.suppress(OSError):
            self._channel.sendall(wire.encode(message))


def become(launch: Launch, channel: socket.socket) -> Never:
    """Turn this newly forked process into the command."""
    try:
        os.setsid()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE, signal.SIGXFSZ):
            signal.signal(number, signal.SIG_DFL)
        os.chdir(launch.folder)
        output = os.open(launch.output, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
        os.dup2(output, 1)
        os.dup2(output, 2)
        _execute(launch, channel)
    except OSError as error:
        refused = Refused(f"{error.filename}: {error.strerror}", error.errno or 0)
        channel.sendall(wire.encode(refused))
    finally:
        os._exit(_NOT_STARTED)


def _execute(launch: Launch, channel: socket.socket) -> None:
    """Send the watcher the descriptor that will report the command's system calls, and execute the command.

    A second thread installs the seccomp filter and later executes the command. The first thread has no filter, because
    it must send the filter's descriptor to the watcher by `sendmsg`, a call that the filter would intercept. If the
    command cannot be executed, report the reason to the watcher and return.
    """
    installed, sent = threading.Event(), threading.Event()
    listener, refused = -1, list[Refused]()

    def execute() -> None:
        nonlocal listener
        machine = architecture()
        assert machine is not None
        try:
            listener = install(
                machine, program(machine, questions(launch.kinds, machine.numbers, protecting=launch.protecting))
            )
        except OSError as error:
            refused.append(Refused(str(error), error.errno or 0, filtering=True))
            return
        finally:
            installed.set()
        sent.wait()
        os.close(listener)
        try:
            os.execvpe(launch.command[0], launch.command, launch.environment)  # noqa: S606 - no shell is wanted
        except OSError as error:
            refused.append(Refused(f"{launch.command[0]}: {error.strerror}", error.errno or 0))

    thread = threading.Thread(target=execute)
    thread.start()
    installed.wait()
    if not refused:
        socket.send_fds(channel, [wire.encode(Listening(os.getpid()))], [listener])
        sent.set()
        thread.join()
    channel.sendall(wire.encode(refused[0]))


def main() -> None:
    """Run this process as the guard of one command. `labkit.host.syscalls.watching` starts this process."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # a Ctrl-C is meant for the watcher
    channel = socket.socket(fileno=os.dup(0))
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    ctypes.CDLL(None).prctl(_SUBREAPER, 1, 0, 0, 0)
    with channel.makefile("rb", buffering=0) as lines:
        line = lines.readline()
    if line:
        Guard(channel, wire.decode(line, Launch)).serve()


if __name__ == "__main__":
    main()
