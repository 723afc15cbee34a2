"""Writes the results of grading: grades.csv, a page for each student, and a summary for the instructor.

All of them are computed from the stored grading results, the points given by hand and the rules, so labkit can write
them again at any time. A student's page contains no hidden value and nothing about another student.
"""

from base64 import b64encode
from collections.abc import Iterator, Sequence
from contextlib import suppress
from hashlib import sha256
from importlib.resources import files
from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from labkit.grading import exports, marks, pages, records, tables
from labkit.grading.course import Course
from labkit.grading.records import Record
from labkit.grading.scoring import Gradebook, Policy, Row, gradebook
from labkit.grading.similarity import MOST_ALIKE
from labkit.grading.tables import amount
from labkit.host import durable
from labkit.teach.exercises.contract import Exercise

ALIKE = "alike.html"
"""The name of the page that shows similar answers side by side."""
BY_HAND = "by_hand"
"""The name of the folder with free texts for a person to grade, and with tables in which to fill in the points."""


def write_book(out: Path, course: Course, policy: Policy) -> tuple[list[Record], Gradebook]:
    """Write grades.csv and all HTML pages into the folder `out`; return the grading results and the gradebook."""
    kept, complaints = records.read_all(out / "records")
    book = gradebook(kept, course, policy)
    book.doubts += complaints
    environment = Environment(
        loader=PackageLoader("labkit.grading", "."), autoescape=True, undefined=StrictUndefined, trim_blocks=True
    )
    environment.filters["amount"] = amount
    written = _feedback_pages(out, book, policy, environment)
    book.doubts += exports.write(out / exports.FOLDER, book, written, course.name, policy.rules)
    _write_by_hand(out, book, policy, environment)
    durable.replace(out / "grades.csv", table(book))
    overview = pages.overview(kept, book, course, policy)
    _replace_changed(out / "summary.html", environment.get_template("summary.html.jinja").render(**overview))
    if overview["alike"]:
        alike = environment.get_template("alike.html.jinja").render(**overview, most=MOST_ALIKE)
        _replace_changed(out / ALIKE, alike)
    else:
        (out / ALIKE).unlink(missing_ok=True)
    return kept, book


def keys_called(out: Path, course: Course, policy: Policy, word: str) -> list[str]:
    """Return the keys of the submissions of the student whose name or id in grades.csv is `word`.

    The result is `[word]` if `word` is itself a key, or if no student fits.
    """
    kept, _ = records.read_all(out / "records")
    if any(record.key == word for record in kept):
        return [word]
    for row in gradebook(kept, course, policy).rows:
        if word in {row.id, row.name} and row.records:
            return sorted({record.key for record in row.records})
    return [word]


def _replace_changed(path: Path, text: str) -> None:
    with suppress(OSError, UnicodeDecodeError):
        if path.read_text(encoding="utf-8") == text:
            return
    durable.replace(path, text)


def _feedback_pages(out: Path, book: Gradebook, policy: Policy, environment: Environment) -> dict[str, str]:
    """Write a feedback page for each student who has handed something in; return a dict from row key to page (HTML)."""
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
            # A roster has given the student of this page another id, and so another page.
            path.unlink()
    return written


def _write_by_hand(out: Path, book: Gradebook, policy: Policy, environment: Environment) -> None:
    """Write the CSV file in which a person enters points by hand.

    If there are free-text answers or regrade requests, also write the HTML page on which a person grades them.
    """
    folder, texts = out / BY_HAND, pages.texts(book)
    wanted = [
        _wanted(row, exercise.name)
        for exercise, rows in texts.items()
        for row in rows
        if not row.scores[exercise.name].by_hand
    ]
    wanted += [
        _wanted(row, name)._replace(answers=marks.answer_to(row.requests[name]))
        for row in book.rows
        for name in row.asking
    ]
    wanted += [one for row in book.rows for one in _to_decide(row, book.exercises)]
    marks.write_template(folder, wanted, policy.rules)
    if not texts and not any(row.requests for row in book.rows):
        return
    seeds = sorted({record.seed for row in book.rows for record in row.records})
    script = files("labkit.grading").joinpath("by_hand.js").read_text(encoding="utf-8")
    values = (
        pages.reading(texts, book, policy.rules)
        | {
            "files": [path.name for path in marks.templates(folder)],
            "download": marks.next_name(folder),
            # By this digest, the page's security policy lets only this script run, and none in a learner's text.
            "script": Markup(script),  # noqa: S704 - our own file
            "digest": b64encode(sha256(script.encode()).digest()).decode(),
            "page": sha256(f"{out.absolute()} {seeds}".encode()).hexdigest()[:16],
        }
    )
    _replace_changed(folder / "texts.html", environment.get_template("by_hand.html.jinja").render(**values))


def _to_decide(row: Row, exercises: Sequence[Exercise]) -> Iterator[marks.Wanted]:
    """Yield the notebooks and exercises that only a person can grade, for example because a file is unreadable."""
    for notebook in dict.fromkeys(each.notebook for each in row.to_decide):
        left = [each for each in row.to_decide if each.notebook == notebook]
        if left == [each for each in exercises if each.notebook == notebook]:
            yield marks.Wanted(_keys(row), row.name, notebook, None)
        else:
            yield from (_wanted(row, each.name) for each in left)


def _wanted(row: Row, exercise: str) -> marks.Wanted:
    return marks.Wanted(_keys(row), row.name, exercise, float(row.scores[exercise].exercise.points))


def _keys(row: Row) -> tuple[str, ...]:
    return (row.key, row.id, *(one.key for one in row.records))


def table(book: Gradebook) -> str:
    """Return the text of grades.csv. Cells are empty for unknown points, and for totals that depend on them."""
    titles: list[object] = ["student", *(one.name for one in book.exercises), "total", "late", *_FURTHER]
    lines = [titles]
    for row in book.rows:
        points = [pages.points(row.scores[one.name]) for one in book.exercises]
        total = "" if row.unsettled else amount(row.total)
        lines.append([row.name, *points, total, "yes" if row.late else "no", *_further(row, book)])
    return tables.written(lines)


_FURTHER = ("id", "account", "penalty", "handed in", "in roster", "group", "not settled")


def _further(row: Row, book: Gradebook) -> Sequence[str]:
    penalties = ", ".join(f"{amount(100 * share)} %" for share in dict.fromkeys(row.penalties.values()))
    has_roster = any(each.member for each in book.rows)
    in_roster = ("yes" if row.member else "no") if has_roster else ""
    group = row.member.group if row.member else ""
    handed_in, unsettled = "yes" if row.records else "no", ", ".join(row.unsettled)
    return tables.printable(row.id), tables.printable(row.account), penalties, handed_in, in_roster, group, unsettled
