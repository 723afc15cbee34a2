"""The supervisor empties its driver's session, whatever groups there are, and dies with nobody left behind.

Fake drivers stand in for Spark here: processes are what a supervisor sees.
"""

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import msgspec
import pytest
from waiting import until

from labkit.core.errors import JobFailed
from labkit.core.failpoints import FailPoint
from labkit.host.processes.child import SupervisedDriver
from labkit.host.processes.events import (
    Begun,
    Died,
    DriverFailed,
    Ending,
    Killed,
    Parked,
    Proof,
    SessionUp,
    Started,
    Unwanted,
)
from labkit.host.processes.protocol import Launch, ProtocolError
from labkit.host.processes.sessions import session_members
from labkit.host.processes.supervisor import Supervisor
from labkit.runs.evidence import DriverEvents, record_crash
from labkit.runs.layout import RunFolder
from labkit.runs.progress import silent
from labkit.runs.run import Run
from labkit.runs.scenario import plan
from labkit.spark.crash_proof import BatchLogs

PATIENCE = 120.0

PARKED_WITH_A_DAEMON = """
import json, os, subprocess, sys
subprocess.Popen(["sleep", "60"], preexec_fn=os.setpgrp)
print(json.dumps({"event": "session"}), flush=True)
print(json.dumps({"event": "begun", "query": "a"}), flush=True)
print(json.dumps({"event": "parked", "query": "a"}), flush=True)
print(json.dumps({"event": "awaits_kill"}), flush=True)
sys.stdin.read()
"""
WAITS_FOR_ITS_SUPERVISOR = """
import os, subprocess
from labkit.host.processes.events import SessionUp
from labkit.host.processes.supervised import report, serve
subprocess.Popen(["sleep", "60"], preexec_fn=os.setpgrp)
serve(lambda launch: report(SessionUp()))
"""
SILENT = "import sys; sys.stdin.read()"
DIES = "raise SystemExit(3)"


def until_empty(session: int) -> None:
    until(lambda: not session_members(session), f"the end of session {session}", PATIENCE)


def test_an_idle_driver_is_killed_with_its_daemons(launch: Launch, with_driver: Callable[[str], None]):
    with_driver(PARKED_WITH_A_DAEMON)
    with SupervisedDriver(launch, PATIENCE) as driver:
        events = list(driver.events())
    assert [type(event) for event in events] == [SessionUp, Begun, Parked, Killed]
    proof = events[-1].proof
    assert (proof.signal, proof.left) == (signal.SIGKILL, [])
    assert len(proof.killed) == 2
    assert session_members(proof.session) == []
    assert not Path(launch.scratch).exists()


def test_a_driver_that_ends_by_itself_is_told_apart(launch: Launch, with_driver: Callable[[str], None]):
    with_driver(DIES)
    with SupervisedDriver(launch, PATIENCE) as driver:
        *_, event = driver.events()
    assert isinstance(event, Died)
    assert event.proof.signal == 0


def test_letting_go_ends_the_driver(launch: Launch, with_driver: Callable[[str], None]):
    with_driver(SILENT)
    with SupervisedDriver(launch, PATIENCE) as driver:
        driver.let_go()
        *_, event = driver.events()
    assert isinstance(event, Unwanted)
    assert event.proof.left == []


def test_a_silent_driver_is_given_up_and_nothing_is_left(launch: Launch, with_driver: Callable[[str], None]):
    with_driver(SILENT)
    with pytest.raises(JobFailed, match="reported nothing for 0 s"), SupervisedDriver(launch, 0.1) as driver:
        list(driver.events())
    assert not Path(launch.scratch).exists()


def test_killing_only_the_process_group_leaves_a_writer(
    launch: Launch, monkeypatch: pytest.MonkeyPatch, with_driver: Callable[[str], None], tmp_path: Path
):
    """The mutation that a proof must catch: it says which processes are left, and the runner refuses it."""
    with_driver(PARKED_WITH_A_DAEMON)
    supervisor = Supervisor(launch)
    supervisor._conversation.take(Started(supervisor._driver.pid))
    monkeypatch.setattr("labkit.host.processes.supervisor.KILL_PATIENCE", 0.5)
    kills = SimpleNamespace(getsid=os.getsid, kill=lambda *_: kill_group(supervisor._driver.pid))
    monkeypatch.setattr("labkit.host.processes.sessions.os", kills)
    assert supervisor._driver.stdout is not None
    while supervisor._pass_on() is None:
        continue
    proof = supervisor._empty_session()
    assert len(proof.left) == 1
    with pytest.raises(JobFailed, match="not certain that SIGKILL then ended"):
        record_crash(reached(tmp_path, proof.session), Killed(proof), NO_LOGS)
    os.kill(proof.left[0], signal.SIGKILL)
    until_empty(proof.session)
    supervisor._driver.stdout.close()
    supervisor._driver.stdin.close()


def kill_group(leader: int) -> None:
    try:
        os.killpg(leader, signal.SIGKILL)
    except ProcessLookupError:
        return


NO_LOGS = BatchLogs((), ())


def reached(folder: Path, session: int) -> Run:
    run = Run(plan(crashes=["sink.mid_write@0"]), RunFolder(folder), drivers=1)
    evidence = {"point": FailPoint.MID_WRITE, "batch": 0, "pid": 8, "session": session}
    run.folder.reached(1).write_text(json.dumps(evidence))
    return run


def proof(**other: object) -> Proof:
    given = Proof(session=9, signal=9, killed=[8, 9], left=[], begun=1.0)
    return msgspec.structs.replace(given, **other)


@pytest.mark.parametrize(
    ("ending", "evidence", "complaint"),
    [
        (Killed(proof(signal=15)), {}, "not certain that SIGKILL then ended"),
        (Killed(proof(left=[7])), {}, "not certain that SIGKILL then ended"),
        (Died(proof()), {}, "not certain that SIGKILL then ended"),
        (Unwanted(proof()), {}, "not certain that SIGKILL then ended"),
        (Killed(proof(killed=[9])), {}, "8 that reached .* was not among the killed"),
        (Killed(proof()), {"session": 8}, "was not among the killed"),
        (Killed(proof()), {"point": "sink.after_commit"}, "but the crash sink.mid_write@0 was planned"),
        (Killed(proof()), {"batch": 1}, "but the crash sink.mid_write@0 was planned"),
        (Killed(proof()), {}, "offsets/0 is missing"),
    ],
)
def test_a_crash_without_proof_is_no_crash(ending: Ending, evidence: dict, complaint: str, tmp_path: Path):
    run = reached(tmp_path, 9)
    seen = json.loads(run.folder.reached(1).read_text()) | evidence
    run.folder.reached(1).write_text(json.dumps(seen))
    with pytest.raises(JobFailed, match=complaint):
        record_crash(run, ending, NO_LOGS)
    assert run.crashes == []


OUT_OF_ORDER = """
import json, sys
print(json.dumps({"event": "session"}), flush=True)
print(json.dumps({"event": "begun", "query": "a"}), flush=True)
print(json.dumps({"event": "awaits_kill"}), flush=True)
sys.stdin.read()
"""
PROVES_ITS_OWN_DEATH = """
import json, sys
proof = {"session": 1, "signal": 9, "killed": [1], "left": [], "begun": 0.0}
print(json.dumps({"event": "died", "proof": proof}), flush=True)
sys.stdin.read()
"""
GIBBERISH = "import sys; print('Traceback', flush=True); sys.stdin.read()"


@pytest.mark.parametrize(
    ("source", "complaint"),
    [
        (OUT_OF_ORDER, "'awaits_kill' is out of order while the query a is opening"),
        (PROVES_ITS_OWN_DEATH, "'died' is out of order while the driver is starting"),
        (GIBBERISH, r"cannot be decoded \(b'Traceback': .*\) while the driver is starting"),
    ],
)
def test_a_driver_that_says_what_it_must_not_say_is_killed_and_proves_nothing(
    source: str, complaint: str, launch: Launch, with_driver: Callable[[str], None], tmp_path: Path
):
    with_driver(source)
    with SupervisedDriver(launch, PATIENCE) as driver:
        *_, failed, killed = driver.events()
    assert isinstance(failed, DriverFailed)
    assert re.search(complaint, failed.because)
    assert isinstance(killed, Killed)
    assert session_members(killed.proof.session) == []
    noted = DriverEvents([run := reached(tmp_path, 9)], silent)
    noted.note(failed)
    noted.note(killed)
    noted.conclude()
    assert isinstance(run.error, JobFailed)
    assert "the result would be unreliable" in str(run.error)


def test_a_supervisor_that_is_killed_proves_nothing_and_leaves_nothing(
    launch: Launch, monkeypatch: pytest.MonkeyPatch, with_driver: Callable[[str], None]
):
    monkeypatch.setattr("labkit.host.processes.child._BETWEEN_DRIVER_AND_SUPERVISOR", ())
    with_driver(WAITS_FOR_ITS_SUPERVISOR)
    with SupervisedDriver(launch, PATIENCE) as driver:
        events = driver.events()
        started = next(events)
        assert isinstance(started, Started)
        assert isinstance(next(events), SessionUp)
        os.kill(driver.pid, signal.SIGKILL)
        with pytest.raises(ProtocolError, match="ended without a report while"):
            list(events)
    until_empty(started.session)


def test_the_driver_ends_when_its_supervisor_is_killed(launch: Launch, tmp_path: Path):
    """The real driver module, without Spark: its end of the pipe closes, and it ends its own session."""
    scratch = Path(launch.scratch)
    scratch.mkdir(parents=True)
    fifo = tmp_path / "never"
    os.mkfifo(fifo)
    child = subprocess.Popen(
        [sys.executable, "-m", "labkit.runs.driver", str(fifo)], stdin=subprocess.PIPE, start_new_session=True
    )
    child.stdin.close()
    assert child.wait(PATIENCE) == -signal.SIGKILL
    until_empty(child.pid)
