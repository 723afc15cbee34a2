"""Whose a file is, in the shape of every platform and for names as people have them: nobody gets another
one's points.
"""

import os
import unicodedata
import zipfile
from collections.abc import Callable, Iterable
from datetime import datetime
from pathlib import Path

import cohorts
import pytest
import submitted
from cohorts import LATE, NOTEBOOK, Learner, packed, write, zipped

from labkit.core.errors import InvalidInput
from labkit.grading import archives, records, submissions
from labkit.grading.course import load
from labkit.grading.submissions import Submission, collect

DEADLINE = datetime(2027, 1, 31, 18).astimezone()
BLANK = (submitted.SAMPLE / "notebooks" / NOTEBOOK).read_text()


def answer(number: int) -> str:
    """A notebook that nobody else hands in."""
    return submitted.notebook(*submitted.answers(), f"mine = {number}")


def sha(content: str) -> str:
    from labkit.grading.reading import read

    return read(content.encode()).sha256


def gathered(folder: Path, *given: Path, deadline: datetime | None = None, out: Path | None = None) -> list[Submission]:
    work = folder / "work"
    work.mkdir(exist_ok=True)
    return collect(list(given), load(submitted.COURSE), work, deadline, out)


def by_key(found: Iterable[Submission]) -> dict[str, Submission]:
    found = list(found)
    keys = {one.key: one for one in found}
    assert len(keys) == len(found), "two submissions of one student for one notebook"
    return keys


def names_apart(found: Iterable[Submission]) -> None:
    """No two students share a file, also on a disk that does not tell upper from lower case."""
    files = [records.file_name(one.key, one.notebook).casefold() for one in found]
    assert len(set(files)) == len(files)
    assert all(len(name.encode()) < 150 and name.isascii() for name in files)


CLASS = [
    Learner("Ada Lovelace", 1001, "ada", answer(1)),
    Learner("Max Muster", 1002, "mmuster1", answer(2)),
    Learner("Max Muster", 1003, "mmuster2", answer(3), LATE),
    Learner("Jörg Größe", 1004, "b_joerg", answer(4)),
    Learner("Łukasz O'Brien-Śmith", 1005, "lukasz", answer(5)),
    Learner("李 小龍", 1006, "xiaolong.li", answer(6)),
    Learner("X" * 180, 1007, "x" * 60, answer(7)),
]


@pytest.mark.parametrize("make", cohorts.ALL, ids=lambda make: make.__name__)
def test_everybody_has_a_row_and_their_own_file(make: Callable[..., Path], tmp_path: Path) -> None:
    given = make(tmp_path, CLASS)
    found = by_key(gathered(tmp_path, given, deadline=DEADLINE))
    assert sorted(one.sha256 for one in found.values()) == sorted(sha(one.content) for one in CLASS)
    assert not any(one.problem or one.doubts for one in found.values())
    names_apart(found.values())
    late = {one.sha256 for one in found.values() if one.late}
    assert late == (set() if make in cohorts.CLONES else {sha(CLASS[2].content)})


@pytest.mark.parametrize("make", cohorts.ALL, ids=lambda make: make.__name__)
def test_the_same_student_is_the_same_in_a_second_download(make: Callable[..., Path], tmp_path: Path) -> None:
    first = by_key(gathered(tmp_path, make(tmp_path / "a", CLASS)))
    newer = [one._replace(content=answer(90 + n), when=LATE) for n, one in enumerate(CLASS)]
    both = by_key(gathered(tmp_path, make(tmp_path / "a", CLASS), make(tmp_path / "b", newer)))
    assert set(both) == set(first)
    if make is not cohorts.canvas:  # which dates an archive's entries when it is downloaded
        assert {one.sha256 for one in both.values()} == {sha(one.content) for one in newer}


@pytest.mark.parametrize(
    ("make", "keys"),
    [
        (cohorts.moodle, {f"moodle-{n}" for n in range(1001, 1008)}),
        (cohorts.canvas, {f"canvas-{n}" for n in range(1001, 1008)}),
        (cohorts.blackboard, {f"blackboard-{one.account}" for one in CLASS}),
        (cohorts.brightspace, {f"brightspace-{n}" for n in range(1001, 1008)}),
        (cohorts.gradescope, {f"gradescope-{one.account}" for one in CLASS}),
        *((make, {f"github-{one.account}" for one in CLASS}) for make in cohorts.CLONES),
        (cohorts.archives, {one.account for one in CLASS}),
        (cohorts.single_files, {one.account for one in CLASS}),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_a_student_is_who_the_platform_says(make: Callable[..., Path], keys: set[str], tmp_path: Path) -> None:
    assert set(by_key(gathered(tmp_path, make(tmp_path, CLASS)))) == keys


def test_folders_that_begin_alike_are_no_clones_unless_github_classroom_called_the_folder_above(tmp_path: Path) -> None:
    for who in ("team-a", "team-b"):
        cohorts.write(tmp_path / "in" / who / NOTEBOOK, answer(1))
    assert set(by_key(gathered(tmp_path, tmp_path / "in"))) == {"team-a", "team-b"}
    (tmp_path / "in").rename(tmp_path / "other-submissions")
    assert set(by_key(gathered(tmp_path, tmp_path / "other-submissions"))) == {"team-a", "team-b"}


def test_attempts_of_one_student_are_one_and_the_newest_counts(tmp_path: Path) -> None:
    begin = "Exercise_ada_attempt_2027-01-"
    path = packed(
        tmp_path / "gradebook.zip",
        {f"{begin}{day}-10-00-00_{NOTEBOOK}": answer(day) for day in (28, 29, 27)}
        | {f"Exercise_bob_attempt_2027-01-20-10-00-00_{NOTEBOOK}": answer(1)},
    )
    found = by_key(gathered(tmp_path, path))
    assert set(found) == {"blackboard-ada", "blackboard-bob"}
    ada = found["blackboard-ada"]
    assert (ada.sha256, ada.when.day) == (sha(answer(29)), 29)
    assert "3 files" in ada.notes[0]
    dates = {
        f"12-9 - Ada - Jan {day}, 2027 {hour}00 AM/{NOTEBOOK}": answer(day + hour)
        for day, hour in ((3, 9), (3, 10), (2, 11))
    }
    found = by_key(gathered(tmp_path, packed(tmp_path / "d2l.zip", dates)))
    assert found["brightspace-12"].sha256 == sha(answer(13))


def test_a_username_with_an_underscore_is_not_cut(tmp_path: Path) -> None:
    names = {
        f"Ex_One_{who}_attempt_2027-01-01-10-00-00_{NOTEBOOK}": answer(n)
        for n, who in enumerate(("b_smith", "smith", "j_b_smith"))
    }
    found = by_key(gathered(tmp_path, packed(tmp_path / "gradebook.zip", names)))
    assert set(found) == {"blackboard-b_smith", "blackboard-smith", "blackboard-j_b_smith"}


def test_an_archive_in_a_folder_is_the_student_it_is_named_after(tmp_path: Path) -> None:
    packed(tmp_path / "in/frida.zip", {f"course/notebooks/{NOTEBOOK}": answer(1)})
    packed(tmp_path / "in/mallory.zip", {f"frida/{NOTEBOOK}": BLANK}, (2099, 1, 1, 0, 0, 0))
    write(tmp_path / "in/emil" / NOTEBOOK, answer(2))
    found = by_key(gathered(tmp_path, tmp_path / "in"))
    assert set(found) == {"frida", "mallory", "emil"}
    assert found["frida"].sha256 == sha(answer(1))


def test_an_archive_cannot_take_another_ones_place_by_what_its_folders_are_called(tmp_path: Path) -> None:
    fake = f"Frida Kahlo_1002_assignsubmission_file_/{NOTEBOOK}"
    packed(tmp_path / "in/mallory.zip", {fake: answer(98)}, (2099, 1, 1, 0, 0, 0))
    real = packed(tmp_path / "moodle.zip", {fake: answer(1)})
    frida = by_key(gathered(tmp_path, real, tmp_path / "in"))["moodle-1002"]
    assert frida.sha256 == sha(answer(1))
    assert "the command line does not name" in frida.doubts[0]
    nested = packed(tmp_path / "both.zip", {
        "Mallory_1003_assignsubmission_file_/x.zip": zipped({fake: answer(98)}, (2099, 1, 1, 0, 0, 0)), fake: answer(1),
        f"Mallory_1003_assignsubmission_file_/{fake}": answer(99),
    })  # fmt: skip
    found = by_key(gathered(tmp_path, nested))
    assert found["moodle-1002"].sha256 == sha(answer(1))
    assert found["moodle-1002"].doubts == ()
    assert found["moodle-1003"].sha256 in {sha(answer(98)), sha(answer(99))}


def test_names_that_only_look_the_same_are_two_students(tmp_path: Path) -> None:
    composed, taken_apart = (unicodedata.normalize("NFC", "Jörg"), unicodedata.normalize("NFD", "Jörg"))
    names = [
        composed,
        taken_apart,
        "carl",
        "carl ",
        "Zoe",
        "zoe",
        "Bob Smith",
        "bob_smith-7e3d89810a1b2c3d",
        "a--01_sample",
        "con",
        "..x",
    ]
    names.append(records.file_name("Bob Smith", "")[: -len("--nothing")])
    for number, name in enumerate(names):
        write(tmp_path / "in" / name / NOTEBOOK, answer(number))
    found = by_key(gathered(tmp_path, tmp_path / "in"))
    shown = {name for name in names if not name.startswith(".")}
    assert set(found) == shown
    assert {one.sha256 for one in found.values()} == {sha(answer(n)) for n, name in enumerate(names) if name in shown}
    names_apart(found.values())


@pytest.mark.parametrize(
    "raw", [b"L\xf6sung", b"\xff\xfe", b"J\xc3\xb6rg", b"a\\xf6b", b"tab\there", b"new\nline", b"n" * 200]
)
def test_a_name_of_any_bytes(raw: bytes, tmp_path: Path) -> None:
    name = os.fsdecode(raw)
    file = NOTEBOOK if len(raw) > 100 else f"{name} {NOTEBOOK}"
    write(tmp_path / "in" / name / file, answer(1))
    write(tmp_path / "in/greta" / NOTEBOOK, answer(2))
    found = gathered(tmp_path, tmp_path / "in")
    assert sorted(one.sha256 for one in found) == sorted((sha(answer(1)), sha(answer(2))))
    for one in found:
        for said in (one.key, one.origin.shown, one.file):
            said.encode()
    names_apart(found)


def test_bytes_and_their_spelling_are_two_names(tmp_path: Path) -> None:
    for number, raw in enumerate((b"\xf6", b"\\xf6", b"\\\\xf6")):
        write(tmp_path / "in" / os.fsdecode(raw) / "a.ipynb", answer(number))
    assert len(by_key(gathered(tmp_path, tmp_path / "in"))) == 3


def test_an_archive_that_does_not_say_that_its_names_are_utf_8(tmp_path: Path) -> None:
    path = packed(tmp_path / "moodle.zip", {f"J#rg_1_assignsubmission_file_/{NOTEBOOK}": answer(1)})
    path.write_bytes(path.read_bytes().replace(b"J#rg", "Jö"[:2].encode() + b"g"))
    (one,) = gathered(tmp_path, path)
    assert one.origin.shown == "Jög"


def test_archives_in_an_archive_are_the_students_they_are_named_after(tmp_path: Path) -> None:
    def inner(number: int) -> bytes:
        return zipped({f"course/notebooks/{NOTEBOOK}": answer(number)})

    plain = packed(tmp_path / "all.zip", {"dora.zip": inner(1), "emil.zip": inner(2)})
    assert set(by_key(gathered(tmp_path, plain))) == {"dora", "emil"}
    names = {"lovelaceada_LATE_4711_99_x.zip": inner(1), "musterm_4712_98_x.zip": inner(2)}
    found = by_key(gathered(tmp_path, packed(tmp_path / "submissions.zip", names)))
    assert {key: one.late for key, one in found.items()} == {"canvas-4711": True, "canvas-4712": False}
    (one,) = gathered(tmp_path, packed(tmp_path / "in/all.zip", {"dora.zip": inner(1), "emil.zip": inner(2)}).parent)
    assert "name the folder that contains" in one.doubts[0]


def test_dates_inside_a_students_archive_are_the_students_word(tmp_path: Path) -> None:
    backdated = zipped({NOTEBOOK: answer(1)}, (2026, 12, 1, 0, 0, 0))
    path = packed(
        tmp_path / "moodle.zip", {"Sly Sam_1004_assignsubmission_file_/work.zip": backdated}, (2027, 3, 1, 0, 0, 0)
    )
    (sam,) = gathered(tmp_path, path, deadline=DEADLINE)
    assert (sam.late, sam.when.month) == (True, 3)
    packed(tmp_path / "in/sam.zip", {f"x/{NOTEBOOK}": answer(1)}, (2026, 12, 1, 0, 0, 0))
    stamp = datetime(2027, 3, 1).timestamp()  # noqa: DTZ001 - this machine's time
    os.utime(tmp_path / "in/sam.zip", (stamp, stamp))
    (sam,) = gathered(tmp_path, tmp_path / "in", deadline=DEADLINE)
    assert sam.late
    (sam,) = gathered(tmp_path, tmp_path / "in/sam.zip", deadline=DEADLINE)
    assert sam.late
    blackboard = f"Ex_sam_attempt_2027-03-01-10-00-00_{NOTEBOOK}"
    (sam,) = gathered(
        tmp_path, packed(tmp_path / "gradebook.zip", {blackboard: answer(1)}, (2026, 1, 1, 0, 0, 0)), deadline=DEADLINE
    )
    assert sam.late


def downloaded(path: Path, entries: dict[str, str | bytes]) -> Path:
    """An archive that says of its files that they were on time, and whose own date is after the deadline."""
    packed(path, entries)
    os.utime(path, (DEADLINE.timestamp() + 3600,) * 2)
    return path


def test_loose_notebooks_of_a_named_archive_are_asked_about_and_have_its_date(tmp_path: Path) -> None:
    flat = downloaded(tmp_path / "in/flat.zip", {NOTEBOOK: answer(1), "data.csv": "1", "pictures/a.png": "2"})
    (named,) = gathered(tmp_path, flat, deadline=DEADLINE)
    (inside,) = gathered(tmp_path, flat.parent, deadline=DEADLINE)
    assert (named.key, named.late, named.when) == (inside.key, inside.late, inside.when)
    assert (named.key, named.late, named.origin.dated_by) == ("flat", True, "")
    assert "loose notebooks" in named.doubts[0]
    assert inside.doubts == ()
    beside = downloaded(tmp_path / "eve.zip", {NOTEBOOK: answer(1), "text.pdf": "%PDF"})
    (eve,) = gathered(tmp_path, beside, deadline=DEADLINE)
    assert "eve.zip/text.pdf was not graded" in eve.doubts[1]


def test_dates_inside_an_archive_that_no_platform_made_prove_nothing(tmp_path: Path) -> None:
    ada, bob = f"Ada_1_assignsubmission_file_/{NOTEBOOK}", f"bob/{NOTEBOOK}"
    plain = downloaded(tmp_path / "class.zip", {f"ada/{NOTEBOOK}": answer(1), bob: answer(2), "eve/eve.pdf": "%PDF"})
    with zipfile.ZipFile(plain, "a") as archive:
        archive.writestr(zipfile.ZipInfo("ada/01_sample (1).ipynb", (2027, 1, 30, 13, 0, 0)), answer(3))
    os.utime(plain, (DEADLINE.timestamp() + 3600,) * 2)
    found = by_key(gathered(tmp_path, plain, deadline=DEADLINE))
    assert {one.origin.dated_by for one in found.values()} == {"class.zip"}
    assert {one.when.timestamp() - DEADLINE.timestamp() for one in found.values()} == {3600}
    # They still say which of a student's own files is the newest.
    assert found["ada"].sha256 == sha(answer(3))
    moodle = downloaded(tmp_path / "in/moodle.zip", {ada: answer(1), bob: answer(2), "eve.zip": zipped({"a": "b"})})

    def believed(place: Path) -> dict[str, tuple[str, bool]]:
        found = by_key(gathered(tmp_path, place, deadline=DEADLINE))
        return {key: (one.origin.dated_by, one.late) for key, one in found.items()}

    assert believed(moodle) == {
        "moodle-1": ("", False), "bob": ("moodle.zip", True), "eve": ("moodle.zip", True),
    }  # fmt: skip
    # In a folder of submissions, a student may have made it.
    assert set(believed(moodle.parent).values()) == {("moodle.zip", True)}
    attempts = {f"12-9 - Ada - Jan 3, 2027 {hour}00 AM/{NOTEBOOK}": answer(hour) for hour in (9, 10, 8)}
    (one,) = gathered(tmp_path, downloaded(tmp_path / "in2/d2l.zip", attempts).parent, deadline=DEADLINE)
    assert (one.origin.dated_by, one.late, one.sha256) == ("d2l.zip", True, sha(answer(10)))


def test_a_file_that_is_no_notebook_has_a_date_as_well(tmp_path: Path) -> None:
    for name in ("hand.tar.gz", "a.html", "a.rar", "a.7z", "a.docx"):
        write(tmp_path / "in" / name.replace(".", "-") / name, "anything", LATE)
        write(tmp_path / "in" / f"{name.replace('.', '-')}-on-time" / name, "anything")
    linked = tmp_path / "in/linked" / NOTEBOOK
    linked.parent.mkdir()
    linked.symlink_to(tmp_path / "nowhere")
    os.utime(linked, (DEADLINE.timestamp() + 1,) * 2, follow_symlinks=False)
    found = by_key(gathered(tmp_path, tmp_path / "in", deadline=DEADLINE))
    assert {key for key, one in found.items() if not one.late} == {key for key in found if key.endswith("-on-time")}
    pdf = packed(tmp_path / "moodle.zip", {"Ada_1_assignsubmission_file_/answer.pdf": "%PDF"}, LATE)
    (ada,) = gathered(tmp_path, pdf, deadline=DEADLINE)
    assert (ada.key, ada.late) == ("moodle-1", True)
    name = "Ex_bob_attempt_2027-03-01-10-00-00_answer.pdf"
    (bob,) = gathered(tmp_path, packed(tmp_path / "gradebook.zip", {name: "%PDF"}), deadline=DEADLINE)
    assert (bob.key, bob.late) == ("blackboard-bob", True)
    (broken,) = gathered(tmp_path, write(tmp_path / "eve.zip", "PK", LATE), deadline=DEADLINE)
    assert (broken.key, broken.late) == ("eve", True)


def test_an_unread_file_beside_a_notebook_keeps_its_date_for_the_answers_in_it(tmp_path: Path) -> None:
    recovery = submitted.notebook(submitted.marked("05-recovery", "def recover(log):\n    return 'wait'"))
    for student, other in (("named", "02_delivery.html"), ("unknown", "x.ipynb"), ("paper", "paper.pdf")):
        write(tmp_path / "in" / student / "05_two_phase_commit.ipynb", recovery)
        write(tmp_path / "in" / student / other, "<html>", LATE)
    write(tmp_path / "in/both/02_delivery.html", "<html>", LATE)
    write(tmp_path / "in/both/02_delivery.pdf", "%PDF")
    write(tmp_path / "in/both/05_two_phase_commit.ipynb", recovery)
    lab = load(None)
    blank = lab.released("05_two_phase_commit").read_bytes()
    write(tmp_path / "in/blank/05_two_phase_commit.ipynb", blank)
    write(tmp_path / "in/blank/all.docx", "PK", LATE)
    work = tmp_path / "work"
    work.mkdir()
    found = by_key(collect([tmp_path / "in"], lab, work, DEADLINE))
    assert not any(one.late for one in found.values())
    answered = {key: {name: when.month for name, when in one.answered_at.items()} for key, one in found.items()}
    assert answered == {
        "named": {"02_delivery": 2}, "unknown": {"": 2}, "paper": {}, "both": {"02_delivery": 2},
        "blank": {"05_two_phase_commit": 2},
    }  # fmt: skip


def test_a_student_with_too_many_files_has_the_date_of_the_newest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archives, "MOST_ENTRIES", 1)
    files = {f"Ada_1_assignsubmission_file_/{n}.ipynb": answer(n) for n in range(3)}
    (ada,) = gathered(tmp_path, packed(tmp_path / "moodle.zip", files, LATE), deadline=DEADLINE)
    assert "at most 1 are allowed" in ada.problem
    assert ada.late


def test_the_archive_of_one_student_named_alone_is_asked_about(tmp_path: Path) -> None:
    (dora,) = gathered(tmp_path, packed(tmp_path / "dora.zip", {f"course/notebooks/{NOTEBOOK}": answer(1)}))
    assert dora.key == "dora"
    assert "the submission of one student, dora" in dora.doubts[0]
    found = by_key(
        gathered(
            tmp_path,
            *(
                packed(tmp_path / f"{who}.zip", {f"course/notebooks/{NOTEBOOK}": answer(n)})
                for n, who in enumerate(("emil", "finn"))
            ),
        )
    )
    assert set(found) == {"emil", "finn"}


def test_each_students_folder_or_archive_may_be_named_by_itself(tmp_path: Path) -> None:
    lab = {"README.md": "the lab", "labkit/lab.py": ""}
    given = []
    for number, who in enumerate(("ada", "bob")):
        write(tmp_path / "in" / who / "notebooks" / NOTEBOOK, answer(number))
        given.append(tmp_path / "in" / who)
    for number, who in enumerate(("dora", "emil"), start=2):
        files = {f"notebooks/{NOTEBOOK}": answer(number), **lab}
        given.append(packed(tmp_path / f"{who}.zip", files))
    moodle = tmp_path / "Frida_7_assignsubmission_file_"
    write(moodle / "deep" / NOTEBOOK, answer(4))
    canvas = {f"frida_8_99_x/{NOTEBOOK}": answer(5)}
    given += [moodle, packed(tmp_path / "mallory_9_99_x.zip", canvas)]
    found = by_key(gathered(tmp_path, *given))
    assert set(found) == {"ada", "bob", "dora", "emil", "moodle-7", "canvas-9"}
    assert not any(one.doubts for one in found.values())


def test_a_folder_too_many_is_asked_about_and_a_platforms_is_seen_through(tmp_path: Path) -> None:
    for number, who in enumerate(("ada", "bob")):
        write(tmp_path / "in/class" / who / NOTEBOOK, answer(number))
    (one,) = gathered(tmp_path, tmp_path / "in")
    assert "name the folder that contains" in one.doubts[0]
    for number, who in enumerate(("Ada", "Bob")):
        write(tmp_path / "unzipped/download" / f"{who}_{number}_assignsubmission_file_" / NOTEBOOK, answer(number))
    assert set(by_key(gathered(tmp_path, tmp_path / "unzipped"))) == {"moodle-0", "moodle-1"}


def test_two_files_of_one_date_are_asked_about(tmp_path: Path) -> None:
    write(tmp_path / "in/ada/a.ipynb", answer(1))
    write(tmp_path / "in/ada/b.ipynb", answer(2))
    (ada,) = gathered(tmp_path, tmp_path / "in")
    assert "have the same date" in ada.doubts[0]


def test_what_came_along_as_it_was_released_is_not_graded(tmp_path: Path) -> None:
    path = packed(
        tmp_path / "in/ada.zip",
        {f"course/notebooks/{NOTEBOOK}": BLANK, "course/answers.ipynb": answer(1), "course/tests/conftest.py": ""},
    )
    (ada,) = gathered(tmp_path, path.parent)
    assert ada.sha256 == sha(answer(1))
    (bob,) = gathered(tmp_path, packed(tmp_path / "bob.zip", {NOTEBOOK: BLANK}))
    assert not bob.problem


def test_the_grades_are_no_submission(tmp_path: Path) -> None:
    write(tmp_path / "in/ada" / NOTEBOOK, answer(1))
    write(tmp_path / "in/grades/executed/ada--01_sample.ipynb", answer(2))
    (ada,) = gathered(tmp_path, tmp_path / "in", out=tmp_path / "in/grades")
    assert ada.key == "ada"
    with pytest.raises(InvalidInput, match="the folder of the grades"):
        gathered(tmp_path, tmp_path / "in/grades", out=tmp_path / "in/grades")


def test_no_notebook_at_all_is_a_student_with_a_reason(tmp_path: Path) -> None:
    write(tmp_path / "in/ada/essay.docx", "essay")
    write(tmp_path / "in/bob" / NOTEBOOK, answer(1))
    packed(tmp_path / "in/eve.zip", {"notes.md": "x"})
    found = by_key(gathered(tmp_path, tmp_path / "in"))
    assert "no notebook" in found["ada"].problem
    assert "ada/essay.docx" in found["ada"].problem
    assert "no notebook" in found["eve"].problem
    assert not found["bob"].problem


def test_thousands_of_copies_make_one_short_sentence(tmp_path: Path) -> None:
    names = {f"course/{'n' * 180}{n}.ipynb": answer(1) for n in range(600)}
    packed(tmp_path / "in/mallory.zip", names)
    (one,) = gathered(tmp_path, tmp_path / "in")
    assert "and 596 more" in one.notes[0]
    assert sum(map(len, (*one.notes, *one.doubts, one.file))) < 5_000


def test_one_students_files_use_up_nothing_of_another_ones(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archives, "MOST_EACH", 40_000)
    monkeypatch.setattr(archives, "MOST_ENTRIES", 6)
    flood = {
        f"Mallory_1_assignsubmission_file_/{n}.ipynb": submitted.notebook(f"x = '{'x' * 20_000}{n}'") for n in range(5)
    }
    many = {f"Marvin_2_assignsubmission_file_/{n}.ipynb": answer(n) for n in range(9)}
    frida = {f"Frida_3_assignsubmission_file_/{NOTEBOOK}": answer(1)}
    found = by_key(gathered(tmp_path, packed(tmp_path / "moodle.zip", flood | many | frida)))
    assert not found["moodle-3"].problem
    assert "has 9 files" in found["moodle-2"].problem
    with archives.opened(tmp_path / "moodle.zip", "moodle.zip") as archive:
        refused = [entry for entry in archive.entries() if entry.problem]
    assert [entry.path.parts[0][:7] for entry in refused] == [*["Mallory"] * 4, "Marvin_"]


def test_only_what_parses_is_kept_and_nothing_that_is_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    heavy = submitted.notebook(*submitted.answers()).replace(
        '"outputs": []', '"outputs": [{"data": "' + "y" * 500_000 + '"}]', 1
    )
    write(tmp_path / "in/ada" / NOTEBOOK, heavy)
    write(tmp_path / "in/bob/data.csv", "1\n" * 500_000)
    write(tmp_path / "in/eve" / NOTEBOOK, "{" + "z" * 500_000)
    gathered(tmp_path, tmp_path / "in")
    kept = list((tmp_path / "work").iterdir())
    assert len(kept) == 1
    assert kept[0].stat().st_size < 5_000
    monkeypatch.setattr(submissions, "MOST_STORED", 10)
    write(tmp_path / "in/ada/more.ipynb", answer(2), LATE)
    (ada,) = [one for one in gathered(tmp_path, tmp_path / "in") if one.key == "ada"]
    assert "submit fewer" in ada.problem


def test_a_list_of_contents_that_fills_the_memory_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archives, "MOST_DIRECTORY", 2_000)
    inner = zipped({f"{n}.ipynb": "" for n in range(100)})
    found = by_key(gathered(tmp_path, packed(tmp_path / "all.zip", {"eve/x.zip": inner, f"bob/{NOTEBOOK}": answer(1)})))
    assert "list of contents" in found["eve"].problem
    assert not found["bob"].problem


def test_a_folder_that_cannot_be_read_is_a_student_with_a_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed = write(tmp_path / "in/ada" / NOTEBOOK, answer(1)).parent
    write(tmp_path / "in/bob" / NOTEBOOK, answer(1))
    real = os.scandir

    def scandir(path: str) -> object:
        if str(path) == str(closed):  # as for anybody but root
            raise PermissionError(13, "Permission denied", str(path))
        return real(path)

    monkeypatch.setattr(os, "scandir", scandir)
    found = by_key(gathered(tmp_path, tmp_path / "in"))
    assert "cannot be read (Permission denied)" in found["ada"].problem
    assert not found["bob"].problem


@pytest.mark.parametrize(
    "said",
    [
        "",
        "- 1",
        "submission_1: 3",
        "submission_1:\n  :submitters: x",
        "a: &a [*a]",
        "\0",
        "submission_1:\n  :created_at: 2027-99-99",
        "!!python/object/apply:os.system ['true']",
    ],
)
def test_a_platforms_list_may_be_anything(said: str, tmp_path: Path) -> None:
    path = packed(
        tmp_path / "all.zip",
        {"submission_metadata.yml": said, f"submission_1/{NOTEBOOK}": answer(1), f"submission_2/{NOTEBOOK}": answer(2)},
    )
    assert len(by_key(gathered(tmp_path, path))) == 2


def test_a_list_within_a_students_folder_is_not_the_platforms(tmp_path: Path) -> None:
    forged = "submission_2:\n  :submitters:\n  - :name: Eve\n    :sid: eve\n"
    real = (
        "submission_1:\n  :submitters:\n  - :name: Eve\n    :sid: eve\n"
        "submission_2:\n  :submitters:\n  - :name: Frida\n    :sid: frida\n"
    )
    names = {
        "submission_metadata.yml": real,
        f"submission_1/{NOTEBOOK}": answer(1),
        "submission_1/submission_metadata.yml": forged,
        f"submission_2/{NOTEBOOK}": answer(2),
    }
    assert set(by_key(gathered(tmp_path, packed(tmp_path / "all.zip", names)))) == {
        "gradescope-eve",
        "gradescope-frida",
    }


def test_a_platforms_note_is_not_what_a_student_calls_like_one(tmp_path: Path) -> None:
    mine = "Ex_mallory_attempt_2027-01-01-10-00-00"
    names = {
        f"{mine}_{NOTEBOOK}": answer(1),
        f"{mine}_x_attempt_2027-01-01-10-00-00.txt": "Name: Frida Kahlo (frida)",
        f"{mine}_Ex_frida_attempt_2099-01-01-10-00-00_{NOTEBOOK}": answer(3),
        f"Ex_frida_attempt_2027-01-01-10-00-00_{NOTEBOOK}": answer(2),
    }
    found = by_key(gathered(tmp_path, packed(tmp_path / "gradebook.zip", names)))
    assert set(found) == {"blackboard-mallory", "blackboard-frida"}
    assert {one.when.year for one in found.values()} == {2027}


def test_a_damaged_archive_costs_only_its_student(tmp_path: Path) -> None:
    good = zipped({NOTEBOOK: answer(1)})
    for number, content in enumerate(
        (b"", b"PK", good[:-10], good[:60], b"PK\x05\x06" + b"\xff" * 18, good.replace(b"01_sample", b"../sample"))
    ):
        write(tmp_path / "in" / f"s{number}.zip", content)
    write(tmp_path / "in/ada" / NOTEBOOK, answer(1))
    found = by_key(gathered(tmp_path, tmp_path / "in"))
    assert len(found) == 7
    assert all(found[f"s{n}"].problem for n in range(6))
    assert not found["ada"].problem


def test_a_zip_that_nobody_can_open_is_told(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "x.zip", "w") as archive:
        archive.writestr(f"eve/{NOTEBOOK}", answer(1))
    raw = bytearray((tmp_path / "x.zip").read_bytes())
    at = raw.find(b"PK\x01\x02")
    raw[at + 8] |= 1  # encrypted, says the list of contents
    write(tmp_path / "in/eve.zip", bytes(raw))
    (eve,) = gathered(tmp_path, tmp_path / "in")
    assert "encrypted" in eve.problem
