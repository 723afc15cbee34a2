"""Which cells of a notebook count: found by the line that names an exercise, and by the name that an answer has.

The grader, `lab.check` and `labkit check` ask here, so that what passes for one of them passes for the others. A
notebook is read from top to bottom, as it would run, without the cells that are as they were released: of several cells
that give an answer its name, the last one counts.
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
"""Tags of cells that are run although they are as they were released."""
_PLAIN_MAGICS = ("%%time", "%%capture", "%%prun", "%%timeit")
"""Cell magics behind which the cell is Python."""


class Cell(Protocol):
    """A code cell, as far as it matters here."""

    @property
    def source(self) -> str:
        """What is written in it."""
        ...

    @property
    def tags(self) -> frozenset[str]:
        """Its tags."""
        ...

    @property
    def exercise(self) -> str | None:
        """The exercise that its metadata say it answers."""
        ...


@dataclass
class Selection:
    """What counts of a notebook."""

    said: list[str | None]
    """Of every cell the exercise that it says it answers, if that is one of the notebook's."""
    changed: list[bool]
    """Of every cell whether it was added or edited."""
    counts: dict[str, int] = field(default_factory=dict)
    """The cell that counts, by the exercise; an exercise that nobody has attempted is missing."""
    strangers: list[str] = field(default_factory=list)
    """Names of exercises that cells say they answer and that are none of this notebook."""

    def is_run(self, place: int, cell: Cell) -> bool:
        """Whether a cell is executed: it counts, the learner wrote it, or it sets parameters."""
        if place in self.counts.values():
            return True
        return self.said[place] is None and (self.changed[place] or bool(cell.tags & SET_UP))


def select(cells: Sequence[Cell], released: Sequence[Cell], answers: Mapping[str, str]) -> Selection:
    """Which cell counts for which exercise. `answers` are the Python names of the answers, by exercise."""
    plain = {normal(cell.source) for cell in released}
    trees = {tree for cell in released if (tree := _without_comments(cell.source))}
    said = [_said_now(cell, answers) for cell in cells]
    found = Selection(said, [normal(cell.source) not in plain for cell in cells])
    for place, name in enumerate(said):
        if name is not None and name not in answers:
            found.strangers.append(name)
            said[place] = None
    for name, answer in answers.items():
        written = [
            place
            for place, cell in enumerate(cells)
            if found.changed[place] and _without_comments(cell.source) not in trees
        ]
        giving = [place for place in written if answer in bound(cells[place].source)]
        marked = [place for place in written if said[place] == name]
        if giving or marked:
            found.counts[name] = (giving or marked)[-1]
    return found


def said_exercise(cell: Cell) -> str | None:
    """The exercise that a cell says it answers, above its code or in its metadata."""
    if "check" in cell.tags:
        return None
    return marked(cell.source) or cell.exercise


def _said_now(cell: Cell, answers: Mapping[str, str]) -> str | None:
    """The exercise that a cell says it answers, by the name that it has now."""
    name = said_exercise(cell)
    return None if name is None else now(name, answers)


def marked(source: str) -> str | None:
    """The exercise that a line above a cell's code names; comments and magics may stand above that line."""
    for line in map(str.strip, source.splitlines()):
        if found := MARK.match(line):
            return found[1]
        if line and not line.startswith(("#", "%")):
            return None
    return None


def normal(source: str) -> str:
    """A source without what changes when a notebook is only opened and saved."""
    return "\n".join(line.rstrip() for line in source.strip().splitlines())


def python(source: str) -> str:
    """A cell as Python alone: what only IPython understands is left out. A cell in another language is empty."""
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
    """The names that a cell gives at its top level."""
    tree = _tree(python(source))
    return set() if tree is None else set(_bound(tree.body))


def used(source: str) -> set[str]:
    """The names that a cell uses, anywhere in it, and gives nowhere itself; not those of Python's own."""
    tree = _tree(python(source))
    if tree is None:
        return set()
    loaded: set[str] = set()
    given = set(_bound(tree.body))
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            (loaded if isinstance(node.ctx, ast.Load) else given).add(node.id)
        elif isinstance(node, ast.arg):
            given.add(node.arg)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            given.add(node.name)
        elif isinstance(node, ast.alias):
            given.add((node.asname or node.name).partition(".")[0])
        elif isinstance(node, ast.ExceptHandler) and node.name:
            given.add(node.name)
    return loaded - given - set(dir(builtins))


def calls_input(source: str) -> bool:
    """Whether a cell asks whoever runs it for input."""
    tree = _tree(python(source))
    return tree is not None and any(
        isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "input"
        for node in ast.walk(tree)
    )


def _bound(body: Sequence[ast.stmt]) -> Iterator[str]:
    """Names that statements bind, without those inside of functions and classes."""
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
    """The code of a cell alone; empty where it is none."""
    tree = _tree(python(source))
    if tree is None:
        return ""
    try:
        return ast.unparse(tree)
    except RecursionError:
        return ""


def troubles(place: int, cells: Sequence[Cell], released: Sequence[Cell], chosen: Selection) -> list[str]:
    """Why a cell cannot do where it is graded what it does in its notebook; each a sentence. Empty: no reason
    is seen.
    """
    source = cells[place].source
    told = []
    if calls_input(source):
        told.append("Its cell calls input(), which nobody answers when it is graded.")
    there: set[str] = set()
    for number, cell in enumerate(cells):
        if chosen.is_run(number, cell):
            there |= bound(cell.source)
    return [*told, *demonstrated(source, there, released)]


def demonstrated(source: str, there: set[str], released: Sequence[Cell]) -> list[str]:
    """A sentence on each name that a cell uses, that is not there, and that only a cell as it was released gives."""
    names = [name for name in sorted(used(source) - there) if any(name in bound(cell.source) for cell in released)]
    return [
        f"It uses {name}, which only a cell defines that is as you got it; such cells are not run when it is graded: "
        "copy what you need into your own cell."
        for name in names
    ]
