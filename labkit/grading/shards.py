"""Splits a batch of submissions into shards: grades each separately, merges the results, and can run them on Spark.

For each shard, an ordinary `labkit grade` grades only the shard's submissions, into an output folder of its own. To
merge the shards, another `labkit grade` copies every valid result and grades the remaining submissions. So a shard that
died, or ran twice, changes no grade.
"""

import re
import tempfile
from collections.abc import Sequence
from pathlib import Path

import msgspec

from labkit.core.errors import InvalidInput
from labkit.grading.course import Course
from labkit.grading.outputs import HEAD, Head, is_kept, record_path, stands
from labkit.grading.submissions import Submission
from labkit.host import durable
from labkit.host.processes.own_python import own_python

SCRATCH = ".scratch-"
_OURS = re.compile(r"\d{5}-of-\d{5}\.\d+|\.scratch-\w+")
"""The pattern of the names that Spark's tasks and the driver create in the folder of the shards."""
FINE = (0, 70)
"""The exit codes of a finished shard: 0, or 70 if it could not grade some submissions, which the merge tries again."""


def seed_of(parts: Sequence[Path], course: Course, seed: int | None) -> int | None:
    """Return the common seed of the shards whose output folders are `parts`, or `seed` if `parts` is empty.

    Raises `InvalidInput` if a shard's file is unreadable, or its course is not `course`, or if seeds differ.
    """
    for part in parts:
        try:
            head = msgspec.json.decode((part / HEAD).read_bytes(), type=Head)
        except (OSError, msgspec.DecodeError) as error:
            raise InvalidInput(
                f"--records {part / HEAD}: this file cannot be read ({error}); leave its folder out."
            ) from None
        if head.course != course.name:
            raise InvalidInput(
                f"--records {part}: the folder contains grades of the course {head.course}, not of {course.name}; "
                "leave this folder out."
            )
        if seed is not None and head.seed != seed:
            raise InvalidInput(
                f"--records {part}: the folder contains grades with the seed {head.seed}, not {seed}; grade all "
                "shards with the same --seed."
            )
        seed = head.seed
    return seed


def take_over(parts: Sequence[Path], out: Path, submissions: Sequence[Submission], course: Course, seed: int) -> int:
    """Copy from the output folders `parts` every valid result that `out` lacks; return the number of copies."""
    taken = 0
    for one in submissions:
        if is_kept(one, out, course, seed):
            continue
        for part in parts:
            record = stands(one, part, course, seed)
            if record is None:
                continue
            # The executed notebook comes first, because a submission with a record counts as complete.
            if record.executed and (part / "executed" / record.executed).is_file():
                text = (part / "executed" / record.executed).read_text(encoding="utf-8")
                durable.replace(out / "executed" / record.executed, text)
            record_text = record_path(part, one).read_text(encoding="utf-8")
            durable.replace(record_path(out, one), record_text)
            taken += 1
            break
    return taken


def run_on_spark(master: str, count: int, words: Sequence[str], out: Path) -> Path:
    """Grade the submissions on Spark in `count` shards; return the folder with the output folders of the shards.

    `words` is the command for every shard, without --shard, --out and --records. If an executor dies, the next attempt
    takes over the results written so far. All executors must see the submissions and `out` at the same paths. Raises
    `JobFailed` or `ServiceUnavailable`.
    """
    from labkit.spark.scheduling import Task, run_each

    parts = folder_of(out)
    _check_ours(parts)
    durable.make_folder(parts)
    tasks = []
    for number in range(1, count + 1):
        # An earlier attempt may still be running, so each attempt has its own folder.
        own = str(parts / f"{number:05}-of-{count:05}.{{attempt}}")
        more = ("--shard", f"{number}/{count}", "--out", own, "--records", str(parts))
        tasks.append(Task((*own_python("-m", "labkit"), *words, *more), FINE))
    # Not in the system's temporary folder, where nobody would remove the files after a kill.
    with tempfile.TemporaryDirectory(prefix=SCRATCH, dir=parts) as scratch:
        run_each(master, tasks, Path(scratch))
    return parts


def folder_of(out: Path) -> Path:
    """Return the folder for the outputs of all shards, which is next to the output folder `out`."""
    return out.absolute().with_name(f"{out.absolute().name}.shards")


def _check_ours(parts: Path) -> None:
    # `labkit grade` deletes this folder at the end, and must not delete a user's files.
    for path in parts.glob("*") if parts.is_dir() else ():
        if not _OURS.fullmatch(path.name):
            raise InvalidInput(
                f"{path}: `labkit grade` deletes the folder {parts.name} at the end, but did not write this file into "
                "it; move the file away, or name another output folder with --out."
            )


def expanded(paths: Sequence[Path], out: Path, *, alone: bool = True) -> list[Path]:
    """Return the output folders of all shards below `paths`, except the folder `out`.

    Each of `paths` is the output folder of a shard, or a folder that contains several. Raises `InvalidInput` for a path
    that is not a folder and, if `alone`, for a folder without any output. `alone` is false if this run grades one of
    the shards, because the other shards may not have written anything yet.
    """
    folders: list[Path] = []
    for path in paths:
        if not path.is_dir():
            raise InvalidInput(
                f"--records {path}: there is no such folder; name the output folder of a shard, or the folder that "
                "contains several."
            )
        outputs = [one for one in (path, *sorted(path.iterdir())) if one.is_dir() and (one / HEAD).exists()]
        if alone and not outputs:
            raise InvalidInput(
                f"--records {path}: no `labkit grade` has written there; name the output folder of a shard."
            )
        folders += [one for one in outputs if one.absolute() != out.absolute()]
    return list(dict.fromkeys(folders))
