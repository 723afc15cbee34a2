"""A notebook that is run out of order: each cell works alone, or one sentence says which cell comes first."""

from pathlib import Path

import jupytext
import pytest

from labkit.core.errors import LabError

ROOT = Path(__file__).parents[2]
NAMES = ("01_guarantees", "02_delivery", "03_snapshots")
"""Run here; `test_order.py` reads all of them."""


def cells(name: str) -> list[str]:
    source = (ROOT / "notebooks" / "src" / f"{name}.py").read_text(encoding="utf-8")
    return [
        cell.source
        for cell in jupytext.reads(source, fmt="py:percent").cells
        if cell.cell_type == "code"
    ]


@pytest.mark.parametrize("name", NAMES)
def test_a_cell_runs_alone_or_names_the_cell_that_comes_first(
    name: str, capsys: pytest.CaptureFixture[str]
):
    refused = []
    for source in cells(name):
        try:
            exec(compile(source, name, "exec"), {})
        except LabError as error:
            refused.append(str(error))
    assert 0 < len(refused) < len(cells(name)) / 2, "most cells stand alone"
    for sentence in refused:
        assert "run that cell first" in sentence
        assert "the first code cell" in sentence or "the cell above" in sentence
    assert capsys.readouterr().out


@pytest.mark.parametrize("name", NAMES)
def test_a_notebook_is_short_and_its_cells_too(name: str):
    source = (ROOT / "notebooks" / "src" / f"{name}.py").read_text(encoding="utf-8")
    exercise = {"task", "exercise", "solution", "check"}
    shown = [
        cell
        for cell in jupytext.reads(source, fmt="py:percent").cells
        if cell.cell_type != "raw" and not exercise & set(cell.metadata.get("tags", []))
    ]
    assert len(shown) <= 45
    code = [cell.source for cell in shown if cell.cell_type == "code"]
    assert (
        max(
            len([line for line in source.splitlines() if line.strip()])
            for source in code
        )
        <= 9
    )
    assert source.count("lab.explorer(") == 1
    assert "What popular notes get wrong" in source
    assert 3 <= source.count("\n# **") <= 8
