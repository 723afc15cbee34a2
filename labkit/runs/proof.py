"""Checks the proof of a run's crash and keeps the crash as evidence, with what the run's files are at that moment.

The rule itself is `labkit.spark.crash_proof`, which the crash test follows as well. This module must not start or
kill anything.
"""

import json
import signal
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from labkit.core.errors import JobFailed
from labkit.core.failpoints import Crash, FailPoint, engine_logs
from labkit.host.processes.events import Ending, ExecutorKilled, Proof
from labkit.runs.faults import inject
from labkit.runs.kafka_source import progress
from labkit.runs.run import Run, keep_evidence, note_waiting, observations, put_aside
from labkit.spark.checkpoint import Checkpoint
from labkit.spark.crash_proof import BatchLogs, Reached, check_death, check_logs, check_unchanged
from labkit.spark.options import Job


class _Evidence(NamedTuple):
    """What the process that reached a failpoint wrote down."""

    crash: Crash
    reached: Reached


def record_crash(run: Run, ending: Ending, before: BatchLogs) -> None:
    """Checks the proof of one crash and keeps it. Raises `JobFailed` when anything in it does not hold.

    `before` is what the engine's logs were when the driver was started.
    """
    crash = _due(run)
    reached = _reached(run, crash)
    # Only a point in a task can lie in an executor; all others are in the driver, on a
    # cluster as well.
    in_executor = crash.point.in_task and ending.proof.executors is not None
    proof = check_death(crash, ending, reached, in_executor=in_executor)
    _check_logs(run, crash, before)
    _keep(run, crash, reached, proof)
    # Progress is read before the fault between drivers changes the topic or the group.
    if run.scenario.job is Job.KAFKA:
        run.crashes[-1]["progress"] = progress(run.folder)
    run.crashes[-1] |= inject(run.scenario, run.folder, len(run.crashes))
    # Read while nobody is there, so that what is visible now is what the crash alone
    # has left.
    run.readings.append((f"crash {len(run.crashes)}", sum(1 for _ in observations(run))))
    note_waiting(run)
    keep_evidence(run)
    # The checkpoint goes last: everything above reads it, and the evidence must be on
    # the disk before it is out of the way.
    put_aside(run)


def record_executor_crash(run: Run, killed: ExecutorKilled) -> None:
    """Checks the proof that an executor was killed and keeps it; its driver goes on. Raises `JobFailed`."""
    crash = _due(run)
    reached = _reached(run, crash)
    if killed.left or not {reached.pid, killed.executor} <= set(killed.killed):
        raise JobFailed(f"the executor at {crash} did not die with its task (proof: {killed}); the run proves nothing.")
    # The driver lives on and may have committed the batch by now, so the time of each
    # file is compared with that of the kill.
    _check_logs(run, crash, None, killed_at=killed.begun)
    proof = Proof(
        session=reached.session, signal=signal.SIGKILL.value, killed=killed.killed, left=killed.left, begun=killed.begun
    )
    _keep(run, crash, reached, proof)
    run.crashes[-1]["executor"] = killed.executor
    keep_evidence(run)


def _due(run: Run) -> Crash:
    crash = run.next_crash
    assert crash is not None
    return crash


def _reached(run: Run, crash: Crash) -> Reached:
    path = run.folder.reached(run.drivers)
    evidence = _read(path)
    if evidence.crash != crash:
        raise JobFailed(f"the evidence {path} is not of {crash}; the run proves nothing.")
    return evidence.reached


def _read(path: Path) -> _Evidence:
    try:
        content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        crash = Crash(FailPoint(content["point"]), content["batch"])
        return _Evidence(crash, Reached(content["pid"], content["session"]))
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise JobFailed(f"{path}: damaged ({error!r}), so the run proves nothing; start it anew.") from None


def _check_logs(run: Run, crash: Crash, before: BatchLogs | None, *, killed_at: float | None = None) -> None:
    checkpoint = Checkpoint(run.folder.checkpoint)
    expected = engine_logs(crash.point, run.scenario.order)
    if expected is not None:
        check_logs(crash, crash.batch, expected, checkpoint, killed_at=killed_at)
    elif before is not None:
        check_unchanged(crash, before, checkpoint)


def _keep(run: Run, crash: Crash, reached: Reached, proof: Proof) -> None:
    """One crash as evidence, with the logs and files as they are now."""
    checkpoint = Checkpoint(run.folder.checkpoint)
    run.crashes.append(
        {
            "point": crash.point.value,
            "batch": crash.batch,
            "signal": proof.signal,
            "offset_log": checkpoint.offset_log(),
            "commit_log": checkpoint.commit_log(),
            "files": checkpoint.files(),
            "state_files": checkpoint.state_files(),
            "reached_by": reached.pid,
            "session": proof.session,
            "killed": proof.killed,
            "killed_at": proof.begun,
            "executors": msgspec.to_builtins(proof.executors),
        }
    )
