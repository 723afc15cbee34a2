"""A cell that is run too early says in one sentence which cell comes first."""

import ast
from pathlib import Path

import build_notebooks
import nbformat
import pytest

ROOT = Path(__file__).parent.parent.parent
SPARK = [path for path in build_notebooks.sources(ROOT) if path.stem in ("00_start", "07_crash_spark")]


def trees(source: Path) -> list[ast.Module]:
    cells = nbformat.reads(build_notebooks.build(source)[0], as_version=4).cells
    return [ast.parse(cell.source) for cell in cells if cell.cell_type == "code"]


def assigned(tree: ast.Module) -> set[str]:
    return {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}


def used(tree: ast.Module) -> set[str]:
    return {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}


def needed(tree: ast.Module) -> set[str]:
    """The names of a first statement `lab.need(...)`; nothing where there is none."""
    first = tree.body[0]
    if not (isinstance(first, ast.Expr) and isinstance(first.value, ast.Call)):
        return set()
    call = first.value
    is_need = isinstance(call.func, ast.Attribute) and call.func.attr == "need"
    return {word.value for word in call.args if isinstance(word, ast.Constant)} if is_need else set()


@pytest.mark.parametrize("source", SPARK, ids=lambda path: path.stem)
def test_every_cell_asks_for_what_other_cells_set(source: Path):
    """What a cell uses and does not set itself is `lab`, or is asked for and set above."""
    above: set[str] = set()
    for tree in trees(source):
        foreign = (used(tree) - assigned(tree)) & above
        assert foreign - {"lab"} == needed(tree), ast.unparse(tree)
        above |= assigned(tree) | {"lab"}
