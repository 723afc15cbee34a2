"""The checks are checked: every wrong solution that is known fails, publicly and hidden, each with its own message."""

import re
from collections import Counter
from functools import cache
from pathlib import Path

import kill_rate
import pytest

from labkit.teach.exercises import searching
from labkit.teach.exercises.contract import Kind
from labkit.teach.exercises.registry import EXERCISES

FILES = kill_rate.wrong_files()
CODE = [
    exercise.name
    for exercise in EXERCISES.values()
    if exercise.kind in (Kind.COMPLETE, Kind.INVARIANT) or exercise.name == "09-timeout"
]
"""Exercises whose answer is a function."""
public = cache(kill_rate.public)


def said_of(path: Path) -> str:
    """The part of its message that only this wrong solution gets."""
    first, second, *_ = path.read_text(encoding="utf-8").splitlines()
    assert re.match(r"# misconception: \w.{10}", first), path
    assert second.startswith("# says: "), path
    return second.removeprefix("# says: ")


def name_of(path: Path) -> str:
    return f"{path.parent.name}/{path.stem}"


def test_every_code_item_has_at_least_five_wrong_solutions():
    counts = Counter(path.parent.name for path in FILES)
    assert set(counts) == set(CODE)
    assert min(counts.values()) >= 5


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_a_wrong_solution_fails_with_its_own_message(path: Path):
    says, found = said_of(path), public(path)
    assert not found.passed
    assert says in found.message
    others = [other for other in path.parent.glob("*.py") if other != path]
    assert not any(says in public(other).message for other in others)


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_a_wrong_solution_fails_by_the_hidden_variants_of_every_seed(path: Path):
    for seed in kill_rate.SEEDS:
        found = kill_rate.hidden(path, seed)
        assert found is not None, seed
        assert found.general
        # Nothing of a hidden variant: no question with its arguments, no word of its input, no number.
        assert not re.search(
            r"\w\(|\d|hello|world|stream|table-|spark|flink", found.general
        ), found.general


@pytest.mark.slow  # the same rules are tried one by one above
def test_the_kill_rate_is_printed(capsys: pytest.CaptureFixture[str]):
    assert kill_rate.main() == 0
    assert (
        f"kill rate: {len(FILES)} of {len(FILES)} wrong solutions, 100 %"
        in capsys.readouterr().out
    )


def test_a_check_that_is_weakened_lets_one_survive(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    """Without a look for runs that never end, a receiver that is silent about duplicates would pass."""
    survivor = kill_rate.WRONG / "02-dedup" / "duplicates_are_silent.py"
    monkeypatch.setattr(kill_rate, "wrong_files", lambda: [survivor])
    monkeypatch.setattr(searching, "_known", lambda _: searching.AnswerNode())
    assert kill_rate.main() == 0
    monkeypatch.setattr(searching, "_endless", lambda *_: None)
    assert kill_rate.main() == 1
    assert (
        "SURVIVES tests/grading/wrong/02-dedup/duplicates_are_silent.py"
        in capsys.readouterr().out
    )


def test_a_solution_that_was_not_attempted_is_no_wrong_one(tmp_path: Path):
    path = tmp_path / "05-recovery" / "stub.py"
    path.parent.mkdir()
    path.write_text("def recover(log):\n    raise NotImplementedError\n")
    with pytest.raises(ValueError, match="not attempted"):
        kill_rate.public(path)
