"""The supervisor empties its driver's session, whatever groups there are, and dies with nobody left behind.

Fake drivers stand in for Spark here: processes are what a supervisor sees.
"""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from labkit.core.errors import JobFailed
from labkit.core.failpoints import Crash, FailPoint
from labkit.host.processes.child import Drive
from labkit.host.processes.sessions import session_members
from labkit.host.processes.supervisor import Supervisor
from labkit.runs.flight import note_crash
from labkit.runs.layout import RunFolder
from labkit.runs.run import Run
from labkit.runs.scenario import plan

PATIENCE = 30.0

IDLE_WITH_A_DAEMON = """
import json, os, subprocess, sys
subprocess.Popen(["sleep", "60"], preexec_fn=os.setpgrp)
print(json.dumps({"event": "parked", "cell": "a"}), flush=True)
print(json.dumps({"event": "idle"}), flush=True)
sys.stdin.read()
"""
SILENT = "import sys; sys.stdin.read()"
DIES = "raise SystemExit(3)"


@pytest.fixture
def spec(tmp_path: Path) -> dict:
    return {
        "scratch": str(tmp_path / "scratch" / "driver-1"),
        "log": str(tmp_path / "driver.log"),
        "cells": [],
    }


def with_driver(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, source: str) -> None:
    """Puts a module `labkit.runs.driver` of the test's own in front of the real one, for child processes."""
    (tmp_path / "sitecustomize.py").write_text(
        "import sys\n"
        "if '-m' in sys.orig_argv and 'labkit.runs.driver' in sys.orig_argv:\n"
        f"    exec({source!r})\n"
        "    import os; os._exit(0)\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))


def until_empty(session: int) -> None:
    end = time.monotonic() + PATIENCE
    while session_members(session):
        assert time.monotonic() < end, (
            f"session {session} is not empty: {session_members(session)}"
        )
        time.sleep(0.01)


def test_an_idle_driver_is_killed_with_its_daemons(
    spec: dict, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    with_driver(monkeypatch, tmp_path, IDLE_WITH_A_DAEMON)
    with Drive(spec, PATIENCE) as drive:
        events = list(drive.events())
    assert [event["event"] for event in events] == ["parked", "killed"]
    proof = events[-1]
    assert (proof["signal"], proof["left"]) == (signal.SIGKILL, [])
    assert len(proof["killed"]) == 2
    assert session_members(proof["session"]) == []
    assert not Path(spec["scratch"]).exists()


def test_a_driver_that_ends_by_itself_is_told_apart(
    spec: dict, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    with_driver(monkeypatch, tmp_path, DIES)
    with Drive(spec, PATIENCE) as drive:
        [event] = drive.events()
    assert (event["event"], event["signal"]) == ("died", 0)


def test_letting_go_ends_the_driver(
    spec: dict, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    with_driver(monkeypatch, tmp_path, SILENT)
    with Drive(spec, PATIENCE) as drive:
        drive.let_go()
        [event] = drive.events()
    assert (event["event"], event["left"]) == ("unwanted", [])


def test_a_silent_driver_is_given_up_and_nothing_is_left(
    spec: dict, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    with_driver(monkeypatch, tmp_path, SILENT)
    with (
        pytest.raises(JobFailed, match="did nothing for 0 s"),
        Drive(spec, 0.1) as drive,
    ):
        list(drive.events())
    assert not Path(spec["scratch"]).exists()


def test_killing_only_the_process_group_leaves_a_writer(
    spec: dict, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    """The mutation that a proof must catch: it says which processes are left, and the runner refuses it."""
    with_driver(monkeypatch, tmp_path, IDLE_WITH_A_DAEMON)
    path = tmp_path / "spec.json"
    path.write_text(json.dumps(spec))
    supervisor = Supervisor(path)
    monkeypatch.setattr("labkit.host.processes.supervisor.KILL_PATIENCE", 0.5)
    monkeypatch.setattr(
        Supervisor, "_kill", lambda self, _: kill_group(self._driver.pid)
    )
    assert supervisor._driver.stdout is not None
    while supervisor._pass_on() is None:
        continue
    proof = supervisor._empty_session()
    assert len(proof["left"]) == 1
    with pytest.raises(JobFailed, match="did not die by SIGKILL alone"):
        note_crash(reached(tmp_path, proof["session"]), proof)
    os.kill(proof["left"][0], signal.SIGKILL)
    until_empty(proof["session"])
    supervisor._driver.stdout.close()
    assert supervisor._driver.stdin is not None
    supervisor._driver.stdin.close()


def kill_group(leader: int) -> None:
    try:
        os.killpg(leader, signal.SIGKILL)
    except ProcessLookupError:
        return


def reached(folder: Path, session: int) -> Run:
    run = Run(plan(crashes=["sink.mid_write@0"]), RunFolder(folder), drivers=1)
    evidence = {"point": FailPoint.MID_WRITE, "batch": 0, "pid": 1, "session": session}
    run.folder.reached(1).write_text(json.dumps(evidence))
    return run


@pytest.mark.parametrize(
    ("proof", "evidence", "complaint"),
    [
        ({"signal": 15}, {}, "did not die by SIGKILL"),
        ({"left": [7]}, {}, "did not die by SIGKILL"),
        ({}, {"point": "sink.after_commit"}, "is not of sink.mid_write@0"),
        ({}, {"session": 8}, "is not of sink.mid_write@0"),
        ({}, {}, "offsets/0 is missing"),
    ],
)
def test_a_crash_without_proof_is_no_crash(
    proof: dict, evidence: dict, complaint: str, tmp_path: Path
):
    run = reached(tmp_path, 9)
    seen = json.loads(run.folder.reached(1).read_text()) | evidence
    run.folder.reached(1).write_text(json.dumps(seen))
    with pytest.raises(JobFailed, match=complaint):
        note_crash(run, {"signal": 9, "left": [], "session": 9, "killed": [9]} | proof)


def test_the_logs_must_say_what_the_point_says(tmp_path: Path):
    for name in ("offsets", "commits"):
        (tmp_path / "checkpoint" / name).mkdir(parents=True)
        (tmp_path / "checkpoint" / name / "0").touch()
    with pytest.raises(JobFailed, match="commits/0 is there"):
        note_crash(
            reached(tmp_path, 9), {"signal": 9, "left": [], "session": 9, "killed": [9]}
        )
    assert Crash(FailPoint.MID_WRITE) == reached(tmp_path, 9).next_crash


def test_the_driver_ends_when_its_supervisor_is_killed(spec: dict, tmp_path: Path):
    """The real driver module, without Spark: its end of the pipe closes, and it ends its own session."""
    scratch = Path(spec["scratch"])
    scratch.mkdir(parents=True)
    fifo = tmp_path / "never"
    os.mkfifo(fifo)
    child = subprocess.Popen(
        [sys.executable, "-m", "labkit.runs.driver", str(fifo)],
        stdin=subprocess.PIPE,
        start_new_session=True,
    )
    assert child.stdin is not None
    child.stdin.close()
    assert child.wait(PATIENCE) == -signal.SIGKILL
    until_empty(child.pid)
