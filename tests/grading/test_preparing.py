"""What of a submitted notebook is executed and asked: found by name, wherever it stands, and what is odd is named."""

import json

import pytest
import submitted

from labkit.grading.course import load
from labkit.grading.preparing import PreparedNotebook, prepare
from labkit.grading.reading import Notebook, read
from labkit.grading.sandbox.inside import serving
from labkit.teach.exercises.cells import named_exercise
from labkit.teach.exercises.registry import assignments, find
from labkit.teach.shipped import Cell, notebooks

COURSE = load(submitted.COURSE)
RELEASED = read(COURSE.released(submitted.NOTEBOOK).read_bytes())


def prepared(*sources: str) -> PreparedNotebook:
    return prepare(read(submitted.notebook(*sources).encode()), RELEASED, COURSE.of_notebook(submitted.NOTEBOOK))


def asked(found: PreparedNotebook) -> list[str]:
    return [exercise.name for exercise in found.attempted]


def test_a_copy_that_was_not_touched_has_nothing_to_ask() -> None:
    found = prepare(RELEASED, RELEASED, COURSE.of_notebook(submitted.NOTEBOOK))
    assert asked(found) == []
    assert set(found.missing.values()) == {"its cell has not been changed since the release"}
    assert [cell.source for cell in found.cells] == ["steps = 3  # how many"]
    assert found.notes == []


def test_demonstrations_and_checks_are_not_executed() -> None:
    cells = [cell["source"] for cell in submitted.released()]
    cells = [submitted.marked("01-double", submitted.RIGHT["01-double"]) if "double(" in one else one for one in cells]
    found = prepared(*cells)
    assert asked(found) == ["01-double"]
    assert not [cell for cell in found.cells if "nowhere" in cell.source or "lab.check" in cell.source]
    assert json.loads(found.notebook())["cells"][-1]["source"] == serving.CELL


def test_an_answer_is_found_wherever_it_stands() -> None:
    cells = submitted.answers()
    assert asked(prepared(*cells[::-1])) == list(submitted.ALL)
    assert "not in the order" in prepared(*cells[::-1]).notes[0]


def test_an_answer_without_its_mark_is_found_by_its_name() -> None:
    found = prepared(submitted.RIGHT["01-double"], "x = 1")
    assert asked(found) == ["01-double"]
    assert found.notes[0].startswith("01-double: no cell names the exercise")
    assert found.missing["01-dedup"] == "its cell is missing from the notebook"


def test_of_two_answers_the_last_counts_and_the_first_is_not_executed() -> None:
    first, last = (submitted.marked("01-double", f"def double(number):\n    return {n} * number") for n in (3, 2))
    found = prepared(first, last)
    assert [cell.source for cell in found.cells] == [last]
    assert any(note.startswith("01-double: 2 cells answer it") for note in found.notes)


def test_a_mark_in_the_metadata_counts_and_a_lie_about_it_is_named() -> None:
    cells = (Cell("def double(n): return 2 * n", exercise="01-double"), Cell("y = 2", exercise="77-nothing"))
    found = prepare(Notebook(cells, ""), RELEASED, COURSE.of_notebook(submitted.NOTEBOOK))
    assert asked(found) == ["01-double"]
    assert any("77-nothing, which this notebook does not have" in note for note in found.notes)


def test_an_exercise_of_the_release_that_gives_no_points_is_no_stranger() -> None:
    """Neither in an untouched notebook nor in one of which only a part counts, with an answer to the rest."""
    released = read((notebooks() / "02_delivery.ipynb").read_bytes())
    ours = [each for each in assignments().values() if each.notebook == "02_delivery"]
    graded = [find(each.name) for each in ours if each.is_graded]
    assert 0 < len(graded) < len(ours)
    assert prepare(released, released, graded).notes == []
    answer = Cell(submitted.marked("01-double", submitted.RIGHT["01-double"]))
    cells = tuple(answer if named_exercise(cell) == "01-double" else cell for cell in RELEASED.cells)
    assert answer in cells
    assert prepare(Notebook(cells, ""), RELEASED, [COURSE.exercises["01-dedup"]]).notes == []


@pytest.mark.parametrize(
    ("cell", "is_own"),
    [
        (None, False),
        ("", False),
        ("why = ...", False),
        ('reason = "Durable."', True),
        ("why = ...\nreason = 'Durable.'", True),
        ("why = ...\n# Because the table is durable.", True),
        ("Because the table is durable.", True),
    ],
)
def test_a_text_under_another_name_or_in_a_comment_is_shown_to_the_person_who_marks(
    cell: str | None, is_own: bool
) -> None:
    cells = [
        Cell(submitted.marked("01-why", cell)) if named_exercise(each) == "01-why" and cell is not None else each
        for each in RELEASED.cells
    ]
    found = prepare(Notebook(tuple(cells), ""), RELEASED, COURSE.of_notebook(submitted.NOTEBOOK))
    assert list(found.texts) == ["01-why"] * is_own
    if is_own:
        assert found.texts["01-why"].endswith(cell or "")


def test_a_cell_that_is_no_python_is_executed_all_the_same() -> None:
    found = prepared("this is (not python", *submitted.answers())
    assert found.cells[0].source == "this is (not python"
    assert asked(found) == list(submitted.ALL)


def test_blanks_at_the_ends_of_lines_are_no_answer() -> None:
    cells = [cell["source"].replace("\n", "   \n") + "\n\n" for cell in submitted.released()]
    assert asked(prepared(*cells)) == []


def test_a_cell_left_out_keeps_the_numbers_of_the_others() -> None:
    found = prepared(*submitted.answers())
    assert found.numbers(without=[1]) == [0, 2, 3]
    assert len(json.loads(found.notebook(without=[1]))["cells"]) == 4
