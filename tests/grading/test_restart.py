"""A key that changes with a restart is a new key: what depends on the process gets no points, and learners are told."""

import subprocess
from pathlib import Path
from random import Random

import pytest
import submitted
from exercise_sources import all_sources

from labkit.grading import records
from labkit.grading.batch import run
from labkit.grading.order import Order
from labkit.host.processes.own_python import own_python
from labkit.teach.exercises import restarted
from labkit.teach.exercises.check import judged
from labkit.teach.exercises.registry import EXERCISES
from labkit.teach.exercises.standalone import checked

SINKS, CALLS = "06_sinks", "11_side_effects"
SALTED = {
    "06-key": 'def key(row):\n    return hash((row["word"], str(row["count"]))) // 2\n',
    "11-call": """
def key_of_call(row):
    return str(hash((row["topic"], row["partition"], row["offset"], row["call"])))
""",
}
DRAWN = """
import uuid
RUN = uuid.uuid4().hex
def key_of_call(row):
    return RUN + str([row["topic"], row["partition"], row["offset"], row["call"]])
"""


def hand_in(folder: Path, student: str, notebook: str, name: str, source: str) -> Path:
    path = folder / student / f"{notebook}.ipynb"
    path.parent.mkdir(parents=True)
    path.write_text(submitted.notebook(submitted.marked(name, source)), encoding="utf-8")
    return path


def test_a_function_that_replies_otherwise_in_another_process_gets_no_points(tmp_path: Path) -> None:
    handed_in = {
        "salted-key": (SINKS, "06-key", SALTED["06-key"]),
        "salted-call": (CALLS, "11-call", SALTED["11-call"]),
        "drawn-call": (CALLS, "11-call", DRAWN),
        "right-key": (SINKS, "06-key", all_sources()["06-key"][1]),
        "right-call": (CALLS, "11-call", all_sources()["11-call"][1]),
    }
    for student, each in handed_in.items():
        hand_in(tmp_path / "in", student, *each)
    assert run(Order([tmp_path / "in"], tmp_path / "out", seed=77), lambda *_: None).failed == 0
    points, kinds = {}, set()
    for student, (notebook, name, _) in handed_in.items():
        record = records.read(tmp_path / "out" / "records" / f"{records.file_name(student, notebook)}.json")
        [item] = [each for each in record.items if each.name == name]
        points[student] = item.points
        kinds |= {item.shown} if item.points == 0 else set()
    assert points == {"salted-key": 0, "salted-call": 0, "drawn-call": 0, "right-key": 2, "right-call": 4}
    assert kinds == {"The answer gave another answer after a restart."}


@pytest.mark.parametrize("name", SALTED)
def test_the_visible_check_says_that_a_key_changes_with_a_restart(name: str) -> None:
    exercise, namespace = EXERCISES[name], {}
    exec(SALTED[name], namespace)
    assert judged(exercise, namespace)[-1].passed  # in one process nobody can see it
    finding = judged(exercise, namespace, [SALTED[name]])[-1]
    assert not finding.passed
    assert "after a restart" in finding.message


def test_what_does_not_run_in_another_process_is_no_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    name, namespace = "06-key", {}
    right = all_sources()[name][1]
    exec(right, namespace)
    for sources in ([right], [], ["import os\nos._exit(3)"], [right, "1 / 0"]):
        assert judged(EXERCISES[name], namespace, sources)[-1].passed
    monkeypatch.setattr(restarted, "SECONDS", 0.01)
    assert judged(EXERCISES[name], namespace, [right])[-1].passed


def test_a_saved_notebook_is_checked_after_a_restart(tmp_path: Path) -> None:
    path = hand_in(tmp_path, "ada", CALLS, "11-call", SALTED["11-call"])
    [found] = [each for each in checked(path) if each.name == "11-call"]
    assert found.state == "failed"
    assert "after a restart" in found.message


def test_a_second_run_that_ends_early_is_tried_once_more_and_gives_no_points(tmp_path: Path) -> None:
    """The cell ends its kernel in every process but the first, which draws other hashes."""
    ends = 'import os\nif hash("orders") == WANTED:\n    os._exit(1)\n'
    salt = Random("salt 1 77").randrange(1, 2**32)
    code = own_python("-c", 'print(hash("orders"))')
    wanted = subprocess.run(code, env={"PYTHONHASHSEED": str(salt)}, capture_output=True, text=True, check=True).stdout
    source = ends.replace("WANTED", wanted.strip()) + all_sources()["06-key"][1]
    hand_in(tmp_path / "in", "ada", SINKS, "06-key", source)
    run(Order([tmp_path / "in"], tmp_path / "out", seed=77), lambda *_: None)
    record = records.read(tmp_path / "out" / "records" / f"{records.file_name('ada', SINKS)}.json")
    [item] = [each for each in record.items if each.name == "06-key"]
    assert (item.points, item.reason) == (0, "key: the second run of its notebook ended the kernel")
