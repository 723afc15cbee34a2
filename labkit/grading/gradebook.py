"""The pages and the table that a batch leaves: grades.csv, a page for each student, a summary for the instructor.

All of them come from the records, the marks and the rules, and can be made anew from these at any time. A student's
page holds no hidden parameter, no hidden trace and nothing of another student.
"""

from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined

from labkit.grading import exports, marks, pages, records, tables
from labkit.grading.course import Course
from labkit.grading.records import Record
from labkit.grading.scoring import Gradebook, Policy, gradebook
from labkit.grading.tables import amount
from labkit.host import durable

BY_HAND = "by_hand"
"""The folder of the texts that a person reads, and of the marks to fill in."""


def write_all(out: Path, course: Course, policy: Policy | None = None) -> list[Record]:
    """Writes the table and all pages of an output folder; returns the records that they show."""
    kept, _ = write_book(out, course, policy or Policy())
    return kept


def write_book(out: Path, course: Course, policy: Policy) -> tuple[list[Record], Gradebook]:
    """Writes the table and all pages; returns the records that they show, and the gradebook."""
    kept, complaints = records.read_all(out / "records")
    book = gradebook(kept, course, policy)
    book.doubts += complaints
    environment = Environment(
        loader=PackageLoader("labkit.grading", "."), autoescape=True, undefined=StrictUndefined, trim_blocks=True
    )
    written = _feedback_pages(out, book, policy, environment)
    exports.write(out / exports.FOLDER, book, written, course.name, policy.rules)
    _write_by_hand(out / BY_HAND, book, policy, environment)
    durable.replace(out / "grades.csv", table(book))
    summary = environment.get_template("summary.html.jinja")
    _replace_changed(out / "summary.html", summary.render(**pages.overview(kept, book, course)))
    return kept, book


def keys_called(out: Path, course: Course, policy: Policy, word: str) -> list[str]:
    """The keys of what a student has handed in who stands in the table under this name or id; the word, if
    nobody does.
    """
    kept, _ = records.read_all(out / "records")
    if any(record.key == word for record in kept):
        return [word]
    for row in gradebook(kept, course, policy).rows:
        if word in {row.id, row.name} and row.records:
            return sorted({record.key for record in row.records})
    return [word]


def _replace_changed(path: Path, text: str) -> None:
    try:
        if path.read_text(encoding="utf-8") == text:
            return
    except (OSError, UnicodeDecodeError):
        pass
    durable.replace(path, text)


def _feedback_pages(out: Path, book: Gradebook, policy: Policy, environment: Environment) -> dict[str, str]:
    """Writes a page for everybody who has handed something in; returns the pages by the row's key."""
    template = environment.get_template("feedback.html.jinja")
    written = {}
    for row in book.rows:
        if row.records:
            written[row.key] = template.render(**pages.feedback(row, policy))
            path = out / "feedback" / pages.page_name(row)
            _replace_changed(path, written[row.key])
    names = {pages.page_name(row) for row in book.rows if row.records}
    for path in (out / "feedback").glob("*--feedback.html"):
        if path.name not in names:
            # The page's student has another id since a roster was given.
            path.unlink()
    return written


def _write_by_hand(folder: Path, book: Gradebook, policy: Policy, environment: Environment) -> None:
    """Writes the texts to read, and the marks to fill in, if there are any."""
    texts = pages.texts(book)
    if not texts:
        return
    durable.make_folder(folder)
    wanted = [
        marks.Wanted(
            (row.key, row.id, *(one.key for one in row.records)), row.name, exercise.name, float(exercise.points)
        )
        for exercise, theirs in texts.items()
        for row in theirs
        if not row.scores[exercise.name].by_hand
    ]
    marks.write_template(folder, wanted, policy.rules)
    files = [path.name for path in marks.templates(folder)]
    page = environment.get_template("texts.html.jinja")
    _replace_changed(folder / "texts.html", page.render(**pages.reading(texts, policy.rules, files)))


def table(book: Gradebook) -> str:
    """A row for each student, a column for each exercise; empty where nobody has graded it yet.

    At the end stand columns that not every class has: ids, penalties, points still to come.
    """
    more = _further_columns(book)
    titles = ["student", *(one.name for one in book.asked), "total", "late"]
    lines: list[list[object]] = [[*titles, *(title for title, _ in more)]]
    for number, row in enumerate(book.rows):
        points = [pages.points(row.scores[one.name]) for one in book.asked]
        late = "yes" if row.late else "no"
        lines.append([row.name, *points, amount(row.total), late, *(cells[number] for _, cells in more)])
    return tables.written(lines)


def _further_columns(book: Gradebook) -> list[tuple[str, list[str]]]:
    """Columns in which at least one row of this class has a value that matters."""
    rows = book.rows
    penalties = [
        ", ".join(f"{amount(100 * share)} %" for share in dict.fromkeys(row.penalties.values())) for row in rows
    ]
    groups = [row.member.group if row.member else "" for row in rows]
    columns = [
        ("id", [row.id for row in rows], any(row.id != row.name for row in rows)),
        ("penalty", penalties, any(penalties)),
        ("handed in", ["yes" if row.records else "no" for row in rows], bool(book.missing)),
        ("in roster", ["yes" if row.member else "no" for row in rows], bool(book.unknown)),
        ("group", groups, any(groups)),
    ]
    return [(title, cells) for title, cells, says in columns if says]
