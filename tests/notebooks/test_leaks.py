"""No question's answer can be read above it: each is asked once, answered once, and nothing before gives it away.

The rules are in `tests/support/leaks.py`. A notebook that asks nothing yet is left out.
"""

from collections.abc import Callable
from pathlib import Path

import build_notebooks
import nbformat
import pytest
from leaks import about, leaks, order_of
from nbformat import NotebookNode, v4

from labkit.teach.exercises.moved import MOVED
from labkit.teach.exercises.registry import EXERCISES
from labkit.teach.questions.question import Kind, Question, questions

ROOT = Path(__file__).parents[2]
SOURCES = build_notebooks.sources(ROOT)
SAMPLE = Question(
    "00-rows",
    Kind.CHOICE,
    "How many rows will a reader find?",
    ("6",),
    "The first driver had written three rows. Nothing on disk said so.",
    options=("3", "6"),
    replies={"3": "Three rows were there before the crash."},
)
CRASH = 'outcome = lab.crash(failpoint, sink="append")'


def learners_copy(source: Path) -> NotebookNode:
    return nbformat.reads(build_notebooks.build(source)[0], as_version=4)


def of_notebook(number: str) -> list[Question]:
    return [each for each in questions().values() if each.notebook == number]


@pytest.mark.slow
def test_no_notebook_gives_an_answer_away():
    """Of every notebook that asks: the learner's copy, as the source gives it, and as it lies there."""
    wrong = []
    for source in SOURCES:
        number = source.stem.partition("_")[0]
        if "lab.ask(" not in source.read_text(encoding="utf-8"):
            continue
        there = ROOT / "notebooks" / f"{source.stem}.ipynb"
        for notebook in (learners_copy(source), nbformat.read(there, as_version=4)):
            disorder = order_of(notebook.cells, of_notebook(number))
            wrong += [f"{source.stem}: {each}" for each in disorder]
            if not disorder:
                wrong += [
                    f"{source.stem}: {each}" for question in of_notebook(number) for each in leaks(notebook, question)
                ]
    assert not wrong, "\n".join(dict.fromkeys(wrong))


def test_every_question_has_its_notebook_and_a_name_of_its_own():
    numbers = {source.stem.partition("_")[0] for source in SOURCES}
    for name, question in questions().items():
        assert question.notebook in numbers, name
        # Both are kept in the same file, under their names; the old names of exercises, too.
        assert name not in EXERCISES, name
        assert name not in MOVED, name


def sample(*more: NotebookNode, after: str = "") -> NotebookNode:
    """A small notebook as it should be, with more cells between its head and its question."""
    cells = [
        v4.new_markdown_cell("# What is left after a crash?\n\nappend writes three rows."),
        v4.new_code_cell('from labkit import lab\nlab.show("pipeline.undisturbed")'),
        *more,
        v4.new_code_cell('lab.ask("00-rows")'),
        v4.new_code_cell(f"{CRASH}\noutcome"),
        v4.new_code_cell(f'lab.answer("00-rows", outcome.verdict.rows){after}'),
        v4.new_markdown_cell("It was six: the first driver had written three rows. Nothing on disk said so."),
        v4.new_code_cell('assert outcome.verdict.rows == 6\nlab.show("pipeline.jump_back")'),
    ]
    return v4.new_notebook(cells=cells)


def code(source: str) -> Callable[[], NotebookNode]:
    return lambda: sample(v4.new_code_cell(source))


def prose(source: str) -> Callable[[], NotebookNode]:
    return lambda: sample(v4.new_markdown_cell(source))


def with_metadata() -> NotebookNode:
    return sample(v4.new_code_cell("1", metadata={"right": 6}))


def with_reason_in_metadata() -> NotebookNode:
    notebook = sample()
    notebook.metadata["labkit"] = {"why": "Nothing on disk said so."}
    return notebook


def with_output() -> NotebookNode:
    cell = v4.new_code_cell("1")
    cell.outputs = [v4.new_output("stream", name="stdout", text="6\n")]
    return sample(cell)


def with_checked_cell() -> NotebookNode:
    return sample(v4.new_code_cell("1", metadata={"tags": ["checked"]}))


def with_expected_cell() -> NotebookNode:
    return sample(v4.new_raw_cell("rows: whatever", metadata={"tags": ["expected"]}))


def with_literal() -> NotebookNode:
    notebook = sample()
    notebook.cells[-3].source = 'lab.answer("00-rows", 6)'
    return notebook


def test_a_notebook_as_it_should_be_gives_nothing_away():
    assert order_of(sample().cells, [SAMPLE]) == []
    assert leaks(sample(), SAMPLE) == []
    for harmless in (
        code("rows_per_batch = 6"),
        code("if len(words) == 3:\n    print(words)"),
        code('lab.show("delivery.lost_acknowledgement")'),
        code("lab.compare(kept=one, aborted=two)"),
        code('lab.show("snapshot.one_goes_back")'),
        code("%matplotlib inline\n!ls"),
        prose("The job writes three rows, and 6 of 10 readers look. Is it lost?"),
    ):
        assert leaks(harmless(), SAMPLE) == [], harmless().cells[2].source


@pytest.mark.parametrize(
    ("notebook", "why"),
    [
        (code("assert len(rows) == 6"), "an assertion holds"),
        (code('assert rows in (["6"], [])'), "an assertion holds"),
        (code("print(outcome.verdict.rows == 6)"), "a comparison holds"),
        (code("expected = {'rows': 6}"), "expected is the right value"),
        (code("check(rows, should_be=6)"), "a keyword is the right value"),
        (code('lab.show("pipeline.jump_back")'), "name pipeline.jump_back tells"),
        (code('lab.replay("jump_back")'), "name jump_back tells"),
        (prose("See `pipeline.lost_and_doubled`."), "pipeline.lost_and_doubled tells"),
        (code("doubled = lab.crash(failpoint)"), "the name doubled tells"),
        (code("lab.compare(whole=one, torn=two)"), "the name torn tells"),
        (prose("Look: *nothing* on\ndisk said so."), "it holds the reason"),
        (code("# Nothing on disk said so."), "it holds the reason"),
        (prose("Three rows were there before the crash."), "it holds the reason"),
        (prose("You will see that it was **6**."), "it says that it was '6'"),
        (prose("A reader will find six rows."), "it says that it was 'six'"),
        (code('print("the answer is 6")'), "it says that it was '6'"),
        (with_metadata, "its metadata hold the right value"),
        (with_reason_in_metadata, "its metadata hold the reason"),
        (with_output, "it has an output"),
        (with_checked_cell, "not for learners"),
        (with_expected_cell, "a raw cell is in"),
        (with_literal, "is written out, and not measured"),
        (lambda: sample(after="\nassert outcome.verdict.rows == 6"), "an assertion"),
    ],
)
def test_each_kind_of_leak_is_found(notebook, why):
    assert any(why in each for each in leaks(notebook(), SAMPLE)), leaks(notebook(), SAMPLE)


def test_a_question_is_asked_once_and_answered_once_behind_it():
    twice = sample(v4.new_code_cell('lab.ask("00-rows")')).cells
    assert "asked 2 times, answered 1 times" in order_of(twice, [SAMPLE])[0]
    backwards = [sample().cells[4], sample().cells[2]]
    assert "its answer comes before" in order_of(backwards, [SAMPLE])[0]
    missing = [cell for cell in sample().cells if not about(cell, "answer")]
    assert "asked 1 times, answered 0 times" in order_of(missing, [SAMPLE])[0]
    assert order_of(sample().cells, []) == ["00-rows: no such question of this notebook"]
    hidden = sample(v4.new_code_cell("lab.ask(name)")).cells
    assert "a name that is not written out" in order_of(hidden, [SAMPLE])[0]
    many = [v4.new_code_cell(f'lab.ask("00-{each}")') for each in "abcd"]
    assert "4 questions; at most 3" in order_of(many, [])[-1]
