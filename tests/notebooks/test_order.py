"""A cell that is run too early says in one sentence which cell comes first."""

import ast
import builtins
from pathlib import Path

import build_notebooks
import nbformat
import pytest

from labkit.teach.exercises.cells import bound
from labkit.teach.exercises.cells import used as names
from labkit.teach.first import comes_first

ROOT = Path(__file__).parent.parent.parent
SOURCES = build_notebooks.sources(ROOT)
ASKING = [source for source in SOURCES if not build_notebooks.is_told(source)]
"""Notebooks whose cells ask by `lab.need`."""
TOLD = [source for source in SOURCES if build_notebooks.is_told(source)]


def texts(source: Path) -> list[str]:
    cells = nbformat.reads(build_notebooks.build(source)[0], as_version=4).cells
    return [cell.source for cell in cells if cell.cell_type == "code"]


def trees(source: Path) -> list[ast.Module]:
    return list(map(ast.parse, texts(source)))


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


@pytest.mark.parametrize("source", TOLD, ids=lambda path: path.stem)
def test_a_cell_takes_names_from_above_and_without_them_says_from_where(source: Path):
    given = set(dir(builtins))
    for text in texts(source):
        foreign = names(text) - set(dir(builtins))
        assert foreign <= given, text
        for name in foreign:
            told = comes_first(name, [text], f"{source.stem}.ipynb")
            assert told.startswith(f"`{name}` comes from the "), text
            assert told.endswith("cell first.")
        given |= bound(text)


def test_every_cell_asks_for_what_other_cells_set():
    for source in ASKING:
        asks_for_all(source)


def asks_for_all(source: Path):
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
