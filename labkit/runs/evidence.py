"""Collect the evidence of one driver: update its runs after each event, and check the proof of their crashes.

A crash counts if `labkit.spark.crash_proof`, which the crash test also uses, accepts its proof.
"""

import contextlib
import json
import shutil
import signal
import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec

from labkit.core.errors import InvalidInput, JobFailed, LabError, ServiceUnavailable
from labkit.core.failpoints import Crash, FailPoint, engine_logs
from labkit.host.processes import events
from labkit.runs import moments
from labkit.runs.faults import inject
from labkit.runs.kafka_source import progress
from labkit.runs.progress import Tell
from labkit.runs.run import Run
from labkit.spark.checkpoint import Checkpoint
from labkit.spark.crash_proof import BatchLogs, Reached, check_death, check_logs, check_unchanged
from labkit.spark.options import Job
from labkit.stores.contract import Store

FULL = 1_000_000
"""The free space in bytes below which a failed run is blamed on a full disk."""

_KINDS: dict[int, type[LabError]] = {64: InvalidInput, 69: ServiceUnavailable}
"""The class of the error that a driver reported, by exit code; every other code is a `JobFailed`."""


class DriverEvents:
    """Stores a driver's crashes, errors and durations in the runs that it executes, and passes each event to `tell`."""

    def __init__(self, load: Sequence[Run], tell: Tell) -> None:
        self._runs = {run.name: run for run in load}
        self._begun: dict[str, float] = {}
        self._parked: list[Run] = []
        self.ending: events.Ending | None = None
        self._tell = tell
        self._before = {run.name: BatchLogs.read(Checkpoint(run.folder.checkpoint)) for run in load}
        for run in load:
            # Counted at the driver's start and not at its first report, because a driver that dies at once has also
            # used its number.
            run.drivers += 1

    def note(self, event: events.AnyEvent) -> None:
        """Store an event with the run that it concerns, then pass it to `tell`.

        A failure of the driver concerns all runs.
        """
        if isinstance(event, events.QueryEvent):
            if event.query in self._runs:
                self._note_of_query(self._runs[event.query], event)
        elif isinstance(event, events.DriverFailed):
            for run in self._runs.values():
                _fail(run, event)
        elif isinstance(event, events.Killed | events.Died | events.Unwanted):
            self.ending = event
        self._tell(event)

    def _note_of_query(self, run: Run, event: events.QueryEvent) -> None:
        now = time.monotonic()
        match event:
            case events.Begun():
                self._begun[run.name] = now
            case events.Parked():
                self._parked.append(run)
                run.seconds[f"to_crash_{run.drivers}"] = now - self._begun[run.name]
            case events.ExecutorKilled():
                record_executor_crash(run, event)
                run.seconds["to_crash_1"] = now - self._begun[run.name]
            case events.Recovered():
                if event.at is not None:
                    run.started[run.drivers] = event.at
                if run.crashes:
                    run.crashes[-1]["recovery"] = event.steps
            case events.Ended():
                run.ended = True
                until = "to_recovered" if run.crashes else "to_end"
                run.seconds[until] = now - self._begun[run.name]
            case events.Failed():
                _fail(run, event)

    def give_up(self, error: LabError) -> None:
        """Mark every run of this driver as failed with this error; a run that failed before keeps its own error."""
        for run in self._runs.values():
            run.error = run.error or error
        self._parked.clear()

    def keep_log(self, log: Path) -> None:
        """Copy the driver's log file into the folder of each run."""
        for run in self._runs.values():
            if log.exists():
                with contextlib.suppress(OSError):  # a full disk has its own message
                    shutil.copyfile(log, run.folder.driver_log(run.drivers))

    def conclude(self) -> None:
        """Note each run's crash after the driver's processes have ended.

        If the evidence does not prove a run's crash, note an error instead.
        """
        for run in self._runs.values():
            try:
                self._conclude(run)
            except LabError as error:
                run.error = error

    def _conclude(self, run: Run) -> None:
        if run.error is not None:
            return
        # Before the next crash is recorded, because the time belongs to the crash from which this driver has recovered.
        note_committed(run)
        if run in self._parked and isinstance(self.ending, events.Killed):
            record_crash(run, self.ending, self._before[run.name])
        elif not run.ended:
            raise _full(run) or JobFailed(
                f"the driver ended without being killed; see the reason in {run.folder.driver_log(run.drivers)}."
            )
        elif run.next_crash is not None:
            # The query ended, but this is no result: a run that never reached its failpoint must not look like one that
            # survived it.
            run.ended = False
            raise JobFailed(
                f"the run ended without reaching the failpoint {run.next_crash}, so nothing crashed, and the "
                "run proves nothing; choose a failpoint and a batch that the run reaches."
            )


def _fail(run: Run, failed: events.Failed | events.DriverFailed) -> None:
    kind = _KINDS.get(failed.code, JobFailed)
    run.error = _full(run) or kind(failed.because)


def _full(run: Run) -> LabError | None:
    for place in (run.folder.path, run.folder.checkpoint, run.folder.store(run.scenario.store).parent):
        if place.exists() and shutil.disk_usage(place).free < FULL:
            return InvalidInput(f"{place}: the disk is full; free some space, or name another folder with --out.")
    return None


def note_committed(run: Run) -> None:
    """Note in `run.seconds` the time from the last SIGKILL until Spark next wrote a file `commits/N`."""
    killed = run.crashes[-1].get("killed_at") if run.crashes else None
    if killed is None:
        return
    log = run.folder.checkpoint / "commits"
    renamed = [(log / str(batch)).stat().st_ctime for batch in Checkpoint(run.folder.checkpoint).commit_log()]
    later = [moment - killed for moment in renamed if moment > killed]
    if later:
        run.seconds[f"crash_{len(run.crashes)}_to_committed"] = min(later)


def record_crash(run: Run, ending: events.Ending, before: BatchLogs) -> None:
    """Check the proof that the driver was killed at its failpoint, record the crash, and inject the `--between` fault.

    `ending` is the supervisor's report of the driver's death. `before` has the batches that were already planned
    or finished when the driver started. Raises `JobFailed` if any part of the proof is missing or wrong.
    """
    crash, reached = _reached(run)
    # Only a failpoint in a task can be reached in an executor; all others are in the driver, on a cluster as well.
    in_executor = crash.point.in_task and ending.proof.executors is not None
    proof = check_death(crash, ending, reached, in_executor=in_executor)
    checkpoint = Checkpoint(run.folder.checkpoint)
    expected = engine_logs(crash.point, run.scenario.order)
    if expected is None:
        check_unchanged(crash, before, checkpoint)
    else:
        check_logs(crash, crash.batch, expected, checkpoint)
    _keep(run, crash, reached, proof)
    # Progress is read before the fault between drivers changes the topic or the group.
    if run.scenario.job is Job.KAFKA:
        run.crashes[-1]["progress"] = progress(run.folder)
    run.crashes[-1] |= inject(run.scenario, run.folder, len(run.crashes))
    _note_visible(run)
    run.keep_evidence()
    # The checkpoint is moved last, because everything above reads it, and the evidence must be durable first.
    run.put_aside()


def _note_visible(run: Run) -> None:
    """Note after a crash how many rows readers can see, and when each hidden row was pre-committed."""
    with closing(run.open_store()) as store:
        run.readings.append((f"crash {len(run.crashes)}", sum(1 for _ in store.history())))
        note_waiting(run, store)


def note_waiting(run: Run, store: Store) -> None:
    """Note in `run.ready` when each hidden row of the store was pre-committed; times noted earlier are kept."""
    spans = moments.waiting(store, run.scenario.count.numbered)
    run.ready = {**spans, **run.ready} if spans is not None and run.ready is not None else None


def record_executor_crash(run: Run, killed: events.ExecutorKilled) -> None:
    """Record the crash of an executor. Raises `JobFailed` if a part of the proof that it was killed is missing."""
    crash, reached = _reached(run)
    if killed.left or not {reached.pid, killed.executor} <= set(killed.killed):
        raise JobFailed(
            f"not every process of the executor that reached {crash} was killed (process ids expected: {reached.pid} "
            f"and {killed.executor}; killed: {killed.killed}; still alive: {killed.left}), so the run proves nothing; "
            "start it again."
        )
    expected = engine_logs(crash.point, run.scenario.order)
    if expected is not None:
        # The driver survives and may have committed the batch by now, so the time of each file is compared with that of
        # the kill.
        check_logs(crash, crash.batch, expected, Checkpoint(run.folder.checkpoint), killed_at=killed.begun)
    proof = events.Proof(
        session=reached.session, signal=signal.SIGKILL.value, killed=killed.killed, left=killed.left, begun=killed.begun
    )
    _keep(run, crash, reached, proof)
    run.crashes[-1]["executor"] = killed.executor
    run.keep_evidence()


def _reached(run: Run) -> tuple[Crash, Reached]:
    path, due = run.folder.reached(run.drivers), run.next_crash
    assert due is not None
    try:
        content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        crash = Crash(FailPoint(content["point"]), content["batch"])
        reached = Reached(content["pid"], content["session"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise JobFailed(
            f"{path}: the evidence is damaged ({error!r}), so the run proves nothing; start the run again."
        ) from None
    if crash != due:
        raise JobFailed(
            f"{path}: this file is evidence of the crash {crash}, but the crash {due} was planned, so the run proves "
            "nothing; start it again."
        )
    return crash, reached


def _keep(run: Run, crash: Crash, reached: Reached, proof: events.Proof) -> None:
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
