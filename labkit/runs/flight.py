"""What one driver did to the runs that it carried, and the proof of every crash.

A crash counts only with its proof: the point's own evidence, death by signal 9, an empty session, and the engine's
logs as the point says. This module must not start or kill anything.
"""

import contextlib
import json
import shutil
import signal
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from labkit.core.errors import InvalidInput, JobFailed, LabError, ServiceUnavailable
from labkit.core.failpoints import Crash, FailPoint
from labkit.runs.faults import disturb
from labkit.runs.kafka_source import progress
from labkit.runs.run import Run, keep_evidence, observations, put_aside
from labkit.spark.checkpoint import Checkpoint
from labkit.spark.options import Job

FULL = 1_000_000
"""Bytes of free space below which a failure is put down to the disk."""

Tell = Callable[[str, dict[str, Any]], None]
"""Told what happens (`begun`, `parked`, `killed`, `ended`, `failed`...), with details; for progress only."""


class Flight:
    """What one driver did to the runs that it carried."""

    def __init__(self, load: Sequence[Run], tell: Tell) -> None:
        self._runs = {run.name: run for run in load}
        self._begun: dict[str, float] = {}
        self._parked: list[Run] = []
        self.proof: dict[str, Any] = {}
        self._tell = tell
        for run in load:
            run.drivers += 1

    def note(self, event: dict[str, Any]) -> None:
        """Takes one event of the supervisor in."""
        kind, now = event["event"], time.monotonic()
        run = self._runs.get(event.get("cell") or "")
        if kind == "begun" and run:
            self._begun[run.name] = now
        elif kind == "parked" and run:
            self._parked.append(run)
            run.seconds[f"to_crash_{run.drivers}"] = now - self._begun[run.name]
        elif kind == "struck" and run:
            note_executor(run, event)
            run.seconds["to_crash_1"] = now - self._begun[run.name]
        elif kind == "recovered" and run and run.crashes:
            run.crashes[-1]["recovery"] = event["steps"]
        elif kind == "ended" and run:
            run.ended = True
            run.seconds["to_recovered" if run.crashes else "to_end"] = (
                now - self._begun[run.name]
            )
        elif kind == "failed":
            self._fail(event, [run] if run else list(self._runs.values()))
        elif kind in ("killed", "died", "unwanted"):
            self.proof = event
        self._tell(kind, event)

    def _fail(self, event: dict[str, Any], runs: Sequence[Run]) -> None:
        kinds: dict[int, type[LabError]] = {64: InvalidInput, 69: ServiceUnavailable}
        for run in runs:
            full = _full(run)
            run.error = full or kinds.get(event["code"], JobFailed)(event["because"])

    def give_up(self, error: LabError) -> None:
        """No run of this driver can be trusted."""
        for run in self._runs.values():
            run.error = run.error or error
        self._parked.clear()

    def keep_log(self, log: Path) -> None:
        """Gives every run its copy of what the driver printed."""
        for run in self._runs.values():
            if log.exists():
                with contextlib.suppress(OSError):  # a full disk has its own sentence
                    shutil.copyfile(log, run.folder.driver_log(run.drivers))

    def conclude(self) -> None:
        """Takes the evidence of every crash, now that nothing of the driver is left."""
        for run in self._runs.values():
            try:
                self._conclude(run)
            except LabError as error:
                run.error = error

    def _conclude(self, run: Run) -> None:
        if run.error is not None:
            return
        note_committed(run)
        if run in self._parked:
            note_crash(run, self.proof)
        elif not run.ended:
            raise _ended_early(run)
        elif run.next_crash is not None:
            run.ended = False
            raise JobFailed(
                f"the failpoint {run.next_crash} was never reached: the run ended without a crash, and proves nothing."
            )


def _full(run: Run) -> LabError | None:
    """What to say of a run that failed where one of its disks is full."""
    for place in (
        run.folder.path,
        run.folder.checkpoint,
        run.folder.store(run.scenario.store).parent,
    ):
        if place.exists() and shutil.disk_usage(place).free < FULL:
            return InvalidInput(
                f"{place}: the disk is full; make room or name another folder with --out."
            )
    return None


def note_committed(run: Run) -> None:
    """Seconds from the first SIGKILL of the last crash until the engine had renamed a commit file into its place."""
    killed = run.crashes[-1].get("killed_at") if run.crashes else None
    if killed is None:
        return
    log = run.folder.checkpoint / "commits"
    renamed = [
        (log / str(batch)).stat().st_ctime
        for batch in Checkpoint(run.folder.checkpoint).commit_log()
    ]
    later = [moment - killed for moment in renamed if moment > killed]
    if later:
        run.seconds[f"crash_{len(run.crashes)}_to_committed"] = min(later)


def _ended_early(run: Run) -> LabError:
    if full := _full(run):
        return full
    return JobFailed(
        f"the driver ended by itself; {run.folder.driver_log(run.drivers)} says why."
    )


def note_crash(run: Run, proof: dict[str, Any]) -> None:
    """Checks the proof of one crash and keeps it. Raises `JobFailed` when anything in it does not hold."""
    crash = run.next_crash
    assert crash is not None
    reached = _testimony(run.folder.reached(run.drivers))
    if proof.get("signal") != 9 or proof.get("left"):
        raise JobFailed(
            f"the driver at {crash} did not die by SIGKILL alone (proof: {proof}); the run proves nothing."
        )
    in_executor = crash.point.in_task and "executors" in proof
    if reached["point"] != crash.point.value or (
        reached["session"] != proof["session"] and not in_executor
    ):
        raise JobFailed(
            f"the evidence {run.folder.reached(run.drivers)} is not of {crash}; the run proves nothing."
        )
    _check_executors(crash, proof)
    _keep(run, crash, reached, proof)
    if run.scenario.job is Job.KAFKA:
        run.crashes[-1]["progress"] = progress(run.folder)
    run.crashes[-1] |= disturb(run.scenario, run.folder, len(run.crashes))
    run.readings.append(
        (f"crash {len(run.crashes)}", sum(1 for _ in observations(run)))
    )
    keep_evidence(run)
    put_aside(run)


def note_executor(run: Run, proof: dict[str, Any]) -> None:
    """Checks the proof that an executor was killed and keeps it; its driver goes on. Raises `JobFailed`."""
    crash = run.next_crash
    assert crash is not None
    reached = _testimony(run.folder.reached(run.drivers))
    named = {reached["pid"], proof["executor"]}
    if proof["left"] or not named <= set(proof["killed"]):
        raise JobFailed(
            f"the executor at {crash} did not die with its task (proof: {proof}); the run proves nothing."
        )
    _keep(
        run,
        crash,
        reached,
        {**proof, "signal": signal.SIGKILL.value, "session": reached["session"]},
    )
    run.crashes[-1]["executor"] = proof["executor"]
    keep_evidence(run)


def _keep(
    run: Run, crash: Crash, reached: dict[str, Any], proof: dict[str, Any]
) -> None:
    """One crash as evidence, with the logs and files as they are now. Raises `JobFailed` for logs that disagree."""
    checkpoint = Checkpoint(run.folder.checkpoint)
    _check_logs(crash, checkpoint)
    run.crashes.append(
        {
            "point": crash.point.value,
            "batch": crash.batch,
            "signal": proof["signal"],
            "offset_log": checkpoint.offset_log(),
            "commit_log": checkpoint.commit_log(),
            "files": checkpoint.files(),
            "state_files": checkpoint.state_files(),
            "reached_by": reached["pid"],
            "session": proof["session"],
            "killed": proof["killed"],
            "killed_at": proof.get("begun"),
            "executors": proof.get("executors"),
        }
    )


def _check_executors(crash: Crash, proof: dict[str, Any]) -> None:
    """On a cluster a crash is over when the last executor on this host has noticed that its driver is dead."""
    left = proof.get("executors", {}).get("left", [])
    if left:
        raise JobFailed(
            f"{len(left)} process(es) of executors outlived the driver at {crash} and do not end (first: {left[0]}); "
            "kill them, and start the run anew."
        )


def _testimony(path: Path) -> dict[str, Any]:
    try:
        seen: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        return {"point": seen["point"], "session": seen["session"], "pid": seen["pid"]}
    except (ValueError, KeyError, TypeError) as error:
        raise JobFailed(
            f"{path}: damaged ({error!r}), so the run proves nothing; start it anew."
        ) from None


def _check_logs(crash: Crash, checkpoint: Checkpoint) -> None:
    """The engine's own logs must say what the point says."""
    if crash.point.in_recovery:
        return
    planned, finished = (
        crash.batch in checkpoint.offset_log(),
        crash.batch in checkpoint.commit_log(),
    )
    if not planned:
        raise JobFailed(
            f"{crash} was reached, and yet offsets/{crash.batch} is missing; the run proves nothing."
        )
    if crash.point is FailPoint.AFTER_COMMIT_LOG and not finished:
        raise JobFailed(
            f"{crash} was reached, and yet commits/{crash.batch} is missing; the run proves nothing."
        )
    before = (
        FailPoint.AFTER_OFFSET_LOG,
        FailPoint.AFTER_PRE_COMMIT,
        FailPoint.MID_WRITE,
        FailPoint.AFTER_HANDLES,
    )
    if crash.point in before and finished:
        raise JobFailed(
            f"{crash} was reached, and yet commits/{crash.batch} is there; the run proves nothing."
        )
