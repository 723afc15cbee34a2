"""Who submitted what and when: from folders, single notebooks and the ZIP downloads of learning platforms.

Every student and notebook ends up with at most one submission, the newest, and what was passed over is named. A file
that cannot be graded is a submission too, with the reason. This module must not execute or judge anything.
"""

import hashlib
import os
import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path, PurePath, PurePosixPath

from labkit.core.errors import InvalidInput
from labkit.grading.archives import entries
from labkit.grading.course import Course
from labkit.grading.preparing import said_exercise
from labkit.grading.reading import NotANotebook, Notebook, read_file

_MOODLE = re.compile(r"(.+?)_\d+_assignsubmission_\w*$")
_CANVAS = re.compile(r"([^_]+)_(LATE_)?(\d+)_(\d+)_(.+)")
_LONGEST = 80
_HERE = PurePath()


@dataclass(frozen=True)
class Submission:
    """One file of one student."""

    student: str
    file: str
    """Where it came from, as a person names it."""
    path: Path | None
    """Where its bytes are; `None` when there are none to read."""
    when: datetime
    late: bool = False
    notebook: str = ""
    """Which notebook of the course it is; empty where nobody can say."""
    sha256: str = ""
    problem: str = ""
    notes: tuple[str, ...] = field(default=())


def collect(
    given: Sequence[Path], course: Course, work: Path, deadline: datetime | None
) -> list[Submission]:
    """The submission that counts for each student and notebook, by student. Raises `InvalidInput`."""
    found = [
        _identified(one, course) for path in given for one in _files(path, course, work)
    ]
    if not found:
        raise InvalidInput(
            f"{', '.join(map(str, given))}: no submission there; name folders, notebooks or ZIP archives."
        )
    chosen: dict[tuple[str, str], list[Submission]] = {}
    for one in found:
        chosen.setdefault((one.student, one.notebook), []).append(one)
    newest = [_newest(files) for _, files in sorted(chosen.items())]
    named = {one.student for one in newest if one.notebook}
    stray = {one.student: one for one in newest if not one.notebook}
    return [
        replace(
            _beside(one, stray.get(one.student)),
            late=one.late or (deadline is not None and one.when > deadline),
        )
        for one in newest
        if one.notebook or one.student not in named
    ]


def _beside(one: Submission, stray: Submission | None) -> Submission:
    """With a note on what else the student handed in that is no notebook of the course."""
    if stray is None or stray is one:
        return one
    return replace(
        one, notes=(*one.notes, f"{stray.file} was not graded. {stray.problem}")
    )


def _newest(files: list[Submission]) -> Submission:
    *older, last = sorted(files, key=lambda one: (one.when, one.file))
    if not older:
        return last
    names = ", ".join(one.file for one in older)
    return replace(
        last,
        notes=(
            *last.notes,
            f"{len(files)} files; the newest, {last.file}, counts, and not {names}.",
        ),
    )


def _files(given: Path, course: Course, work: Path) -> Iterator[Submission]:
    """Every file that somebody handed in."""
    if given.is_symlink() or not given.exists():
        raise InvalidInput(
            f"{given}: there is no such file or folder; name what was submitted."
        )
    if given.is_file() and given.suffix.lower() == ".zip":
        yield from _in_archive(given, course, work)
    elif given.is_file():
        yield _on_disk(
            given,
            PurePath(given.absolute().parent.name, given.name),
            given.name,
            course,
        )
    else:
        yield from _in_folder(given, course, work)


def _in_folder(folder: Path, course: Course, work: Path) -> Iterator[Submission]:
    for parent, folders, names in os.walk(folder):  # which does not follow links
        folders[:] = sorted(
            name for name in folders if not name.startswith((".", "__MACOSX"))
        )
        for name in sorted(names):
            path = Path(parent, name)
            inside = path.relative_to(folder)
            if name.startswith("."):
                continue
            if path.is_symlink() or not path.is_file():
                yield _refused(
                    inside,
                    folder,
                    "It is a link or no file, and is not followed.",
                    course,
                )
            elif path.suffix.lower() == ".zip":
                yield from _in_archive(path, course, work, inside.parent)
            else:
                yield _on_disk(
                    path, PurePath(folder.absolute().name) / inside, str(inside), course
                )


def _on_disk(path: Path, place: PurePath, shown: str, course: Course) -> Submission:
    when = datetime.fromtimestamp(path.stat().st_mtime).astimezone()
    student, late = whose(place, course)
    return Submission(student, shown, path, when, late)


def _refused(inside: Path, folder: Path, why: str, course: Course) -> Submission:
    student, late = whose(PurePath(folder.absolute().name) / inside, course)
    return Submission(
        student,
        str(inside),
        None,
        datetime.fromtimestamp(0).astimezone(),
        late,
        problem=why,
    )


def _in_archive(
    path: Path, course: Course, work: Path, above: PurePath = _HERE
) -> Iterator[Submission]:
    try:
        for entry in entries(path):
            place = PurePosixPath(path.stem) / PurePosixPath(*above.parts) / entry.path
            student, late = whose(place, course)
            shown = f"{path.name}/{entry.path}"
            if entry.problem is not None:
                yield Submission(
                    student, shown, None, entry.when, late, problem=entry.problem
                )
                continue
            stored = (
                work
                / f"{hashlib.sha256(shown.encode() + entry.content).hexdigest()[:32]}.ipynb"
            )
            stored.write_bytes(entry.content)
            yield Submission(student, shown, stored, entry.when, late)
    except InvalidInput as error:
        student, late = whose(
            PurePath(path.parent.name, *above.parts, path.name), course
        )
        yield Submission(
            student,
            path.name,
            None,
            datetime.fromtimestamp(0).astimezone(),
            late,
            problem=str(error),
        )


def whose(place: PurePath, course: Course) -> tuple[str, bool]:
    """The student that a file belongs to, and whether a platform marked it as late.

    `place` begins with the folder or archive that was named. A folder in that is a student's; a file that lies there
    directly has the student in its own name, in Canvas' form or beside the notebook's name.
    """
    _, *folders, name = place.parts if len(place.parts) > 1 else ("", *place.parts)
    if folders:
        found = _MOODLE.fullmatch(folders[0])
        return _clean(found.group(1) if found else folders[0]), False
    if found := _CANVAS.fullmatch(name):
        return _clean(f"{found.group(1)}_{found.group(3)}"), found.group(2) is not None
    stem = PurePath(name).stem
    for notebook in {exercise.notebook for exercise in course.exercises.values()}:
        stem = stem.replace(notebook, "")
    return _clean(stem.strip(" _-.()[]") or place.parts[0]), False


def _clean(name: str) -> str:
    """A name without what cannot be shown, and not too long."""
    plain = unicodedata.normalize("NFC", name)
    return (
        "".join(letter if letter.isprintable() else "_" for letter in plain).strip()[
            :_LONGEST
        ]
        or "nobody"
    )


def _identified(one: Submission, course: Course) -> Submission:
    """With the notebook that it is, as far as it can be read."""
    if one.path is None:
        return replace(one, notebook=_by_name(one.file, course))
    try:
        notebook = read_file(one.path)
    except NotANotebook as error:
        return replace(one, notebook=_by_name(one.file, course), problem=str(error))
    found = (
        _by_exercises(notebook, course)
        or _by_name(one.file, course)
        or _known(notebook.name, course)
    )
    problem = (
        ""
        if found
        else "It is none of the course's notebooks, for it answers none of its exercises."
    )
    return replace(one, notebook=found, sha256=notebook.sha256, problem=problem)


def _by_exercises(notebook: Notebook, course: Course) -> str:
    """The notebook of the course that most of the marked cells belong to."""
    said = [course.exercises.get(said_exercise(cell) or "") for cell in notebook.cells]
    owners = [exercise.notebook for exercise in said if exercise is not None]
    return max(sorted(set(owners)), key=owners.count, default="")


def _by_name(file: str, course: Course) -> str:
    names = sorted({exercise.notebook for exercise in course.exercises.values()})
    return next((name for name in names if name in PurePath(file).name), "")


def _known(name: str, course: Course) -> str:
    return (
        name
        if any(exercise.notebook == name for exercise in course.exercises.values())
        else ""
    )
