"""A standby takes over when the old driver is proven dead, and not before; whoever tries earlier is found out."""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import msgspec
import psutil
import pytest
from choosing import variant_but
from runners import MARK, marked
from waiting import until

from labkit import lab
from labkit.core.errors import InvalidInput, JobFailed, ServiceUnavailable
from labkit.core.failpoints import Order
from labkit.core.records import Observation
from labkit.core.strategies import Strategy
from labkit.host.processes import wire
from labkit.host.processes.events import (
    AnyEvent,
    Begun,
    Ended,
    Failed,
    Killed,
    Parked,
    Proof,
    Ready,
    Recovered,
    SessionUp,
)
from labkit.host.processes.protocol import Launch, RunQueries
from labkit.host.processes.sessions import session_members
from labkit.runs.conduct import DriverPool, Setup
from labkit.runs.prepare import prepare
from labkit.runs.scenario import plan
from labkit.spark.checkpoint import DriverLock
from labkit.spark.crash_proof import check_dead
from labkit.spark.fast.standby import Standby, check_memory
from labkit.spark.start import open_checkpoint
from labkit.stores import open_store

PATIENCE = 120.0

WAITING = """
import json, sys
print(json.dumps({"event": "ready"}), flush=True)
name = json.loads(sys.stdin.readline())["queries"][0]["name"]
print(json.dumps({"event": "begun", "query": name}), flush=True)
print(json.dumps({"event": "ended", "query": name}), flush=True)
print(json.dumps({"event": "awaits_kill"}), flush=True)
sys.stdin.read()
"""
FAILS = """
import json, sys
print(json.dumps({"event": "driver_failed", "because": "no memory", "code": 69}), flush=True)
sys.stdin.read()
"""
DIES = "raise SystemExit(3)"


@contextmanager
def bystander() -> Iterator["subprocess.Popen[bytes]"]:
    """A process that leads a session of its own."""
    process = subprocess.Popen(["sleep", "60"], start_new_session=True)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def dead(**doubt: object) -> Killed:
    """A proof as a supervisor gives it, of a session that is empty by now."""
    with bystander() as process:
        session = process.pid
    proof = Proof(session=session, signal=9, killed=[session], left=[], begun=0.0)
    return Killed(msgspec.structs.replace(proof, **doubt))


def test_it_waits_then_runs_the_cells_that_it_is_handed(launch: Launch, with_driver: Callable[[str], None]):
    with_driver(WAITING)
    standby = Standby(launch, PATIENCE)
    with standby.driver:
        standby.await_ready()
        order = RunQueries([wire.raw({"name": "run"})])
        *events, killed = standby.take_over(dead(), order)
    assert events == [Begun("run"), Ended("run")]
    assert isinstance(killed, Killed)
    assert session_members(killed.proof.session) == []


def test_one_that_nobody_needs_is_ended(launch: Launch, with_driver: Callable[[str], None]):
    with_driver(WAITING)
    standby = Standby(launch, PATIENCE)
    with standby.driver:
        standby.await_ready()
    assert standby.driver._supervisor.returncode == 0
    assert not Path(launch.scratch).exists()


@pytest.mark.parametrize(("source", "says"), [(FAILS, "failed: no memory"), (DIES, "ended before it was ready")])
def test_one_that_does_not_get_warm_says_why(
    source: str, says: str, launch: Launch, with_driver: Callable[[str], None]
):
    with_driver(source)
    standby = Standby(launch, PATIENCE)
    with standby.driver, pytest.raises(JobFailed, match=says):
        standby.await_ready()


@pytest.mark.parametrize("doubt", [{"signal": 15}, {"signal": 0}, {"left": [7]}])
def test_a_proof_that_does_not_hold_hands_nothing_over(doubt: dict):
    check_dead(dead())
    with pytest.raises(JobFailed, match="must not take over"):
        check_dead(dead(**doubt))


def test_a_proof_is_not_believed_against_what_is_seen():
    with bystander() as process, pytest.raises(JobFailed, match="must not take over"):
        check_dead(dead(session=process.pid))


@pytest.mark.parametrize(("gigabytes", "standbys", "allowed"), [(4, 1, True), (2, 1, False), (4, 2, False)])
def test_little_memory_refuses_it_in_one_sentence(
    gigabytes: int, standbys: int, allowed: bool, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(psutil, "virtual_memory", lambda: SimpleNamespace(available=gigabytes * 10**9))
    if allowed:
        check_memory(standbys)
        return
    with pytest.raises(ServiceUnavailable, match="close other programs, or leave --standby out") as refused:
        check_memory(standbys)
    assert refused.value.exit_code == 69


ZOMBIE = """
import sys
from pathlib import Path
from labkit.core.records import Observation
from labkit.spark.checkpoint import Checkpoint, DriverLock
from labkit.stores import open_store
from labkit.stores.contract import Handle
base = Path(sys.argv[1])
lock = DriverLock(Checkpoint(base / "checkpoint"))
store = open_store("files", base / "store")
handle = Handle("q1", 0, 0, 1, 0)
transaction = store.begin(handle)
transaction.write(Observation(0, "hello", 1, 0, 1))
transaction.prepare()
print("prepared", flush=True)
sys.stdin.readline()
store.commit(handle)
"""


@contextmanager
def living_driver(base: Path) -> Iterator["subprocess.Popen[str]"]:
    """A driver that holds the lock, has prepared one row, and commits it when it gets a line."""
    command = [sys.executable, "-c", ZOMBIE, str(base)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    process = subprocess.Popen(command, text=True, start_new_session=True, **pipes)
    assert process.stdout.readline() == "prepared\n"
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def take_over(base: Path) -> list[str]:
    """What a second driver does first: open, then recover."""
    place = {"store": "files", "location": base / "store", "query": "q1"}
    opened = open_checkpoint(base / "checkpoint", sink=Strategy.TWO_PHASE, order=Order.DECISION, **place)
    try:
        return opened.recover()
    finally:
        opened.lock.release()


def visible(base: Path) -> list[Observation]:
    store = open_store("files", base / "store")
    try:
        return list(store.history())
    finally:
        store.close()


def test_the_lock_refuses_a_second_driver(tmp_path: Path):
    with (
        living_driver(tmp_path) as old,
        pytest.raises(InvalidInput, match=f"driver process {old.pid} is still running"),
    ):
        take_over(tmp_path)


def test_a_second_driver_that_ignores_the_lock_loses_the_firsts_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """The mutation: without the lock the second one aborts what the first has prepared and is about to commit."""
    monkeypatch.setattr("labkit.spark.checkpoint.fcntl.flock", lambda *_: None)
    monkeypatch.setattr(DriverLock, "_refuse_leftovers", lambda _: None)
    with living_driver(tmp_path) as old:
        assert take_over(tmp_path) == ["aborted q1-b0-p0-i1-a0, whose batch was never decided"]
        old.communicate("commit\n", timeout=PATIENCE)
        assert old.returncode != 0
    assert visible(tmp_path) == []


@pytest.mark.slow
@pytest.mark.spark
def test_a_standby_recovers_a_real_crash(tmp_path: Path):
    heard: list[type] = []
    outcome = lab.crash(
        "sink.after_pre_commit",
        sink="two_phase",
        standby=True,
        folder=tmp_path / "run",
        tell=lambda event: heard.append(type(event)),
    )
    assert outcome.verdict.guarantee == "exactly-once"
    assert heard.index(Ready) < heard.index(Parked) < heard.index(Killed) < heard.index(Ended)
    assert heard.count(SessionUp) == 1
    assert outcome.record.drivers == 2
    assert outcome.record.seconds["crash_1_to_committed"] > 0
    log = (tmp_path / "run" / "driver-2.log").read_text()
    assert "recovery aborted" in log
    assert not (tmp_path / "run" / "scratch").exists()


@pytest.mark.variant
@pytest.mark.slow
@pytest.mark.spark
def test_a_standby_that_takes_over_without_waiting_is_refused(tmp_path: Path):
    """The mutation: the cells go to the standby while the old driver is still at work. The lock sees it."""
    run = prepare(plan(sink="two_phase", crashes=["sink.after_pre_commit@0"]), tmp_path / "run")
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    heard: list[AnyEvent] = []

    def too_early(event: AnyEvent) -> None:
        if isinstance(event, Recovered):
            query = msgspec.structs.replace(run.query_task(), driver=2, armed=None)
            drivers._standbys[0].driver.order(RunQueries([wire.raw(query)]))
            heard.extend(_until_stopped(drivers._standbys[0]))

    drivers = DriverPool(scratch, too_early, 120.0, Setup(standby=True))
    try:
        drivers.run([run])
    finally:
        drivers.close()
    assert isinstance(heard[-1], Failed)
    assert "is still running this query" in heard[-1].because
    assert [crash["point"] for crash in run.crashes] == ["sink.after_pre_commit"]


def _until_stopped(standby: Standby) -> Iterator[AnyEvent]:
    for event in standby.events:
        yield event
        if isinstance(event, Failed | Ended):
            return


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.parametrize("moment", variant_but(["Begun"], ["Ready", "Begun"]))
def test_a_killed_runner_leaves_no_standby_behind(moment: str, tmp_path: Path):
    mark = f"standby-{os.getpid()}-{time.monotonic_ns()}"
    code = (
        "from labkit import lab; from pathlib import Path; import sys\n"
        "lab.crash('sink.after_pre_commit', sink='two_phase', standby=True, folder=Path(sys.argv[1]),\n"
        "          tell=lambda event: print(type(event).__name__, flush=True))"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "run")]
    environment = dict(os.environ, **{MARK: mark})
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as process:
        assert any(line.strip() == moment for line in process.stdout)
        process.kill()
    until(lambda: not marked(mark), "every process that the run started to be gone", PATIENCE)
