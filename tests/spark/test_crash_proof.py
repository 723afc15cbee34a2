"""What the engine's logs must say where a crash happened, for every failpoint and order; else it is no crash."""

import itertools
import json
import time
from pathlib import Path

import pytest

from labkit.core.errors import JobFailed
from labkit.core.failpoints import RECOVERY_POINTS, Crash, EngineLogs, FailPoint, Order, engine_logs
from labkit.core.records import Observation
from labkit.core.strategies import POINTS, Strategy
from labkit.host.processes.events import ExecutorKilled, Killed, Proof
from labkit.runs import run as run_module
from labkit.runs.evidence import record_crash, record_executor_crash
from labkit.runs.layout import RunFolder
from labkit.runs.run import Run
from labkit.runs.scenario import plan
from labkit.spark.checkpoint import Checkpoint
from labkit.spark.crash_proof import BatchLogs, check_logs
from labkit.stores import open_store
from labkit.stores.contract import Store

EVERY = [(strategy, order, point) for (strategy, order), points in POINTS.items() for point in points]
EVERY_STATE = list(itertools.product((False, True), (False, True)))
KILLED = Killed(Proof(session=9, signal=9, killed=[8, 9], left=[], begun=1.0))
BATCH = 1


def has_decided(order: Order, point: FailPoint) -> bool:
    """Whether commits/N is there: told a second time, from the protocols and not from the code."""
    if order is Order.DECISION:
        return point.value in ("engine.after_commit_log", "sink.mid_commit", "sink.before_confirm", "sink.after_commit")
    return point.value == "engine.after_commit_log"


def write_logs(checkpoint: Path, *, planned: bool, finished: bool) -> None:
    """The logs after batch 0, with those of batch 1 as they are told."""
    for name, is_there in (("offsets", planned), ("commits", finished)):
        (checkpoint / name).mkdir(parents=True)
        (checkpoint / name / "0").touch()
        if is_there:
            (checkpoint / name / str(BATCH)).touch()


@pytest.mark.parametrize(("strategy", "order", "point"), EVERY)
@pytest.mark.parametrize(("planned", "finished"), EVERY_STATE)
def test_a_log_that_is_there_or_missing_against_the_point_is_refused(
    strategy: Strategy, order: Order, point: FailPoint, planned: bool, finished: bool, tmp_path: Path
):
    write_logs(tmp_path / "checkpoint", planned=planned, finished=finished)
    wanted = None if order is Order.NONE else order.value
    crash = Crash(point, BATCH)
    store = "sqlite" if strategy.facts.replaces else "files"
    scenario = plan(sink=strategy.value, store=store, order=wanted, crashes=[str(crash)])
    run = Run(scenario, RunFolder(tmp_path), drivers=1)
    leave_evidence(run, crash)
    if (planned, finished) == (True, has_decided(order, point)):
        record_crash(run, KILLED, BatchLogs((0,), (0,)))
        assert [crash["point"] for crash in run.crashes] == [point.value]
        return
    with pytest.raises(JobFailed, match=r"file (offsets|commits)/1 is"):
        record_crash(run, KILLED, BatchLogs((0,), (0,)))
    assert run.crashes == []


def test_a_crash_opens_the_store_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    opened: list[str] = []

    def counting(kind: str, location: Path) -> Store:
        opened.append(kind)
        return open_store(kind, location)

    monkeypatch.setattr(run_module, "open_store", counting)
    write_logs(tmp_path / "checkpoint", planned=True, finished=False)
    run = Run(plan(crashes=["sink.mid_write@1"]), RunFolder(tmp_path), drivers=1)
    store = open_store("files", run.folder.store("files"))
    store.append(Observation(0, "hello", 1, 0, 1), Observation(1, "world", 1, 0, 1))
    store.close()
    leave_evidence(run, Crash(FailPoint.MID_WRITE, BATCH))
    record_crash(run, KILLED, BatchLogs((0,), ()))
    assert (run.readings, run.ready, opened) == ([("crash 1", 2)], {}, ["files"])


def leave_evidence(run: Run, crash: Crash) -> None:
    seen = {"point": crash.point, "batch": crash.batch, "pid": 8, "session": 9}
    run.folder.reached(run.drivers).write_text(json.dumps(seen))


@pytest.mark.parametrize("point", RECOVERY_POINTS)
@pytest.mark.parametrize("log", [None, "offsets", "commits"])
def test_recovery_leaves_the_engine_s_logs_as_they_were(point: FailPoint, log: str | None, tmp_path: Path):
    write_logs(tmp_path / "checkpoint", planned=True, finished=False)
    before = BatchLogs.read(Checkpoint(tmp_path / "checkpoint"))
    crashes = ["sink.after_pre_commit@1", point.value]
    scenario = plan(sink="two_phase", crashes=crashes)
    run = Run(scenario, RunFolder(tmp_path), drivers=2, crashes=[{}])
    leave_evidence(run, Crash(point))
    assert engine_logs(point, scenario.order) is None
    if log is None:
        record_crash(run, KILLED, before)
        assert len(run.crashes) == 2
        return
    (tmp_path / "checkpoint" / log / "2").touch()
    with pytest.raises(JobFailed, match="must not change Spark's files"):
        record_crash(run, KILLED, before)
    assert len(run.crashes) == 1


def test_a_log_that_is_younger_than_an_executor_s_death_was_not_there(tmp_path: Path):
    """The driver goes on, so the batch may be finished before anybody looks."""
    write_logs(tmp_path / "checkpoint", planned=True, finished=True)
    crash = Crash(FailPoint.MID_WRITE, BATCH)
    checkpoint = Checkpoint(tmp_path / "checkpoint")
    planned = (tmp_path / "checkpoint" / "offsets" / "1").stat().st_ctime
    commit = tmp_path / "checkpoint" / "commits" / "1"
    while commit.stat().st_ctime <= planned:  # the kernel's clock goes in steps
        commit.unlink()
        commit.touch()
    expected = EngineLogs(planned=True, finished=False)
    check_logs(crash, BATCH, expected, checkpoint, killed_at=planned)
    with pytest.raises(JobFailed, match="commits/1 is there"):
        check_logs(crash, BATCH, expected, checkpoint, killed_at=commit.stat().st_ctime)
    with pytest.raises(JobFailed, match="offsets/1 is missing"):
        check_logs(crash, BATCH, expected, checkpoint, killed_at=planned - 1)


@pytest.mark.parametrize("proof", [{"killed": [7]}, {"killed": [8]}, {"left": [6]}], ids=str)
def test_an_executor_that_did_not_die_with_its_task_proves_nothing(proof: dict, tmp_path: Path):
    write_logs(tmp_path / "checkpoint", planned=True, finished=False)
    crash = Crash(FailPoint.MID_WRITE, BATCH)
    run = Run(plan(crashes=[str(crash)]), RunFolder(tmp_path), drivers=1)
    leave_evidence(run, crash)
    given = {"killed": [7, 8], "left": [], "begun": time.time() + 1} | proof
    with pytest.raises(JobFailed, match="not every process of the executor"):
        record_executor_crash(run, ExecutorKilled(query="run", executor=7, **given))
    assert run.crashes == []
