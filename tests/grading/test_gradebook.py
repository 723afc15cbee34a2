"""From records to grades: rosters, marks by hand, rules, exports, likeness; computed by hand here, and never merged."""

import csv
import io
import json
import time
import zipfile
from datetime import datetime
from pathlib import Path

import pytest
import submitted
from batches import record_path
from gradebooks import COURSE, LATE, ON_TIME, booked, record

from labkit.core.errors import InvalidInput
from labkit.grading import marks, outputs, records, requests, roster, rules, similarity
from labkit.grading.course import load
from labkit.grading.grade import class_options, class_policy
from labkit.grading.gradebook import keys_called
from labkit.grading.platforms import Person
from labkit.grading.records import Isolation, ItemRecord
from labkit.grading.redacting import without_paths
from labkit.grading.requests import Request
from labkit.grading.scoring import Gradebook, Policy

DEADLINE = datetime.fromisoformat("2027-01-31T18:00:00+00:00")


def rows(folder: Path, file: str = "grades.csv") -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO((folder / file).read_text())))


def table(path: Path, text: str) -> Path:
    path.write_bytes(text.encode())
    return path


def class_list(folder: Path, text: str) -> list[roster.Member]:
    return roster.read(table(folder / "roster.csv", text))


def by_hand(folder: Path, text: str) -> list[marks.Mark]:
    return marks.read(table(folder / "mine.csv", text), COURSE)


def ruled(folder: Path, text: str) -> rules.Rules:
    return rules.read(table(folder / "rules.toml", text), COURSE)


def totals(book: Gradebook) -> dict[str, float]:
    return {row.name: row.total for row in book.rows}


def test_equal_names_are_two_rows_told_apart_by_the_platforms_id(tmp_path: Path) -> None:
    twins = [record(f"moodle-{n}", student="Max Muster", platform="moodle", account=str(n)) for n in (1001, 1002)]
    twins[1].items[0].points = 0
    book = booked(tmp_path, *twins)
    assert totals(book) == {"Max Muster (1001)": 6, "Max Muster (1002)": 4}
    assert "2 students have this name (1001, 1002)" in book.doubts[0]
    assert len(list((tmp_path / "feedback").iterdir())) == 2
    assert [row["id"] for row in rows(tmp_path)] == ["moodle-1001", "moodle-1002"]


def test_whom_the_roster_tells_apart_by_more_than_a_name_is_not_asked_about(tmp_path: Path) -> None:
    twins = [record(f"moodle-{n}", student="Max Muster", platform="moodle", account=str(n)) for n in (1001, 1002, 1003)]
    known = "s1,Max Muster,1001\ns2,Max Muster,1002\n"
    members = class_list(tmp_path, f"id,name,moodle\n{known}")
    book = booked(tmp_path, *twins[:2], members=members)
    assert totals(book) == {"Max Muster (s1)": 6, "Max Muster (s2)": 6}
    assert book.doubts == []
    doubts = booked(tmp_path, twins[2], members=members).doubts
    assert any("3 students have this name (1003, s1, s2)" in one for one in doubts)


def test_a_student_of_the_table_is_called_by_the_name_or_id_that_stands_there(tmp_path: Path) -> None:
    members = class_list(tmp_path, "id,name,moodle\ns1,Ada,1\ns2,Bob,2\ns3,Eve,3\n")
    kept = [record(f"moodle-{n}", platform="moodle", account=str(n)) for n in (1, 2)]
    booked(tmp_path, *kept, members=members)
    policy = Policy(members=members)

    def called(word: str) -> list[str]:
        return keys_called(tmp_path, COURSE, policy, word)

    assert called("s1") == called("Ada") == called("moodle-1") == ["moodle-1"]
    # Nobody, and somebody who has handed in nothing: the batch says so, and grades nobody.
    assert (called("s9"), called("s3"), called("Eve")) == (["s9"], ["s3"], ["Eve"])


@pytest.mark.parametrize("names", [("Zoe", "zoe"), ("carl", "carl "), ("J\u00f6rg", "Jo\u0308rg")])
def test_names_that_look_alike_are_asked_about(names: tuple[str, str], tmp_path: Path) -> None:
    book = booked(tmp_path, *(record(name, student=" ".join(name.split())) for name in names))
    assert len(book.rows) == len({row.name for row in book.rows}) == 2
    assert len(list((tmp_path / "feedback").iterdir())) == 2
    assert "2 students have this name" in book.doubts[0]


ROSTER = """id,name,email,group,deadline,extension
s1,Ada Lovelace,ada@example.org,,,
s2,"Muster, Max",max@example.org,,,
s3,Grace Hopper,grace@example.org,,,
"""


def test_a_roster_shows_who_is_missing_and_who_is_unknown(tmp_path: Path) -> None:
    kept = [record("s1"), record("moodle-7", student="Max  MUSTER", platform="moodle", account="7"), record("mallory")]
    book = booked(tmp_path, *kept, members=class_list(tmp_path, ROSTER))
    assert [row.name for row in book.missing] == ["Grace Hopper"]
    assert [row.name for row in book.unknown] == ["mallory"]
    assert totals(book) == {"Ada Lovelace": 6, "Max Muster": 6, "Grace Hopper": 0, "mallory": 6}
    assert any("mallory (mallory) is not in the roster" in doubt for doubt in book.doubts)
    assert {row["student"]: row["handed in"] for row in rows(tmp_path)}["Grace Hopper"] == "no"
    assert "Grace Hopper" in (tmp_path / "summary.html").read_text()


def test_a_name_that_two_could_have_belongs_to_neither(tmp_path: Path) -> None:
    twins = [record(f"moodle-{n}", student="Max Muster", platform="moodle", account=str(n)) for n in (1, 2)]
    book = booked(tmp_path, *twins, members=class_list(tmp_path, ROSTER))
    assert "Max Muster" in {row.name.split(" (")[0] for row in book.missing}
    assert len(book.unknown) == 2
    assert any("add the platform's number or account to the roster" in doubt for doubt in book.doubts)
    list_ = class_list(tmp_path, ROSTER.replace("id,name", "moodle,name").replace("s2", "2"))
    book = booked(tmp_path, *twins, members=list_)
    assert [row.key for row in book.unknown] == ["moodle-1"]
    book = booked(tmp_path, *twins, members=class_list(tmp_path, "id,name\n1,Max Muster\n"))
    assert len({row.name for row in book.rows}) == len(book.rows) == 3


def test_a_number_of_the_school_is_not_a_number_of_the_platform(tmp_path: Path) -> None:
    kept = [record("moodle-1001", student="Mallory", platform="moodle", account="1001")]
    book = booked(tmp_path, *kept, members=class_list(tmp_path, "id,name\n1001,Frida Kahlo\n"))
    assert [row.name for row in book.missing] == ["Frida Kahlo"]


def test_one_person_of_two_assignments_is_one_row(tmp_path: Path) -> None:
    kept = [record("moodle-1", student="Ada Lovelace", platform="moodle", account="1"),
            record("moodle-2", student="Ada Lovelace", platform="moodle", account="2", notebook="", items=[])]  # fmt: skip  # noqa: E501
    book = booked(tmp_path, *kept, members=class_list(tmp_path, ROSTER))
    assert {row.name: len(row.records) for row in book.rows}["Ada Lovelace"] == 2


def test_a_group_shares_the_newest_of_its_notebooks(tmp_path: Path) -> None:
    list_ = class_list(tmp_path, "id,name,group\na,Ada,G1\nb,Bob,G1\nc,Cem,G2\nd,Dora,G2\ne,Eve,\n")
    kept = [
        record("a", {"01-double": 0}, requests=[Request("01-double", "-2 is doubled.")]),
        record("b", submitted=LATE),
        record("moodle-9", student="g2", platform="moodle", account="9"),
        record("e"),
    ]
    book = booked(tmp_path, *kept, members=list_)
    assert totals(book) == {"Ada": 6, "Bob": 6, "Cem": 6, "Dora": 6, "Eve": 6}
    assert "counts for the whole group" in {row.name: row.notes for row in book.rows}["Ada"][0]
    assert {row.name: row.asking for row in book.rows if row.asking} == {"Ada": ["01-double"], "Bob": ["01-double"]}
    assert not book.unknown


def test_two_files_of_a_group_in_one_archive_without_believed_dates_are_asked_about(tmp_path: Path) -> None:
    list_ = class_list(tmp_path, "id,group\na,G1\nb,G1\nc,G2\nd,G2\ne,G3\nf,G3\n")
    kept = [record(key, dated_by="class.zip", file=f"class.zip/{key}/x.ipynb") for key in "abcd"]
    kept[3].sha256 = kept[2].sha256
    book = booked(tmp_path, *kept, record("e"), record("f", submitted=LATE), members=list_)
    [doubt] = book.doubts
    assert doubt.startswith("class.zip/a/x.ipynb and class.zip/b/x.ipynb are of one group")


def test_several_people_of_one_submission(tmp_path: Path) -> None:
    people = [Person("Ada Lovelace", "s1", "ada@example.org"), Person("Grace Hopper", "", "GRACE@example.org")]
    kept = [
        record(
            "gradescope-s1", student="Ada Lovelace, Grace Hopper", platform="gradescope", account="s1", people=people
        )
    ]
    book = booked(tmp_path, *kept, members=class_list(tmp_path, ROSTER))
    assert totals(book) == {"Ada Lovelace": 6, "Grace Hopper": 6, "Max Muster": 0}


WORKSHEET = (
    "\ufeffIdentifier,Full name,ID number,Email address,Status,Grade,Maximum grade\n"
    "Participant 1001,Max Muster,77,a@x.org,,,10\n"
    "Participant 1002,Max Muster,78,b@x.org,,,10\n"
)
CANVAS = (
    "Student,ID,SIS User ID,SIS Login ID,Section,Five (9)\n"
    "    Points Possible,,,,,10\n"
    '"Muster, Max",4711,s2,mmuster,A,\n'
    '"Student, Test",1,,,A,\n'
)
BLACKBOARD = "Last Name\tFirst Name\tUsername\tStudent ID\nMuster\tMax\tmmuster\ts2\n"
CLASSROOM = 'identifier,github_username,github_id,name\n"max@x.org",octomax,12,Max Muster\n'


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        (WORKSHEET, {"platform": "moodle", "account": "1002", "key": "moodle-1002", "student": "Max Muster"}),
        (CANVAS, {"platform": "canvas", "account": "4711", "key": "canvas-4711", "student": "mustermax_4711"}),
        (BLACKBOARD, {"platform": "blackboard", "account": "mmuster", "key": "blackboard-mmuster", "student": "mmuster"}),  # noqa: E501
        (CLASSROOM, {"platform": "github", "account": "octomax", "key": "github-octomax", "student": "octomax"}),
        ("name;e-mail\nMax Muster;m@x.org\n", {"key": "m@x.org"}),
        ("NAME\nMüster Max\n".encode("cp1252").decode("cp1252"), {"key": "x", "student": "Müster Max"}),
    ],
)  # fmt: skip
def test_lists_as_platforms_and_spreadsheets_write_them(text: str, kept: dict[str, str], tmp_path: Path) -> None:
    book = booked(
        tmp_path,
        record(**{"key": kept["key"]} | {n: v for n, v in kept.items() if n != "key"}),
        members=class_list(tmp_path, text),
    )
    assert not book.unknown
    assert [len(row.records) for row in book.rows if row.records] == [1]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "is empty"),
        ("id,name\n", "the roster is empty"),
        ("points\n3\n", "line 2: this line names no student"),
        ("id,name\n7,A\n7,B\n", "line 3: the id 7 is also in"),
        ("id,deadline\n7,tomorrow\n", "line 2: tomorrow is not a date"),
        ("id,extension\n7,a week\n", "line 2: a week is not a number of days"),
        ("id\n\0\n", "is not text"),
    ],
)
def test_a_bad_roster_is_one_sentence(text: str, says: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=says):
        class_list(tmp_path, text)
    with pytest.raises(InvalidInput, match="cannot be read"):
        roster.read(tmp_path / "nowhere.csv")


def test_points_by_hand_count_and_survive(tmp_path: Path) -> None:
    book = booked(tmp_path, record("ada"), record("bob"))
    assert [row.open for row in book.rows] == [2, 2]
    page = (tmp_path / "feedback" / "ada--feedback.html").read_text()
    assert "6 of 8 points" in page
    assert "2 more to be graded by hand" in page
    template = tmp_path / "by_hand" / "marks.csv"
    filled = template.read_text().replace("01-why,,2,,", "01-why,,2,1.5,well said", 1)
    assert filled != template.read_text()
    template.write_text(filled)
    given = marks.read(template, COURSE)
    book = booked(tmp_path, record("ada"), record("bob"), record("eve"), marks=given)
    assert totals(book) == {"ada": 7.5, "bob": 6, "eve": 6}
    assert template.read_text() == filled
    second = tmp_path / "by_hand" / "marks-2.csv"
    assert [row["student"] for row in rows(second.parent, second.name)] == ["eve"]
    page = (tmp_path / "feedback" / "ada--feedback.html").read_text()
    assert "7.5 of 8 points" in page
    assert "well said" in page
    assert "to be graded by hand" not in page
    before = {path.name: path.read_bytes() for path in template.parent.iterdir()}
    booked(tmp_path, marks=given)
    assert {path.name: path.read_bytes() for path in template.parent.iterdir()} == before


def test_there_is_a_file_for_points_by_hand_even_if_nothing_asks_for_any(tmp_path: Path) -> None:
    judged = record("ada")
    judged.items = [item for item in judged.items if item.written is None]
    booked(tmp_path, judged)
    file = tmp_path / "by_hand" / "marks.csv"
    assert file.read_text() == ",".join(marks.TITLES) + "\n"
    assert not (tmp_path / "by_hand" / "texts.html").exists()
    booked(tmp_path, record("bob"), marks=marks.read(file, COURSE))
    assert [(row["student"], row["exercise"]) for row in rows(file.parent, file.name)] == [("bob", "01-why")]
    booked(tmp_path, record("cem"))
    assert [path.name for path in marks.templates(file.parent)] == ["marks.csv", "marks-2.csv"]


def test_the_last_word_is_a_persons(tmp_path: Path) -> None:
    given = by_hand(
        tmp_path,
        'student,exercise,points,comment\nADA,01-double,1,half right\nada,01-why,"0,5",\nbob,01-double,0,copied\n',
    )
    book = booked(tmp_path, record("ada", {"01-double": 0}), record("bob"), marks=given)
    assert totals(book) == {"ada": 5.5, "bob": 4}
    assert "half right" in (tmp_path / "feedback" / "ada--feedback.html").read_text()
    assert "half right" not in (tmp_path / "feedback" / "bob--feedback.html").read_text()


def test_a_rubric_is_complete_when_all_its_parts_are_given(tmp_path: Path) -> None:
    parts = ruled(tmp_path, '[rubric."01-why"]\n"the crash" = 1.5\n"own words" = 0.5\n')
    booked(tmp_path, record("ada"), rules=parts)
    assert [row["part"] for row in rows(tmp_path / "by_hand", "marks.csv")] == ["the crash", "own words"]
    begun = "student,exercise,part,points,comment\nada,01-why,the crash,1,\n"
    assert totals(booked(tmp_path, record("ada"), rules=parts, marks=by_hand(tmp_path, begun))) == {"ada": 6}
    done = by_hand(tmp_path, f"{begun}ada,01-why,own words,0.5,yours\n")
    assert totals(booked(tmp_path, record("ada"), rules=parts, marks=done)) == {"ada": 7.5}
    assert "own words: yours" in (tmp_path / "feedback" / "ada--feedback.html").read_text()


def test_a_part_or_comment_that_looks_like_a_formula_is_read_as_it_was_meant(tmp_path: Path) -> None:
    parts = ruled(tmp_path, '[rubric."01-why"]\n"- no contradiction, -1 for each" = 1.5\n"own words" = 0.5\n')
    booked(tmp_path, record("ada"), rules=parts)
    template = tmp_path / "by_hand" / "marks.csv"
    given = template.read_text().replace(",1.5,,,", ",1.5,1.5,\"'-1 for x, '-y'\",").replace(",0.5,,,", ",0.5,0.5,,")
    book = booked(tmp_path, rules=parts, marks=marks.read(table(template, given), COURSE))
    hand = book.rows[0].scores["01-why"].hand
    assert (hand.points, hand.comments) == (2, ("- no contradiction, -1 for each: -1 for x, '-y'",))
    booked(tmp_path, rules=parts)
    assert marks.templates(template.parent) == [template]


def test_a_mark_that_could_be_anybodys_is_nobodys(tmp_path: Path) -> None:
    twins = [record(f"moodle-{n}", student="Max Muster", platform="moodle", account=str(n)) for n in (1, 2)]
    given = by_hand(tmp_path, "student,exercise,points\nMax Muster,01-why,2\nnobody,01-why,2\nmoodle-2,01-why,1\n")
    book = booked(tmp_path, *twins, marks=given)
    assert totals(book) == {"Max Muster (1)": 6, "Max Muster (2)": 7}
    assert sum("these points do not count" in doubt for doubt in book.doubts) == 2


def test_a_name_that_two_in_the_roster_have_gets_no_mark(tmp_path: Path) -> None:
    list_ = class_list(tmp_path, "id,name\n1,Max Muster\n2,Max Muster\n")
    given = by_hand(tmp_path, "student,exercise,points\nMax Muster,01-why,2\n")
    book = booked(tmp_path, record("1"), record("2"), members=list_, marks=given)
    assert set(totals(book).values()) == {6}
    assert any("2 students have the name or id Max Muster" in one for one in book.doubts)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("student,exercise\nada,01-why\n", "no column points"),
        ("student,exercise,points\nada,01-wyh,2\n", "line 2: 01-wyh is not an exercise"),
        ("student,exercise,points\nada,01-why,two\n", r"line 2: .*two'; write a number"),
        ("student,exercise,points\nada,01-why,-1\n", r"line 2: .*-1'; write"),
        ("student,exercise,points\nada,01-why,nan\n", "line 2: .*nan'; write"),
        ("student,exercise,points\n,01-why,2\n", "line 2: the column student is empty"),
        ("student,exercise,points\nada,01-why,20\n", "line 2: 20 points, but 01-why has at most 2; .*20 bonus"),
        ("student,exercise,points\nada,01-why,bonus\n", "line 2: .*bonus'; write a number"),
        ("student,exercise,points\nada,01_sample,2\n", "line 2: 01_sample is a whole notebook, and the only marks"),
    ],
)
def test_bad_marks_are_one_sentence(text: str, says: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=says):
        by_hand(tmp_path, text)


def test_weights_penalties_and_parts_as_computed_by_hand(tmp_path: Path) -> None:
    said = ruled(
        tmp_path,
        '[weights]\n"01-double" = 2\n"01-setting" = 0.5\n[late]\npercent_a_day = 10\nmost_percent = 15\n'
        'grace_minutes = 30\n[partial]\n"01-double" = 1\n',
    )
    within = record("grace", submitted="2027-01-31T18:29:00+00:00")
    first = record("first", submitted="2027-01-31T18:31:00+00:00")
    second = record("second", submitted=LATE)
    part = record("part", {"01-double": 0})
    book = booked(tmp_path, record("ada"), within, first, second, part, rules=said, deadline=DEADLINE)
    # 2 * 2 + 2 + 0.5 * 2 = 7; with 1 instead of 2 for the first 5
    assert totals(book) == {"ada": 7, "grace": 7, "first": 6.3, "second": 5.95, "part": 5}
    assert {row.name for row in book.rows if row.late} == {"grace", "first", "second"}
    assert {row.most for row in book.rows} == {9}
    assert [row["penalty"] for row in rows(tmp_path)] == ["", "10 %", "", "", "15 %"]


def test_points_by_hand_for_a_late_file_that_nobody_could_read_are_reduced(tmp_path: Path) -> None:
    said = ruled(tmp_path, "[late]\npercent_a_day = 10\n[drop]\nlowest = 1\n")
    any_notebook = {"notebook": "", "items": [], "unread": [""], "submitted": "2027-01-31T19:00:00+00:00"}
    given = by_hand(
        tmp_path,
        "student,exercise,points\nada,01-double,2\nada,01-dedup,2\nada,01-setting,2\nada,01-why,1\n"
        "bob,01-double,2\nbob,01-dedup,2\nbob,01-setting,2\nbob,01-why,1\n",
    )
    kept = [record("ada", **any_notebook), record("bob", submitted=ON_TIME), record("bob", **any_notebook)]
    book = booked(tmp_path, *kept, rules=said, deadline=DEADLINE, marks=given)
    # Bob's notebook was read, so none of his points are those of the file that was not.
    assert totals(book) == {"ada": 7.2, "bob": 8}
    assert [row["penalty"] for row in rows(tmp_path)] == ["10 %", ""]
    assert "10 % of the points are deducted" in next((tmp_path / "feedback").glob("ada*")).read_text()


@pytest.mark.parametrize("notebook", ["01_sample", ""])
def test_answers_in_a_late_file_beside_a_notebook_of_another_part_are_reduced(notebook: str, tmp_path: Path) -> None:
    said = ruled(tmp_path, "[late]\npercent_a_day = 10\n")
    given = by_hand(tmp_path, "student,exercise,points\nada,01_sample,0\nada,01-double,2\n")
    beside = record("ada", notebook="00_other", items=[], unread=[notebook], answered_at={notebook: LATE})
    empty = record("eve", answered_at={"01_sample": LATE})
    book = booked(tmp_path, beside, record("bob"), empty, rules=said, deadline=DEADLINE, marks=given)
    [ada, bob, eve] = book.rows
    assert (ada.total, ada.late, bob.total, bob.late, eve.total, eve.late) == (1.6, True, 6, False, 4.8, True)
    assert ada.notes == ["01_sample was handed in late; 20 % of its points are deducted."]
    assert [row["penalty"] for row in rows(tmp_path)] == ["20 %", "", "20 %"]


def test_extensions_and_deadlines_of_ones_own(tmp_path: Path) -> None:
    list_ = class_list(tmp_path, "id,deadline,extension\na,2027-02-03T00:00+00:00,\nb,,3\nc,,1\nd,,\n")
    said = ruled(tmp_path, "[late]\npercent_a_day = 50\n")
    kept = [record(key, submitted=LATE) for key in "abcd"]
    book = booked(tmp_path, *kept, members=list_, rules=said, deadline=DEADLINE)
    assert totals(book) == {"a": 6, "b": 6, "c": 3, "d": 0}
    assert [row.late for row in book.rows] == [False, False, True, True]


def test_who_is_late_is_asked_if_a_student_may_have_chosen_the_dates(tmp_path: Path) -> None:
    said = ruled(tmp_path, "[late]\npercent_a_day = 10\n")
    names = ("ada", "bob", "eve", "finn")
    kept = [record(name, submitted=LATE, dated_by="class.zip", file=f"class.zip/{name}/x.ipynb") for name in names]
    extended = class_list(tmp_path, "id,extension\nada,\nbob,\neve,9\nfinn,\n")
    more = by_hand(
        tmp_path,
        "student,exercise,points\nbob,01-why,1\nfinn,01-double,2\nfinn,01-dedup,2\nfinn,01-setting,2\nfinn,01-why,2\n",
    )
    said_of = {"rules": said, "deadline": DEADLINE, "members": extended, "marks": more}
    book = booked(tmp_path, *kept, **said_of)
    [doubt] = [one for one in book.doubts if "class.zip" in one]
    assert doubt.startswith("ada, bob, finn: class.zip has a date after the deadline")
    assert "unpack the archive and name the unpacked folder" in doubt
    found = {row["student"]: (row["total"], row["01-double"], row["not settled"]) for row in rows(tmp_path)}
    # What a person gives counts, but with the penalty of the archive's date.
    assert found == {
        "ada": ("", "", "01_sample"), "bob": ("", "", "01_sample"), "eve": ("6", "2", ""), "finn": ("6.4", "2", ""),
    }  # fmt: skip
    # Without a penalty, no points depend on the answer.
    book = booked(tmp_path, *kept, deadline=DEADLINE)
    assert totals(book) == dict.fromkeys(names, 6)
    assert sum("class.zip" in one for one in book.doubts) == 1
    assert not any("class.zip" in one for one in booked(tmp_path, *kept).doubts)
    on_time = [record(name, dated_by="class.zip") for name in names]
    assert not any("class.zip" in one for one in booked(tmp_path, *on_time, deadline=DEADLINE, rules=said).doubts)


def test_a_regrade_request_after_the_deadline_makes_nobody_late(tmp_path: Path) -> None:
    asking = record(
        "ada", notebook="", items=[], file="ada/regrade.txt", submitted=LATE, requests=[Request("01-double", "look")]
    )
    late = ruled(tmp_path, "[late]\npercent_a_day = 10\n")
    book = booked(tmp_path, record("ada"), asking, deadline=DEADLINE, rules=late)
    assert [(row.late, row.penalties, row.asking) for row in book.rows] == [(False, {}, ["01-double"])]


def test_late_without_a_date_costs_a_day_and_is_asked_about(tmp_path: Path) -> None:
    said = ruled(tmp_path, "[late]\npercent_a_day = 10\n")
    kept = [
        record("canvas-1", dated=False, marked_late=True, submitted=LATE),
        record("canvas-2", dated=False, submitted=LATE),
    ]
    book = booked(tmp_path, *kept, rules=said, deadline=DEADLINE)
    assert totals(book) == {"canvas-1": 5.4, "canvas-2": 6}
    assert any("late by an unknown time" in doubt for doubt in book.doubts)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[weight]\n", r"unknown section \[weight\]"),
        ("[weights]\n'01-dobule' = 2\n", "01-dobule is not an exercise"),
        ("[weights]\n'01-double' = 'two'\n", "choose a number"),
        ("[late]\npercent = 3\n", "percent is not a key of"),
        ("[late]\npercent_a_day = 300\n", "from 0 to 100"),
        ("[partial]\n'01-double' = 3\n", "gives 3 points for 01-double"),
        ("[rubric.'01-why']\na = 1\n", "1 points, but the exercise has 2"),
        ("[rubric]\n'01-why' = 1\n", "must be a table of numbers"),
        ("rubric = 3\n", "a section for each exercise"),
        ("[export]\nmoodle = 'x'\n", "a column title in quotes"),
        ("x =", "not valid TOML"),
    ],
)
def test_bad_rules_are_one_sentence(text: str, says: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=says):
        ruled(tmp_path, text)


def test_exports_are_what_each_platform_takes(tmp_path: Path) -> None:
    kept = [
        record("moodle-1", {"01-double": 0}, student="=Ada", platform="moodle", account="1",
               upload="Ada_1_assignsubmission_file_"),
        record("canvas-2", student="bob_2", platform="canvas", account="2", upload="bob_2_99_01_sample.ipynb"),
        record("blackboard-c", student="Cem Can", platform="blackboard", account="c", upload="x_c_attempt_2027"),
        record("brightspace-4", student="Dora", platform="brightspace", account="4",
               upload="4-9 - Dora - Jan 30, 2027 1200 PM"),
    ]  # fmt: skip
    book = booked(tmp_path, *kept, marks=by_hand(tmp_path, "student,exercise,points,comment\n1,01-why,2,fine\n"))
    exports = tmp_path / "exports"
    (moodle,) = rows(exports, "moodle.csv")
    assert (moodle["Identifier"], moodle["Grade"], moodle["Maximum Grade"]) == ("Participant 1", "6", "8")
    assert moodle["Feedback comments"] == "01-why: fine"
    possible, canvas = rows(exports, "canvas.csv")
    assert (possible["Student"], possible["sample"]) == ("    Points Possible", "8")
    assert (canvas["ID"], canvas["sample"]) == ("2", "6")
    (blackboard,) = rows(exports, "blackboard.csv")
    assert (blackboard["Username"], blackboard["sample [Total Pts: 8 Score]"]) == ("c", "6")
    packed = {path.name: zipfile.ZipFile(path).namelist() for path in exports.glob("*.zip")}
    assert packed == {
        "moodle-feedback.zip": ["Ada_1_assignsubmission_file_/feedback.html"],
        "canvas-feedback.zip": ["bob_2_99_01_sample-feedback.html"],
        "brightspace-feedback.zip": ["4-9 - Dora - Jan 30, 2027 1200 PM/feedback.html"],
    }
    before = {path.name: path.read_bytes() for path in exports.iterdir()}
    booked(tmp_path, marks=by_hand(tmp_path, "student,exercise,points,comment\n1,01-why,2,fine\n"))
    assert {path.name: path.read_bytes() for path in exports.iterdir()} == before
    assert len(book.rows) == 4


def test_what_could_not_be_read_is_not_settled_and_no_platform_gets_a_grade_until_a_person_decides(
    tmp_path: Path,
) -> None:
    """Ann's file is known by its name, Cem's could be any notebook; Bob's was read, and Dora's answers nothing."""
    kept = []
    for platform, name, unread in (
        ("moodle", "1", [submitted.NOTEBOOK]),
        ("canvas", "2", [submitted.NOTEBOOK]),
        ("blackboard", "c", [""]),
        ("gradescope", "4", [""]),
    ):
        kept.append(record(f"{platform}-{name}", student=name, platform=platform, account=name, unread=unread,
                           notebook=unread[0], upload=f"submission_{name}", doubts=[f"{name} is empty."],
                           settled_by={f"{name} is empty.": unread}))  # fmt: skip
        for item in kept[-1].items:
            item.points, item.status, item.written = 0, "not attempted", None
        kept[-1].items = kept[-1].items if unread[0] else []
    kept += [record("bob", platform="moodle", account="9"), record("dora", notebook="", items=[])]
    book = booked(tmp_path, *kept)
    shown = {row["student"]: (row["01-double"], row["total"], row["not settled"]) for row in rows(tmp_path)}
    assert shown == dict.fromkeys(("1", "2", "c", "4"), ("", "", "01_sample")) | {
        "bob": ("2", "6", ""),
        "dora": ("0", "0", ""),
    }
    exports = tmp_path / "exports"
    assert {row["Identifier"]: row["Grade"] for row in rows(exports, "moodle.csv")} == {
        "Participant 1": "", "Participant 9": "6",
    }  # fmt: skip
    assert len(rows(exports, "canvas.csv")) == 1
    assert rows(exports, "blackboard.csv") == []
    assert sorted(zipfile.ZipFile(exports / "gradescope-autograder.zip").namelist()) == ["run_autograder", "setup.sh"]
    page = next((tmp_path / "feedback").glob("moodle-1--*")).read_text()
    assert "so far, because 01_sample is not settled" in page
    assert "Your instructor decides about these points." in page
    assert '<td class="not-settled">not settled</td><td>4</td>' in (tmp_path / "summary.html").read_text()
    template = tmp_path / "by_hand" / "marks.csv"
    lines = [(row["student"], row["exercise"], row["of"]) for row in rows(template.parent, template.name)]
    whole = [(key, "01_sample", "") for key in ("blackboard-c", "canvas-2", "gradescope-4", "moodle-1")]
    assert sorted(lines) == [whole[0], ("bob", "01-why", "2"), *whole[1:]]
    decided = by_hand(tmp_path, "student,exercise,points\n1,01_sample,0\n2,01_sample,excused\nc,01-double,1\n")
    book = booked(tmp_path, marks=decided)
    assert {row.name: (row.total, row.unsettled) for row in book.rows if row.name in "12c"} == {
        "1": (0, []), "2": (0, []), "c": (1, ["01_sample"]),
    }  # fmt: skip
    assert {row["Identifier"]: row["Grade"] for row in rows(exports, "moodle.csv")}["Participant 1"] == "0"
    in_parts = [(row["exercise"], row["of"]) for row in rows(template.parent, "marks-2.csv")]
    assert in_parts == [("01-dedup", "2"), ("01-setting", "2"), ("01-why", "2")]  # of c, who got points for the first
    # What a person has decided is asked about no more.
    assert book.doubts == [
        "c: c is empty.",
        "4: 4 is empty.",
        "2: no exercise counts, so the total is 0; excuse the student from fewer exercises, or give points by hand.",
    ]


def test_points_above_the_maximum_need_a_word(tmp_path: Path) -> None:
    given = by_hand(tmp_path, "student,exercise,points\nada,01-why,3 bonus\n")
    book = booked(tmp_path, record("ada"), marks=given)
    assert totals(book) == {"ada": 9}
    assert "3 points for 01-why, but the exercise has only 2; they count in full" in book.doubts[0]
    assert 'value="3 bonus"' in (tmp_path / "by_hand" / "texts.html").read_text()
    parts = by_hand(tmp_path, "student,exercise,part,points\nada,01-why,a,2\nada,01-why,b,2\n")
    book = booked(tmp_path, marks=parts)
    assert totals(book) == {"ada": 8}
    assert "the parts of 01-why add up to 4 points, but only the 2 of the exercise count" in book.doubts[0]


def test_brightspace_gets_the_ids_of_its_own_export_and_gradescope_the_results_of_each_submission(
    tmp_path: Path,
) -> None:
    members = class_list(
        tmp_path,
        "OrgDefinedId,Username,Last Name,First Name,Email,End-of-Line Indicator\n"
        "#007,#ada.l,Lovelace,Ada,ada@x.org,#\n#008,#bob.b,Byte,Bob,bob@x.org,#\n#009,#cem,Can,Cem,cem@x.org,#\n",
    )
    both = [Person("Bob Byte", "008", "bob@x.org"), Person("Cem Can", "009", "cem@x.org")]
    kept = [
        record("brightspace-4", {"01-double": 0}, student="Ada Lovelace", platform="brightspace", account="4"),
        record("brightspace-5", student="Eve", platform="brightspace", account="5"),
        record("gradescope-8", student="Bob, Cem", platform="gradescope", account="008", people=both,
               upload="submission_77"),
    ]  # fmt: skip
    book = booked(tmp_path, *kept, members=members)
    exports = tmp_path / "exports"
    assert (exports / "brightspace.csv").read_text().splitlines() == [
        "OrgDefinedId,Username,sample Points Grade,End-of-Line Indicator", '"#007","#ada.l",4,"#"',
    ]  # fmt: skip
    assert any("brightspace.csv leaves out Eve, because" in doubt for doubt in book.doubts)
    packed = zipfile.ZipFile(exports / "gradescope-autograder.zip")
    results = json.loads(packed.read("results/77.json"))
    assert results["score"] == 6
    assert [(test["score"], test["max_score"]) for test in results["tests"]] == [(2, 2), (2, 2), (2, 2), (0, 2)]
    one_of_two = by_hand(tmp_path, "student,exercise,points\n008,01-why,2\n")
    book = booked(tmp_path, members=members, marks=one_of_two)
    assert any("submission_77: Bob Byte, Cem Can have different points" in doubt for doubt in book.doubts)
    assert "results/77.json" not in zipfile.ZipFile(exports / "gradescope-autograder.zip").namelist()


def test_a_regrade_request_stands_at_the_students_row_until_the_marks_answer_it(tmp_path: Path) -> None:
    ada = record(
        "ada", {"01-double": 0}, requests=[Request("01-double", "-2 is doubled."), Request("99-x", "and this?")]
    )
    listed = table(tmp_path / "form.csv", "student,exercise,why\nbob,01-why,<b>please</b>\nzoe,01-why\n")
    asked = requests.read_table(listed)
    assert [each.why for each in asked] == ["<b>please</b>", "no reason given"]
    book = booked(tmp_path, ada, record("bob"), requests=asked)
    assert [row.asking for row in book.rows] == [["01-double"], ["01-why"]]
    assert [
        any(words in doubt for doubt in book.doubts) for words in ("99-x and this?", "name or id zoe, so these req")
    ]
    summary = (tmp_path / "summary.html").read_text()
    assert "asks about <code>01-double</code>: -2 is doubled." in summary
    assert "&lt;b&gt;please&lt;/b&gt;" in summary
    template = tmp_path / "by_hand" / "marks.csv"
    lines = [(row["student"], row["exercise"], row["answers"][:7]) for row in rows(template.parent, template.name)]
    assert sorted(lines) == [
        ("ada", "01-double", "regrade"), ("ada", "01-why", ""), ("bob", "01-why", ""), ("bob", "01-why", "regrade"),
    ]  # fmt: skip
    text = template.read_text().replace(
        "ada,ada,01-double,,2,,,regrade", "ada,ada,01-double,,2,1,you are right,regrade"
    )
    template.write_text(text)
    book = booked(tmp_path, marks=marks.read(template, COURSE), requests=asked)
    assert [row.asking for row in book.rows] == [[], ["01-why"]]
    assert totals(book) == {"ada": 5, "bob": 6}
    page = (tmp_path / "feedback" / "ada--feedback.html").read_text()
    assert "You asked: -2 is doubled." in page
    assert "you are right" in page
    assert "asks about <code>01-double</code> (answered)" in (tmp_path / "summary.html").read_text()
    corrected = by_hand(tmp_path, "student,exercise,points\nada,01-double,2\n")
    given = [*marks.read(template, COURSE), *corrected]
    ada.requests = [Request("01-double", "And -3?")]
    book = booked(tmp_path, ada, marks=given, requests=asked)
    assert (totals(book)["ada"], book.rows[0].asking) == (6, ["01-double"])
    [line] = rows(template.parent, "marks-2.csv")
    assert (line["student"], line["answers"]) == ("ada", marks.answer_to(["And -3?"]))
    short = by_hand(tmp_path, "student,exercise,points,comment,answers\nada,01-double,,no,regrade\n")
    assert booked(tmp_path, ada, marks=short).rows[0].asking == []
    with pytest.raises(InvalidInput, match="no column why"):
        requests.read_table(table(tmp_path / "bad.csv", "student,exercise\na,b\n"))


def test_of_two_files_the_later_comment_and_the_answer_to_a_request_count(tmp_path: Path) -> None:
    first = by_hand(tmp_path, "student,exercise,part,points,comment\nada,01-why,a,1,short\nada,01-why,,,see b\n")
    text = "student,exercise,points,comment,answers\nada,01-why,,look at c,\nada,01-why,2,,regrade\n"
    later = marks.read(table(tmp_path / "later.csv", text), COURSE)
    score = booked(tmp_path, record("ada"), marks=[*first, *later]).rows[0].scores["01-why"]
    assert (score.points, score.hand.comments) == (2, ("a: short", "look at c"))


def test_a_new_file_of_marks_is_read_after_those_that_a_browser_has_renamed(tmp_path: Path) -> None:
    names = ["marks.csv", "marks (1).csv", "marks-2.csv", "marks-2 (1).csv", "marks-10.csv"]
    for name in names:
        table(tmp_path / name, "student,exercise,points\n")
    assert [path.name for path in marks.templates(tmp_path)] == names
    assert marks.next_name(tmp_path) == "marks-11.csv"


def test_who_handed_in_no_notebook_could_have_had_all_points(tmp_path: Path) -> None:
    nothing = record("moodle-2", platform="moodle", account="2", notebook="", items=[])
    booked(tmp_path, record("moodle-1", platform="moodle", account="1"), nothing)
    points = {
        row["Identifier"]: (row["Grade"], row["Maximum Grade"]) for row in rows(tmp_path / "exports", "moodle.csv")
    }
    assert points == {"Participant 1": ("6", "8"), "Participant 2": ("0", "8")}


def test_moodles_maximum_is_that_of_the_assignment_although_nobody_handed_in_all_of_it(tmp_path: Path) -> None:
    course = load(None)
    asked = [name for name in course.exercises if name.startswith(("05-", "06-"))]
    half = record("moodle-9", notebook="05_two_phase_commit", platform="moodle", account="9", items=[])
    booked(tmp_path, half, course=course, rules=rules.Rules(asked=tuple(asked)))
    [row] = rows(tmp_path / "exports", "moodle.csv")
    assert row["Maximum Grade"] == str(sum(course.exercises[name].points for name in asked))


def test_a_platform_gets_back_what_its_own_export_said_of_a_student(tmp_path: Path) -> None:
    """Moodle's date of the grade and Canvas' numbers and names, without which they skip a line or ask about it."""
    moodle = class_list(
        tmp_path,
        "Identifier,Full name,Email address,Grade,Maximum Grade,Last modified (grade)\n"
        'Participant 9,Ada Lovelace,a@b.c,,8,"Monday, 1 February 2027, 9:00 AM"\nParticipant 10,Bob Byte,b@b.c,,8,-\n',
    )
    kept = [record(f"moodle-{n}", student=f"S{n}", platform="moodle", account=str(n)) for n in (9, 10)]
    booked(tmp_path / "m", *kept, members=moodle)
    booked(tmp_path / "absent", kept[0], members=moodle)
    grades = {row["Full name"]: row["Grade"] for row in rows(tmp_path / "absent" / "exports", "moodle.csv")}
    assert grades == {"Ada Lovelace": "6", "Bob Byte": "0"} == {
        row["student"]: row["total"] for row in rows(tmp_path / "absent")
    }  # fmt: skip
    found = {row["Full name"]: row for row in rows(tmp_path / "m" / "exports", "moodle.csv")}
    assert found["Ada Lovelace"]["Last modified (grade)"] == "Monday, 1 February 2027, 9:00 AM"
    assert found["Bob Byte"]["Last modified (grade)"] == ""
    canvas = class_list(
        tmp_path,
        "Student,ID,SIS User ID,SIS Login ID,Section,Five (4711)\n    Points Possible,,,,,8\n"
        '"Lovelace, Ada",77,sis-1,ada1,Group A,\n',
    )
    booked(tmp_path / "c", record("canvas-77", student="lovelaceada", platform="canvas", account="77"), members=canvas)
    _, ada = rows(tmp_path / "c" / "exports", "canvas.csv")
    assert [*ada.values()][:5] == ["Lovelace, Ada", "77", "sis-1", "ada1", "Group A"]


def test_all_of_one_assignment_of_moodle_have_the_same_maximum(tmp_path: Path) -> None:
    """Numbers 1 to 3 are of an assignment with two notebooks, number 9 of another one with a third."""
    course = load(None)
    handed_in = {
        "1": ("01_guarantees",),
        "2": ("01_guarantees", "02_delivery"),
        "3": ("02_delivery",),
        "9": ("03_snapshots",),
    }
    kept = []
    for account, notebooks in handed_in.items():
        for notebook in notebooks:
            items = [
                ItemRecord(one.name, one.points, points=one.points, status="right")
                for one in course.exercises.values()
                if one.notebook == notebook
            ]
            kept.append(record(f"moodle-{account}", platform="moodle", account=account, notebook=notebook, items=items))
    booked(tmp_path, *kept, course=course)

    def most(*notebooks: str) -> str:
        known = course.exercises.values()
        return str(sum(one.points for one in known if one.notebook in notebooks))

    maxima = {row["Identifier"]: row["Maximum Grade"] for row in rows(tmp_path / "exports", "moodle.csv")}
    both = most("01_guarantees", "02_delivery")
    numbered = {"1": both, "2": both, "3": both, "9": most("03_snapshots")}
    assert maxima == {f"Participant {number}": each for number, each in numbered.items()}


def test_points_go_into_the_column_that_a_platform_has(tmp_path: Path) -> None:
    said = ruled(tmp_path, '[export]\ncanvas = "Five (4711)"\n')
    booked(tmp_path, record("canvas-2", platform="canvas", account="2"), rules=said)
    assert [row["Five (4711)"] for row in rows(tmp_path / "exports", "canvas.csv")] == ["8", "6"]


def test_an_id_of_the_roster_is_not_a_folder_of_somebody_else(tmp_path: Path) -> None:
    list_ = class_list(tmp_path, "id,username,name\nx,a,Ada\ny,x,Bob\n")
    book = booked(tmp_path, record("x", {"01-double": 0}), record("y"), members=list_)
    assert len({row.key for row in book.rows}) == len(book.rows) == 3
    assert any("could be any of" in doubt for doubt in book.doubts)
    assert len(list((tmp_path / "feedback").iterdir())) == 2
    given = by_hand(tmp_path, "student,exercise,points\nx,01-why,2\n")
    assert totals(booked(tmp_path, members=list_, marks=given)) == totals(book)


def test_what_is_excused_or_dropped_takes_the_average_of_the_rest_and_the_maximum_stays(tmp_path: Path) -> None:
    """Three exercises of 2 points and a text of 2; whoever is excused from the text has 4 of 6, so 5.33 of 8."""
    kept = [record(name, {"01-dedup": 0}) for name in ("ada", "bob")]
    given = by_hand(tmp_path, "student,exercise,points\nada,01-why,excused\nbob,01-why,2\n")
    book = booked(tmp_path, *kept, marks=given)
    assert totals(book) == {"ada": 5.3333, "bob": 6}
    assert {row.most for row in book.rows} == {8}
    assert [row["01-why"] for row in rows(tmp_path)] == ["excused", "2"]
    page = next((tmp_path / "feedback").glob("*ada*")).read_text()
    assert "Not counted: 01-why (excused). The points of the other exercises were scaled" in page
    dropping = ruled(tmp_path, "[drop]\nlowest = 1\n")
    book = booked(tmp_path, *kept, marks=given, rules=dropping)
    assert totals(book) == {"ada": 8, "bob": 8}
    assert book.rows[1].scores["01-dedup"].left_out == "dropped"
    weightless = ruled(tmp_path, '[weights]\n"01-double" = 0\n[drop]\nlowest = 1\n')
    book = booked(tmp_path, record("ada", {"01-double": 0, "01-dedup": 1}), kept[1], marks=given, rules=weightless)
    assert [row.scores["01-dedup"].left_out for row in book.rows] == ["dropped", "dropped"]
    booked(tmp_path, *kept)
    back = by_hand(tmp_path, "student,exercise,points\nada,01-why,ex\nada,01-why,1\nbob,01-why,2\n")
    assert totals(booked(tmp_path, *kept, marks=back)) == {"ada": 5, "bob": 6}
    nothing = by_hand(tmp_path, "student,exercise,points\n" + "".join(f"ada,{name},EX\n" for name in COURSE.exercises))
    book = booked(tmp_path, kept[0], marks=nothing)
    assert totals(book)["ada"] == 0
    assert any("ada: no exercise counts, so the total is 0" in doubt for doubt in book.doubts)


def test_all_mistakes_of_a_file_with_marks_are_told_at_once(tmp_path: Path) -> None:
    wrong = "ada,05-nonsense,1\nbob,01-wh,2\n,01-why,2\nada,01-why,many\n"
    with pytest.raises(InvalidInput) as refusal:
        by_hand(tmp_path, f"student,exercise,points\n{wrong}ada,01-why,2\n")
    said = str(refusal.value)
    assert [f"line {n}:" in line for n, line in enumerate(said.splitlines(), start=2)] == [True] * 4
    assert "did you mean '01-why'" in said
    with pytest.raises(InvalidInput, match=r"And 20 more mistakes\."):
        by_hand(tmp_path, "student,exercise,points\n" + "ada,99,1\n" * 30)


def test_a_groups_text_is_marked_once_for_all(tmp_path: Path) -> None:
    list_ = class_list(tmp_path, "id,name,group\na,Ada,G1\nb,Bob,G1\n")
    given = by_hand(tmp_path, "student,exercise,points\nmoodle-9,01-why,2\n")
    kept = record("moodle-9", student="G1", platform="moodle", account="9")
    assert totals(booked(tmp_path, kept, members=list_, marks=given)) == {"Ada": 8, "Bob": 8}
    alone = by_hand(tmp_path, "student,exercise,points\nmoodle-9,01-why,2\nb,01-why,1\n")
    assert totals(booked(tmp_path, kept, members=list_, marks=alone)) == {"Ada": 8, "Bob": 7}


def test_a_table_holds_no_formula_at_any_separator(tmp_path: Path) -> None:
    for name in ("=1+1", "x;=HYPERLINK(1)", '"', "-2", "@a", "a,b", "\u202etxt"):
        booked(tmp_path, record(name))
    text = (tmp_path / "grades.csv").read_text()
    for separator in ",;\t":
        for line in csv.reader(io.StringIO(text), delimiter=separator):
            if separator == ",":
                assert not [cell for cell in line if cell.startswith(("=", "@", "+"))]
            assert not [cell for cell in line[1:] if cell.startswith(("=", "@"))]
    assert len(rows(tmp_path)) == 7


def test_no_id_acts_on_a_terminal_and_marks_find_it_as_the_table_shows_it(tmp_path: Path) -> None:
    odd = "ada\x1b[31m\n\u202exyz"
    booked(tmp_path, record(odd, student="Ada"))
    text = (tmp_path / "grades.csv").read_text()
    assert text.count("\n") == 2
    assert all(letter.isprintable() or letter == "\n" for letter in text)
    [row] = rows(tmp_path)
    given = by_hand(tmp_path, f"student,exercise,points\n{row['id']},01-why,2\n")
    assert totals(booked(tmp_path, record(odd, student="Ada"), marks=given)) == {"Ada": 8}


def test_the_same_file_and_the_same_answer_under_other_names(tmp_path: Path) -> None:
    first = (
        "def seen(table, record):\n    '''Mine.'''\n    for row in table:\n"
        "        if row == record and row is not None:\n            return True\n"
        "    return False  # no"
    )
    second = (
        "def seen(t: list, r) -> bool:\n  for x in t:\n    if x == r and x is not None: return True\n  return False"
    )
    other = second.replace("return True", "return not False")
    kept = [record(name, sha256=name) for name in ("ada", "bob", "cem", "dora")]
    kept[3].sha256 = "ada"
    for one, code in zip(kept, (first, second, other, first), strict=True):
        one.items[1].code, one.items[1].structure = code, similarity.structure(code)
    kept.append(record("ada", notebook="02_other", items=[]))
    found = [(pair.first, pair.second, [each.what for each in pair.matches]) for pair in similarity.pairs(kept)]
    assert found == [("ada", "dora", ["the same file"]), ("ada", "bob", ["01-dedup"]), ("bob", "dora", ["01-dedup"])]
    booked(tmp_path, *kept)
    assert "<td>ada and dora</td><td>the same file of 01_sample</td>" in (tmp_path / "summary.html").read_text()
    page = (tmp_path / "alike.html").read_text()
    assert page.index("<h2>ada and dora</h2>") < page.index("<h2>ada and bob</h2>")
    of_two = page[page.index("<h2>ada and bob</h2>") : page.index("<h2>bob and dora</h2>")]
    assert of_two.count("&#39;&#39;&#39;Mine.") == of_two.count("for x in t:") == 1
    assert similarity.structure("x = 1") == ""
    assert similarity.structure("def f(:") == ""
    assert similarity.structure("(" * 5000) == ""


def test_what_many_students_have_is_no_pair_and_rare_answers_in_common_come_first(tmp_path: Path) -> None:
    kept = [record(name) for name in ("ada", "bob", "cem", "dora", "eve", "fay")]
    for one in kept:
        one.items[0].structure = "usual"
    for one in kept[:2]:
        one.items[1].structure = "rare"
        one.items[2].structure = "rare, too"
    for one in kept[3:]:
        one.items[2].structure = "three have it"
    found = similarity.pairs(kept)
    assert [(pair.first, pair.second) for pair in found[:1]] == [("ada", "bob")]
    assert [each.what for each in found[0].matches] == ["01-dedup", "01-setting"]
    assert {(pair.first, pair.second) for pair in found[1:]} == {("dora", "eve"), ("dora", "fay"), ("eve", "fay")}
    booked(tmp_path, *kept[:1])
    assert not (tmp_path / "alike.html").exists()


def test_pages_show_ones_own_code_and_nothing_of_another_one(tmp_path: Path) -> None:
    ada, bob = record("ada", {"01-double": 0}), record("bob")
    ada.items[0].code, ada.items[0].error = (
        "def double(number):\n    return <b>",
        "NameError: name 'nubmer' is not defined",
    )
    booked(tmp_path, ada, bob)
    page = (tmp_path / "feedback" / "ada--feedback.html").read_text()
    assert "return &lt;b&gt;" in page
    assert "nubmer" in page
    assert "1 of 1</td><td>0 of 3" in page
    assert "nubmer" not in (tmp_path / "feedback" / "bob--feedback.html").read_text()
    assert "bob" not in page
    summary = (tmp_path / "summary.html").read_text()
    assert 'href="feedback/ada--feedback.html"' in summary


@pytest.mark.parametrize("word", ["x", "1"])
def test_a_long_word_is_searched_for_private_paths_in_no_time(word: str) -> None:
    begun = time.process_time()
    assert without_paths(word * 50_000, ["/root"]) == word * 50_000
    assert time.process_time() - begun < 2


def test_grades_from_the_level_plain_are_called_unsafe(tmp_path: Path) -> None:
    booked(tmp_path, record("ada"))
    assert "are not safe" not in (tmp_path / "summary.html").read_text()
    booked(tmp_path, record("bob", isolation=Isolation("plain")))
    assert "1 of these grades are not safe" in (tmp_path / "summary.html").read_text()


def test_one_damaged_record_costs_one_row(tmp_path: Path) -> None:
    booked(tmp_path, record("ada"), record("bob"))
    record_path(tmp_path, "bob").write_text("{")
    book = booked(tmp_path)
    assert totals(book) == {"ada": 6}
    assert any("not a record of this version" in doubt for doubt in book.doubts)


def test_what_was_said_about_a_class_holds_until_something_else_is_said(tmp_path: Path) -> None:
    out = tmp_path / "out"
    said = {"deadline": "2027-01-31T18:00", "roster": str(table(tmp_path / "r.csv", ROSTER))}
    with outputs.opened(out, "sample", 1, class_options(out, said)):
        pass
    assert class_options(out, {"deadline": None}) == said
    assert class_options(out, {"roster": "none", "rules": "x"}) == {"deadline": said["deadline"], "rules": "x"}
    assert len(class_policy(out, class_options(out, {}), COURSE).members) == 3
    (out / "by_hand").mkdir()
    table(out / "by_hand" / "marks.csv", "student,exercise,points\nada,01-why,1\n")
    mine = table(tmp_path / "mine.csv", "student,exercise,points\nada,01-why,2\n")
    given = class_policy(out, {"marks": str(mine)}, COURSE).marks
    assert [mark.points for mark in given] == [1, 2]
    with pytest.raises(InvalidInput, match="--deadline: soon is not a date"):
        class_policy(out, {"deadline": "soon"}, COURSE)


def test_two_batches_do_not_write_into_one_folder(tmp_path: Path) -> None:
    out = tmp_path / "out"
    with (
        outputs.opened(out, "sample", 1, {}) as first,
        pytest.raises(InvalidInput, match="another `labkit grade` is writing to this folder"),
        outputs.opened(out, "sample", 1, {}),
    ):
        pass
    assert not first.work.exists()
    with outputs.opened(out, "sample", None, {}) as again:
        assert again.seed == 1


def test_records_of_another_version_are_not_mixed(tmp_path: Path) -> None:
    out = tmp_path / "out"
    with outputs.opened(out, "sample", 1, {}):
        records.write(record("ada"), out / "records" / "ada--01_sample.json")
    head = json.loads((out / outputs.HEAD).read_text()) | {"format": 1}
    (out / outputs.HEAD).write_text(json.dumps(head))
    with pytest.raises(InvalidInput, match="another version of labkit"), outputs.opened(out, "sample", 1, {}):
        pass
