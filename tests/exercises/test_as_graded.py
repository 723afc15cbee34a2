"""What passes for the learner passes for the grader: which cell counts, and an answer alone, in the notebook
and saved.
"""

import json
from collections.abc import Iterator
from pathlib import Path

import nbformat
import pytest
from exercise_sources import all_sources
from IPython.core.interactiveshell import InteractiveShell

from labkit import lab
from labkit.cli import execute as command_line
from labkit.core.errors import InvalidInput
from labkit.grading.preparing import PreparedNotebook, prepare
from labkit.grading.reading import read
from labkit.teach import executed as executed_cells
from labkit.teach import shipped
from labkit.teach.exercises import check as checking
from labkit.teach.exercises import progress, standalone
from labkit.teach.exercises.alone import execute, fresh
from labkit.teach.exercises.contract import NotPassed
from labkit.teach.exercises.registry import EXERCISES
from labkit.teach.exercises.standalone import Checked, checked
from labkit.teach.shipped import Cell

NAME, NOTEBOOK = "05-recovery", "05_two_phase_commit"
STUB, RIGHT = all_sources()[NAME]
WRONG = f'# exercise {NAME}\ndef recover(log):\n    return "wait"\n'
BARE = RIGHT.partition("\n")[2]
"""The right answer without its mark."""


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv(checking.STRICT, raising=False)
    monkeypatch.setattr(progress, "_kept", {})
    monkeypatch.setattr(progress, "_unwritten", set())
    monkeypatch.setattr(checking, "_forgotten", {})


def submitted(*edits: str, instead: str | None = None) -> str:
    """The released notebook 05 with cells added behind the stub, and perhaps something in place of the stub."""
    notebook = json.loads((shipped.notebooks() / f"{NOTEBOOK}.ipynb").read_text())
    place = next(number for number, cell in enumerate(notebook["cells"]) if "".join(cell["source"]) == STUB.strip())
    if instead is not None:
        notebook["cells"][place]["source"] = instead
    notebook["cells"][place + 1 : place + 1] = [
        {
            "cell_type": "code",
            "id": f"own{number}",
            "metadata": {},
            "source": source,
            "outputs": [],
            "execution_count": None,
        }
        for number, source in enumerate(edits)
    ]
    return json.dumps(notebook)


def prepared(text: str) -> PreparedNotebook:
    released = (shipped.notebooks() / f"{NOTEBOOK}.ipynb").read_bytes()
    exercises = [each for each in EXERCISES.values() if each.notebook == NOTEBOOK]
    return prepare(read(text.encode()), read(released), exercises)


def counting(text: str) -> str:
    """The source that the grader asks for the exercise; empty where it asks none."""
    found = prepared(text)
    return "".join(cell.source for cell in found.cells if cell.exercise == NAME)


CASES = {
    "in the stub": (submitted(instead=RIGHT), RIGHT),
    "in a new cell below the stub": (submitted(BARE), BARE),
    "a marked copy below the stub": (submitted(RIGHT), RIGHT),
    "in the check cell": (submitted(f'{BARE}\nfrom labkit import lab\nlab.check("{NAME}")'), "lab.check"),
    "above the stub that a reset gave back": (submitted(STUB, instead=RIGHT), RIGHT),
    "above a stub with one more comment": (submitted(f"{STUB}    # to do", instead=RIGHT), RIGHT),
    "%%time above the mark": (submitted(instead=f"%%time\n{RIGHT}"), f"%%time\n{RIGHT}"),
    "a comment above the mark": (submitted(instead=f"# mine\n\n{RIGHT}"), "# mine"),
    "the last of two": (submitted(RIGHT, instead=WRONG), RIGHT),
    "the last of two, also where it is wrong": (submitted(WRONG, instead=RIGHT), WRONG),
    "a definition below the marked one": (submitted(BARE, instead=WRONG), BARE),
    "within an if": (submitted(f"if True:\n    {BARE.replace(chr(10), chr(10) + '    ')}"), "if True"),
    "imported": (submitted("from mine import recover"), "from mine"),
    "untouched": (submitted(), ""),
    "only a comment more": (submitted(instead=f"{STUB}\n# later"), ""),
}


@pytest.mark.parametrize("case", CASES)
def test_the_last_cell_that_gives_the_answer_counts(case: str) -> None:
    text, wanted = CASES[case]
    found = counting(text)
    assert wanted.strip() in found
    assert bool(found) == bool(wanted)


def test_what_an_answer_needs_and_does_not_get_is_said_before_it_runs() -> None:
    named = prepared(submitted(instead=f"{RIGHT}\nnaive.states"))
    assert "The answer uses naive, which only an unchanged cell" in (named.troubles[NAME])
    asked = prepared(submitted(instead=f"name = input()\n{RIGHT}"))
    assert "calls input()" in asked.troubles[NAME]
    given = prepared(submitted(instead=f"{RIGHT}\nparticipants + 1"))
    assert given.troubles == {}
    own = prepared(submitted("naive = 1", instead=f"{RIGHT}\nnaive + 1"))
    assert own.troubles == {}


def test_a_cell_alone_gets_no_input_and_not_for_ever(monkeypatch) -> None:
    monkeypatch.setattr("labkit.teach.exercises.alone.CELL_SECONDS", 0.05)
    assert "calls input()" in execute("input('?')", fresh())
    assert "ran longer" in execute("while True: pass", fresh())
    assert "raised ZeroDivisionError" in execute("1 / 0", fresh())
    assert "raised SyntaxError" in execute("def (", fresh())
    assert execute("%%time\nx = 1", names := fresh()) == ""
    assert names["x"] == 1


@pytest.fixture
def shell(monkeypatch: pytest.MonkeyPatch) -> Iterator[InteractiveShell]:
    InteractiveShell.clear_instance()
    shell = InteractiveShell.instance()
    monkeypatch.setattr(checking, "_show", lambda _: None)
    monkeypatch.setattr(checking, "_forgotten", {})
    monkeypatch.setattr(executed_cells, "_cells", {})
    shell.user_ns["lab"] = lab
    yield shell
    shell.history_manager.end_session()
    InteractiveShell.clear_instance()


def executed(shell: InteractiveShell, capsys, *sources: str) -> str:
    """What the check prints behind these cells."""
    for source in sources:
        shell.run_cell(source, store_history=True)
    capsys.readouterr()
    shell.run_cell(f'lab.check("{NAME}")', store_history=True)
    return capsys.readouterr().out


def test_an_answer_that_leans_on_a_demonstration_does_not_pass(shell, capsys) -> None:
    leaning = RIGHT.replace("if not log:", "if naive and not log:")
    said = executed(shell, capsys, "naive = [1]  # as the demonstration leaves it", STUB)
    assert "not attempted" in said
    shell.user_ns["naive"] = [1]
    shell.history_manager.reset()
    said = executed(shell, capsys, leaning)
    assert "your answer passes in this notebook" in said
    assert "The answer uses naive, which only an unchanged cell" in said
    assert progress.of(NAME)["state"] == "not yet"


def test_an_answer_may_use_what_the_learner_wrote_and_the_parameters(shell, capsys) -> None:
    helped = RIGHT.replace('"abort"', "gives_up(participants)")
    said = executed(shell, capsys, "def gives_up(count):\n    return 'abort'", helped)
    assert "2 of 2 public checks passed" in said


def test_answer_and_check_in_one_cell_are_judged_once(shell, capsys) -> None:
    shell.run_cell(f'{RIGHT}\nlab.check("{NAME}")', store_history=True)
    said = capsys.readouterr().out
    assert said.count("2 of 2 public checks passed") == 1


def test_behind_a_reset_the_stub_is_not_attempted_and_an_answer_run_again_is(shell, capsys) -> None:
    executed(shell, capsys, RIGHT)
    said = executed(shell, capsys, f'lab.reset("{NAME}", confirm=True)', STUB)
    assert "not attempted" in said
    assert "2 of 2 public checks passed" in executed(shell, capsys, RIGHT, STUB)


def test_a_strict_check_raises_one_sentence(monkeypatch) -> None:
    names: dict[str, object] = {"lab": lab, "__name__": "__main__"}
    with pytest.raises(NotPassed, match="05-recovery is not attempted"):
        exec(f'lab.check("{NAME}", strict=True)', names)
    monkeypatch.setenv(checking.STRICT, "1")
    exec(WRONG, names)
    with pytest.raises(NotPassed, match="05-recovery does not pass: "):
        exec(f'lab.check("{NAME}")', names)
    exec(f'lab.check("{NAME}", strict=False)', names)
    exec(RIGHT, names)
    exec(f'lab.check("{NAME}")', names)
    monkeypatch.setenv(checking.STRICT, "0")
    exec(STUB, names)
    exec(f'lab.check("{NAME}")', names)


def saved(folder: Path, text: str, name: str = NOTEBOOK) -> Path:
    path = folder / f"{name}.ipynb"
    path.write_text(text, encoding="utf-8")
    return path


def test_a_saved_notebook_is_checked_without_being_opened(tmp_path: Path) -> None:
    path = saved(tmp_path, submitted(BARE), "renamed")
    found = {each.name: each for each in checked(path)}
    assert found[NAME] == Checked(NAME, "passed")
    assert found["05-atomic"].state == "not attempted"


@pytest.mark.parametrize(
    ("instead", "state", "said"),
    [
        (WRONG, "failed", "does not end with the yes vote"),
        (f"{RIGHT}\nnaive.states", "passed", ""),
        (f"naive.states\n{RIGHT}", "failed", "NameError: name 'naive'"),
        (f"input()\n{RIGHT}", "failed", "calls input()"),
        (f"%%time\n{RIGHT}", "passed", ""),
        (f'{RIGHT}\nprint({{"name": "{NAME}"}})', "passed", ""),
    ],
)
def test_every_exercise_of_a_saved_notebook_has_its_reason(tmp_path: Path, instead: str, state: str, said: str) -> None:
    path = saved(tmp_path, submitted(instead=instead))
    found = {each.name: each for each in standalone.check_all(path)}
    assert found[NAME].state == state
    assert said in found[NAME].message


def test_a_notebook_that_ends_its_process_fails(tmp_path: Path) -> None:
    path = saved(tmp_path, submitted("import os; os._exit(0)", instead=RIGHT))
    assert {each.state for each in checked(path)} == {"failed"}


def test_the_command_has_an_exit_code(tmp_path: Path, capsys) -> None:
    path = saved(tmp_path, submitted(instead=RIGHT))
    assert command_line(["check", str(path), "--only", NAME, "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {str(path): [{"name": NAME, "state": "passed", "message": ""}]}
    assert command_line(["check", str(tmp_path)]) == 1
    assert "1 of 3 exercises pass." in capsys.readouterr().out
    # One that is broken keeps no other from being checked.
    (tmp_path / "a").mkdir()
    saved(tmp_path / "a", "{", path.stem)
    assert command_line(["check", str(tmp_path)]) == 64
    said = capsys.readouterr()
    assert "1 of 3 exercises pass." in said.out
    assert "not a notebook" in said.err
    assert command_line(["check", str(path), "--only", "06-key"]) == 64
    assert "name the notebook that has it" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "complaint"),
    [("{", "not a notebook"), (nbformat.writes(nbformat.v4.new_notebook()), "no cell that belongs")],
)
def test_what_is_no_notebook_of_the_lab_is_refused(tmp_path: Path, text: str, complaint: str) -> None:
    with pytest.raises(InvalidInput, match=complaint):
        checked(saved(tmp_path, text, "something"))
    with pytest.raises(InvalidInput, match="choose a notebook"):
        checked(tmp_path / "nothing.ipynb")


def test_every_notebook_with_exercises_says_what_counts_before_the_first() -> None:
    asking = {exercise.notebook for exercise in EXERCISES.values()}
    for path in sorted(shipped.notebooks().glob("*.ipynb")):
        notebook = json.loads(path.read_text(encoding="utf-8"))
        tags = [cell["metadata"].get("tags", []) for cell in notebook["cells"]]
        assert sum("rules" in each for each in tags) == (path.stem in asking)
        if path.stem in asking:
            place = next(n for n, each in enumerate(tags) if "rules" in each)
            assert "task" in tags[place + 1]
            assert not any("task" in each for each in tags[:place])
            assert f"`{path.stem}.ipynb`" in "".join(notebook["cells"][place]["source"])


def test_released_cells_are_plain_cells_with_their_tags() -> None:
    released = shipped.released_cells(NOTEBOOK)
    assert released is not None
    assert Cell(STUB.strip(), frozenset({"exercise"})) in [each._replace(heading="") for each in released]
    assert shipped.released_cells("77_nothing") is None


def test_a_saved_notebook_names_the_exercises_that_the_grader_reads_in_its_metadata() -> None:
    notebook = json.loads(submitted(BARE))
    next(cell for cell in notebook["cells"] if cell.get("id") == "own0")["metadata"] = {"exercise": NAME}
    text = json.dumps(notebook)
    cells = [each._replace(heading="") for each in shipped.code_cells(text)]
    assert cells == list(read(text.encode()).cells)
    assert [cell.source for cell in cells if cell.exercise == NAME] == [BARE]


def test_the_check_names_a_cell_that_competes_and_no_other(shell, capsys) -> None:
    said = executed(shell, capsys, RIGHT, "print([recover for recover in [1]])\nfor recover in [1]: pass")
    assert "public checks passed" in said
    assert "several of your cells" not in said
    said = executed(shell, capsys, "# scratch\ndef recover(log):\n    return 'wait'")
    assert "several of your cells define recover" in said
    assert "`# scratch`" in said


def test_an_error_of_a_cell_that_the_answer_needs_is_not_said_of_the_answer(shell, capsys) -> None:
    executed_cells.note_cells()
    for source in ("1 / 0\ndef known(log):\n    return log", RIGHT.replace(":\n", ":\n    known(log)\n", 1)):
        shell.run_cell(source, store_history=True)
    said = executed(shell, capsys)
    assert "A cell that the answer needs raised ZeroDivisionError" in said
    assert "The answer's cell" not in said


BROKEN = RIGHT + "return True)\n"


@pytest.mark.parametrize("cell", ["one", None], ids=["with ids of cells", "without"])
def test_an_answer_that_was_edited_and_is_no_python_any_more_fails(shell, capsys, cell: str | None) -> None:
    executed_cells.note_cells()
    for source in (RIGHT, BROKEN):
        shell.run_cell(source, store_history=True, cell_id=cell)
    said = executed(shell, capsys)
    assert "passed" not in said
    assert "The answer's cell raised SyntaxError" in said
    assert progress.of(NAME)["state"] == "not yet"
    shell.run_cell(RIGHT, store_history=True, cell_id=cell)
    assert "2 of 2 public checks passed" in executed(shell, capsys)


def test_what_a_cell_held_before_does_not_compete_with_what_it_holds_now(shell, capsys) -> None:
    executed_cells.note_cells()
    for source in (RIGHT, BARE):
        shell.run_cell(source, store_history=True, cell_id="one")
    said = executed(shell, capsys)
    assert "2 of 2 public checks passed" in said
    assert "several of your cells" not in said
    shell.run_cell("helper = 1", store_history=True, cell_id="one")
    assert "not attempted" in executed(shell, capsys)
