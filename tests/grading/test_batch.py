"""Many submissions of every kind: the same grades whether the batch is killed in the middle or not."""

import os
import signal
import subprocess
from pathlib import Path

import pytest
import submitted
from batches import graded, record_of

from labkit.core.errors import InvalidInput
from labkit.grading import records
from labkit.grading.batch import run
from labkit.grading.course import load
from labkit.grading.gradebook import write_book
from labkit.grading.order import Order, Patience
from labkit.grading.scoring import Policy
from labkit.host.cores import cores


def grade(folder: Path, **more: object) -> object:
    done = graded(folder, workers=1, **more)
    write_book(folder / "out", load(submitted.COURSE), Policy())
    return done


def record(folder: Path, student: str) -> records.Record:
    return record_of(folder / "out", student)


def points(folder: Path, student: str) -> int:
    return sum(item.points or 0 for item in record(folder, student).items)


@pytest.mark.slow
def test_only_what_has_changed_is_graded_again(tmp_path: Path) -> None:
    for student in ("ada", "bob", "eve"):
        submitted.hand_in(tmp_path / "in", student, submitted.answers())
    assert grade(tmp_path).graded == 3
    again = grade(tmp_path)
    assert (again.graded, again.kept) == (0, 3)
    submitted.hand_in(tmp_path / "in", "bob", submitted.answers(double=submitted.WRONG["01-double"]))
    again = grade(tmp_path)
    assert (again.graded, again.kept) == (1, 2)
    head, *rows = (tmp_path / "out" / "grades.csv").read_text().splitlines()
    assert head.startswith("student,01-double,01-dedup,01-setting,01-why,total,late,id,account,penalty,")
    assert head.endswith(",handed in,in roster,group,not settled")
    assert rows == ["ada,2,2,2,,6,no,ada,,,yes,,,", "bob,0,2,2,,4,no,bob,,,yes,,,", "eve,2,2,2,,6,no,eve,,,yes,,,"]


SLOW_ONCE = """
def double(number):
    import pathlib, time
    if not pathlib.Path({file!r}).exists():
        pathlib.Path({file!r}).touch()
        time.sleep(60)
    return 2 * number
"""
"""Waits longer than any limit in the first run, as on a busy machine; the file survives it without isolation."""


@pytest.mark.slow
def test_an_answer_that_took_too_long_is_graded_once_more_when_all_others_have_ended(tmp_path: Path) -> None:
    once, ever = SLOW_ONCE.format(file=str(tmp_path / "seen")), "def double(number):\n    while True:\n        pass"
    for student, double in (("ada", once), ("bob", ever), ("eve", submitted.RIGHT["01-double"])):
        submitted.hand_in(tmp_path / "in", student, submitted.answers(double=double))
    order = Order(
        [tmp_path / "in"],
        tmp_path / "out",
        submitted.COURSE,
        workers=1,
        isolation="plain",
        trust=True,
        patience=Patience(call_seconds=2),
    )
    ended = []
    run(order, lambda _number, _of, name: ended.append(name.partition("--")[0]))
    assert ended[0] == "eve"
    assert sorted(ended) == ["ada", "bob", "eve"]
    assert {student: points(tmp_path, student) for student in ended} == {"ada": 6, "bob": 4, "eve": 6}
    assert record(tmp_path, "ada").limits_hit == []
    assert record(tmp_path, "bob").limits_hit == ["01-double: time"]


def kill_workers(patch: pytest.MonkeyPatch, most: int) -> list[int]:
    """Kills so many workers of batches as soon as they have been started; returns those that were killed so far."""
    real, killed = subprocess.Popen, []

    def start(*arguments: object, **more: object) -> object:
        process = real(*arguments, **more)
        if len(killed) < most and "labkit.grading.worker" in arguments[0]:
            killed.append(process.pid)
            process.send_signal(signal.SIGKILL)
        return process

    patch.setattr("labkit.grading.batch.subprocess.Popen", start)
    return killed


@pytest.mark.slow
def test_a_worker_that_dies_costs_one_more_try_and_no_grade(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    submitted.hand_in(tmp_path / "in", "ada", submitted.answers())
    killed = kill_workers(monkeypatch, most=1)
    assert grade(tmp_path).failed == 0
    assert killed
    assert points(tmp_path, "ada") == 6


@pytest.mark.slow
def test_where_grading_itself_fails_there_are_no_points_and_no_zero(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    submitted.hand_in(tmp_path / "in", "ada", submitted.answers())
    with monkeypatch.context() as patch:
        kill_workers(patch, most=100)
        assert grade(tmp_path).failed == 1
    assert {item.status for item in record(tmp_path, "ada").items} == {"not graded"}
    assert (tmp_path / "out" / "grades.csv").read_text().splitlines()[1] == "ada,,,,,,no,ada,,,yes,,,01_sample"
    assert grade(tmp_path).graded == 1
    assert points(tmp_path, "ada") == 6


NOTES_PROCESSORS = """
def double(number):
    import os, pathlib
    pathlib.Path({folder!r}, str(os.getpid())).write_text(str(len(os.sched_getaffinity(0))))
    return 2 * number
"""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="the system cannot keep a process to a processor")
def test_workers_keep_to_one_processor_each_only_if_there_is_one_for_every_processor(tmp_path: Path) -> None:
    for workers, used in ((cores(), 1), (cores() + 1, cores())):
        folder = tmp_path / str(workers)
        (folder / "noted").mkdir(parents=True)
        double = NOTES_PROCESSORS.format(folder=str(folder / "noted"))
        for number in range(workers):
            submitted.hand_in(folder / "in", f"student-{number}", submitted.answers(double=double))
        graded(folder, workers=workers, isolation="plain", trust=True)
        assert {int(each.read_text()) for each in (folder / "noted").iterdir()} == {used}


def test_an_output_folder_of_another_course_is_refused(tmp_path: Path) -> None:
    submitted.hand_in(tmp_path / "in", "ada", submitted.answers())
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "grading.json").write_text('{"course": "other", "seed": 1}')
    with pytest.raises(InvalidInput, match="grades of the course other, not of sample"):
        grade(tmp_path)
    (tmp_path / "out" / "grading.json").unlink()
    (tmp_path / "out" / "thesis.txt").write_text("mine")
    with pytest.raises(InvalidInput, match="files that are not from"):
        grade(tmp_path)


@pytest.mark.slow
def test_folders_are_relative_and_the_seed_is_recorded_kept_and_not_changed_by_mistake(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    submitted.hand_in(tmp_path / "in", "ada", submitted.answers())
    monkeypatch.chdir(tmp_path)
    first = grade(Path())
    assert first.graded == 1
    assert points(tmp_path, "ada") > 0
    seed = first.seed
    assert record(tmp_path, "ada").seed == seed == grade(tmp_path).seed
    with pytest.raises(InvalidInput, match=f"the seed {seed}"):
        grade(tmp_path, seed=seed + 1)
