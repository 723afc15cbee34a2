"""A NameError in a notebook of the course says which cell comes first, and stays an error for what runs the
notebook.
"""

import subprocess
import sys

import nbformat
import papermill
import pytest
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError
from nbformat import v4

from labkit.core.words import ordinal
from labkit.teach import first
from labkit.teach.first import comes_first

SHIPPED = {
    "01_shop": [
        "# Which link decides?",
        "from labkit import lab",
        "size = 3",
        "## Crash it",
        "outcome = size + 1",
        "outcome",
        "## Again\n\nWith **more**.",
        "outcome = size + 2",
        "print(outcome, size)",
        "def late():\n    return rows",
        "## The *last* one",
        "rows = late",
    ],
    "02_bank": ["# How do you copy a bank?", "from labkit import lab", "## Copy", "money = 1"],
}
SHOP = SHIPPED["01_shop"]


def is_text(source):
    return source.startswith("#")


@pytest.fixture
def shipped(tmp_path):
    """A folder of released notebooks."""
    folder = tmp_path / "shipped"
    folder.mkdir()
    for name, cells in SHIPPED.items():
        made = [v4.new_markdown_cell(each) if is_text(each) else v4.new_code_cell(each) for each in cells]
        nbformat.write(v4.new_notebook(cells=made), folder / f"{name}.ipynb")
    return folder


@pytest.fixture
def here(shipped, monkeypatch):
    from labkit.teach import shipped as module

    for place in (module, first):
        monkeypatch.setattr(place, "notebooks", lambda: shipped)
    module.released_cells.cache_clear()
    yield
    module.released_cells.cache_clear()


@pytest.mark.parametrize(
    ("name", "failed", "told"),
    [
        ("outcome", "outcome", "the first cell under *Crash it*"),
        ("outcome", "print(outcome, size)", "the first cell under *Again*"),
        ("outcome", "print(outcome, size, 'edited')", "the first cell under *Again*"),
        ("outcome", "something quite new: 1234567890 and more", "the first cell under *Crash it*"),
        ("size", "outcome", "the second code cell"),
        ("lab", "outcome", "the first code cell"),
        ("rows", "print(outcome, size)", "the cell under *The last one*"),
        ("outcom", "outcome", ""),
        ("money", "outcome", ""),
    ],
)  # fmt: skip
def test_the_nearest_cell_above_that_gives_a_name_comes_first(here, name, failed, told):
    sentence = comes_first(name, ["from labkit import lab", "outcome", failed])
    assert sentence == (f"`{name}` comes from {told}: run that cell first." if told else "")


def test_which_notebook_it_is_say_its_cells_then_its_file(here):
    assert "under *Copy*" in comes_first("money", ["money = 1", "money + 1"])
    mine = ["from labkit import lab", "money + 1"]
    assert comes_first("money", mine) == ""
    assert comes_first("money", mine, "/home/ada/notes.ipynb") == ""
    assert "under *Copy*" in comes_first("money", mine, "/home/ada/my 02_bank-2.ipynb")
    assert comes_first("money", [SHOP[5], "money"], "02_bank.ipynb") == ""


def test_places_in_words():
    said = [ordinal(number) for number in (1, 10, 11, 13, 21, 22, 111)]
    assert said == ["first", "tenth", "11th", "13th", "21st", "22nd", "111th"]


def set_up(shipped):
    """A cell by which a kernel takes these notebooks for the released ones."""
    lines = [
        "from pathlib import Path",
        "from labkit.teach import first, shipped",
        f"first.notebooks = shipped.notebooks = lambda: Path({str(shipped)!r})",
    ]
    return ["\n".join(lines)]


def told_by(tmp_path, shipped, *cells, allow=True):
    """The errors of a notebook of these cells under a name of its own, as they are shown."""
    notebook = v4.new_notebook(cells=[v4.new_code_cell(each) for each in (*set_up(shipped), *cells)])
    NotebookClient(
        notebook, allow_errors=allow, kernel_name="python3", resources={"metadata": {"path": str(tmp_path)}}
    ).execute()
    return [
        (output.ename, "\n".join(output.traceback))
        for cell in notebook.cells
        for output in cell.outputs
        if output.output_type == "error"
    ]


@pytest.mark.notebook
def test_in_a_kernel_every_other_error_stays_as_it_was(tmp_path, shipped):
    errors = told_by(
        tmp_path,
        shipped,
        SHOP[1],
        SHOP[5],  # outcome
        SHOP[9],
        "late()",  # rows, in a function of the notebook
        "outcom",
        "1 / 0",
        "def f():\n    print(x)\n    x = 1\nf()",
        "eval('outcome', {})",
    )
    assert errors[0] == (
        "NameError",
        "NameError: `outcome` comes from the first cell under *Crash it*: run that cell first.",
    )
    assert errors[1][1].startswith("NameError: `rows` comes from the cell under")
    kinds = [kind for kind, _ in errors[2:]]
    assert kinds == ["NameError", "ZeroDivisionError", "UnboundLocalError", "NameError"]
    for _, shown in errors[2:]:
        assert "Traceback" in shown
        assert "comes from" not in shown


@pytest.mark.slow
@pytest.mark.notebook
def test_it_is_an_error_for_what_runs_a_notebook(tmp_path, shipped):
    with pytest.raises(CellExecutionError) as failed:
        told_by(tmp_path, shipped, SHOP[1], SHOP[5], allow=False)
    assert failed.value.ename == "NameError"
    assert "run that cell first" in str(failed.value)
    cells = [*set_up(shipped), SHOP[1], SHOP[5]]
    path = tmp_path / "mine.ipynb"
    notebook = v4.new_notebook(cells=[v4.new_code_cell(each) for each in cells])
    notebook.metadata.kernelspec = {"name": "python3", "display_name": "", "language": "python"}
    nbformat.write(notebook, path)
    with pytest.raises(papermill.PapermillExecutionError, match="`outcome` comes from"):
        papermill.execute_notebook(path, None, progress_bar=False)
    words = ["-m", "pytest", "--nbval-lax", "-p", "no:cacheprovider", str(path)]
    ran = subprocess.run([sys.executable, *words], capture_output=True, text=True, cwd=tmp_path, check=False)
    assert ran.returncode == 1
    assert "1 failed, 2 passed" in ran.stdout
    assert "name 'outcome' is not defined" in ran.stdout, "nbval keeps no history"
