"""The checks are checked: every wrong solution that is known fails, publicly and hidden, each with its own message."""

import contextlib
import io
import re
from collections import Counter
from functools import cache
from pathlib import Path

import pytest
from exercise_sources import run, said_of, wrong_files

from labkit.exercises.check import judged
from labkit.exercises.contract import AnswerFailed, Finding, Kind
from labkit.exercises.namespace import InNotebook
from labkit.exercises.registry import EXERCISES, find
from labkit.grading.hidden import variants

FILES = wrong_files()
SEEDS = range(3)
CODE = [
    exercise.name
    for exercise in EXERCISES.values()
    if exercise.kind in (Kind.COMPLETE, Kind.INVARIANT) or exercise.name == "09-timeout"
]
"""Exercises whose answer is a function."""


@cache
def public(path: Path) -> Finding:
    """The finding of the visible check; a learner's cell is new for every check."""
    with contextlib.redirect_stdout(io.StringIO()):
        found = judged(find(path.parent.name), run(path.read_text()))
    assert found is not None, "not attempted"
    return found[-1]


@cache
def hidden(path: Path, seed: int) -> Finding | None:
    """The first finding of the hidden variants of a seed that does not pass; None where all do."""
    exercise, namespace = find(path.parent.name), run(path.read_text())
    answer = InNotebook(exercise.answer, namespace)
    with contextlib.redirect_stdout(io.StringIO()):
        try:
            found = (exercise.judge(answer, variant) for variant in variants(exercise.name, seed))
            return next((each for each in found if not each.passed), None)
        except AnswerFailed as error:
            return Finding(False, str(error), general="The answer failed.")


def test_every_code_item_has_at_least_five_wrong_solutions():
    counts = Counter(path.parent.name for path in FILES)
    assert set(counts) == set(CODE)
    assert min(counts.values()) >= 5


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_a_wrong_solution_fails_with_its_own_message(path: Path):
    _, says = said_of(path)
    found = public(path)
    assert not found.passed
    assert says in found.message
    others = [other for other in path.parent.glob("*.py") if other != path]
    assert not any(says in public(other).message for other in others)


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_a_wrong_solution_fails_by_the_hidden_variants_of_every_seed(path: Path):
    for seed in SEEDS:
        found = hidden(path, seed)
        assert found is not None, seed
        assert found.general
        # Nothing of a hidden variant: no question with its arguments, no word of its input, no number.
        assert not re.search(r"\w\(|\d|hello|world|stream|table-|spark|flink", found.general), found.general


def test_the_kill_rate_is_complete_and_printed(capsys: pytest.CaptureFixture[str]):
    killed = sum(not public(path).passed and all(hidden(path, seed) for seed in SEEDS) for path in FILES)
    with capsys.disabled():
        print(f"\nkill rate: {killed} of {len(FILES)} wrong solutions, {len(CODE)} exercises, {len(SEEDS)} seeds")
    assert killed == len(FILES)
