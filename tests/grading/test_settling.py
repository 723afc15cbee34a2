"""No batch is lost: whatever fails ends in points, or in a zero with its reason; and what went wrong is told safely."""

import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import pytest
import submitted

from labkit.core.errors import InvalidInput
from labkit.grading import archives, batch, explaining, outputs, records, tasks
from labkit.grading.course import load
from labkit.grading.order import Order
from labkit.grading.platforms import plain_origin
from labkit.grading.preparing import as_notebook
from labkit.grading.records import Isolation, ItemRecord, Record
from labkit.grading.requests import Request
from labkit.grading.sandbox.inside.running import MOST_NOTEBOOK
from labkit.grading.submissions import Submission, collect
from labkit.grading.worker import none_graded, settle

COURSE = load(submitted.COURSE)
ASKED = COURSE.of_notebook(submitted.NOTEBOOK)


def failed_record(sha256: str = "a") -> Record:
    record = Record("sample", "ada", submitted.NOTEBOOK, "f", sha256, 1, "d", {}, Isolation("namespaces"), key="ada")
    none_graded(record, ASKED, "the worker died")
    return record


def in_batches(count: int, shas: Sequence[str] = ()) -> Record:
    """What a file's record says after so many batches in which grading itself failed."""
    before = None
    for number in range(count):
        record = failed_record(shas[number] if shas else "a")
        settle(record, before, ())
        before = record
    assert before is not None
    return before


def test_what_fails_in_batch_after_batch_ends_in_a_zero_with_its_reason() -> None:
    for count in range(1, records.MOST_TRIES):
        record = in_batches(count)
        assert not record.graded()
        assert {item.points for item in record.items} == {None}
    record = in_batches(records.MOST_TRIES)
    assert record.graded()
    assert {item.points for item in record.items} == {0}
    assert all("the worker died" in item.reason for item in record.items)
    assert all("the worker died" not in item.shown for item in record.items)
    assert record.doubts[0].startswith(records.GIVEN_UP)
    assert "--marks" in record.doubts[0]
    assert record.settled_by == {record.doubts[0]: [each.name for each in ASKED]}


def test_another_file_begins_to_count_anew() -> None:
    assert not in_batches(records.MOST_TRIES, ["a", "b", "a"]).graded()


def test_exercises_that_nobody_asked_for_keep_their_points() -> None:
    before = failed_record()
    before.items = [ItemRecord(one.name, one.points, points=one.points, status="right") for one in ASKED]
    record = failed_record()
    settle(record, before, ["01-dedup"])
    assert [item.points for item in record.items] == [2, None, 2, 2]


def test_a_worker_that_always_dies_is_settled_by_the_batch_itself(tmp_path: Path) -> None:
    (tmp_path / "records").mkdir()
    one = Submission(
        plain_origin("ada"), "ada/x.ipynb", None, datetime.now().astimezone(), notebook=submitted.NOTEBOOK, sha256="a"
    )
    order = Order([tmp_path], tmp_path, submitted.COURSE)
    setting = tasks.Setting(
        submitted.COURSE,
        1,
        batch.levels.Level.NAMESPACES,
        {},
        order.limits,
        order.patience,
        batch.levels.Place("", ()),
        Path(),
        tmp_path,
    )
    told = [
        batch._write_failure(one, "it died \udcf6 badly".encode(errors="replace").decode(), setting, order)
        for _ in range(records.MOST_TRIES)
    ]
    assert told == [*[False] * (records.MOST_TRIES - 1), True]


@pytest.mark.parametrize("letter", ["é", "\U0001f600", "\\", '"', "\n", "\x7f", "\u2028"])
def test_what_may_come_in_may_also_be_run(letter: str) -> None:
    """A notebook of the largest size that is read is not too large for the sandbox when it is written anew."""
    sources = [f"# {letter * 199_000}"] * 38
    while len(json.dumps(sources, ensure_ascii=False).encode()) > 16 * 1024**2:
        sources.pop()
    assert len(as_notebook(sources).encode()) < MOST_NOTEBOOK


def test_one_student_is_named_by_key_account_or_name(tmp_path: Path) -> None:
    for folder in (
        "Max Muster_1_assignsubmission_file_",
        "Max Muster_2_assignsubmission_file_",
        "Ada_3_assignsubmission_file_",
    ):
        submitted.hand_in(tmp_path / "in", folder, submitted.answers())
    (tmp_path / "work").mkdir()
    found = collect([tmp_path / "in"], COURSE, tmp_path / "work", None)

    def chosen(*only: str, exercises: Sequence[str] = ()) -> list[str]:
        order = Order([tmp_path / "in"], tmp_path / "out", submitted.COURSE, only=only, exercises=exercises)
        return [one.key for one in batch._chosen(order, COURSE, found, 1)]

    assert chosen("Ada") == chosen("3") == chosen("moodle-3") == ["moodle-3"]
    assert chosen(exercises=["01-dedup"]) == ["moodle-1", "moodle-2", "moodle-3"]
    with pytest.raises(InvalidInput, match="name one of moodle-1, moodle-2"):
        chosen("Max Muster")
    with pytest.raises(InvalidInput, match="no student of this name"):
        chosen("Eve")
    with pytest.raises(InvalidInput, match=r"--exercise 01-wyh: .* choose from 01-double"):
        batch.run(Order([tmp_path / "in"], tmp_path / "out", submitted.COURSE, exercises=["01-wyh"]), lambda *_: None)


@pytest.mark.slow
def test_what_cannot_be_read_is_refused_once_and_again_when_the_reason_is_another(tmp_path: Path) -> None:
    folder = tmp_path / "in" / "Ada_3_assignsubmission_file_"
    folder.mkdir(parents=True)
    archive = folder / "work.zip"
    archive.write_bytes(b"PK no archive")
    order = Order([tmp_path / "in"], tmp_path / "out", submitted.COURSE, workers=1)

    def graded() -> tuple[int, int, int]:
        done = batch.run(order, lambda *_: None)
        return done.graded, done.kept, done.unread

    assert graded() == (0, 0, 1)
    assert graded() == (0, 1, 1)
    archive.unlink()
    (folder / "essay.docx").write_bytes(b"words")
    assert graded() == (0, 0, 1)


def test_a_kept_record_is_brought_up_to_date_and_keeps_its_points(tmp_path: Path) -> None:
    submitted.hand_in(tmp_path / "in", "ada", submitted.answers())
    (tmp_path / "work").mkdir()
    (one,) = collect([tmp_path / "in"], COURSE, tmp_path / "work", None)
    one = replace(one, origin=replace(one.origin, dated_by="a.zip"), answered_at={"": archives.NEVER})
    path = outputs.record_path(tmp_path, one)
    path.parent.mkdir()
    record = in_batches(records.MOST_TRIES)
    record.sha256, record.digest, record.file = one.sha256, COURSE.digest, "elsewhere"
    record.requests = [Request("01-why", "a request that the student has taken back")]
    records.write(record, path)
    assert outputs.is_kept(one, tmp_path, COURSE, 1)
    kept = records.read(path)
    assert kept is not None
    assert kept.file == "ada/01_sample.ipynb"
    assert kept.requests == []
    assert (kept.dated_by, list(kept.answered_at)) == ("a.zip", [""])
    assert kept.doubts[0].startswith(records.GIVEN_UP)
    assert not outputs.is_kept(one, tmp_path, COURSE, 2)
    path.write_text("{")
    assert not outputs.is_kept(one, tmp_path, COURSE, 1)


@pytest.mark.parametrize(
    ("source", "says"),
    [
        ("def double(number)\n    return 1", "Line 1 of the cell: expected ':'."),
        ("def duoble(number): return 1", "The cell does not define double."),
        ("def double(number): return nubmer", ""),
        ("%%time\ndef double(number): return 1", ""),
        ("", ""),
        ("(" * 10_000, "Line 1"),
    ],
)
def test_what_a_cell_shows_without_being_run(source: str, says: str) -> None:
    told = explaining._in_text(ASKED[0], source)
    assert told.startswith(says) if says else told == ""
