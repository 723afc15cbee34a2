"""A cell takes names from the cells above it alone; run too early, it says in one sentence which cell comes first."""

import builtins
from pathlib import Path

import build_notebooks
import nbformat
import pytest

from labkit.teach.exercises.cells import bound, used
from labkit.teach.first import comes_first

ROOT = Path(__file__).parent.parent.parent
SOURCES = build_notebooks.sources(ROOT)


def texts(source: Path) -> list[str]:
    cells = nbformat.reads(build_notebooks.build(source)[0], as_version=4).cells
    return [cell.source for cell in cells if cell.cell_type == "code"]


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.stem)
def test_a_cell_takes_names_from_above_and_without_them_says_from_where(source: Path):
    given: set[str] = set()
    asked = 0
    for text in texts(source):
        foreign = used(text) - set(dir(builtins))
        assert foreign <= given, text
        for name in foreign:
            told = comes_first(name, [text], f"{source.stem}.ipynb")
            assert told.startswith(f"`{name}` comes from the "), text
            assert told.endswith("cell first.")
            asked += 1
        given |= bound(text)
    assert asked >= 5
