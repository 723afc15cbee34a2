"""Which names a cell binds is what Python says: what works in the learner's notebook is graded."""

from pathlib import Path

import pytest
from batches import graded, record_of
from choosing import slow_but
from exercise_sources import all_sources
from submitted import hand_in

from labkit.teach.exercises import cells
from labkit.teach.exercises.standalone import checked

NOTEBOOK = "06_sinks"
RIGHT = {name: all_sources()[name][1] for name in ("06-key", "06-wal", "06-recover", "06-jump")}
POINTS = {"06-key": 2, "06-wal": 4, "06-recover": 5, "06-jump": 3}
HELPER = RIGHT["06-recover"].replace(
    "def recover", 'def commit(handle):\n    return ["commit", handle]\n\n\ndef recover'
)
SCRATCH = {
    "a comprehension": 'print([key for key in {"a": 1}], {commit: 1 for commit in []})',
    "a nested function": "if True:\n    def helper():\n        key = 3\n        commit = 4",
    "a loop": 'for key in ["a"]:\n    print(key)\nwith open("/dev/null") as commit:\n    pass',
    "an error's name": "try:\n    1 / 0\nexcept ZeroDivisionError as key:\n    pass",
    "a walrus": "print(key := 3)",
    "a class": "class Helper:\n    key = 3\n    def commit(self):\n        pass",
}
LAST_LINES = "print(sorted(key for key in [1]), [commit for commit in [1]])"


def notebook_of(**answers: str) -> list[str]:
    return [*(answers.get(name.replace("-", "_"), source) for name, source in RIGHT.items())]


CASES = {name: [*notebook_of(), source] for name, source in SCRATCH.items()} | {
    "in an answer": notebook_of(**{"06_jump": f"{RIGHT['06-jump']}\n{LAST_LINES}"}),
    "a helper in another answer": notebook_of(**{"06_recover": HELPER}),
}


@pytest.mark.parametrize("case", slow_but(tuple(CASES)[::3], CASES))
def test_a_saved_notebook_keeps_its_answers_beside_other_uses_of_their_names(case: str, tmp_path: Path) -> None:
    path = hand_in(tmp_path, "ada", CASES[case], NOTEBOOK)
    found = {each.name: each.state for each in checked(path) if each.name in RIGHT}
    assert found == dict.fromkeys(RIGHT, "passed")


@pytest.mark.slow
def test_grading_keeps_all_points_beside_other_uses_of_their_names(tmp_path: Path) -> None:
    scratched = {"scratch-cells": [*notebook_of(), *SCRATCH.values()]}
    others = {case.replace(" ", "-"): sources for case, sources in CASES.items() if case not in SCRATCH}
    students = scratched | others
    for student, sources in students.items():
        hand_in(tmp_path / "in", student, sources, NOTEBOOK)
    graded(tmp_path, course=None, seed=77)
    for student in students:
        record = record_of(tmp_path / "out", student, NOTEBOOK)
        points = {item.name: item.points for item in record.items if item.name in RIGHT}
        assert points == POINTS, student
        told = [note for note in record.notes if "several of your cells define commit" in note]
        assert bool(told) == (student == "a-helper-in-another-answer"), record.notes


def test_cells_that_compete_are_named_before_handing_in(tmp_path: Path) -> None:
    sources = [*notebook_of(), "# my helper\ndef key(row):\n    return 1"]
    found = {each.name: each for each in checked(hand_in(tmp_path, "ada", sources, NOTEBOOK))}
    assert found["06-key"].state == "failed"  # as in the notebook, the last definition counts
    assert "the cell that begins with `# my helper`" in found["06-key"].message
    path = hand_in(tmp_path, "bob", CASES["a helper in another answer"], NOTEBOOK)
    helped = {each.name: each for each in checked(path)}
    assert helped["06-wal"].is_passed
    assert "Grading takes the cell that begins with `# exercise 06-wal`" in helped["06-wal"].message
    assert helped["06-key"].message == ""


@pytest.mark.parametrize(
    ("source", "bound", "defined"),
    [
        ("x = [y for y in z]", {"x"}, {"x"}),
        ("def f():\n    global g\n    g = 1", {"f", "g"}, {"f"}),
        ("for i in []:\n    j = 1", {"i", "j"}, {"j"}),
        ("print(n := 1)", {"n"}, set()),
        ("lambda a: [b := a]", set(), set()),
        ("x: int", set(), set()),
        ("x: int = 1\nx += 1", {"x"}, {"x"}),
        ("a.b = 1\nc[0] = 2", set(), set()),
        ("await sleep(1)\nx = 1", {"x"}, {"x"}),
        ("x, (y, *z) = 1, (2, 3)", {"x", "y", "z"}, {"x", "y", "z"}),
        ("import a.b, c as d\nfrom e import f", {"a", "d", "f"}, {"a", "d", "f"}),
        ("with x as k:\n    pass", {"k"}, set()),
        ("%%time\nx = 1", {"x"}, {"x"}),
        ("%matplotlib inline\n!ls\nx = 1", {"x"}, {"x"}),
        ("%%bash\nx=1", set(), set()),
        ("not python at all", set(), set()),
        ("match 1:\n    case n:\n        m = 2", {"n", "m"}, {"m"}),
    ],
)
def test_the_scopes_are_those_of_python(source: str, bound: set[str], defined: set[str]) -> None:
    assert (cells.bound(source), cells.defined(source)) == (bound, defined)
