"""What one driver did to the runs that it carried, taken from its events.

The proof of a crash is `labkit.runs.proof`. This module must not start or kill anything.
"""

import contextlib
import shutil
import time
from collections.abc import Sequence
from pathlib import Path

from labkit.core.errors import InvalidInput, JobFailed, LabError, ServiceUnavailable
from labkit.host.processes.events import (
    AnyEvent,
    Begun,
    Died,
    DriverFailed,
    Ended,
    Ending,
    ExecutorKilled,
    Failed,
    Killed,
    Parked,
    QueryEvent,
    Recovered,
    Unwanted,
)
from labkit.runs.progress import Tell
from labkit.runs.proof import record_crash, record_executor_crash
from labkit.runs.run import Run
from labkit.spark.checkpoint import Checkpoint
from labkit.spark.crash_proof import BatchLogs

FULL = 1_000_000
"""Bytes of free space below which a failure is put down to the disk."""

_KINDS: dict[int, type[LabError]] = {64: InvalidInput, 69: ServiceUnavailable}
"""What a failure is in the runner, by its exit code; else `JobFailed`."""


class DriverEvents:
    """The runs of one driver, and what its events say of them."""

    def __init__(self, load: Sequence[Run], tell: Tell) -> None:
        self._runs = {run.name: run for run in load}
        self._begun: dict[str, float] = {}
        self._parked: list[Run] = []
        self.ending: Ending | None = None
        self._tell = tell
        self._before = {run.name: BatchLogs.read(Checkpoint(run.folder.checkpoint)) for run in load}
        for run in load:
            # Counted when the driver is started and not when it reports: one that dies
            # at once has still used up its number.
            run.drivers += 1

    def note(self, event: AnyEvent) -> None:
        """Takes one event of the supervisor in."""
        if isinstance(event, QueryEvent):
            if event.query in self._runs:
                self._note_of_query(self._runs[event.query], event)
        elif isinstance(event, DriverFailed):
            for run in self._runs.values():
                _fail(run, event)
        elif isinstance(event, Killed | Died | Unwanted):
            self.ending = event
        self._tell(event)

    def _note_of_query(self, run: Run, event: QueryEvent) -> None:
        now = time.monotonic()
        match event:
            case Begun():
                self._begun[run.name] = now
            case Parked():
                self._parked.append(run)
                run.seconds[f"to_crash_{run.drivers}"] = now - self._begun[run.name]
            case ExecutorKilled():
                record_executor_crash(run, event)
                run.seconds["to_crash_1"] = now - self._begun[run.name]
            case Recovered():
                if event.at is not None:
                    run.started[run.drivers] = event.at
                if run.crashes:
                    run.crashes[-1]["recovery"] = event.steps
            case Ended():
                run.ended = True
                until = "to_recovered" if run.crashes else "to_end"
                run.seconds[until] = now - self._begun[run.name]
            case Failed():
                _fail(run, event)

    def give_up(self, error: LabError) -> None:
        """Gives every run of this driver the error: none of them can be trusted."""
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
        # Before the next crash is recorded: the time belongs to the crash that this
        # driver has recovered from.
        note_committed(run)
        if run in self._parked and isinstance(self.ending, Killed):
            record_crash(run, self.ending, self._before[run.name])
        elif not run.ended:
            raise _ended_early(run)
        elif run.next_crash is not None:
            # The query did end, and yet this is no result: a run that never met its
            # failpoint must not look like one that survived it.
            run.ended = False
            raise JobFailed(
                f"the failpoint {run.next_crash} was never reached: the run ended without a crash, and proves nothing."
            )


def _fail(run: Run, failed: Failed | DriverFailed) -> None:
    kind = _KINDS.get(failed.code, JobFailed)
    run.error = _full(run) or kind(failed.because)


def _full(run: Run) -> LabError | None:
    """What to say of a run that failed where one of its disks is full."""
    for place in (run.folder.path, run.folder.checkpoint, run.folder.store(run.scenario.store).parent):
        if place.exists() and shutil.disk_usage(place).free < FULL:
            return InvalidInput(f"{place}: the disk is full; make room or name another folder with --out.")
    return None


def _ended_early(run: Run) -> LabError:
    if full := _full(run):
        return full
    return JobFailed(f"the driver ended by itself; {run.folder.driver_log(run.drivers)} says why.")


def note_committed(run: Run) -> None:
    """Seconds from the first SIGKILL of the last crash until the engine had renamed a commit file into its place."""
    killed = run.crashes[-1].get("killed_at") if run.crashes else None
    if killed is None:
        return
    log = run.folder.checkpoint / "commits"
    renamed = [(log / str(batch)).stat().st_ctime for batch in Checkpoint(run.folder.checkpoint).commit_log()]
    later = [moment - killed for moment in renamed if moment > killed]
    if later:
        run.seconds[f"crash_{len(run.crashes)}_to_committed"] = min(later)
