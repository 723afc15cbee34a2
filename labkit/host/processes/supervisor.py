"""Starts one driver in a session of its own, kills every process of that session in the end, and proves the kill.

A supervisor is in another session than its driver, so it never kills itself. Pipes connect it to the runner and to the
driver; if the runner's pipe closes, the runner is dead, and the supervisor kills the driver. Executors of a Spark
cluster are in other sessions: they end by themselves, which the proof also records, or the supervisor kills one on
request. A supervisor imports neither pyspark nor the sinks.
"""

import contextlib
import os
import selectors
import shutil
import signal
import subprocess
import sys
from pathlib import Path

from labkit.core.errors import LabError
from labkit.host.processes import events, wire
from labkit.host.processes.events import AnyEvent, Ending, Proof
from labkit.host.processes.executors import Executors
from labkit.host.processes.own_python import own_python
from labkit.host.processes.protocol import OF_THE_SUPERVISOR, Conversation, Launch, ProtocolError
from labkit.host.processes.sessions import empty_session

KILL_PATIENCE = 30.0
"""The seconds within which SIGKILL must end all processes of a session; uninterruptible sleep may take longer."""


class Supervisor:
    """Starts one Spark driver, forwards its events, kills every process of its Unix session, and proves their death."""

    def __init__(self, launch: Launch) -> None:
        self._launch = launch
        self._scratch = Path(launch.scratch)
        self._scratch.mkdir(parents=True)
        path = self._scratch / "launch.json"
        path.write_bytes(wire.encode(launch))
        self._conversation = Conversation(forbidden=OF_THE_SUPERVISOR)
        self._driver = self._start(path)
        self._executors: Executors | None = None
        self._unwanted = False

    def _start(self, path: Path) -> "subprocess.Popen[bytes]":
        environment = dict(os.environ, TMPDIR=str(self._scratch), PYTHONUNBUFFERED="1")
        with Path(self._launch.log).open("ab") as log:
            return subprocess.Popen(
                own_python("-m", self._launch.module, str(path)),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                env=environment | self._launch.environment,
                cwd=self._scratch,
                # Everything that Spark starts stays in this session, whatever process groups it creates.
                start_new_session=True,
            )

    def watch(self) -> None:
        """Forward events to the runner (the process that executes the run) until the driver must end; then kill it."""
        try:
            self._say(events.Started(self._driver.pid))
            ending = self._follow()
            self._say(ending(self._empty_session()))
        # The pipe has no reader, so the runner is dead, and the driver is ended without a report.
        except BrokenPipeError:
            self._unwanted = True
            self._empty_session()
        finally:
            shutil.rmtree(self._scratch, ignore_errors=True)
            if self._launch.own_folder and self._unwanted:
                shutil.rmtree(self._scratch.parent, ignore_errors=True)

    def _follow(self) -> type[Ending]:
        """Forward events and orders until the driver has ended or must end; return the type of event to report."""
        assert self._driver.stdout is not None
        with selectors.DefaultSelector() as selector:
            selector.register(self._driver.stdout, selectors.EVENT_READ)
            selector.register(sys.stdin.buffer, selectors.EVENT_READ)
            while True:
                for key, _ in selector.select():
                    ending = self._pass_down() if key.fileobj is sys.stdin.buffer else self._pass_on()
                    if ending is not None:
                        return ending

    def _pass_down(self) -> type[Ending] | None:
        """Forward an order of the runner to the driver; return `Unwanted` if the runner has closed its pipe."""
        assert self._driver.stdin is not None
        order = os.read(sys.stdin.fileno(), 65536)
        if not order:
            self._unwanted = True
            return events.Unwanted
        # A dead driver reads no order; its other pipe will soon close, which shows its death.
        with contextlib.suppress(BrokenPipeError):
            self._driver.stdin.write(order)
            self._driver.stdin.flush()
        return None

    def _pass_on(self) -> type[Ending] | None:
        """Forward events of the driver to the runner.

        Return None if the driver goes on. If it has ended or must end, return the type of the event to report.
        """
        assert self._driver.stdout is not None
        piece = os.read(self._driver.stdout.fileno(), 65536)
        if not piece:
            return events.Died
        try:
            for event in self._conversation.read(piece):
                self._write(event)
                # The rest of the piece is dropped, because after one of these events nothing from a driver counts.
                if isinstance(event, events.AwaitsKill | events.DriverFailed):
                    return events.Killed
                if isinstance(event, events.Application):
                    self._executors = Executors(event.id)
                elif isinstance(event, events.Struck):
                    self._say(self._kill_executor(event))
        except ProtocolError as error:
            self._say(events.DriverFailed(str(error), error.exit_code))
            return events.Killed
        return None

    def _kill_executor(self, struck: events.Struck) -> events.ExecutorKilled | events.Failed:
        try:
            if self._executors is None or struck.executor is None:
                raise ProtocolError(
                    "the driver asked labkit to kill a Spark executor, but the driver has no cluster, or named no "
                    "executor; repeat the run."
                )
            emptied = self._executors.kill(struck.executor)
        except LabError as error:
            return events.Failed(struck.query, str(error), error.exit_code)
        return events.ExecutorKilled(struck.query, struck.executor, emptied.killed, emptied.left, emptied.begun)

    def _empty_session(self) -> Proof:
        if self._executors is not None:
            # Before the kill, so that the processes of an executor that ends first are already known.
            self._executors.look()
        # The whole session, because each PySpark daemon creates a process group of its own.
        emptied = empty_session(self._driver.pid, KILL_PATIENCE)
        # The kernel tells only the driver's parent, this process, which signal killed the driver.
        code = self._driver.wait()
        executors = None
        if self._executors is not None:
            executors = self._executors.await_end(self._executors.look())
        return Proof(
            session=self._driver.pid,
            signal=-code if code < 0 else 0,
            killed=emptied.killed,
            left=emptied.left,
            begun=emptied.begun,
            executors=executors,
        )

    def _say(self, event: AnyEvent) -> None:
        self._conversation.take(event)
        self._write(event)

    def _write(self, event: AnyEvent) -> None:
        wire.write(sys.stdout.fileno(), wire.encode(event))


def _received() -> Launch | None:
    line = b""
    # Byte by byte, so that the orders that follow stay in the pipe.
    while not line.endswith(b"\n"):
        byte = os.read(sys.stdin.fileno(), 1)
        if not byte:  # the runner died before its message was complete
            return None
        line += byte
    return wire.decode(line, Launch)


def main() -> None:
    """Supervise a Spark driver, which the runner (the process that executes a run) describes on standard input."""
    # A Ctrl-C is meant for the runner. When the runner ends, its pipe closes, and this process cleans up.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if (launch := _received()) is not None:
        Supervisor(launch).watch()


if __name__ == "__main__":
    main()
