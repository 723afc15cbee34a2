"""Define the kinds of runs (jobs) of a pipeline's crash test: where each run crashes, and what happens afterwards.

After a loss of power (`outages`), writes that were not synced may be missing. `labkit.crashtest.blackbox.power_cut`
computes the states in which this leaves the disk.
"""

import os
import shutil
import stat
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import partial
from itertools import groupby
from pathlib import Path

from labkit.core.errors import JobFailed
from labkit.crashtest.blackbox.effects import Effect
from labkit.crashtest.blackbox.points import EXIT, LOOP, THEN, Crashes, Point, name_of
from labkit.crashtest.blackbox.power_cut import Journal, states_after_power_cut
from labkit.crashtest.blackbox.runs import Harness, PipelineRun
from labkit.crashtest.blackbox.settings import CHECKPOINT
from labkit.crashtest.ledger import Job
from labkit.crashtest.verdict import FAULT_AT, Group
from labkit.host.syscalls.calls import CallKind
from labkit.host.syscalls.faults import Fault

# The ids of runs, or how they begin: a crash point follows `POWER`, `PAUSED` and `LATE`, one or more follow `GROWN`,
# `LATER_AFTER` and `UNREAD`. After `POWER` and the point, `STATE` and a state of the disk may follow.
POWER, STATE = "power cut ", ", "
GROWN = "more input at "
NEW_INPUT = "new_input"
LATER, LATER_AFTER = "later", "later after "
PAUSED = "pause at "
UNREAD = "unread after "
LATE = "late "
TWO = "two_instances"


def later_job(crashes: Crashes) -> Job:
    """Return the run that crashes at these points, recovers, and then starts the command again a few times.

    The test waits `--pause` seconds before the first of these starts, so that a lease or a record of finished work may
    expire. Before the second one, it sets the access times of all files back. This reveals what no kill can: that the
    job relies on access times, which many file systems do not record.
    """

    def perform(harness: Harness, run: PipelineRun) -> None:
        _crash(harness, run, crashes)
        pause = harness.settings.pause
        for number in range(harness.settings.extent.later):
            if run.stuck:
                return
            if not number:
                later = f", {pause:.3g} s later" if pause else ""
                run.notes.append(f"it was started again after the recovery{later}, without a crash")
                time.sleep(pause)
            if number == 1 and set_access_times_back(harness.settings.watched):
                run.notes.append("before the second of these starts, the access times of all files were set back")
            harness.recover(run)

    name, title = _named(crashes)
    if name == EXIT:
        title = "a plain start after the recovery from a crash at the end of the command"
        return Job(LATER, title, Group.IDENTITY, perform)
    return Job(f"{LATER_AFTER}{name}", f"plain starts after the recovery from a crash {title}", Group.IDENTITY, perform)


def set_access_times_back(folders: Sequence[Path]) -> int:
    """Make every file in `folders` that was read since its last change look unread, and return the number of files.

    To this end, the file's access time is set to one second before the change.
    """
    changed = 0
    for path in {path for folder in folders for path in folder.rglob("*")}:
        with suppress(OSError):  # a process may have removed it, or it may belong to somebody else
            state = path.lstat()
            if stat.S_ISREG(state.st_mode) and state.st_atime_ns >= state.st_mtime_ns:
                os.utime(path, ns=(state.st_mtime_ns - 1_000_000_000, state.st_mtime_ns))
                changed += 1
    return changed


def paused_job(at: Point) -> Job:
    """Return the run that crashes at the point `at`, and waits `--pause` seconds before the restart."""

    def perform(harness: Harness, run: PipelineRun) -> None:
        harness.crash(run, at)
        run.notes.append(f"the restart came {harness.settings.pause:.3g} s after the crash")
        time.sleep(harness.settings.pause)
        harness.recover(run)

    return Job(f"{PAUSED}{at.name}", f"a pause between a crash {at} and the restart", Group.IDENTITY, perform)


def unread_job(crashes: Crashes) -> Job:
    """Return the run that crashes at these points, and in which the reader is called at the end only.

    Other runs call the reader between crash and restart. The reader may repair what the crash left: if SQLite opens a
    database, it rolls an interrupted transaction back. In this run, the pipeline itself must do that.
    """

    def perform(harness: Harness, run: PipelineRun) -> None:
        for point in crashes:
            harness.crash(run, point, read=False)
        run.notes.append("nobody read between a crash and the restart")
        harness.recover(run)

    name, title = _named(crashes)
    title = f"a restart that no reading precedes, after a crash {title}"
    group = Group.PAIR if len(crashes) > 1 else Group.IDENTITY
    return Job(f"{UNREAD}{name}", title, group, perform, crashes=crashes)


def late_job(at: Point) -> Job:
    """Return the run that holds the call at `at` back until the other threads have gone on, and then kills the command.

    In the run without a crash, this call came before calls of other threads. But these threads did not wait for it, so
    on a busy machine their calls may come first.
    """

    def perform(harness: Harness, run: PipelineRun) -> None:
        harness.crash(run, at, late=True)
        harness.recover(run)

    title = f"a crash while [{at.place}] is late and the other threads have gone on"
    return Job(f"{LATE}{at.name}", title, Group.IDENTITY, perform)


def new_input_job(at: Point) -> Job:
    """Return the run in which the pipeline crashes at the point `at`, recovers, and then gets new input."""

    def perform(harness: Harness, run: PipelineRun) -> None:
        harness.crash(run, at)
        harness.recover(run)
        if not run.stuck:
            run.notes.append("new input came after the recovery")
            with harness.new_input(run):
                harness.recover(run)

    return Job(NEW_INPUT, f"new input after the recovery from a crash {at}", Group.IDENTITY, perform)


def grown_input_job(crashes: Crashes) -> Job:
    """Return the run that crashes at these points, and gets new input after the first crash, before the restart."""
    first, *later = crashes

    def perform(harness: Harness, run: PipelineRun) -> None:
        harness.crash(run, first)
        run.notes.append("new input came before the restart")
        with harness.new_input(run):
            for point in later:
                harness.crash(run, point)
            harness.recover(run)

    name, title = _named(crashes)
    title = f"new input before the restarts, after a crash {title}"
    if not later:
        title = f"new input between a crash {first} and the restart"
    return Job(f"{GROWN}{name}", title, Group.PAIR if later else Group.IDENTITY, perform, crashes=crashes)


def two_instances_job(held: str) -> Job:
    """Return the run in which the pipeline is stopped before the call named `held` while a second instance runs.

    It does not count toward the guarantee, because many schedulers never start a second instance.
    """
    title = f"two instances at the same time, one of them held before {held}"
    return Job(TWO, title, Group.CONDITION, partial(Harness.start_two, held=held))


def single_job(point: Point) -> Job:
    """Return the run with one crash, at this point."""
    return Job(point.name, str(point), Group.CRASH, partial(_crash, points=[point]), crashes=(point,))


def fault_job(point: Point, fault: Fault) -> Job:
    """Return the run in which the system call at the crash point `point` suffers a fault, and nothing is killed."""
    return Job(
        f"{fault}{FAULT_AT}{point.name}",
        f"{fault} at {point.place}",
        Group.FAULT,
        partial(Harness.fail, at=point, fault=fault),
        fault,
    )


def crashes_job(crashes: Crashes) -> Job:
    """Return the run that crashes at several points, which `crashes` has in order.

    The first crash is in the first start, and each later one in the restart after the crash before it.
    """
    name, title = _named(crashes)
    return Job(name, title, Group.PAIR, partial(_crash, points=crashes), crashes=crashes)


def _named(crashes: Crashes) -> tuple[str, str]:
    """Return the id and the title of a run with these crashes; the title counts equal crashes in a row."""
    first, *later = crashes
    title = str(first)
    for _, group in groupby(later, key=lambda point: point.name):
        point, *others = group
        where = f"in {len(others) + 1} recoveries in a row" if others else "in the recovery"
        title += f"; then, {where}, {point}"
    return name_of(crashes), title


def _crash(harness: Harness, run: PipelineRun, points: Sequence[Point]) -> None:
    for point in points:
        harness.crash(run, point)
    harness.recover(run)


def loop_job(point: Point) -> Job:
    """Return the run with a crash loop: several starts in a row crash at the same point."""

    def perform(harness: Harness, run: PipelineRun) -> None:
        harness.crash_loop(run, point, LOOP)
        harness.recover(run)

    return Job(THEN.join([point.name] * LOOP), f"{point}, {LOOP} times in a row", Group.PAIR, perform)


def outage_job(point: Point) -> Job:
    """Return the job for power cuts at this point; it makes one run for each state that the disk may be in."""
    return Job(f"{POWER}{point.name}", f"the power fails {point}", Group.POWER)


def older_checkpoint_job(effects: Sequence[Effect]) -> Job:
    """Return the run in which a user restores an older copy of the checkpoint, as from a backup.

    The steps are: crash in the middle of `effects` (the system calls of the run without a crash), copy the checkpoint,
    recover to the end, restore the copy, start again.
    """

    def perform(harness: Harness, run: PipelineRun) -> None:
        folder = harness.settings.checkpoint
        assert folder is not None
        harness.crash(run, middle(effects, folder))
        if not folder.is_dir():
            raise JobFailed(
                f"--checkpoint {folder}: this folder does not exist after the crash, so labkit cannot replace it by an "
                "older copy"
            )
        older = run.folder / "checkpoint-older"
        shutil.copytree(folder, older, symlinks=True)
        harness.recover(run)
        if not run.stuck:
            shutil.rmtree(folder)
            shutil.copytree(older, folder, symlinks=True)
            run.notes.append("the copy was restored, and the command was started again")
            harness.recover(run)

    title = "an older copy of the checkpoint, restored after later rows were written"
    return Job(CHECKPOINT, title, Group.IDENTITY, perform)


def middle(effects: Sequence[Effect], folder: Path) -> Point:
    """Return the crash point in the middle of the system calls that change the checkpoint's folder `folder`.

    If the test watches lines of Python instead of system calls, all lines count, because a line does not show which
    files it changes. Raises `JobFailed` if nothing was written to the folder.
    """
    inside = [
        number
        for number, effect in enumerate(effects[:-1])
        if effect.kind is CallKind.LINE
        or any(path and Path(path).is_relative_to(folder) for path in (effect.call.target, effect.call.path))
    ]
    if not inside:
        raise JobFailed(
            f"--checkpoint {folder}: labkit saw no write into this folder in the run without a crash; name the folder "
            "of the checkpoint, and include it in --watch"
        )
    return Point(effects[inside[len(inside) // 2] + 1].name, 0)


def outages(harness: Harness, run: PipelineRun, at: Point) -> Iterator[PipelineRun]:
    """Crash at a point; for each state of the files that a power cut may leave there, yield the run that recovers."""
    with harness.crash_recorded(run, at) as journal:
        blind = not_modelled(journal, run)
        # The entries lack the call at which the pipeline was killed, because it did not happen.
        states = states_after_power_cut(journal, len(journal.entries))
        for number, state in enumerate(states, start=1):
            after = PipelineRun(
                f"{run.id}{STATE}{state.extreme}",
                f"{run.title}: {state.sentence.rstrip('.')}",
                run.folder / f"state-{number}",
                starts=list(run.starts),
                files=run.files,
                crashes=list(run.crashes),
                unknown=blind,
                made_outside=set(run.made_outside),
            )
            after.folder.mkdir()
            if not blind:
                try:
                    state.build(harness.settings.watched)
                    harness.look_meanwhile(after, "the power is back")
                    harness.recover(after)
                except JobFailed as error:
                    after.unknown = str(error)
            yield after


def not_modelled(journal: Journal, run: PipelineRun) -> str:
    """Return the reason why labkit cannot compute what a power cut in this run leaves on the disk; empty if it can."""
    named = [f"{name}{f' ({Path(files[0]).name})' if files else ''}" for name, files in journal.not_modelled().items()]
    if any(each.kind is CallKind.SEND for each in run.last.effects):
        named.append("what was sent to servers")
    return f"it is unknown what a loss of power leaves: {'; '.join(named)}" if named else ""
