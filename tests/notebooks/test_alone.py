"""A notebook that is run out of order: each cell works alone, or one sentence says which cell comes first."""

from pathlib import Path

import build_notebooks
import jupytext
import pytest

from labkit.core.errors import LabError

ROOT = Path(__file__).parents[2]
NAMES = [
    source.stem
    for source in build_notebooks.sources(ROOT)
    if source.stem in {"01_guarantees", "02_delivery", "03_snapshots"}
    and not build_notebooks.is_told(source)
]
"""Run here, as long as their cells ask by `lab.need`; `test_order.py` reads all of them."""


def cells(name: str) -> list[str]:
    source = (ROOT / "notebooks" / "src" / f"{name}.py").read_text(encoding="utf-8")
    return [
        cell.source
        for cell in jupytext.reads(source, fmt="py:percent").cells
        if cell.cell_type == "code"
    ]


def test_a_cell_runs_alone_or_names_the_cell_that_comes_first(
    capsys: pytest.CaptureFixture[str],
):
    for name in NAMES:
        runs_alone_or_refuses(name)
        assert capsys.readouterr().out


def runs_alone_or_refuses(name: str):
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


def test_a_notebook_is_short_and_its_cells_too():
    for name in NAMES:
        is_short(name)


def is_short(name: str):
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
