"""Find the notebook cells that contain a learner's answers: by a line that names the exercise, or by the answer's name.

The grader, `lab.check` and `labkit check` all use this module, so that they agree. It reads the cells from top to
bottom, as they would run, and ignores cells that are unchanged since their release. If several cells assign the name of
the answer, the last one counts.
"""

import ast
import builtins
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from labkit.teach.exercises.moved import now

MARK = re.compile(r"#\s*exercise[:\s]\s*([\w.-]+)")
SET_UP = frozenset({"parameters", "setup"})
"""The tags of cells that run even if they are unchanged since their release."""
_PLAIN_MAGICS = ("%%time", "%%capture", "%%prun", "%%timeit")
"""The cell magics after which the cell contains Python."""


class Cell(Protocol):
    """A code cell of a notebook, reduced to its text and the metadata that tell which exercise it answers."""

    @property
    def source(self) -> str:
        """The text of the cell."""
        ...

    @property
    def tags(self) -> frozenset[str]:
        """The tags in the cell's metadata."""
        ...

    @property
    def exercise(self) -> str | None:
        """The name of the exercise in the cell's metadata; None if there is none."""
        ...


@dataclass
class Selection:
    """The result of `select`: which cells of a notebook contain the learner's answers."""

    names: list[str | None]
    """For each cell the exercise that it names, or None if it names none of this notebook's exercises."""
    changed: list[bool]
    """For each cell whether the learner added or edited it since the release."""
    counts: dict[str, int] = field(default_factory=dict)
    """The position of the cell that counts as the answer, by exercise; exercises without an attempt are missing."""
    strangers: list[str] = field(default_factory=list)
    """Names of exercises that cells mention but that this notebook does not contain."""

    def is_run(self, place: int, cell: Cell) -> bool:
        """Return whether grading runs a cell: it counts as an answer, the learner wrote it, or it sets parameters."""
        if place in self.counts.values():
            return True
        return self.names[place] is None and (self.changed[place] or bool(cell.tags & SET_UP))


def select(cells: Sequence[Cell], released: Sequence[Cell], answers: Mapping[str, str]) -> Selection:
    """Choose the cell that counts as the answer to each exercise.

    `released` are the notebook's original cells, and `answers` maps each exercise to the Python name of its answer.
    """
    plain = {normal(cell.source) for cell in released}
    trees = {tree for cell in released if (tree := _without_comments(cell.source))}
    names = [_current_exercise(cell, answers) for cell in cells]
    selection = Selection(names, [normal(cell.source) not in plain for cell in cells])
    for place, name in enumerate(names):
        if name is not None and name not in answers:
            selection.strangers.append(name)
            names[place] = None
    for name, answer in answers.items():
        written = [
            place
            for place, cell in enumerate(cells)
            if selection.changed[place] and _without_comments(cell.source) not in trees
        ]
        giving = [place for place in written if answer in bound(cells[place].source)]
        marked = [place for place in written if names[place] == name]
        if giving or marked:
            selection.counts[name] = (giving or marked)[-1]
    return selection


def named_exercise(cell: Cell) -> str | None:
    """Return the exercise that a cell names, in a line above its code or in its metadata.

    Returns None if it names none, and for a cell that only checks.
    """
    if "check" in cell.tags:
        return None
    return marked(cell.source) or cell.exercise


def _current_exercise(cell: Cell, answers: Mapping[str, str]) -> str | None:
    """Return the exercise that a cell names; for a renamed exercise, its current name."""
    name = named_exercise(cell)
    return None if name is None else now(name, answers)


def marked(source: str) -> str | None:
    """Return the exercise named in a line above the code, or None; comments and magics may precede that line."""
    for line in map(str.strip, source.splitlines()):
        if match := MARK.match(line):
            return match[1]
        if line and not line.startswith(("#", "%")):
            return None
    return None


def normal(source: str) -> str:
    """Return a cell's source without the whitespace differences that opening and saving a notebook can cause."""
    return "\n".join(line.rstrip() for line in source.strip().splitlines())


def python(source: str) -> str:
    """Return a cell as plain Python, without lines that only IPython understands; empty for another language."""
    if _tree(source) is not None:
        return source
    lines = source.lstrip("\n").splitlines()
    if lines and lines[0].startswith("%%"):
        if not lines[0].startswith(_PLAIN_MAGICS):
            return ""
        lines[0] = ""
    for place, line in enumerate(lines):
        code = line.lstrip()
        if code.startswith(("%", "!")):
            lines[place] = f"{line[: len(line) - len(code)]}pass"
    return "\n".join(lines) + "\n"


def bound(source: str) -> set[str]:
    """Return the names that a cell defines at its top level."""
    tree = _tree(python(source))
    return set() if tree is None else set(_bound(tree.body))


def used(source: str) -> set[str]:
    """Return the names that a cell uses but does not define itself, except Python's built-in names."""
    tree = _tree(python(source))
    if tree is None:
        return set()
    loaded: set[str] = set()
    bound_names = set(_bound(tree.body))
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            (loaded if isinstance(node.ctx, ast.Load) else bound_names).add(node.id)
        elif isinstance(node, ast.arg):
            bound_names.add(node.arg)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            bound_names.add(node.name)
        elif isinstance(node, ast.alias):
            bound_names.add((node.asname or node.name).partition(".")[0])
        elif isinstance(node, ast.ExceptHandler) and node.name:
            bound_names.add(node.name)
    return loaded - bound_names - set(dir(builtins))


def calls_input(source: str) -> bool:
    """Return whether a cell calls input()."""
    tree = _tree(python(source))
    return tree is not None and any(
        isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "input"
        for node in ast.walk(tree)
    )


def _bound(body: Sequence[ast.stmt]) -> Iterator[str]:
    """Yield the names that statements bind, except names inside functions and classes."""
    for statement in body:
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield statement.name
            continue
        if isinstance(statement, ast.Import | ast.ImportFrom):
            for alias in statement.names:
                yield (alias.asname or alias.name).partition(".")[0]
            continue
        for node in ast.walk(statement):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                yield node.id
            elif isinstance(node, ast.FunctionDef | ast.ClassDef):
                yield node.name


def _tree(source: str) -> ast.Module | None:
    try:
        return ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _without_comments(source: str) -> str:
    """Return the code of a cell without comments; empty if it cannot be parsed."""
    tree = _tree(python(source))
    if tree is None:
        return ""
    try:
        return ast.unparse(tree)
    except RecursionError:
        return ""


def troubles(place: int, cells: Sequence[Cell], released: Sequence[Cell], chosen: Selection) -> list[str]:
    """Return the reasons why the cell at `place` may fail in grading although it works in its notebook.

    Each reason is one sentence.
    """
    source = cells[place].source
    complaints = []
    if calls_input(source):
        complaints.append("Its cell calls input(), which nobody can answer during grading.")
    names: set[str] = set()
    for number, cell in enumerate(cells):
        if chosen.is_run(number, cell):
            names |= bound(cell.source)
    return [*complaints, *demonstrated(source, names, released)]


def demonstrated(source: str, there: set[str], released: Sequence[Cell]) -> list[str]:
    """Return a sentence on each name that a cell uses but that only an unchanged released cell defines.

    Such cells do not run in grading. `there` are the names that are defined without them.
    """
    names = [name for name in sorted(used(source) - there) if any(name in bound(cell.source) for cell in released)]
    return [
        f"It uses {name}, which only an unchanged cell of the notebook defines. Such cells do not run during grading: "
        "copy what you need into your own cell."
        for name in names
    ]
