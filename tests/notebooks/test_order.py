"""A cell that is run too early says in one sentence which cell comes first."""

import ast
from pathlib import Path

import build_notebooks
import nbformat
import pytest

ROOT = Path(__file__).parent.parent.parent
SOURCES = build_notebooks.sources(ROOT)


def trees(source: Path) -> list[ast.Module]:
    cells = nbformat.reads(build_notebooks.build(source)[0], as_version=4).cells
    return [ast.parse(cell.source) for cell in cells if cell.cell_type == "code"]


def assigned(tree: ast.Module) -> set[str]:
    """What a cell sets itself: by assignment, import or definition."""
    nodes = list(ast.walk(tree))
    names = {
        node.id
        for node in nodes
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    }
    names |= {
        alias.asname or alias.name
        for node in nodes
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    return names | {
        node.name for node in nodes if isinstance(node, ast.FunctionDef | ast.ClassDef)
    }


def used(tree: ast.Module) -> set[str]:
    return {
        node.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)
    }


def needed(tree: ast.Module) -> set[str]:
    """The names in `lab.need(...)`; nothing where there is none."""
    calls = [
        each.value
        for each in tree.body
        if isinstance(each, ast.Expr) and isinstance(each.value, ast.Call)
    ]
    needs = [
        call
        for call in calls
        if isinstance(call.func, ast.Attribute) and call.func.attr == "need"
    ]
    return {
        word.value
        for call in needs
        for word in call.args
        if isinstance(word, ast.Constant)
    }


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.stem)
def test_every_cell_asks_for_what_other_cells_set(source: Path):
    """What a cell uses of others is `lab`, or is there when what it asks for is there."""
    comes_with: dict[str, set[str]] = {
        "lab": {"lab"}
    }  # a name, and all that is set once it is
    for tree in trees(source):
        asked = needed(tree)
        assert asked <= comes_with.keys(), f"{asked}: nothing above sets it"
        there = {"lab"}.union(*(comes_with[name] for name in asked))
        foreign = (used(tree) - assigned(tree)) & comes_with.keys()
        assert foreign <= there, ast.unparse(tree)
        comes_with |= {
            name: there | assigned(tree) for name in assigned(tree) - comes_with.keys()
        }
