"""Writes the export files for learning platforms: tables of points in each platform's format, and archives of
feedback pages.

An export is written only for the platforms that occur in the submissions or in the roster.
"""

import io
import zipfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path, PurePath

from labkit.grading import tables
from labkit.grading.platforms import Platform
from labkit.grading.records import Record
from labkit.grading.rules import Rules
from labkit.grading.scoring import Gradebook, Row, sums
from labkit.grading.tables import amount
from labkit.host import durable

FOLDER = "exports"
_ALWAYS = (1980, 1, 1, 0, 0, 0)
"""The date of every file in a feedback archive: always the same, so that unchanged grades give an identical archive."""


def write(folder: Path, book: Gradebook, pages: Mapping[str, str], course: str, rules: Rules) -> None:
    """Write into `folder` the export files for the platforms that this class uses.

    `pages` maps the key of a gradebook row to the student's feedback page in HTML.
    """
    platforms = {record.platform for row in book.rows for record in row.records}
    platforms |= {kind.value for row in book.rows if row.member for kind, _ in row.member.accounts}
    files: dict[str, bytes] = {}
    if Platform.MOODLE in platforms:
        files["moodle.csv"] = tables.written(_moodle(book, rules)).encode()
    if Platform.CANVAS in platforms:
        files["canvas.csv"] = tables.written(_canvas(book, rules.export.get("canvas", course))).encode()
    if Platform.BLACKBOARD in platforms:
        files["blackboard.csv"] = tables.written(
            _blackboard(book, rules.export.get("blackboard", _new_column(book, course)))
        ).encode()
    for platform, name_of in _FEEDBACK.items():
        if names := _feedback_names(book, platform, name_of):
            files[f"{platform.value}-feedback.zip"] = _packed(names, pages)
    if not files:
        return
    durable.make_folder(folder)
    for name, content in files.items():
        path = folder / name
        if not path.exists() or path.read_bytes() != content:
            durable.replace(path, content)


def _of_platform(book: Gradebook, platform: Platform) -> Iterable[tuple[Row, str, list[Record]]]:
    """Yield for each student's account on a platform the row, the account, and the records handed in under it."""
    for row in book.rows:
        accounts: dict[str, list[Record]] = {
            account: [] for kind, account in (row.member.accounts if row.member else ()) if kind is platform
        }
        for record in row.records:
            if record.platform == platform and record.account:
                accounts.setdefault(record.account, []).append(record)
        for account, records in accounts.items():
            yield row, account, records


def _moodle(book: Gradebook, rules: Rules) -> Iterable[Sequence[object]]:
    """Yield the lines of Moodle's grading worksheet, in which a participant number is valid in one assignment only.

    Moodle does not state which notebooks belong to an assignment. So, unless the rules name its exercises, it consists
    of all notebooks that anybody has handed in there, which gives all students the same maximum. A participant who
    handed in nothing gets the maximum of the whole course.
    """
    assignments = _handed_in_together(book)
    yield (
        *("Identifier", "Full name", "Email address", "Grade", "Maximum Grade"),
        *("Last modified (grade)", "Feedback comments"),
    )
    for row, account, records in _of_platform(book, Platform.MOODLE):
        notebooks = {other for record in records for other in assignments.get(record.notebook, ())}
        every = bool(rules.asked) or not notebooks  # an assignment's file says what belongs to it
        exercises = [one for one in book.exercises if every or one.notebook in notebooks]
        points, most = sums(row, exercises, rules)
        yield (
            f"Participant {account}",
            _cell(row, "full name") or (records[0].student if records else row.name),
            row.member.email if row.member else "",
            amount(points) if records else "",
            amount(most),
            # Moodle skips a line whose date is older than the grade that it has; a dash there means that it had none.
            _cell(row, "last modified (grade)").strip("-"),
            _comments(row, names={one.name for one in exercises}),
        )


def _cell(row: Row, title: str) -> str:
    """Return a cell of the student's line in the roster, if that is a platform's own export with this title."""
    return row.member.cells.get(title, "") if row.member else ""


def _handed_in_together(book: Gradebook) -> dict[str, set[str]]:
    """Return for each notebook the names of all notebooks in the same Moodle assignment.

    Two notebooks share an assignment if somebody handed them in together, directly or through other notebooks.
    """
    assignments: dict[str, set[str]] = {}
    for _, _, records in _of_platform(book, Platform.MOODLE):
        own = {record.notebook for record in records if record.notebook}
        all_of_them = own.union(*(assignments.get(each, set()) for each in own))
        assignments |= dict.fromkeys(all_of_them, all_of_them)
    return assignments


def _comments(row: Row, names: set[str]) -> str:
    return " ".join(
        f"{name}: {comment}" for name, score in row.scores.items() if name in names for comment in score.hand.comments
    )


def _canvas(book: Gradebook, title: str) -> Iterable[Sequence[object]]:
    """Yield the lines of a Canvas gradebook, in which only the number in the second column identifies a student."""
    yield ("Student", "ID", "SIS User ID", "SIS Login ID", "Section", title)
    yield ("    Points Possible", "", "", "", "", amount(_most(book)))
    for row, account, _ in _of_platform(book, Platform.CANVAS):
        sis = [_cell(row, title) for title in ("sis user id", "sis login id", "section")]
        yield (_cell(row, "student") or row.name, account, *sis, amount(row.total))


def _blackboard(book: Gradebook, title: str) -> Iterable[Sequence[object]]:
    yield ("Last Name", "First Name", "Username", title)
    for row, account, _ in _of_platform(book, Platform.BLACKBOARD):
        first, _, last = row.name.rpartition(" ")
        names = _cell(row, "last name") or last, _cell(row, "first name") or first
        yield (*names, account, amount(row.total))


def _new_column(book: Gradebook, course: str) -> str:
    """Return a title with which Blackboard adds a new column instead of filling an existing one."""
    return f"{course} [Total Pts: {amount(_most(book))} Score]"


def _most(book: Gradebook) -> float:
    return max((row.most for row in book.rows), default=0.0)


_FEEDBACK: Mapping[Platform, Callable[[str], str]] = {
    Platform.MOODLE: lambda upload: f"{upload}/feedback.html",
    Platform.CANVAS: lambda upload: f"{PurePath(upload).stem}-feedback.html",
    Platform.BRIGHTSPACE: lambda upload: f"{upload}/feedback.html",
}
"""For each platform a function that returns the path of a feedback page in the archive, given the upload's name
there.
"""


def _feedback_names(book: Gradebook, platform: Platform, name_of: Callable[[str], str]) -> dict[str, str]:
    """Return, for each path of a feedback page in a platform's archive, the key of the student's row."""
    return {
        name_of(record.upload): row.key
        for row in book.rows
        for record in row.records
        if record.platform == platform and record.upload
    }


def _packed(names: Mapping[str, str], pages: Mapping[str, str]) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, key in sorted(names.items()):
            archive.writestr(zipfile.ZipInfo(name, _ALWAYS), pages[key], zipfile.ZIP_DEFLATED)
    return file.getvalue()
