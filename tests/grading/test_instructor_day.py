"""An instructor's day with real sandboxes: classes of several platforms, by the command line, to grades computed by
hand.
"""

import csv
import html
import io
import json
import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import cohorts
import psutil
import pytest
import submitted
from batches import record_of, record_path
from cohorts import Learner, write
from waiting import until

from labkit.grading import batch, records
from labkit.grading.course import load
from labkit.grading.order import Order
from labkit.grading.records import Record
from labkit.grading.sandbox.inside.frames import FrameError
from labkit.grading.submissions import collect
from labkit.grading.worker import Grader

pytestmark = pytest.mark.slow
RIGHT = submitted.answers()
NOTES = """def double(number):
    open('/tmp/asked', 'a').write(str(number) + ' ')
    return 2 * number"""
TELLS = """def seen(table, record):
    raise ValueError('asked: ' + open('/tmp/asked').read())"""
MOUNTS = """def double(number):
    raise ValueError([line for line in open('/proc/self/mountinfo') if 'site-packages' in line or '/lab ' in line])"""
PATHS = """def seen(table, record):
    import labkit, sys
    raise ValueError(f'{sys.prefix} and {labkit.__file__}')"""
RENAMED = """def seen(t, r):
    for x in t:
        if x == r and not r is None:
            return True
    return False"""
COPIED = """def seen(table, record):
    for row in table:
        if row == record and not record is None:
            return True
    return False  # mine"""
CASES = {
    "heavy": [*RIGHT, *(f"# {n} {'é' * 199_000}" for n in range(38))],
    "undefined": submitted.answers(double="def double(number):\n    return 2 * nubmer"),
    "misspelt": submitted.answers(double="def duoble(number):\n    return 2 * number"),
    "syntax": submitted.answers(double="def double(number)\n    return 2 * number"),
    "leak": submitted.answers(double=NOTES, dedup=TELLS),
    "machine": submitted.answers(double=MOUNTS, dedup=PATHS, why="import sys\nwhy = f'Durable in {sys.prefix}.'"),
    "elsewhere": submitted.answers(why="reason = 'Durable.'"),
    "empty": [*submitted.answers()[:3], submitted.marked("01-why", "why = ...")],
    "renamed": submitted.answers(dedup=RENAMED),
    "copied": submitted.answers(dedup=COPIED),
}  # fmt: skip


def command(*words: object) -> list[str]:
    return [sys.executable, "-m", "labkit", "grade", *map(str, words), "--course", str(submitted.COURSE)]


def graded(*words: object) -> dict[str, object]:
    done = subprocess.run(command(*words, "--json"), check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    told: dict[str, object] = json.loads(done.stdout)
    return told


def table(out: Path) -> dict[str, dict[str, str]]:
    rows = csv.DictReader(io.StringIO((out / "grades.csv").read_text()))
    return {row.get("id", row["student"]): row for row in rows}


@pytest.fixture(scope="module")
def cases(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("cases")
    for name, cells in CASES.items():
        raw = json.dumps(json.loads(submitted.notebook(*cells)), ensure_ascii=False)
        write(folder / "in" / name / cohorts.NOTEBOOK, raw)
    folder.joinpath("told.json").write_text(json.dumps(graded(folder / "in", "--out", folder / "out", "--seed", 5)))
    return folder


def record(folder: Path, name: str) -> Record:
    return record_of(folder / "out", name)


def page(folder: Path, name: str) -> str:
    return (folder / "out" / "feedback" / f"{records.file_name(name, 'feedback')}.html").read_text()


def test_a_notebook_that_grows_when_it_is_written_is_graded(cases: Path) -> None:
    assert sum(item.points or 0 for item in record(cases, "heavy").items) == 6


def test_an_error_that_hides_nothing_is_shown(cases: Path) -> None:
    assert "NameError: name &#39;nubmer&#39; is not defined" in page(cases, "undefined")
    assert "does not define double" in page(cases, "misspelt")
    assert "Line 2 of the cell" in page(cases, "syntax")
    assert "return 2 * nubmer" in page(cases, "undefined")


def test_an_error_that_knows_something_hidden_is_not_shown(cases: Path) -> None:
    double, seen, *_ = record(cases, "leak").items
    numbers = {
        number.strip("(), ")
        for variant in double.variants
        if variant.hidden
        for number in variant.parameters["numbers"].split()
    }
    assert len(numbers) > 10
    assert all(number in seen.reason for number in sorted(numbers)[:3])
    assert not [number for number in numbers if number in page(cases, "leak")]
    assert "No such file" in seen.error


def test_a_text_under_another_name_waits_for_the_person_who_marks(cases: Path) -> None:
    text = record(cases, "elsewhere").items[-1]
    assert (text.points, text.status) == (None, "by hand")
    assert text.written == (
        "The variable why has no text (why: why is not defined: its cell failed, or defines another name). "
        "The cell is:\n"
        "# exercise 01-why\nreason = 'Durable.'"
    )
    assert "reason = &#39;Durable.&#39;" in (cases / "out" / "by_hand" / "texts.html").read_text()
    assert "your instructor reads your cell" in page(cases, "elsewhere")
    empty = record(cases, "empty").items[-1]
    assert (empty.points, empty.status) == (0, "not attempted")


def test_a_learners_page_shows_no_path_of_the_grading_machine(cases: Path) -> None:
    double, seen, _, why = record(cases, "machine").items
    assert str(cases / "out") in double.reason + seen.reason, "the answers do not say what the page must hide"
    assert double.error.startswith("double raised ValueError: ['\N{HORIZONTAL ELLIPSIS}")
    assert "\N{HORIZONTAL ELLIPSIS} and \N{HORIZONTAL ELLIPSIS}/labkit/__init__.py" in seen.error
    assert why.written == "Durable in \N{HORIZONTAL ELLIPSIS}."
    assert not [path for path in (str(cases), sys.prefix, "/.venv") if path in page(cases, "machine")]


def test_answers_of_one_structure_are_shown_together(cases: Path) -> None:
    assert "<tr><td>copied and renamed</td><td>01-dedup</td></tr>" in (cases / "out" / "summary.html").read_text()
    beside = (cases / "out" / "alike.html").read_text()
    assert "<h2>copied and renamed</h2>\n<h3>01-dedup</h3>" in beside
    copied, renamed = (html.escape(source, quote=False) for source in (COPIED, RENAMED))
    assert 0 < beside.index(copied) < beside.index(renamed)


def test_one_student_and_one_exercise_are_graded_anew(cases: Path) -> None:
    before = {name: record(cases, name) for name in CASES}
    for item in before["undefined"].items:
        item.seconds = -1.0  # no measured time, so it shows what was graded anew
    records.write(before["undefined"], record_path(cases / "out", "undefined"))
    told = graded(cases / "in", "--out", cases / "out", "--only", "undefined", "--exercise", "01-dedup")
    assert told["graded"] == 1
    after = record(cases, "undefined")
    assert [item.points for item in after.items] == [item.points for item in before["undefined"].items]
    assert after.items[0] == before["undefined"].items[0]
    assert after.items[1].seconds >= 0
    assert record(cases, "leak") == before["leak"]
    assert graded(cases / "in", "--out", cases / "out")["kept"] == len(CASES)


def test_a_word_on_an_error_that_cannot_be_had_costs_no_points(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, cells in (("ada", CASES["undefined"]), ("bob", RIGHT)):
        submitted.hand_in(tmp_path / "in", name, cells)
    out, work = tmp_path / "out", tmp_path / "work"
    for folder in (out / "records", out / "executed", work / "files"):
        folder.mkdir(parents=True)
    course = load(submitted.COURSE)
    found = collect([tmp_path / "in"], course, work / "files", None)
    setting = batch._setting(Order([tmp_path / "in"], out, submitted.COURSE), course, 1, work)

    def breaks_off(*_: object) -> None:
        raise FrameError("the other side has closed")

    monkeypatch.setattr("labkit.grading.worker.explain", breaks_off)
    with Grader(setting) as grader:
        assert all(grader.grade(one).graded for one in found)
    kept, _ = records.read_all(out / "records")
    assert [sum(item.points or 0 for item in one.items) for one in kept] == [4, 6]


def test_a_class_from_three_platforms_gets_the_grades_that_were_computed_by_hand(tmp_path: Path) -> None:
    chance = random.Random(11)
    learners, expected = [], {}
    for number in range(12):
        wrong = {name for name in submitted.WRONG if chance.random() < 0.4}
        cells = submitted.answers(**{name.removeprefix("01-"): submitted.WRONG[name] for name in wrong})
        name = "Max Muster" if number < 4 else f"Student {number}"
        when = cohorts.LATE if number % 3 == 0 else cohorts.ON_TIME
        learners.append(Learner(name, 1000 + number, f"s{number}", submitted.notebook(*cells, f"n = {number}"), when))
        points = 6 - 2 * len(wrong) + (1.5 if number == 2 else 0)
        expected[f"s{number}"] = round(points * (0.8 if when == cohorts.LATE else 1), 4)
    given = [
        cohorts.moodle(tmp_path / "m", learners[:4]),
        cohorts.blackboard(tmp_path / "b", learners[4:8]),
        cohorts.archives(tmp_path / "a", learners[8:]),
    ]
    lines = [f"s{n},{one.name},{one.number if n < 4 else ''}" for n, one in enumerate(learners)]
    write(tmp_path / "roster.csv", "\n".join(["id,name,moodle", *lines, "s99,Nobody There,"]))
    write(tmp_path / "marks.csv", "student,exercise,points,comment\ns2,01-why,1.5,well said\n")
    write(tmp_path / "rules.toml", "[late]\npercent_a_day = 10\n")
    told = graded(*given, "--out", tmp_path / "out", "--roster", tmp_path / "roster.csv", "--marks", tmp_path / "marks.csv",  # noqa: E501
                  "--rules", tmp_path / "rules.toml", "--deadline", "2027-01-31T18:00", "--seed", 3)  # fmt: skip
    assert told["missing_students"] == ["Nobody There"]
    assert told["unknown_students"] == []
    assert {key: float(row["total"]) for key, row in table(tmp_path / "out").items()} == expected | {"s99": 0}
    before = (tmp_path / "out" / "grades.csv").read_text()
    assert graded(*given, "--out", tmp_path / "out")["graded"] == 0
    assert (tmp_path / "out" / "grades.csv").read_text() == before
    assert len((tmp_path / "out" / "exports" / "moodle.csv").read_text().splitlines()) == 5


def test_a_batch_that_is_killed_again_and_again_gives_the_same_gradebook(tmp_path: Path) -> None:
    for number in range(10):
        cells = submitted.answers() if number % 2 else submitted.answers(double=submitted.WRONG["01-double"])
        submitted.hand_in(tmp_path / "in", f"s{number}", [*cells, f"n = {number}"])
    whole = subprocess.Popen(
        command(tmp_path / "in", "--out", tmp_path / "whole", "--seed", 9, "--json"), stdout=subprocess.DEVNULL
    )
    until((tmp_path / "whole" / ".work").exists, "a batch under way", seconds=300)
    second = subprocess.run(
        command(tmp_path / "in", "--out", tmp_path / "whole", "--json"), capture_output=True, text=True, check=False
    )
    assert (second.returncode, second.stdout) == (64, "")
    assert "another `labkit grade` is writing to this folder" in second.stderr
    for count in (0, 4):
        _killed_after(count, tmp_path)
    assert whole.wait(300) == 0
    graded(tmp_path / "in", "--out", tmp_path / "killed")
    assert (tmp_path / "killed" / "grades.csv").read_text() == (tmp_path / "whole" / "grades.csv").read_text()
    assert not (tmp_path / "killed" / ".work").exists()


LINGERS = """import time
def write_batch(db, query, batch, rows):
    time.sleep(1)"""
"""A slow answer, so that its trial is under way when the batch is stopped; the test waits for the trial's folder."""


def test_a_batch_that_is_stopped_within_a_trial_of_a_sink_leaves_no_folder(tmp_path: Path) -> None:
    out, temporary = tmp_path / "out", tmp_path / "tmp"
    temporary.mkdir()
    submitted.hand_in(tmp_path / "in", "ada", [submitted.marked("14-table", LINGERS)], "14_capstone")
    running = subprocess.Popen(
        [sys.executable, "-m", "labkit", "grade", str(tmp_path / "in"), "--out", str(out), "--json"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=os.environ | {"TMPDIR": str(temporary)},
    )
    until(lambda: list(out.glob(".work/scratch-*/labkit-own-sink-*")), "a trial under way", seconds=120)
    running.send_signal(signal.SIGTERM)
    running.wait(60)
    assert not (out / ".work").exists()
    assert list(temporary.iterdir()) == []


def _killed_after(count: int, folder: Path) -> None:
    """Starts the batch and kills it when so many records are there."""
    out = folder / "killed"
    running = subprocess.Popen(command(folder / "in", "--out", out, "--seed", 9, "--json"), stdout=subprocess.DEVNULL)

    def is_under_way() -> bool:
        there = len(list((out / "records").glob("*.json")))
        return (out / ".work").exists() and there >= count

    until(is_under_way, "a batch under way", seconds=300)
    below = psutil.Process(running.pid).children(recursive=True)
    running.send_signal(signal.SIGKILL)
    running.wait()
    _, alive = psutil.wait_procs(below, timeout=20)
    assert alive == []
