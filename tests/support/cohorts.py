"""Classes for the tests of the grader: the same submissions in the shape that each learning platform gives them.

Each maker writes a download into a folder and gives what to name on the command line. What is in the notebooks does
not matter to it.
"""

import io
import os
import time
import zipfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

ON_TIME = (2027, 1, 30, 12, 0, 0)
LATE = (2027, 2, 2, 12, 0, 0)
NOTEBOOK = "01_sample.ipynb"


class Learner(NamedTuple):
    """Somebody who hands in one notebook."""

    name: str
    number: int
    account: str
    content: str
    when: tuple[int, int, int, int, int, int] = ON_TIME


def packed(path: Path, entries: Mapping[str, str | bytes], when: tuple[int, ...] = ON_TIME) -> Path:
    """An archive whose entries are all of one date."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in entries.items():
            archive.writestr(zipfile.ZipInfo(name, when), content, zipfile.ZIP_DEFLATED)
    stamp = time.mktime((*when, 0, 0, -1))
    os.utime(path, (stamp, stamp))
    return path


def zipped(entries: Mapping[str, str | bytes], when: tuple[int, ...] = ON_TIME) -> bytes:
    """The bytes of an archive."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name, content in entries.items():
            archive.writestr(zipfile.ZipInfo(name, when), content)
    return file.getvalue()


def write(path: Path, content: str | bytes, when: tuple[int, ...] = ON_TIME) -> Path:
    """A file of that date."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    stamp = time.mktime((*when, 0, 0, -1))
    os.utime(path, (stamp, stamp))
    return path


def _archive(folder: Path, name: str, learners: Sequence[Learner], entry: Callable[[Learner], str]) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for one in learners:
            archive.writestr(zipfile.ZipInfo(entry(one), one.when), one.content)
    return path


def moodle(folder: Path, learners: Sequence[Learner]) -> Path:
    return _archive(
        folder, "CS-Exercise 5-4711.zip", learners,
        lambda one: f"{one.name}_{one.number}_assignsubmission_file_/{NOTEBOOK}",
    )  # fmt: skip


def moodle_flat(folder: Path, learners: Sequence[Learner]) -> Path:
    return _archive(
        folder, "CS-Exercise 5-4711.zip", learners,
        lambda one: f"{one.name}_{one.number}_assignsubmission_file_{NOTEBOOK}",
    )  # fmt: skip


def moodle_unpacked(folder: Path, learners: Sequence[Learner]) -> Path:
    for one in learners:
        write(folder / "in" / f"{one.name}_{one.number}_assignsubmission_file" / NOTEBOOK, one.content, one.when)
    return folder / "in"


def canvas(folder: Path, learners: Sequence[Learner]) -> Path:
    def entry(one: Learner) -> str:
        late = "LATE_" if one.when == LATE else ""
        name = "".join(reversed(one.name.lower().split())).replace("_", "")
        return f"{name}_{late}{one.number}_{one.number + 90_000}_{NOTEBOOK}"

    return _archive(folder, "submissions.zip", learners, entry)


def blackboard(folder: Path, learners: Sequence[Learner]) -> Path:
    path = folder / "gradebook_CS-6450_Exercise20Five_2027-02-03.zip"
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w") as archive:
        for one in learners:
            date = "-".join(f"{part:02}" for part in one.when)
            begin = f"CS-6450-Advanced-Stream-Processing-Exercise-with-Two-Phase-Commit_{one.account}_attempt_{date}"
            archive.writestr(f"{begin}_{NOTEBOOK}", one.content)
            archive.writestr(f"{begin}.txt", f"Name: {one.name} ({one.account})\r\nAssignment: Five\r\n")
    return path


def brightspace(folder: Path, learners: Sequence[Learner]) -> Path:
    def entry(one: Learner) -> str:
        date = time.strftime("%b %d, %Y %I%M %p", (*one.when, 0, 0, -1))
        return f"{one.number}-88 - {one.name} - {date}/{NOTEBOOK}"

    return _archive(folder, "Exercise 5 Download.zip", learners, entry)


def gradescope(folder: Path, learners: Sequence[Learner]) -> Path:
    path = folder / "submissions.zip"
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = ["---"]
    with zipfile.ZipFile(path, "w") as archive:
        for one in learners:
            top = "assignment_77_export"
            archive.writestr(zipfile.ZipInfo(f"{top}/submission_{one.number}/{NOTEBOOK}", one.when), one.content)
            y, m, d, hour, minute, second = one.when
            lines += [
                f"submission_{one.number}:",
                "  :submitters:",
                f"  - :name: {one.name}",
                f"    :sid: '{one.account}'",
                f"    :email: {one.account}@example.org",
                f"  :created_at: {y}-{m:02}-{d:02} {hour:02}:{minute:02}:{second:02}.000000000 Z",
            ]
        archive.writestr(f"{top}/submission_metadata.yml", "\n".join(lines) + "\n")
    return path


def github(folder: Path, learners: Sequence[Learner]) -> Path:
    root = folder / "exercise-5-submissions"
    for one in learners:
        clone = root / f"exercise-5-{one.account}"
        write(clone / "notebooks" / NOTEBOOK, one.content, one.when)
        write(clone / ".git" / "HEAD", "ref: refs/heads/main")
    return root


def github_copied(folder: Path, learners: Sequence[Learner]) -> Path:
    """Clones without `.git`, and the name of the folder above them."""
    for one in learners:
        write(
            folder / "sheet" / "exercise-5-submissions" / f"exercise-5-{one.account}" / NOTEBOOK, one.content, one.when
        )
    return folder / "sheet"


def github_archive(folder: Path, learners: Sequence[Learner]) -> Path:
    top = "exercise-5-submissions"
    return _archive(folder, "week 5.zip", learners, lambda one: f"{top}/exercise-5-{one.account}/notebooks/{NOTEBOOK}")


def github_zipped(folder: Path, learners: Sequence[Learner]) -> Path:
    root = folder / "exercise-5-submissions"
    for one in learners:
        packed(root / f"exercise-5-{one.account}.zip", {f"notebooks/{NOTEBOOK}": one.content}, one.when)
    return root


CLONES = (github, github_copied, github_archive, github_zipped)
"""A clone does not say when it was pushed."""


def folders(folder: Path, learners: Sequence[Learner]) -> Path:
    for one in learners:
        write(folder / "in" / one.account / NOTEBOOK, one.content, one.when)
    return folder / "in"


def archives(folder: Path, learners: Sequence[Learner]) -> Path:
    """One archive a student, each with the whole folder that was handed out."""
    for one in learners:
        inside = {
            f"course/notebooks/{NOTEBOOK}": one.content,
            "course/README.md": "the lab",
            "course/labkit/lab.py": "",
        }
        packed(folder / "in" / f"{one.account}.zip", inside, one.when)
    return folder / "in"


def single_files(folder: Path, learners: Sequence[Learner]) -> Path:
    for one in learners:
        write(folder / "in" / f"{one.account}_{NOTEBOOK}", one.content, one.when)
    return folder / "in"


ALL = (
    moodle, moodle_flat, moodle_unpacked, canvas, blackboard, brightspace, gradescope, *CLONES,
    folders, archives, single_files,
)  # fmt: skip
