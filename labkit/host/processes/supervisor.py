"""Owns one driver: starts it in a session of its own, kills every process of that session, and proves it.

A supervisor lives in a third session, with a pipe to the runner and a pipe to the driver, so the killer is never
among the killed. When the runner's pipe closes the runner is dead, and the driver dies too. Executors of a cluster are
in other sessions: they end by themselves, which the proof says too, and one of them may be the victim. A supervisor
loads neither pyspark nor the sinks; it must not decide what a run means.
"""

import contextlib
import json
import os
import selectors
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from labkit.core.errors import LabError
from labkit.host.processes.executors import Executors
from labkit.host.processes.sessions import session_members

KILL_PATIENCE = 30.0
"""Seconds in which a session must be empty after SIGKILL; a process in uninterruptible sleep may take longer."""


class Supervisor:
    """One driver, from its start to the proof of its end."""

    def __init__(self, spec_path: Path) -> None:
        self._spec: dict[str, Any] = json.loads(spec_path.read_text(encoding="utf-8"))
        self._scratch = Path(self._spec["scratch"])
        self._scratch.mkdir(parents=True, exist_ok=True)
        self._driver = self._start(spec_path)
        self._unread = b""
        self._executors: Executors | None = None

    def _start(self, spec_path: Path) -> "subprocess.Popen[bytes]":
        more = self._spec.get("environment", {})
        environment = (
            dict(os.environ, TMPDIR=str(self._scratch), PYTHONUNBUFFERED="1") | more
        )
        with Path(self._spec["log"]).open("ab") as log:
            return subprocess.Popen(
                [
                    sys.executable,
                    "-m",
                    self._spec.get("module", "labkit.runs.driver"),
                    str(spec_path),
                ],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                env=environment,
                cwd=self._scratch,
                start_new_session=True,
            )

    def watch(self) -> None:
        """Passes the driver's events on until it is idle or dead or unwanted; then empties its session."""
        try:
            self._say({"event": "started", "session": self._driver.pid})
            ending = self._follow()
            proof = self._empty_session()
            self._say({"event": ending, **proof})
        except BrokenPipeError:
            self._empty_session()
        finally:
            shutil.rmtree(self._scratch, ignore_errors=True)

    def _follow(self) -> str:
        """`killed` when the driver is idle, `died` when it ended by itself, `unwanted` when the runner is gone."""
        assert self._driver.stdout is not None
        with selectors.DefaultSelector() as selector:
            selector.register(self._driver.stdout, selectors.EVENT_READ)
            selector.register(sys.stdin.buffer, selectors.EVENT_READ)
            while True:
                for key, _ in selector.select():
                    ending = (
                        self._pass_down()
                        if key.fileobj is sys.stdin.buffer
                        else self._pass_on()
                    )
                    if ending is not None:
                        return ending

    def _pass_down(self) -> str | None:
        """What the runner says goes to the driver, unread; a closed pipe says that nobody wants the driver."""
        assert self._driver.stdin is not None
        order = os.read(sys.stdin.fileno(), 65536)
        if not order:
            return "unwanted"
        with contextlib.suppress(
            BrokenPipeError
        ):  # the driver is dead, as its other pipe is about to say
            self._driver.stdin.write(order)
            self._driver.stdin.flush()
        return None

    def _pass_on(self) -> str | None:
        assert self._driver.stdout is not None
        content = os.read(self._driver.stdout.fileno(), 65536)
        if not content:
            return "died"
        *lines, self._unread = (self._unread + content).split(b"\n")
        for line in lines:
            event = json.loads(line)
            if event["event"] == "idle":
                return "killed"
            self._say(self._heard(event))
            if event["event"] == "failed" and event["cell"] is None:
                return "killed"
        return None

    def _heard(self, event: dict[str, Any]) -> dict[str, Any]:
        """What there is to do about an event before it is passed on: on a cluster, executors are killed here too."""
        if event["event"] == "application":
            self._executors = Executors(event["id"])
        if event["event"] != "struck" or self._executors is None:
            return event
        try:
            return {**event, **self._executors.kill(event["executor"])}
        except LabError as error:
            return {
                "event": "failed",
                "cell": event["cell"],
                "because": str(error),
                "code": error.exit_code,
            }

    def _empty_session(self) -> dict[str, Any]:
        """SIGKILL to every process of the driver's session, again until none is left.

        Each PySpark daemon makes a process group of its own, so killing the driver's group would leave writers alive.
        """
        if self._executors is not None:
            self._executors.look()
        killed: set[int] = set()
        begun = time.time()
        end = time.monotonic() + KILL_PATIENCE
        session = self._driver.pid
        while living := session_members(session):
            for pid in living:
                self._kill(pid)
            killed.update(living)
            if time.monotonic() > end:
                break
            time.sleep(0.005)
        code = self._driver.wait()
        died_by = -code if code < 0 else 0
        proof = {
            "session": session,
            "signal": died_by,
            "killed": sorted(killed),
            "left": living,
            "begun": begun,
        }
        if self._executors is not None:
            proof["executors"] = self._executors.await_end(self._executors.look())
        return proof

    def _kill(self, pid: int) -> None:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            return

    def _say(self, event: dict[str, Any]) -> None:
        print(json.dumps(event), flush=True)


def main() -> None:
    """`python -m labkit.host.processes.supervisor SPEC`, started by the runner only."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    Supervisor(Path(sys.argv[1])).watch()


if __name__ == "__main__":
    main()
