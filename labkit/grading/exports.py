"""Writes the export files for learning platforms: tables of points in each platform's format, and archives of
feedback pages.

An export is written only for the platforms that occur in the submissions or in the roster.
"""

import io
import zipfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path, PurePath

from labkit.grading import gradescope, tables
from labkit.grading.platforms import Platform
from labkit.grading.records import Record
from labkit.grading.rules import Rules
from labkit.grading.scoring import Gradebook, Row, sums
from labkit.grading.tables import amount
from labkit.host import durable

FOLDER = "exports"
_ALWAYS = (1980, 1, 1, 0, 0, 0)
"""The date of every file in a feedback archive: always the same, so that unchanged grades give an identical archive."""


def write(folder: Path, book: Gradebook, pages: Mapping[str, str], course: str, rules: Rules) -> list[str]:
    """Write the export files for the class's platforms into `folder`; return questions for the instructor.

    `pages` maps the keys of rows to feedback pages in HTML. No file contains a grade that depends on unknown points.
    """
    doubts: list[str] = []
    platforms = {record.platform for row in book.rows for record in row.records}
    platforms |= {kind.value for row in book.rows if row.member for kind, _ in row.member.accounts}
    files = {
        f"{platform.value}.csv": tables.written(lines(book, rules, course, doubts)).encode()
        for platform, lines in _TABLES.items()
        if platform in platforms
    }
    if Platform.GRADESCOPE in platforms:
        files["gradescope-autograder.zip"] = _packed(gradescope.autograder(book, rules, doubts))
    for platform, name_of in _FEEDBACK.items():
        if names := _feedback_names(book, platform, name_of):
            files[f"{platform.value}-feedback.zip"] = _packed({name: pages[key] for name, key in names.items()})
    if not files:
        return doubts
    durable.make_folder(folder)
    for name, content in files.items():
        path = folder / name
        if not path.exists() or path.read_bytes() != content:
            durable.replace(path, content)
    return doubts


def _settled(book: Gradebook, platform: Platform) -> Iterable[tuple[Row, str]]:
    """Yield the row and platform account of each student whose points are all known.

    Other students get no line in the export: for a line with an empty cell, Canvas would delete the student's grade
    (`process_submissions` in its `gradebook_importer.rb`). Every platform keeps the grades of students without a line.
    """
    for row, account, _ in _of_platform(book, platform):
        if not row.unsettled:
            yield row, account


def _of_platform(book: Gradebook, platform: Platform) -> Iterable[tuple[Row, str, list[Record]]]:
    """For each student's account on a platform, yield the gradebook row, the account, and the account's submissions."""
    for row in book.rows:
        accounts: dict[str, list[Record]] = {
            account: [] for kind, account in (row.member.accounts if row.member else ()) if kind is platform
        }
        for record in row.records:
            if record.platform == platform and record.account:
                accounts.setdefault(record.account, []).append(record)
        for account, records in accounts.items():
            yield row, account, records


def _moodle(book: Gradebook, rules: Rules, _course: str, _doubts: list[str]) -> Iterable[Sequence[object]]:
    """Yield the lines of Moodle's grading worksheet for one assignment.

    Moodle does not say which notebooks an assignment has. If the rules name exercises, the assignment consists of
    exactly these. Otherwise it consists of all notebooks that any student has handed in for it. If a student has handed
    in nothing, the assignment is unknown, so "Maximum Grade" is the sum over all exercises in the gradebook.
    """
    assignments = _handed_in_together(book)
    yield (
        *("Identifier", "Full name", "Email address", "Grade", "Maximum Grade"),
        *("Last modified (grade)", "Feedback comments"),
    )
    for row, account, records in _of_platform(book, Platform.MOODLE):
        notebooks = {other for record in records for other in assignments.get(record.notebook, ())}
        every = bool(rules.asked) or not notebooks  # the rules' file says which exercises belong to the assignment
        exercises = [one for one in book.exercises if every or one.notebook in notebooks]
        points, most = sums(row, exercises, rules)
        # A student who has handed in nothing at all has 0 points. Work under another Moodle number may be for another
        # assignment, or a group's, so the grade in this assignment is unknown.
        is_known = bool(records) or not row.records
        yield (
            f"Participant {account}",
            _cell(row, "full name") or (records[0].student if records else row.name),
            row.member.email if row.member else "",
            # Moodle skips a line without a grade, and keeps its own grade.
            amount(points) if is_known and not any(row.scores[one.name].unsettled for one in exercises) else "",
            amount(most),
            # Moodle skips a line whose date is older than its own grade; a dash there means that it has no grade.
            _cell(row, "last modified (grade)").strip("-"),
            _comments(row, names={one.name for one in exercises}),
        )


def _cell(row: Row, title: str) -> str:
    return row.member.cells.get(title, "") if row.member else ""


def _handed_in_together(book: Gradebook) -> dict[str, set[str]]:
    """Return a dict from each notebook to all notebooks of the same assignment in Moodle.

    Two notebooks belong together if a student has handed in both, or if both belong together with a third one.
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


def _canvas(book: Gradebook, rules: Rules, course: str, _doubts: list[str]) -> Iterable[Sequence[object]]:
    column = rules.export.get("canvas", course)
    yield ("Student", "ID", "SIS User ID", "SIS Login ID", "Section", column)
    yield ("    Points Possible", "", "", "", "", amount(_most(book)))
    for row, account in _settled(book, Platform.CANVAS):
        sis = [_cell(row, title) for title in ("sis user id", "sis login id", "section")]
        yield (_cell(row, "student") or row.name, account, *sis, amount(row.total))


def _blackboard(book: Gradebook, rules: Rules, course: str, _doubts: list[str]) -> Iterable[Sequence[object]]:
    # Blackboard creates a new column, unless the rules name an existing one.
    new = f"{course} [Total Pts: {amount(_most(book))} Score]"
    yield ("Last Name", "First Name", "Username", rules.export.get("blackboard", new))
    for row, account in _settled(book, Platform.BLACKBOARD):
        first, _, last = row.name.rpartition(" ")
        names = _cell(row, "last name") or last, _cell(row, "first name") or first
        yield (*names, account, amount(row.total))


def _brightspace(book: Gradebook, rules: Rules, course: str, doubts: list[str]) -> Iterable[Sequence[object]]:
    """Yield the lines of a Brightspace import, which identifies students by OrgDefinedId or Username.

    Both ids come from the roster, because the names of downloaded files contain neither. In Brightspace's format, each
    id begins with `#`, so that spreadsheet programs do not change it. The last column contains only `#`.
    """
    title = rules.export.get("brightspace", f"{course} Points Grade")
    yield ("OrgDefinedId", "Username", title, "End-of-Line Indicator")
    nameless = []
    for row, _ in _settled(book, Platform.BRIGHTSPACE):
        ids = [_cell(row, one).lstrip("#") for one in ("orgdefinedid", "username")]
        if any(ids):
            yield (*(f"#{one}" if one else "" for one in ids), amount(row.total), "#")
        else:
            nameless.append(row.name)
    if nameless:
        names = ", ".join(nameless[:3]) + (" and others" if len(nameless) > 3 else "")
        doubts.append(
            f"brightspace.csv leaves out {names}, because only Brightspace's own export of grades has the "
            "OrgDefinedId or Username; name that export with --roster."
        )


def _most(book: Gradebook) -> float:
    return max((row.most for row in book.rows), default=0.0)


_TABLES: Mapping[Platform, Callable[[Gradebook, Rules, str, list[str]], Iterable[Sequence[object]]]] = {
    Platform.MOODLE: _moodle,
    Platform.CANVAS: _canvas,
    Platform.BLACKBOARD: _blackboard,
    Platform.BRIGHTSPACE: _brightspace,
}
"""For each platform that imports a table, the function that yields the table's lines.

Its arguments are the gradebook, the rules, the course's name, and a list to which it adds questions for the instructor.
"""

_FEEDBACK: Mapping[Platform, Callable[[str], str]] = {
    Platform.MOODLE: lambda upload: f"{upload}/feedback.html",
    Platform.CANVAS: lambda upload: f"{PurePath(upload).stem}-feedback.html",
    Platform.BRIGHTSPACE: lambda upload: f"{upload}/feedback.html",
}
"""For each platform, a function of the upload's name that returns the feedback page's path in the archive."""


def _feedback_names(book: Gradebook, platform: Platform, name_of: Callable[[str], str]) -> dict[str, str]:
    """Return, for the archive of feedback pages for a platform, a dict from a page's path to the key of its row."""
    return {
        name_of(record.upload): row.key
        for row in book.rows
        for record in row.records
        if record.platform == platform and record.upload
    }


def _packed(files: Mapping[str, str]) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in sorted(files.items()):
            archive.writestr(zipfile.ZipInfo(name, _ALWAYS), content, zipfile.ZIP_DEFLATED)
    return file.getvalue()
