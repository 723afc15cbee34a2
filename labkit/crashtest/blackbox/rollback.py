"""Test a checkpoint that goes back: restore an older copy of it after the pipeline has written later rows.

A restored backup, or a volume that was rolled back, puts a job into the same situation.
"""

import shutil
from collections.abc import Sequence
from pathlib import Path

from labkit.core.errors import JobFailed
from labkit.crashtest.blackbox.effects import Effect
from labkit.crashtest.blackbox.points import Point
from labkit.crashtest.blackbox.runs import Harness, PipelineRun
from labkit.host.syscalls.calls import CallKind


def roll_back(harness: Harness, run: PipelineRun, effects: Sequence[Effect]) -> None:
    """Perform the run in which a checkpoint goes back.

    Crash in the middle of the run's `effects`, copy the checkpoint, run to the end, restore the copy, and start the
    pipeline once more.
    """
    folder = harness.settings.checkpoint
    assert folder is not None
    harness.crash(run, middle(effects, folder))
    if not folder.is_dir():
        raise JobFailed(
            f"--checkpoint {folder}: this folder does not exist after the crash, so labkit cannot restore an older copy"
        )
    older = run.folder / "checkpoint-older"
    shutil.copytree(folder, older, symlinks=True)
    harness.recover(run)
    if run.stuck:
        return
    shutil.rmtree(folder)
    shutil.copytree(older, folder, symlinks=True)
    run.notes.append("the copy was restored, and the command was started again")
    harness.recover(run)


def middle(effects: Sequence[Effect], folder: Path) -> Point:
    """Return the crash point just after the middle one of the effects in the checkpoint's folder.

    Lines of code do not show which files they change, so each of them counts. Raises `JobFailed` if there are no
    effects in the folder.
    """
    inside = [
        number
        for number, effect in enumerate(effects[:-1])
        if effect.kind is CallKind.LINE  # then nobody knows the files
        or any(path and Path(path).is_relative_to(folder) for path in (effect.call.target, effect.call.path))
    ]
    if not inside:
        raise JobFailed(
            f"--checkpoint {folder}: the run without a crash wrote nothing into this folder, or --watch "
            "does not include it"
        )
    following = effects[inside[len(inside) // 2] + 1]
    return Point(following.name, 0)
