"""The options of a grading are declared once: the printed command gives the same order, and grading is one function."""

import json
import shlex
from pathlib import Path
from typing import Any

import pytest
import submitted
import typer
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from labkit.cli import grade as verb
from labkit.core.errors import InvalidInput
from labkit.core.options import options_of
from labkit.grading.grade import grade
from labkit.grading.order import Order

NAMES = st.sampled_from(["a b", "it's", "$HOME", "x; rm y", "-x", "--out", "ä"])
PATHS = NAMES.map(Path)
WORDS: dict[str, st.SearchStrategy[object]] = {
    "course": PATHS,
    "seed": st.integers(-5, 10**9),
    "deadline": NAMES,
    "isolation": st.just("plain"),
    "trust": st.just(value=True),
    "workers": st.integers(1, 256),
    "cell_seconds": st.floats(0.1, 86_400),
    "total_seconds": st.floats(0.1, 86_400),
    "roster": PATHS,
    "marks": st.lists(PATHS, max_size=2),
    "requests": st.lists(PATHS, max_size=2),
    "rules": PATHS,
}
PARTS: dict[str, st.SearchStrategy[object]] = {"parts": st.lists(PATHS, min_size=1, max_size=2)}
ANEW: dict[str, st.SearchStrategy[object]] = {
    "only": st.lists(NAMES, max_size=2),
    "exercises": st.lists(NAMES, max_size=2),
}
SPARK: dict[str, st.SearchStrategy[object]] = {"master": st.just("local[2]"), "shards": st.integers(1, 99)}
SHARD: dict[str, st.SearchStrategy[object]] = {"shard": st.just("2/8"), "seed": st.just(3)}


def several(some: dict[str, st.SearchStrategy[object]]) -> st.SearchStrategy[dict[str, object]]:
    return st.fixed_dictionaries({}, optional=some)


def parsed(command: str) -> Order:
    """The order that the command line itself takes, after a shell's own parsing."""
    words, taken = shlex.split(command), []
    app = typer.Typer(rich_markup_mode=None)
    app.command()(verb.grade)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("labkit.grading.grade.grade", lambda order, _: taken.append(order) or 1 / 0)
        CliRunner().invoke(app, words[2:])
    assert words[:2] == ["labkit", "grade"]
    assert len(taken) == 1
    return taken[0]


@settings(max_examples=60)
@given(
    words=several(WORDS),
    more=st.one_of(several(ANEW), several(PARTS), st.fixed_dictionaries(SPARK), st.fixed_dictionaries(SHARD)),
    given=st.lists(st.sampled_from([Path("in"), Path("a b.zip"), Path("it's")]), min_size=1, max_size=2),
)
def test_the_printed_command_gives_the_same_order(
    words: dict[str, Any], more: dict[str, Any], given: list[Path]
) -> None:
    order = Order.plan(words | more | {"given": given, "out": Path("o u t")})
    assert parsed(order.command()) == order
    assert Order.from_json(json.loads(json.dumps(order.to_json()))) == order


def test_every_option_is_generated_above() -> None:
    drawn = {"given", "out", *WORDS, *PARTS, *ANEW, *SPARK, *SHARD}
    assert drawn == {each.keyword for each in options_of(Order)}


@pytest.mark.parametrize(
    ("words", "begins"),
    [
        ({"shard": "2/8"}, "--shard 2/8: add --seed"),
        ({"shard": "9/8", "seed": 1}, "--shard 9/8"),
        ({"shard": "2/8", "seed": 1, "master": "local[2]"}, "--shard and --master"),
        ({"shards": 8}, "--shards 8: only --master"),
        ({"shards": 0, "master": "local[2]"}, "--shards 0"),
        ({"shard": "2/8", "seed": 1, "only": ["Ada"]}, "--only and --exercise"),
        ({"parts": ["p"], "exercises": ["01-dedup"]}, "--only and --exercise"),
        ({"workers": 257}, "--workers 257"),
        ({"cell_seconds": 0}, "--cell-seconds 0"),
        ({"isolation": "strong"}, "--isolation strong"),
    ],
)
def test_options_that_do_not_go_together_are_refused(words: dict[str, object], begins: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        Order.plan({"given": [Path("in")], "out": Path("out"), **words})
    assert str(refused.value).startswith(begins)
    assert refused.value.exit_code == 64


@pytest.mark.slow  # tests/cli/test_grade.py grades, writes the book and keeps it in every test
def test_one_function_grades_and_writes_the_book(tmp_path: Path) -> None:
    submitted.hand_in(tmp_path / "in", "ada", submitted.answers())
    (tmp_path / "class.csv").write_text("id,name\nada,Ada\nbob,Bob\n")
    words = {"given": [tmp_path / "in"], "out": tmp_path / "out", "course": submitted.COURSE}
    graded = grade(Order.plan({**words, "roster": tmp_path / "class.csv"}), lambda *_: None)
    assert (graded.done.graded, graded.done.failed, len(graded.records)) == (1, 0, 1)
    assert graded.book is not None
    assert [row.name for row in graded.book.missing] == ["Bob"]
    assert "Ada" in (tmp_path / "out" / "grades.csv").read_text()
    again = grade(Order.plan(words), lambda *_: None)
    assert (again.done.graded, again.done.kept) == (0, 1)
    assert again.book is not None
    assert [row.name for row in again.book.missing] == ["Bob"]
    assert (
        grade(Order.plan({**words, "out": tmp_path / "part", "seed": 1, "shard": "1/1"}), lambda *_: None).book is None
    )
    assert not (tmp_path / "part" / "grades.csv").exists()
