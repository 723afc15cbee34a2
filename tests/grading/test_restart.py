"""A key that changes with a restart is a new key: what depends on the process gets no points, and learners are told."""

import subprocess
from pathlib import Path
from random import Random
from types import SimpleNamespace

import batches
import pytest
import submitted
from batches import record_of
from exercise_sources import all_sources

from labkit.grading import examining, records
from labkit.grading.order import Patience
from labkit.grading.sandbox.inside.jobs import Limits
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
    return str(hash(str([row["topic"], row["partition"], row["offset"], row["call"]])))
""",
}
MARKED = """
MARK = "a"
def key_of_call(row):
    return MARK + str([row["topic"], row["partition"], row["offset"], row["call"]])
"""
IN_ANY_ORDER = """
def recover_and_commit(decided, votes, found):
    due = {handle for vote in votes if vote["batch"] <= decided for handle in vote["handles"]}
    return [["commit", handle] for handle in due] + [["abort", handle] for handle in set(found) - due]
"""
DRAWN = """
import uuid
RUN = uuid.uuid4().hex
def key_of_call(row):
    return RUN + str([row["topic"], row["partition"], row["offset"], row["call"]])
"""


@pytest.fixture(scope="module")
def graded(tmp_path_factory: pytest.TempPathFactory) -> dict[str, records.Record]:
    """The records of one batch by student; the cells `ends` end the kernel in the second process alone."""
    folder = tmp_path_factory.mktemp("restart")
    salt = Random("salt 1 77").randrange(1, 2**32)
    code = own_python("-c", 'print(hash("orders"))')
    wanted = subprocess.run(code, env={"PYTHONHASHSEED": str(salt)}, capture_output=True, text=True, check=True).stdout
    ends = f'import os\nif hash("orders") == {wanted.strip()}:\n    os._exit(1)\n'
    right = {name: all_sources()[name][1] for name in ("06-key", "11-call")}
    handed_in = {
        "salted-key": (SINKS, salted_key := submitted.marked("06-key", SALTED["06-key"])),
        "salted-call": (CALLS, submitted.marked("11-call", SALTED["11-call"])),
        "drawn-call": (CALLS, submitted.marked("11-call", DRAWN)),
        "right-call": (CALLS, submitted.marked("11-call", right["11-call"])),
        "ends-twice": (SINKS, ends, submitted.marked("06-key", ends + right["06-key"]), IN_ANY_ORDER),
        # Without the cell that ends the second run the key replies there all the same.
        "ends-salted": (SINKS, f"{ends}SALT = 2\n", salted_key),
    }
    for student, (notebook, *cells) in handed_in.items():
        submitted.hand_in(folder / "in", student, cells, notebook)
    assert batches.graded(folder, course=None, seed=77).failed == 0
    return {student: record_of(folder / "out", student, notebook) for student, (notebook, *_) in handed_in.items()}


def attempted(record: records.Record) -> dict[str, records.ItemRecord]:
    return {item.name: item for item in record.items if item.status != "not attempted"}


@pytest.mark.slow
def test_a_function_that_replies_otherwise_in_another_process_gets_no_points(graded: dict[str, records.Record]) -> None:
    wrong = ("salted-key", "salted-call", "drawn-call", "ends-salted")
    items = [item for student in wrong for item in attempted(graded[student]).values()]
    assert {(item.points, item.shown) for item in items} == {(0, "The answer gave another answer after a restart.")}
    assert [item.points for item in attempted(graded["right-call"]).values()] == [4]


@pytest.mark.slow
def test_a_cell_that_ends_the_second_run_costs_only_its_own_exercise(graded: dict[str, records.Record]) -> None:
    record = graded["ends-twice"]
    assert {name: (item.points, item.reason) for name, item in attempted(record).items()} == {
        "06-key": (0, "key: the second run of its notebook ended the kernel"),
        "06-recover": (5, ""),
    }
    assert "A cell that belongs to no exercise ended the kernel after a restart, so it was left out." in record.notes


@pytest.mark.parametrize("name", SALTED)
def test_the_visible_check_says_that_a_key_changes_with_a_restart(name: str) -> None:
    exercise, namespace = EXERCISES[name], {}
    exec(SALTED[name], namespace)
    assert judged(exercise, namespace)[-1].passed  # in one process nobody can see it
    finding = judged(exercise, namespace, [SALTED[name]])[-1]
    assert not finding.passed
    assert "after a restart" in finding.message


def test_a_list_whose_order_the_judge_ignores_may_have_another_order_after_a_restart() -> None:
    namespace = {}
    exec(IN_ANY_ORDER, namespace)
    assert judged(EXERCISES["06-recover"], namespace, [IN_ANY_ORDER])[-1].passed
    apply, key = EXERCISES["10-apply"], EXERCISES["11-call"]
    assert apply.same([["a", 1], ["b", 2]], [["b", 2], ["a", 1]])
    assert not apply.same([["a", 1]], [["a", 1], ["a", 1]])
    assert not apply.same([["a", 1]], [[1, "a"]])
    assert not key.same(["a", "b"], ["b", "a"])


def test_what_does_not_run_in_another_process_is_no_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    name, namespace = "06-key", {}
    right = all_sources()[name][1]
    exec(right, namespace)
    for sources in ([right], [], ["import os\nos._exit(3)"], [right, "1 / 0"]):
        assert judged(EXERCISES[name], namespace, sources)[-1].passed
    monkeypatch.setattr(restarted, "SECONDS", 0.01)
    assert judged(EXERCISES[name], namespace, [right])[-1].passed


def test_a_saved_notebook_is_checked_after_a_restart(tmp_path: Path) -> None:
    """A later cell gives another value to a name that the answer uses, and to the name of the answer."""
    later = "MARK = 'b'\nfor key_of_call in MARK:\n    pass\n"
    found = {}
    for student, source in (("ada", SALTED["11-call"]), ("bob", MARKED)):
        path = submitted.hand_in(tmp_path, student, [submitted.marked("11-call", source), later], CALLS)
        [found[student]] = [each for each in checked(path) if each.name == "11-call"]
    assert found["ada"].state == "failed"
    assert "after a restart" in found["ada"].message
    assert (found["bob"].state, found["bob"].message) == ("passed", "")


def test_the_start_of_a_sandbox_takes_no_time_from_the_submission(monkeypatch):
    """The process that forks sandboxes may need longer than a submission may: that is the grader's time."""
    now = [1_000.0]

    class Begun(Exception):
        pass

    class Slow:
        limits = Limits(total_seconds=120)
        is_ready = False

        def wait_until_ready(self):
            now[0] += 0 if self.is_ready else 150
            self.is_ready = True

        def run(self, _notebook, _names, deadline):
            self.wait_until_ready()  # as a real one
            raise Begun(deadline - now[0])

    monkeypatch.setattr(examining.time, "monotonic", lambda: now[0])
    exercise = next(iter(EXERCISES.values()))
    prepared = SimpleNamespace(attempted=[exercise], cells=[], notebook=lambda _without: "")
    again = Slow()
    examination = examining.Examination(prepared, None, Slow(), Patience(), None, lambda: again)
    with pytest.raises(Begun) as begun:
        examination.run()
    assert begun.value.args == (120,)
    examination.replies[exercise.name] = {}
    with pytest.raises(Begun) as begun:
        examination._restart()
    assert begun.value.args == (120,)
