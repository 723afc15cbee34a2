"""What people hand in, and what learning platforms make of it: whose it is, what counts, what is refused and why."""

import io
import json
import os
import stat
import tracemalloc
import zipfile
from pathlib import Path
from random import Random

import pytest
import submitted
from batches import graded
from cohorts import packed

from labkit.core.errors import InvalidInput
from labkit.grading import archives
from labkit.grading.course import load
from labkit.grading.gradebook import write_book
from labkit.grading.platforms import origin
from labkit.grading.reading import read
from labkit.grading.requests import Request
from labkit.grading.scoring import Policy
from labkit.grading.submissions import Submission, collect

NAME = f"{submitted.NOTEBOOK}.ipynb"
GOOD = submitted.notebook(*submitted.answers())


def found(given: Path, work: Path) -> dict[str, Submission]:
    work.mkdir(exist_ok=True)
    return {one.origin.shown: one for one in collect([given], load(submitted.COURSE), work, None)}


@pytest.mark.parametrize(
    ("place", "student", "late"),
    [
        ("in/ada/01_sample.ipynb", "ada", False),
        ("in/ada/deep/er/anything.ipynb", "ada", False),
        ("in/Ada Lovelace_123_assignsubmission_file_/nb.ipynb", "Ada Lovelace", False),
        ("in/lovelaceada_4711_99_01_sample.ipynb", "lovelaceada_4711", False),
        ("in/lovelaceada_LATE_4711_99_01_sample-1.ipynb", "lovelaceada_4711", True),
        ("in/ada_01_sample.ipynb", "ada", False),
        ("in/01_sample-ada.ipynb", "ada", False),
        ("ada/01_sample.ipynb", "ada", False),
        ("in/J\u200bosé/01_sample.ipynb", "J_osé", False),
    ],
)
def test_whose_it_is(place: str, student: str, late: bool) -> None:
    whose = origin(Path(place), [submitted.NOTEBOOK])
    assert (whose.shown, whose.late) == (student, late)


def test_the_newest_file_counts_and_the_others_are_named(tmp_path: Path) -> None:
    old = submitted.hand_in(tmp_path / "in", "ada", submitted.answers())
    new = old.with_name("again.ipynb")
    new.write_text(submitted.notebook(*submitted.answers(), "1 + 1"))
    os.utime(old, (1, 1))
    one = found(tmp_path / "in", tmp_path / "work")["ada"]
    assert one.file == "ada/again.ipynb"
    [note] = one.notes
    assert note.index("newest counts") < note.index("ada/again.ipynb") < note.index("not ada/01_sample.ipynb")


def test_a_zip_with_two_notebooks_for_one_student(tmp_path: Path) -> None:
    archive = packed(tmp_path / "all.zip", {"ada/a.ipynb": GOOD, "ada/b.ipynb": GOOD, "bob/a.ipynb": GOOD})
    both = found(archive, tmp_path / "work")
    assert set(both) == {"ada", "bob"}
    assert both["ada"].notes[0].startswith("2 files for one notebook; the newest counts (all.zip/ada/b.ipynb)")


def test_an_archive_within_a_folder_and_within_an_archive(tmp_path: Path) -> None:
    (tmp_path / "in" / "ada").mkdir(parents=True)
    packed(tmp_path / "in" / "ada" / "mine.zip", {"x/01_sample.ipynb": GOOD})
    inner = packed(tmp_path / "inner.zip", {"01_sample.ipynb": GOOD}).read_bytes()
    packed(tmp_path / "in" / "moodle.zip", {"Bob_1_assignsubmission_file_/bob.zip": inner})
    assert set(found(tmp_path / "in", tmp_path / "work")) == {"ada", "Bob"}


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("../../../tmp/labkit-was-here.ipynb", "outside the archive"),
        ("/tmp/labkit-was-here.ipynb", "outside the archive"),
    ],
)
def test_a_path_that_leads_out_of_its_archive(name: str, says: str, tmp_path: Path) -> None:
    archive = packed(tmp_path / "all.zip", {name: GOOD, "bob/01_sample.ipynb": GOOD})
    both = found(archive, tmp_path / "work")
    assert not both["bob"].problem
    assert [one.problem for one in both.values() if says in one.problem]
    assert not Path("/tmp/labkit-was-here.ipynb").exists()


def test_links_are_not_followed(tmp_path: Path) -> None:
    (tmp_path / "in" / "eve").mkdir(parents=True)
    (tmp_path / "in" / "eve" / "01_sample.ipynb").symlink_to("/etc/passwd")
    (tmp_path / "in" / "mallory").symlink_to("/etc")
    link = zipfile.ZipInfo("oscar/01_sample.ipynb")
    link.external_attr = (stat.S_IFLNK | 0o777) << 16
    with zipfile.ZipFile(tmp_path / "in" / "all.zip", "w") as archive:
        archive.writestr(link, "/etc/passwd")
    both = found(tmp_path / "in", tmp_path / "work")
    assert set(both) == {"eve", "mallory", "all"}  # an archive in a folder is a student's
    assert all("link" in one.problem for one in both.values())


def test_a_zip_bomb_is_refused(tmp_path: Path) -> None:
    zeros = b"0" * (12 * 1024**2)
    packed(tmp_path / "ratio.zip", {"eve/01_sample.ipynb": zeros, "bob/01_sample.ipynb": GOOD})
    both = found(tmp_path / "ratio.zip", tmp_path / "work")
    assert "compressed" in both["eve"].problem
    assert not both["bob"].problem
    layers = GOOD.encode()
    for _ in range(30):
        inner = io.BytesIO()
        with zipfile.ZipFile(inner, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("next.zip", layers)
        layers = inner.getvalue()
    (tmp_path / "deep.zip").write_bytes(layers)
    assert next(one.problem for one in found(tmp_path / "deep.zip", tmp_path / "work").values())


def test_too_many_entries_and_no_archive_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archives, "MOST_ENTRIES", 5)
    packed(tmp_path / "many.zip", {f"{n}.ipynb": GOOD for n in range(6)})
    (one,) = found(tmp_path / "many.zip", tmp_path / "work").values()
    assert "6 files" in one.problem
    (tmp_path / "not.zip").write_bytes(b"PK\3\4 and nothing else")
    (one,) = found(tmp_path / "not.zip", tmp_path / "work").values()
    assert "not a ZIP archive" in one.problem


def test_nothing_there_is_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    with pytest.raises(InvalidInput, match="found no submission"):
        found(tmp_path / "in", tmp_path / "work")
    with pytest.raises(InvalidInput, match="no such file"):
        found(tmp_path / "nowhere", tmp_path / "work")


def cells_of(count: int) -> str:
    plain = json.loads(GOOD)
    plain["cells"] += [{"cell_type": "code", "source": "1"}] * count
    return json.dumps(plain)


def with_metadata(**said: object) -> str:
    plain = json.loads(GOOD)
    plain["metadata"].update(said)
    return json.dumps(plain)


def of_format_3() -> str:
    """The good notebook as Jupyter wrote it before 2015."""
    plain = json.loads(GOOD)
    cells = [
        {"cell_type": "code", "language": "python", "outputs": [], "metadata": {}, "input": each["source"]}
        if each["cell_type"] == "code"
        else {**each, "cell_type": "markdown"}
        for each in plain["cells"]
    ]
    return json.dumps({"nbformat": 3, "nbformat_minor": 0, "metadata": {}, "worksheets": [{"cells": cells}]})


def with_text(text: str) -> str:
    """The good notebook with a cell of Markdown that is this JSON text."""
    return GOOD.replace('"cells": [', f'"cells": [{{"cell_type": "markdown", "metadata": {{}}, "source": {text}}}, ', 1)


ODD = {
    "a byte order mark": b"\xef\xbb\xbf" + GOOD.encode(),
    "UTF-16": GOOD.encode("utf-16"),
    "NaN in an output": GOOD.replace('"outputs": []', '"outputs": [{"data": [NaN, -Infinity]}]', 1).encode(),
    "half a surrogate pair": with_text(r'"a \ud83d b"').encode(),
    "bytes that are no text": with_text('"a ? b"').encode().replace(b"?", b"\xff"),
    "format 3": of_format_3().encode(),
    "a version with a point": GOOD.replace('"nbformat": 4', '"nbformat": 4.0').encode(),
}


@pytest.mark.parametrize("case", ODD)
def test_what_other_tools_save_is_read(case: str) -> None:
    assert ODD[case] != GOOD.encode()
    assert [cell.source for cell in read(ODD[case]).cells] == [cell.source for cell in read(GOOD.encode()).cells]


def test_what_cannot_be_read_stands_under_to_settle_with_the_student_and_what_to_ask_for(tmp_path: Path) -> None:
    given = tmp_path / "in"
    other = given / "zoe"
    for folder in (*(given / name for name in ("html", "docx", "cut", "rar")), other):
        folder.mkdir(parents=True)
    (given / "html" / "01_sample.html").write_text("<html></html>")
    (given / "docx" / "answer.docx").write_bytes(b"PK\3\4")
    (given / "cut" / "01_sample.ipynb").write_text(GOOD[:200])
    (given / "rar" / "all.rar").write_bytes(b"Rar!")
    submitted.hand_in(given, "zoe", submitted.answers())
    (other / "02_other.html").write_text("<html></html>")
    (other / "helpers.py").write_text("x = 1")
    empty = submitted.hand_in(given, "txt", [cell["source"] for cell in submitted.released()][-1:])
    (empty.parent / "answer.txt").write_text("Durable.")
    (other / "notes.txt").write_text("Durable.")
    deep = packed(tmp_path / "deep.zip", {"01_sample.ipynb": GOOD}).read_bytes()
    inner = packed(tmp_path / "inner.zip", {"deep.zip": deep}).read_bytes()
    packed(given / "moodle.zip", {"Bob_1_assignsubmission_file_/bob.zip": inner})
    asked = {student: " ".join(one.doubts) for student, one in found(given, tmp_path / "work").items()}
    assert all("Ask the student for the notebook itself" in each for each in asked.values()), asked
    assert "01_sample.html" in asked["html"]
    assert "answer.docx" in asked["docx"]
    assert "ends in the middle" in asked["cut"]
    assert "all.rar" in asked["rar"]
    assert "an archive within an archive" in asked["Bob"]
    assert "02_other.html" in asked["zoe"]
    assert "helpers.py" not in asked["zoe"]
    assert "answer.txt was not graded" in asked["txt"]
    assert "notes.txt" not in asked["zoe"]
    known = ("01_sample",)
    read_again = found(given, tmp_path / "read")
    unread = {student: one.unread for student, one in read_again.items()}
    settled_by = {student: [*one.settled_by.values()] for student, one in read_again.items()}
    assert all(one.settled_by.keys() <= {*one.doubts} for one in read_again.values())
    anything = [("",)]
    assert settled_by == dict.fromkeys(("html", "docx", "rar", "Bob"), anything) | {
        "cut": [known], "zoe": [], "txt": [known],
    }  # fmt: skip
    assert unread == {"html": ("",), "docx": ("",), "cut": known, "rar": ("",), "Bob": ("",), "zoe": (), "txt": ()}
    assert found(given, tmp_path / "again")["zoe"].path is not None


def test_a_file_of_regrade_requests_belongs_to_who_handed_it_in(tmp_path: Path) -> None:
    text = b"Dear all,\r\n- 01-double: it doubles -2,\n  and 0.\n01-WHY my text\x1b[31m\n"
    given = packed(
        tmp_path / "moodle.zip",
        {
            f"Ada_1_assignsubmission_file_{NAME}": GOOD,
            "Ada_1_assignsubmission_file_regrade.txt": text,
            "Bob_2_assignsubmission_file_/regrade.txt": "01-dedup".encode("utf-16"),
        },
    )
    by_name = found(given, tmp_path / "work")
    assert by_name["Ada"].requests == (
        Request("", "Dear all,"), Request("01-double", "it doubles -2, and 0."), Request("01-why", "my text [31m"),
    )  # fmt: skip
    assert by_name["Ada"].notes == ()
    assert by_name["Bob"].requests == (Request("01-dedup", "no reason given"),)
    assert "no notebook" in by_name["Bob"].problem
    assert by_name["Bob"].unread == by_name["Bob"].doubts == ()


def test_of_many_files_of_regrade_requests_only_the_newest_is_kept(tmp_path: Path) -> None:
    large = Random(1).randbytes(1 << 20).replace(b"\n", b"")
    (tmp_path / "in" / "ada").mkdir(parents=True)
    packed(tmp_path / "in" / "ada" / "a.zip", {f"{n}/regrade.txt": b"01-why: look\n" + large for n in range(12)})
    tracemalloc.start()
    [one] = found(tmp_path / "in", tmp_path / "work").values()
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert one.requests[0].exercise == "01-why"
    assert peak < 8 << 20


BAD = {
    "not_json": ("this is my essay", "The file is not a notebook"),
    "cut_off": (GOOD[:300], "The file ends in the middle"),
    "a_list": ("[]", "The file is not a notebook"),
    "old_format": (json.dumps({"nbformat": 2, "worksheets": []}), "format 3 or 4"),
    "deep": ('{"cells":' + "[" * 200_000, "The file is not a notebook"),
    "deep_metadata": ('{"nbformat":4,"cells":[],"metadata":' + '{"a":' * 100_000 + "1" + "}" * 100_001, "not"),
    "many_cells": (cells_of(100_000), "at most 1,000"),
    "huge_cell": (submitted.notebook("x" * 300_000), "characters"),
    "binary": ("\0\1\2" * 1000, "The file is not a notebook"),
    "nothing": ("", "The file is empty."),
    "a_page": ("<!DOCTYPE html><title>Log in</title>", "The file is a web page"),
    "renamed": ("PK\3\4" + "word/document.xml", "an Office document"),
    "merged": (GOOD.replace("{", "{\n<<<<<<< HEAD\n", 1), "merge conflict"),
    "no_answer": (submitted.notebook("1 + 1"), "The notebook contains no answer."),
    "stubs": (
        submitted.notebook(*(cell["source"] for cell in submitted.released())),
        "The notebook contains no answer.",
    ),
    "in_r": (with_metadata(kernelspec={"name": "ir", "language": "R"}), "for the kernel ir"),
    "unknown_exercise": (
        submitted.notebook(*submitted.answers(), "# exercise 99-magic\nx = 1"),
        "which this notebook does not have",
    ),
    "old_lab": (with_metadata(labkit={"version": "0.0.1", "notebook": "01_sample"}), "version 0.0.1 of the lab"),
    "other_kernel": (with_metadata(kernelspec={"name": "conda-base", "language": "python"}), "the kernel conda-base"),
    "lying": (with_metadata(labkit={"version": 7, "notebook": ["x"]}, kernelspec="python", language_info=3), ""),
}
FULL = {"unknown_exercise", "old_lab", "other_kernel", "lying"}


@pytest.mark.slow
def test_every_bad_submission_gets_its_sentence_and_the_batch_goes_on(tmp_path: Path) -> None:
    for name, (text, _) in BAD.items():
        path = tmp_path / "in" / name / "01_sample.ipynb"
        path.parent.mkdir(parents=True)
        path.write_text(text)
    submitted.hand_in(tmp_path / "in", "ada", submitted.answers())
    (tmp_path / "in" / "bob").mkdir()
    (tmp_path / "in" / "bob" / "essay.ipynb").write_text(submitted.notebook("1 + 1"))
    assert graded(tmp_path).failed == 0
    found = {record.student: record for record in write_book(tmp_path / "out", load(submitted.COURSE), Policy())[0]}
    assert set(found) == {*BAD, "ada", "bob"}
    assert "not a notebook of the course" in found["bob"].notes[0]
    for name, (_, says) in BAD.items():
        told = " ".join(found[name].notes)
        assert says in told, (name, told)
        assert "\n" not in told
        points = [item.points for item in found[name].items]
        assert points == ([2, 2, 2, None] if name in FULL else [0, 0, 0, 0]), name
    assert [item.points for item in found["ada"].items] == [2, 2, 2, None]


def test_a_name_cannot_be_a_formula_and_two_names_cannot_be_one_file(tmp_path: Path) -> None:
    for student in ("=cmd|' /C calc'!A0", "a b", "a_b", "<script>alert(1)</script>"):
        submitted.hand_in(tmp_path / "in", student.replace("/", "\u2215"), [])
    graded(tmp_path)
    found, _ = write_book(tmp_path / "out", load(submitted.COURSE), Policy())
    assert len(found) == 4
    table = (tmp_path / "out" / "grades.csv").read_text()
    assert not [line for line in table.splitlines() if line.startswith("=")]
    pages = [page.read_text() for page in (tmp_path / "out" / "feedback").iterdir()]
    assert len(pages) == 4
    assert not [page for page in pages if "<script" in page]
