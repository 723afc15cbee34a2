"""Manages the output folder of `labkit grade`: its course and seed, its lock, and which stored results are still valid.

Only one command at a time writes into a folder, and a killed command leaves nothing that could stop the next one.
"""

import secrets
import shutil
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from labkit.core.errors import InvalidInput
from labkit.grading import records
from labkit.grading.course import Course
from labkit.grading.records import Record
from labkit.grading.submissions import Submission
from labkit.host import durable

HEAD = "grading.json"
_FOLDERS = ("records", "feedback", "executed")


class Head(msgspec.Struct):
    """The contents of `grading.json` in an output folder: the course, seed and options of all grading results there."""

    course: str
    seed: int
    format: int = 1
    options: dict[str, str] = {}
    """The options about the class that the next command uses unless the user gives new ones."""


@dataclass(frozen=True)
class Output:
    """The output folder of a running `labkit grade` command. Other commands cannot use it until this one has ended."""

    seed: int
    work: Path
    """A temporary folder, which is removed when the command ends."""


@contextmanager
def opened(out: Path, course: str, seed: int | None, options: Mapping[str, str]) -> Iterator[Output]:
    """Lock and prepare an output folder for a `with` block. Raises `InvalidInput` if it is unsuitable or in use."""
    _head(out, course, seed)
    durable.make_folder(out)
    with ExitStack() as stack:
        try:
            stack.enter_context(durable.locked(out, wait=False))
        except BlockingIOError:
            raise InvalidInput(
                f"{out}: another `labkit grade` is writing to this folder; wait until it ends, or name another --out."
            ) from None
        head = _head(out, course, seed)
        head.options = dict(options)
        for name in _FOLDERS:
            durable.make_folder(out / name)
        durable.replace(out / HEAD, msgspec.json.format(msgspec.json.encode(head), indent=1))
        # Absolute, because workers and sandboxes have other working folders.
        work = (out / ".work").absolute()
        shutil.rmtree(work, ignore_errors=True)
        work.mkdir()
        try:
            yield Output(head.seed, work)
        finally:
            shutil.rmtree(work, ignore_errors=True)


def remembered(out: Path) -> dict[str, str]:
    """Return the options about the class (such as --roster) that the last `labkit grade` stored in `out`."""
    try:
        head: Head = msgspec.json.decode((out / HEAD).read_bytes(), type=Head)
    except (OSError, msgspec.DecodeError):
        return {}
    return head.options


def _head(out: Path, course: str, seed: int | None) -> Head:
    """Return what `grading.json` in the output folder says, or a new `Head` if the folder has no such file.

    Raises `InvalidInput` if `out` cannot be used for this course and seed.
    """
    path = out / HEAD
    if out.exists() and not out.is_dir():
        raise InvalidInput(f"{out}: this is a file, but --out must name a folder.")
    if not path.exists():
        if out.exists() and any(not _is_ours(one) for one in out.iterdir()):
            raise InvalidInput(
                f"{out}: the folder contains files that are not from `labkit grade`; name a new folder with --out."
            )
        return Head(course, secrets.randbits(32) if seed is None else seed, records.FORMAT)
    try:
        head: Head = msgspec.json.decode(path.read_bytes(), type=Head)
    except msgspec.DecodeError as error:
        raise InvalidInput(f"{path}: the file is damaged ({error}); name a new folder with --out.") from None
    if head.course != course:
        raise InvalidInput(
            f"{out}: the folder contains grades of the course {head.course}, not of {course}; name another --out."
        )
    if head.format != records.FORMAT and any((out / "records").glob("*.json")):
        raise InvalidInput(f"{out}: another version of labkit wrote the grades there; name a new folder with --out.")
    if seed is not None and seed != head.seed:
        raise InvalidInput(
            f"{out}: the folder contains grades with the seed {head.seed}, not {seed}; leave --seed out, or name "
            "another --out."
        )
    head.format = records.FORMAT
    return head


def _is_ours(path: Path) -> bool:
    # A `labkit grade` that was killed before it wrote `grading.json` leaves such files and empty folders.
    return durable.is_temporary(path) or (
        path.name in {*_FOLDERS, ".work"} and path.is_dir() and not any(path.iterdir())
    )


def record_path(out: Path, one: Submission) -> Path:
    """Return the path of the file in an output folder that holds a submission's record (grading result)."""
    return out / "records" / f"{records.file_name(one.key, one.notebook)}.json"


def earlier(path: Path) -> Record | None:
    """Return the record (grading result of a submission) in a file, or None if the file is missing or damaged."""
    try:
        return records.read(path)
    except InvalidInput:
        return None


def stands(one: Submission, out: Path, course: Course, seed: int) -> Record | None:
    """Return a submission's record, or None unless grading succeeded and file, seed and course are still the same."""
    record = earlier(record_path(out, one))
    if record is None or not record.graded():
        return None
    if not one.sha256 and not (one.problem and one.problem in record.notes):
        # A file that could not be read has no digest, so its record remains valid as long as the reason is the same.
        return None
    now = (one.sha256, seed, course.digest)
    return record if (record.sha256, record.seed, record.digest) == now else None


def is_kept(one: Submission, out: Path, course: Course, seed: int) -> bool:
    """Return whether the submission's record in the folder `out` is still valid, so that nothing has to be graded.

    If it is valid, facts in the record that do not affect grading, such as the submitted file's name and date, are
    updated from `one`.
    """
    record = stands(one, out, course, seed)
    if record is None:
        return False
    updated = msgspec.structs.replace(record, **facts(one))
    lasting = [doubt for doubt in record.doubts if doubt.startswith(records.GIVEN_UP)]
    updated.doubts = [*lasting, *updated.doubts]
    settled = {doubt: names for doubt, names in record.settled_by.items() if doubt in lasting}
    updated.settled_by = settled | updated.settled_by
    if updated != record:
        records.write(updated, record_path(out, one))
    return True


def facts(one: Submission) -> dict[str, Any]:
    """Return the fields of a record that come from the submission itself, such as the date."""
    origin = one.origin
    return {
        **{name: getattr(origin, name) for name in ("account", "upload", "dated", "dated_by")},
        **{name: list(getattr(one, name)) for name in ("doubts", "unread", "requests")},
        "student": origin.shown,
        "platform": origin.platform.value,
        "people": list(origin.people),
        "file": one.file,
        "late": one.late,
        "marked_late": origin.late,
        "submitted": one.when.isoformat(timespec="seconds"),
        "answered_at": {name: when.isoformat(timespec="seconds") for name, when in one.answered_at.items()},
        "settled_by": {doubt: list(names) for doubt, names in one.settled_by.items()},
    }


def drop_stray(out: Path, submissions: list[Submission]) -> None:
    """Delete the records "no notebook among the files" of students who have handed in a notebook since then."""
    for key in {one.key for one in submissions if one.notebook}:
        (out / "records" / f"{records.file_name(key, '')}.json").unlink(missing_ok=True)
