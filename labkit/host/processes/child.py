"""Runs one supervised driver process from its parent, the runner: starts its supervisor, reads events, and ends both.

The runner has only one way to stop a supervisor: it closes the supervisor's pipe, and the supervisor kills the driver's
session and ends. So a runner that dies, for whatever reason, takes its driver with it. This module itself kills only if
a supervisor no longer reacts.
"""

import contextlib
import os
import selectors
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Self

from labkit.core.errors import JobFailed
from labkit.host.processes import wire
from labkit.host.processes.events import AnyEvent, AwaitsKill, Started, Struck
from labkit.host.processes.own_python import own_python
from labkit.host.processes.protocol import Conversation, Launch, RunQueries
from labkit.host.processes.sessions import empty_session

END_PATIENCE = 60.0
"""The seconds within which a supervisor must have killed its driver's session after its pipe was closed."""

_BETWEEN_DRIVER_AND_SUPERVISOR = Started | Struck | AwaitsKill
"""Events that concern only a driver and its supervisor, so that `SupervisedDriver.events` leaves them out.

After `Struck` and `AwaitsKill`, the supervisor sends another event, which says what it did.
"""


class SupervisedDriver:
    """A Spark driver, and the supervisor process that watches and kills it; both are dead after the `with` block."""

    def __init__(self, launch: Launch, patience: float) -> None:
        self._patience = patience
        self._session: int | None = None
        log_path = Path(launch.log)
        log_path.parent.mkdir(parents=True, exist_ok=True)
        with log_path.open("ab") as log:
            self._supervisor = subprocess.Popen(
                # The argument has no use, except that a list of processes shows to which run this one belongs.
                own_python("-m", "labkit.host.processes.supervisor", launch.scratch),
                # The supervisor's standard input is the tether: the kernel closes it however this process dies.
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                start_new_session=True,
            )
        # The supervisor creates the driver's folder, because only it removes the folder if this process is killed.
        self.order(launch)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.let_go()
        try:
            self._supervisor.wait(timeout=END_PATIENCE)
        except subprocess.TimeoutExpired:
            self._end_by_force()
            raise JobFailed(
                f"the supervisor (process {self._supervisor.pid}) did not end its driver within {END_PATIENCE:.0f} s, "
                "perhaps because the supervisor was suspended. labkit killed both processes; continue the run with "
                "`labkit run --resume FOLDER`."
            ) from error
        finally:
            assert self._supervisor.stdout is not None
            self._supervisor.stdout.close()

    def _end_by_force(self) -> None:
        # The supervisor does not end, for example because SIGSTOP suspended it.
        self._supervisor.kill()
        self._supervisor.wait()
        # The supervisor is dead by now, so nobody else would end the processes of the driver's session.
        if self._session is not None:
            empty_session(self._session, END_PATIENCE)

    @property
    def pid(self) -> int:
        """Return the process id of the supervisor, the process that watches and kills the driver."""
        return self._supervisor.pid

    @property
    def is_alive(self) -> bool:
        """Whether the supervisor of the Spark driver still runs. The supervisor ends together with the driver."""
        return self._supervisor.poll() is None

    def order(self, message: Launch | RunQueries) -> None:
        """Send a message to the supervisor: first a `Launch`, later `RunQueries`, which it forwards to the driver.

        Do nothing if the supervisor is dead, because `events` reports its death.
        """
        assert self._supervisor.stdin is not None
        with contextlib.suppress(OSError, ValueError):
            self._supervisor.stdin.write(wire.encode(message))
            self._supervisor.stdin.flush()

    def let_go(self) -> None:
        """Make the supervisor kill the Spark driver. Any thread may call this method; a second call does nothing."""
        assert self._supervisor.stdin is not None
        with contextlib.suppress(OSError):
            self._supervisor.stdin.close()

    def events(self) -> Iterator[AnyEvent]:
        """Yield the events of the Spark driver as they arrive; the last one proves that all its processes have ended.

        Raises `JobFailed` if no event arrives for `patience` seconds, and `ProtocolError` for an event that the
        driver's state does not allow, or if the events end without the proof.
        """
        assert self._supervisor.stdout is not None
        conversation, silent_since = Conversation(), time.monotonic()
        with selectors.DefaultSelector() as selector:
            selector.register(self._supervisor.stdout, selectors.EVENT_READ)
            while True:
                # Wakes up once a second, to check whether the driver has been silent for too long.
                if not selector.select(timeout=1.0):
                    if time.monotonic() - silent_since > self._patience:
                        raise JobFailed(
                            f"the Spark driver reported nothing for {self._patience:.0f} s, so labkit killed it; see "
                            "the reason in the driver's log."
                        )
                    continue
                piece = os.read(self._supervisor.stdout.fileno(), 65536)
                if not piece:
                    conversation.finish()
                    return
                for event in conversation.read(piece):
                    # Needed if the supervisor can no longer act (`_end_by_force`).
                    if isinstance(event, Started):
                        self._session = event.session
                    if not isinstance(event, _BETWEEN_DRIVER_AND_SUPERVISOR):
                        yield event
                silent_since = time.monotonic()
