"""The checks are checked: every wrong solution that is known fails, publicly and hidden, each with its own message."""

import re
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import kill_rate
import mutants
import pytest
from choosing import slow_but
from kill_rate import Wrong

from labkit.teach.exercises import searching
from labkit.teach.exercises.registry import EXERCISES

WRONG = kill_rate.wrong_solutions()
CODE = kill_rate.code_items()
CHANGED = [path.parent.name for path in sorted(kill_rate.WRONG.glob("*/changes.toml"))]
LONG = ("04-align", "05-atomic", "06-jump", "08-early", "08-finish", "11b-runner")
"""Exercises whose checks take longest: the tests of their wrong solutions are slow."""
SELDOM = [pytest.mark.slow, pytest.mark.variant]
"""Continuous integration runs the tool for all wrong solutions; only the nightly run compares messages of long ones."""
public = cache(kill_rate.public)


def test_every_code_item_has_at_least_five_wrong_solutions_that_say_what_is_wrong():
    counts = Counter(wrong.exercise for wrong in WRONG)
    assert set(counts) == set(CODE)
    assert min(counts.values()) >= 5
    assert all(re.match(r"\w.{10}", wrong.misconception) for wrong in WRONG)


@pytest.mark.parametrize(
    "name", slow_but((name for name in CHANGED if name not in LONG and not EXERCISES[name].axes), CHANGED)
)
def test_what_tables_of_changes_change_is_right(name: str):
    assert public(name, kill_rate.base(kill_rate.WRONG / name / "changes.toml")).passed


def slow_with_axes(some: list[Wrong], of_long: Any) -> list:
    """A sink of one's own is killed some hundred times, so the tool tries all of these, and the tests one for each."""
    slow = {wrong.exercise: wrong for wrong in some if EXERCISES[wrong.exercise].axes}
    others = [wrong for wrong in some if wrong.exercise not in slow]
    return [
        *(pytest.param(wrong, marks=of_long if wrong.exercise in LONG else ()) for wrong in others),
        *(pytest.param(wrong, marks=pytest.mark.slow) for wrong in slow.values()),
    ]


@pytest.mark.parametrize("wrong", slow_with_axes(WRONG, SELDOM), ids=str)
def test_a_wrong_solution_fails_with_its_own_message(wrong: Wrong):
    found = public(wrong.exercise, wrong.source)
    assert not found.passed
    assert wrong.says in found.message
    others = [other for other in WRONG if other.exercise == wrong.exercise and other != wrong]
    assert not any(wrong.says in public(other.exercise, other.source).message for other in others)


OF_HIDDEN = [next(wrong for wrong in WRONG if wrong.exercise == name) for name in CODE]
"""The first of each exercise: continuous integration runs the tool for all of them."""


@pytest.mark.parametrize("wrong", slow_with_axes(OF_HIDDEN, pytest.mark.slow), ids=str)
def test_a_wrong_solution_fails_by_the_hidden_variants_of_a_seed(wrong: Wrong):
    for seed in kill_rate.SEEDS[:1]:  # continuous integration runs the tool for more
        found = kill_rate.hidden(wrong, seed)
        assert found is not None, seed
        assert found.general
        # Nothing of a hidden variant: no question with its arguments, no word of its input, no number.
        assert not re.search(r"\w\(|\d|hello|world|stream|table-|spark|flink", found.general), found.general


QUICK = ("05-recovery", "06-key", "06-jump")
"""Exercises whose searches are short; continuous integration runs the tool itself for all of them."""


@pytest.mark.slow
def test_both_kill_rates_are_printed(capsys: pytest.CaptureFixture[str]):
    words = [word for name in QUICK for word in ("--only", name)]
    assert kill_rate.main([*words, "--seeds", "2"]) == 0
    printed = capsys.readouterr().out
    count = sum(wrong.exercise in QUICK for wrong in WRONG)
    assert f"kill rate: {count} of {count} wrong solutions, 100 %, 2 seeds" in printed
    assert re.search(r"kill rate: (\d+) of \1 mutants, 100 %, 2 seeds", printed)


def test_a_check_that_is_weakened_lets_one_survive(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    """Without a look for runs that never end, a receiver that is silent about duplicates would pass."""
    survivor = next(wrong for wrong in WRONG if str(wrong) == "02-dedup/duplicates_are_silent")
    monkeypatch.setattr(kill_rate, "wrong_solutions", lambda: [survivor])
    drawn = kill_rate.variants("02-dedup", 1)
    searched = [each for each in drawn if "ids" not in each.name and each.name != "a table of some years"]
    monkeypatch.setattr(kill_rate, "variants", lambda *_: searched)
    monkeypatch.setattr(searching, "_search_tree", lambda _: searching.AnswerNode())
    assert kill_rate.wrong_rate(["02-dedup"], [1])
    monkeypatch.setattr(searching, "_endless", lambda *_: None)
    assert not kill_rate.wrong_rate(["02-dedup"], [1])
    assert "SURVIVES 02-dedup/duplicates_are_silent" in capsys.readouterr().out


@pytest.mark.slow
def test_a_check_that_is_weakened_lets_mutants_survive(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    """Without states that are put together, a reader who looks at some rows only would pass."""
    drawn = kill_rate.variants
    monkeypatch.setattr(
        kill_rate,
        "variants",
        lambda name, seed: [
            each
            for each in drawn(name, seed)
            if not each.name.startswith(
                ("put together", "many counts", "far apart", "words that differ", "what only", "a reader for")
            )
        ],
    )
    assert not kill_rate.mutant_rate(["06-jump"], [1])
    assert "SURVIVES 06-jump with seed 1: a capped loop" in capsys.readouterr().out


@pytest.mark.slow
def test_a_change_that_is_no_mistake_has_its_reason_and_must_be_there(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
):
    named = kill_rate.Equivalents().reasons
    assert set(named) <= set(CODE)
    for name, reasons in named.items():
        assert kill_rate.Equivalents().unknown(name, mutants.mutants(kill_rate.solutions()[name])) == []
        assert all(len(reason) > 15 for reason in reasons.values())
    other = tmp_path / "equivalents.toml"
    other.write_text('["06-key"]\n"a wish: return 0" = "There is none."\n')
    monkeypatch.setattr(kill_rate, "Equivalents", lambda: Named(other))
    assert not kill_rate.mutant_rate(["06-key"], [1])
    assert "there is no mutant 'a wish: return 0'" in capsys.readouterr().out


Named = kill_rate.Equivalents


def test_mutants_are_changed_in_one_place_and_all_different():
    source = (
        'def f(xs, n):\n    """Doc."""\n    ys = [x for x in xs if x < n]\n'
        '    return sorted(ys) + [n] if ys and n > 1 else ["a", "b"]\n'
    )
    made = mutants.mutants(source)
    assert len({each.source for each in made}) == len(made)
    assert all("Doc." in each.source for each in made if "constant" not in each.change)
    changes = {each.change for each in made}
    assert {
        *("a set for a list", "a term is dropped", "a capped loop", "one too many"),
        *("negated condition", "swapped operands", "a constant result", "and for or"),
    } <= changes
    wanted = "ys = [x for x in list(xs)[:2] if x < n]"
    assert wanted in {each.line for each in made}


def test_a_solution_that_was_not_attempted_is_no_wrong_one():
    with pytest.raises(ValueError, match="not attempted"):
        kill_rate.public("05-recovery", "def recover(log):\n    raise NotImplementedError\n")


def test_mutants_take_different_values_for_equal():
    source = (
        "def key(row, table):\n"
        "    if row['id'] in table:\n        return str([row['id'], row['word']])\n"
        "    return sorted(table) == sorted(row)\n"
    )
    made = {(each.change, each.line) for each in mutants.mutants(source)}
    assert {
        ("a cut value", "if row['id'] in table[-8:]:"),
        ("a folded value", "return str([row['id'], row['word'].lower()])"),
        ("a trimmed value", "return str([row['id'], row['word'].strip()])"),
        ("a remainder", "return str([row['id'] % 100, row['word']])"),
        ("a salted hash", "return str(hash(str(str([row['id'], row['word']]))))"),
        (
            "a short digest",
            "return __import__('hashlib').md5(str(str([row['id'], row['word']])).encode()).hexdigest()[:4]",
        ),
        ("glued", "return str('-'.join(map(str, [row['id'], row['word']])))"),
        ("equal sums", "return (len(sorted(table)), sum(sorted(table))) == (len(sorted(row)), sum(sorted(row)))"),
    } <= made


def test_a_salted_hash_survives_without_a_restart(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    assert kill_rate.mutant_rate(["06-key"], [1])
    monkeypatch.setattr(kill_rate, "changed", lambda *_: "")
    assert not kill_rate.mutant_rate(["06-key"], [1])
    assert "SURVIVES 06-key with seed 1: a salted hash: return hash(str(row['offset']))" in capsys.readouterr().out
