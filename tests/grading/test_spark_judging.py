"""What needs Spark is judged in a process of its own: its crash is contained, and the same answer is judged once."""

import os
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from labkit.core.errors import GradingError
from labkit.grading import spark_judging
from labkit.grading.marking import KnownAnswer
from labkit.grading.spark_judging import SparkJudge
from labkit.teach.exercises.contract import AnswerFailed, Exercise, Finding, Kind, Level, Variant

COURSE = """
import os, pathlib, signal, time
from labkit.teach.exercises.contract import Exercise, Finding, Kind, Level

def judge(answer, variant):
    value = answer.value()
    with open({log!r}, "a") as log:
        log.write(f"{{os.getpid()}} {{os.getcwd()}} {{len(os.listdir())}}\\n")
    pathlib.Path("checkpoint").mkdir()
    if value == "die":
        os.kill(os.getpid(), signal.SIGKILL)
    if value == "hang":
        time.sleep(600)
    if value == "break":
        1 / 0
    return Finding(passed=value == variant["right"], message="" if value == variant["right"] else "It is another sink.")

def together(answer, variants):
    with open({log!r}, "a") as log:
        log.write(f"together {{len(variants)}}\\n")
    if answer.value() == "none":
        1 / 0
    return [Finding(answer.value() == variant["right"], "") for variant in variants]

EXERCISES = [Exercise("07-x", "07_x", "", Kind.CONFIGURE, Level.HARD, 4, "x", "", ("", ""), 1, (), judge,
                      needs_spark=True, judge_together=together)]
NOTEBOOKS = "."

def variants(name, seed):
    return []
"""
VARIANT = Variant("one", (("right", "wal"), ("points", ("a", "b"))))


@pytest.fixture
def course(tmp_path: Path) -> Path:
    path = tmp_path / "course.py"
    path.write_text(COURSE.format(log=str(tmp_path / "log")))
    return path


@pytest.fixture
def judge(course: Path) -> Iterator[SparkJudge]:
    judge = SparkJudge(course, course.parent / "work")
    yield judge
    judge.close()
    assert not (course.parent / "work").exists()
    assert not [child for child in psutil.Process().children(recursive=True) if "spark_judging" in str(child.cmdline())]


def exercise() -> Exercise:
    def never(answer: object, variant: Variant) -> Finding:
        raise AssertionError

    return Exercise(
        name="07-x", notebook="07_x", title="", kind=Kind.CONFIGURE, level=Level.HARD, points=4, answer="x", task="",
        hints=("", ""), lines=1, public=(), judge=never, needs_spark=True, judge_together=lambda *_: [],
    )  # fmt: skip


def lines(course: Path) -> list[list[str]]:
    return [line.split() for line in (course.parent / "log").read_text().splitlines()]


def test_it_judges_elsewhere_in_an_empty_folder_and_the_same_answer_once(judge: SparkJudge, course: Path) -> None:
    for _ in range(3):
        assert judge(exercise(), KnownAnswer("wal"), VARIANT).passed
        assert judge(exercise(), KnownAnswer("append"), VARIANT).message == "It is another sink."
    (first, first_folder, first_files), (second, second_folder, second_files) = lines(course)
    assert first == second != str(os.getpid())
    assert first_folder != second_folder
    assert first_files == second_files == "0"
    assert not Path(first_folder).exists()


def test_several_variants_are_judged_at_once_and_each_gets_its_own_finding(judge: SparkJudge, course: Path) -> None:
    other = Variant("two", (("right", "append"),))
    judge.together(exercise(), KnownAnswer("wal"), [VARIANT, other])
    judge.together(exercise(), KnownAnswer("wal"), [VARIANT, other])
    assert judge(exercise(), KnownAnswer("wal"), VARIANT).passed
    assert not judge(exercise(), KnownAnswer("wal"), other).passed
    assert lines(course) == [["together", "2"]]


def test_what_one_judge_of_a_batch_has_found_no_other_runs_again(course: Path) -> None:
    other, found = Variant("two", (("right", "append"),)), course.parent / "found"
    for number in (1, 2):
        work = course.parent / f"work-{number}"
        judge = SparkJudge(course, work, shared=found)
        judge.together(exercise(), KnownAnswer("wal"), [VARIANT, other])
        assert judge(exercise(), KnownAnswer("wal"), VARIANT).passed
        assert not judge(exercise(), KnownAnswer("wal"), other).passed
        with pytest.raises(GradingError, match="ZeroDivisionError"):
            judge(exercise(), KnownAnswer("break"), VARIANT)
        judge.close()
    together, *broke = lines(course)
    assert together == ["together", "2"]
    assert len(broke) == 2, "an error may be one of this moment"


def test_where_they_cannot_be_judged_at_once_each_is_judged_by_itself(judge: SparkJudge, course: Path) -> None:
    other = Variant("two", (("right", "none"),))
    judge.together(exercise(), KnownAnswer("none"), [VARIANT, other])
    assert not judge(exercise(), KnownAnswer("none"), VARIANT).passed
    assert judge(exercise(), KnownAnswer("none"), other).passed
    assert [line[0] == "together" for line in lines(course)] == [True, False, False]


def test_a_crash_is_tried_once_more_and_then_named_and_harms_no_other(judge: SparkJudge, course: Path) -> None:
    with pytest.raises(GradingError, match="died twice"):
        judge(exercise(), KnownAnswer("die"), VARIANT)
    assert len(lines(course)) == 2
    assert judge(exercise(), KnownAnswer("wal"), VARIANT).passed


def test_a_judge_that_breaks_is_not_the_answers_fault(judge: SparkJudge) -> None:
    with pytest.raises(GradingError, match="ZeroDivisionError"):
        judge(exercise(), KnownAnswer("break"), VARIANT)


def test_what_never_ends_is_ended(judge: SparkJudge, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spark_judging, "SECONDS", 2.0)
    with pytest.raises(AnswerFailed, match="longer than 2 seconds"):
        judge(exercise(), KnownAnswer("hang"), VARIANT)
