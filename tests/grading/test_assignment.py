"""An assignment's file: what counts, for whom something is missing, and that nothing else earns a point."""

import csv
import json
from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path

import exercise_sources
import pytest
import submitted

from labkit.core.errors import InvalidInput
from labkit.grading import assignment, rules
from labkit.grading.course import load
from labkit.grading.grade import grade
from labkit.grading.order import Order

COURSE = load(None)
COMMIT, SINKS, STOPS = "05_two_phase_commit", "06_sinks", "04b_stops"
SOURCES = exercise_sources.all_sources()


def read(folder: Path, text: str) -> rules.Rules:
    path = folder / "assignment.toml"
    path.write_text(text, encoding="utf-8")
    return rules.read(path, COURSE)


def solved(names: Sequence[str]) -> str:
    return submitted.notebook(*(SOURCES[name][1] for name in names))


def test_notebooks_by_number_mean_all_their_exercises(tmp_path: Path) -> None:
    found = read(
        tmp_path, '[assignment]\ntitle = "Sheet 5"\nnotebooks = ["05", "06_sinks"]\ndeadline = 2027-01-31T18:00:00\n'
    )
    assert found.title == "Sheet 5"
    assert found.asked == tuple(name for name, each in COURSE.exercises.items() if each.notebook in {COMMIT, SINKS})
    assert found.deadline == datetime(2027, 1, 31, 18).astimezone()
    assert read(tmp_path, '[assignment]\nexercises = ["06-key", "05-recovery"]\n').asked == ("05-recovery", "06-key")


@pytest.mark.parametrize(
    ("section", "says"),
    [
        ("[assignment]\nnotebook = []", "has no key notebook; the possible keys are title, notebooks"),
        ('[assignment]\nnotebooks = ["99"]', "99 is not a notebook with exercises; choose from 01_"),
        ('[assignment]\nnotebooks = "05"', 'must be a list of names, as in notebooks = ["05"]'),
        ('[assignment]\nexercises = ["05-recover"]', "05-recover is not an exercise"),
        ('[assignment]\nnotebooks = ["05"]\nexercises = ["06-key"]', "06-key, but its key `notebooks` does not list"),
        ('[assignment]\ndeadline = "tomorrow"', "deadline in [assignment]: tomorrow is not a date and time; write it"),
        ("[assignment]\ntitle = 5", "title in [assignment] must be a text"),
        ("assignment = 5", "[assignment] must be a table"),
        ("[drop]\nlowest = 1.5", "lowest in [drop] is 1.5; write a whole number"),
        ('[assignment]\nexercises = ["06-key"]\n[drop]\nlowest = 1', "leaves out 1 exercises, but only 1 count"),
        ("[assignment]\nexercises = []", "exercises in [assignment] is empty, so nothing would count"),
    ],
)
def test_a_mistake_is_one_sentence_with_the_remedy(section: str, says: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput) as refusal:
        read(tmp_path, section)
    assert says in str(refusal.value)
    assert "\n" not in str(refusal.value)


def test_what_release_writes_is_what_grade_reads(tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text("# The lab\n")
    title = 'Sheet "5"\nand\x7f \\u \N{GRINNING FACE} more'
    plan = assignment.plan(["06", f"{COMMIT}.ipynb"], COURSE, f"{title}\udc80", "2027-01-31T18:00")
    found = rules.read(assignment.write(tmp_path, plan, COURSE), COURSE)
    assert found.title == f"{title}\\udc80"
    assert found.asked == tuple(name for name, each in COURSE.exercises.items() if each.notebook in {COMMIT, SINKS})
    assert found.deadline == datetime(2027, 1, 31, 18).astimezone()
    assert found.deadline is not None
    assert assignment.note_on(plan, found.deadline - timedelta(minutes=1)) == ""
    assert "the deadline 2027-01-31T18:00 is over" in assignment.note_on(plan, found.deadline)
    shown = (tmp_path / "README.md").read_text()
    most = sum(COURSE.exercises[name].points for name in found.asked)
    assert f"{most} points in total. They are due on 2027-01-31 at 18:00." in shown
    assert all(f"`{name}`" in shown for name in found.asked)


@pytest.mark.slow
def test_only_what_was_asked_counts_and_missing_and_surplus_notebooks_are_named(tmp_path: Path) -> None:
    """A solved 04b under the name of 05, a 04b beside the others, and one notebook of two."""
    given = tmp_path / "in"
    cheap = ["05-atomic"], ["06-key"], ["04b-settings"]
    for student, files in {
        "ann": {COMMIT: cheap[0], SINKS: cheap[1]},
        "fuchs": {COMMIT: cheap[2], SINKS: cheap[1]},
        "more": {COMMIT: cheap[0], SINKS: cheap[1], STOPS: cheap[2]},
        "one": {COMMIT: cheap[0]},
    }.items():
        (given / student).mkdir(parents=True)
        for name, exercises in files.items():
            (given / student / f"{name}.ipynb").write_text(solved(exercises))
    sheet = tmp_path / "assignment.toml"
    sheet.write_text('[assignment]\ntitle = "Sheet 5"\nexercises = ["05-atomic", "06-key"]\n')
    graded = grade(Order([given], tmp_path / "out", rules=sheet), lambda *_: None)
    assert graded.book is not None
    with (tmp_path / "out" / "grades.csv").open() as file:
        rows = {row["student"]: row for row in csv.DictReader(file)}
    assert [name for name in rows["ann"] if "-" in name] == ["05-atomic", "06-key"]
    assert {name: row["total"] for name, row in rows.items()} == {"ann": "5", "fuchs": "2", "more": "5", "one": "3"}
    assert {row.most for row in graded.book.rows} == {5}
    notes = {
        row.name: " ".join([*row.notes, *(note for record in row.records for note in record.notes)])
        for row in graded.book.rows
    }
    assert f"{SINKS} is part of the assignment, and you have not handed it in." in notes["one"]
    assert f"{STOPS}.ipynb was not graded. The file is not a notebook of this assignment" in notes["more"]
    assert graded.book.not_handed_in == {SINKS: ["one"]}
    summary = (tmp_path / "out" / "summary.html").read_text()
    assert "<h1>Grades of Sheet 5</h1>" in summary
    assert f"<li>{SINKS}: one</li>" in summary
    assert json.loads((tmp_path / "out" / "grading.json").read_text())["options"]["rules"] == str(sheet)
