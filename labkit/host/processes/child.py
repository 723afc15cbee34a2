"""The runner's end of one supervised driver: starts the supervisor, reads its events, and lets go of it safely.

Closing the pipe is the only order that a supervisor takes itself: it then empties the driver's session and ends. So a
runner that dies, in whatever way, takes its driver with it. This module must not know what the driver runs, and kills
only where a supervisor does nothing any more.
"""

import contextlib
import json
import os
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from labkit.core.errors import JobFailed
from labkit.host.processes.sessions import session_members

END_PATIENCE = 60.0
"""Seconds in which a supervisor must have emptied its session after its pipe closed."""


class Drive:
    """One supervisor and its driver, for as long as the block lasts; afterwards neither is left."""

    def __init__(self, spec: dict[str, Any], patience: float) -> None:
        self._patience = patience
        self._session: int | None = None
        scratch = Path(spec["scratch"])
        scratch.mkdir(parents=True)
        path = scratch / "spec.json"
        path.write_text(json.dumps(spec), encoding="utf-8")
        with Path(spec["log"]).open("ab") as log:
            self._supervisor = subprocess.Popen(
                [sys.executable, "-m", "labkit.host.processes.supervisor", str(path)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                start_new_session=True,
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.let_go()
        try:
            self._supervisor.wait(timeout=END_PATIENCE)
        except subprocess.TimeoutExpired:
            self._end_by_force()
            raise JobFailed(
                f"the supervisor {self._supervisor.pid} did not end its driver within {END_PATIENCE:.0f} s (was it "
                "stopped?); both were killed, and the run can be finished with --resume."
            ) from error
        finally:
            assert self._supervisor.stdout is not None
            self._supervisor.stdout.close()

    def _end_by_force(self) -> None:
        """The last resort: a supervisor that is stopped kills nobody, and its driver waits for it for ever."""
        self._supervisor.kill()
        self._supervisor.wait()
        while self._session is not None and (living := session_members(self._session)):
            for pid in living:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            time.sleep(0.01)

    @property
    def pid(self) -> int:
        """The supervisor's process."""
        return self._supervisor.pid

    def order(self, content: dict[str, Any]) -> None:
        """Hands the driver one order, which only a standby waits for. A dead driver says so in its events."""
        assert self._supervisor.stdin is not None
        with contextlib.suppress(OSError, ValueError):
            self._supervisor.stdin.write(json.dumps(content).encode() + b"\n")
            self._supervisor.stdin.flush()

    def let_go(self) -> None:
        """Tells the supervisor to end its driver; may be called from any thread, and again."""
        assert self._supervisor.stdin is not None
        with contextlib.suppress(OSError):
            self._supervisor.stdin.close()

    def events(self) -> Iterator[dict[str, Any]]:
        """What happens, in order; the last event carries the proof of the session's end.

        Raises `JobFailed` when nothing happened for as long as the runner's patience lasts.
        """
        assert self._supervisor.stdout is not None
        unread, silent_since = b"", time.monotonic()
        with selectors.DefaultSelector() as selector:
            selector.register(self._supervisor.stdout, selectors.EVENT_READ)
            while True:
                if not selector.select(timeout=1.0):
                    self._lose_patience(silent_since)
                    continue
                content = self._supervisor.stdout.read1(65536)  # type: ignore[attr-defined]  # a BufferedReader
                if not content:
                    return
                *lines, unread = (unread + content).split(b"\n")
                for event in map(json.loads, lines):
                    if event["event"] == "started":
                        self._session = event["session"]
                    else:
                        yield event
                silent_since = time.monotonic()

    def _lose_patience(self, silent_since: float) -> None:
        if time.monotonic() - silent_since > self._patience:
            raise JobFailed(
                f"the driver did nothing for {self._patience:.0f} s and was stopped; its log says how far it came."
            )
