"""Find the notebook cells that contain a learner's answers: by a line that names the exercise, or by the answer's name.

The grader, `lab.check` and `labkit check` all use this module, so that they agree. It reads the cells from top to
bottom, as they would run, and ignores cells that are unchanged since their release. If several cells define the name of
the answer, the last one counts, except cells that answer another exercise: there the name belongs to a helper.

The names that a cell binds are read from the code that Python compiles, so that scopes are Python's own. The module
`symtable` cannot do this from Python 3.12 on, where comprehensions are part of the code around them.
"""

import ast
import builtins
import dis
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache, wraps
from types import CodeType
from typing import TypeVar

from labkit.teach.exercises.moved import now
from labkit.teach.shipped import Cell

MARK = re.compile(r"#\s*exercise[:\s]\s*([\w.-]+)")
SET_UP = frozenset({"parameters", "setup"})
"""The tags of cells that run even if they are unchanged since their release."""
_PLAIN_MAGICS = ("%%time", "%%capture", "%%prun", "%%timeit")
"""The IPython magics that may begin a cell whose other lines are Python."""
_LONG = 20_000
"""The number of characters above which the results for a cell are not cached, to save memory."""
T = TypeVar("T")


def _remembered(function: Callable[[str], T]) -> Callable[[str], T]:
    """Return `function` with a cache. Its argument is a cell's source, and results for long sources are not kept."""
    kept = lru_cache(maxsize=256)(function)

    @wraps(function)
    def remembered(source: str) -> T:
        return kept(source) if len(source) <= _LONG else function(source)

    return remembered


@dataclass
class Selection:
    """The result of `select`: for each exercise of a notebook, the cell that grading takes as the learner's answer."""

    names: list[str | None]
    """For each cell the exercise that it names, or None if it names none of this notebook's exercises."""
    changed: list[bool]
    """For each cell whether the learner added or edited it since the release."""
    counts: dict[str, int] = field(default_factory=dict)
    """The position of the cell that counts as the answer, by exercise; exercises without an attempt are missing."""
    rivals: dict[str, list[int]] = field(default_factory=dict)
    """By exercise, the positions of other cells of the learner that define the name of the answer."""
    strangers: list[str] = field(default_factory=list)
    """Names of exercises that cells mention but that this notebook does not contain."""

    def is_run(self, place: int, cell: Cell) -> bool:
        """Return whether grading runs this cell.

        It runs the graded answers, the learner's cells that answer no exercise, and the cells that set parameters.
        """
        if place in self.counts.values():
            return True
        return self.names[place] is None and (self.changed[place] or bool(cell.tags & SET_UP))


def select(cells: Sequence[Cell], released: Sequence[Cell], answers: Mapping[str, str]) -> Selection:
    """Choose for each exercise the cell that is graded as the learner's answer.

    `cells` are those of the learner's notebook, and `released` those of the notebook as it was handed out. A cell that
    is also in `released` is no answer. `answers` maps the name of each exercise to the Python name that its answer must
    define.
    """
    plain = {normal(cell.source) for cell in released}
    trees = {tree for cell in released if (tree := _without_comments(cell.source))}
    names = [None if (name := named_exercise(cell)) is None else now(name, answers) for cell in cells]
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
        defining = [place for place in written if answer in defined(cells[place].source)]
        own = [place for place in defining if names[place] in (None, name)]
        marked = [place for place in written if names[place] == name]
        bare = [place for place in written if answer in bound(cells[place].source)]
        if candidates := own or marked or defining or bare:
            place = selection.counts[name] = candidates[-1]
            if rivals := [each for each in defining if each != place]:
                selection.rivals[name] = rivals
    return selection


def competition(cells: Sequence[Cell], chosen: Selection, name: str, answer: str) -> str:
    """Return a sentence on the cells that define the answer to an exercise but are not graded; empty if there are none.

    `name` is the exercise, `answer` is the Python name of its answer, and `chosen` says which cell is graded. If the
    graded cell names this exercise in a comment, other cells with the same comment are older versions of the answer,
    and the sentence does not mention them.
    """
    place = chosen.counts.get(name, -1)
    others = [each for each in chosen.rivals.get(name, ()) if not chosen.names[each] == chosen.names[place] == name]
    if not others:
        return ""
    which = f"the cell that begins with `{_first_line(cells[place].source)}`"
    other = f"the one that begins with `{_first_line(cells[others[-1]].source)}`"
    return (
        f"{name}: several of your cells define {answer}. Grading takes {which}, not {other}; rename "
        f"{answer} in the cell that should not count."
    )


def _first_line(source: str) -> str:
    return next(filter(None, map(str.strip, source.splitlines())), "")[:60].replace("`", "'")


def named_exercise(cell: Cell) -> str | None:
    """Return the exercise that a cell names in a comment or in its metadata, or None.

    None is also the result for a cell that only checks the answer to an exercise.
    """
    if "check" in cell.tags:
        return None
    return marked(cell.source) or cell.exercise


def marked(source: str) -> str | None:
    """Return the exercise named in a comment above a cell's code, or None."""
    for line in map(str.strip, source.splitlines()):
        if match := MARK.match(line):
            return match[1]
        if line and not line.startswith(("#", "%")):
            return None
    return None


def normal(source: str) -> str:
    """Return a cell's source without the blanks at its ends and at the ends of lines, which saving may change."""
    return "\n".join(line.rstrip() for line in source.strip().splitlines())


def python(source: str) -> str:
    """Return a cell's source with `pass` in place of each IPython magic and shell command.

    The result is empty for a cell in another language, such as `%%bash`.
    """
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


def is_python(source: str) -> bool:
    """Return whether a cell is valid Python, apart from IPython's magics and shell commands."""
    return _tree(python(source)) is not None


@_remembered
def bound(source: str) -> frozenset[str]:
    """Return all names that a cell sets when it runs, including those that its functions declare as `global`.

    The result is empty if the cell is not valid Python.
    """
    try:
        code = compile(python(source), "<cell>", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return frozenset()
    return frozenset(_stored(code, ("STORE_NAME", "STORE_GLOBAL")))


def _stored(code: CodeType, operations: Sequence[str]) -> Iterator[str]:
    for each in dis.get_instructions(code):
        if each.opname in operations:
            yield each.argval
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            yield from _stored(inner, ("STORE_GLOBAL",))


@_remembered
def defined(source: str) -> frozenset[str]:
    """Return the names that a cell defines by an assignment, an import, a function or a class.

    Names that only a loop, `with`, `except` or `:=` sets are left out.
    """
    tree = _tree(python(source))
    names = set[str]()
    todo: list[ast.AST] = [] if tree is None else [*tree.body]
    while todo:
        node = todo.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.add(node.name)
            continue
        if isinstance(node, ast.Import | ast.ImportFrom):
            names |= {(alias.asname or alias.name).partition(".")[0] for alias in node.names}
        targets = node.targets if isinstance(node, ast.Assign) else []
        if isinstance(node, ast.AnnAssign | ast.AugAssign):
            targets = [node.target]
        names |= {each.id for target in targets for each in ast.walk(target) if isinstance(each, ast.Name)}
        inner = (ast.stmt, ast.ExceptHandler, ast.match_case)
        todo += [each for each in ast.iter_child_nodes(node) if isinstance(each, inner)]
    return bound(source) & names


@_remembered
def used(source: str) -> frozenset[str]:
    """Return the names that a cell uses without defining them; Python's built-in names are left out."""
    tree = _tree(python(source))
    if tree is None:
        return frozenset()
    loaded: set[str] = set()
    bound_names = {*bound(source)}
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
    return frozenset(loaded - bound_names - set(dir(builtins)))


def calls_input(source: str) -> bool:
    """Return whether a cell's code contains a call of the built-in `input()`."""
    tree = _tree(python(source))
    return tree is not None and any(
        isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "input"
        for node in ast.walk(tree)
    )


def _tree(source: str) -> ast.Module | None:
    try:
        return ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


@_remembered
def _without_comments(source: str) -> str:
    tree = _tree(python(source))
    if tree is None:
        return ""
    try:
        return ast.unparse(tree)
    except RecursionError:
        return ""


def troubles(place: int, cells: Sequence[Cell], released: Sequence[Cell], chosen: Selection) -> list[str]:
    """Return sentences on why the cell at `place` may fail in grading although it works in its notebook."""
    source = cells[place].source
    complaints = []
    if calls_input(source):
        complaints.append("The answer's cell calls input(), which nobody can answer during grading.")
    names = {name for number, cell in enumerate(cells) if chosen.is_run(number, cell) for name in bound(cell.source)}
    return [*complaints, *demonstrated(source, names, released)]


def demonstrated(source: str, there: set[str], released: Sequence[Cell]) -> list[str]:
    """Return a sentence for each name that a cell uses, but that is defined only in cells that grading does not run.

    `there` are the names that are defined in grading, and `released` are the notebook's original cells.
    """
    names = [name for name in sorted(used(source) - there) if any(name in bound(cell.source) for cell in released)]
    return [
        f"The answer uses {name}, which only an unchanged cell of the notebook defines. Such cells do not run during "
        "grading: copy what you need into your own cell."
        for name in names
    ]
