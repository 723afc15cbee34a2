"""Finds submissions that are alike: the same file, or answers that compute the same in the same way under other names.

Likeness proves nothing: short answers have few forms. So an answer that is too short is not compared, and a person
looks at the others.
"""

import ast
import hashlib
import warnings
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from labkit.grading.records import Record

FEWEST = 30
"""Parts of a syntax tree, at least, for an answer to be compared."""
_MOST_SOURCE = 50_000


@dataclass(frozen=True)
class Alike:
    """Students whose submissions, or answers to one exercise, are the same."""

    what: str
    """`the same file`, or the name of an exercise."""
    where: str
    """The notebook."""
    students: tuple[str, ...]
    """The keys of the students."""


def structure(source: str) -> str:
    """A digest of a cell's computation, without names, comments and layout; empty for one too short to compare."""
    if len(source) > _MOST_SOURCE:
        return ""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # warnings of the learner's code, for nobody here
            tree = ast.parse(source)
        names: dict[str, str] = {}
        parts: list[str] = []
        _walk(tree, names, parts)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ""
    if len(parts) < FEWEST:
        return ""
    return hashlib.sha256(" ".join(parts).encode("utf-8", "replace")).hexdigest()[:16]


def _walk(node: ast.AST, names: dict[str, str], parts: list[str]) -> None:
    """Adds the tree in order, each name as the number of its first use, without docstrings and annotations."""
    parts.append(type(node).__name__)
    for field, value in ast.iter_fields(node):
        if field in {"annotation", "returns", "type_comment", "type_params", "kind"}:
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.Expr) and isinstance(child.value, ast.Constant):
                continue  # a docstring, or a value that nothing is done with
            if isinstance(child, ast.AST):
                _walk(child, names, parts)
            elif field in {"id", "arg", "name"} and isinstance(child, str):
                parts.append(names.setdefault(child, f"n{len(names)}"))
            elif child is not None:
                parts.append(repr(child))


def alike(records: Iterable[Record]) -> list[Alike]:
    """Groups of students with the same file, or with answers of one structure, the smallest groups first."""
    files: dict[tuple[str, str], set[str]] = defaultdict(set)
    answers: dict[tuple[str, str, str], set[str]] = defaultdict(set)
    for record in records:
        if any(item.code for item in record.items):
            files[record.notebook, record.sha256].add(record.key)
        for item in record.items:
            if item.structure:
                answers[record.notebook, item.name, item.structure].add(record.key)
    same_file = [
        Alike("the same file", notebook, tuple(sorted(keys))) for (notebook, _), keys in files.items() if len(keys) > 1
    ]
    of_one_file = {(one.where, one.students) for one in same_file}
    same_answer = [
        Alike(exercise, notebook, tuple(sorted(keys)))
        for (notebook, exercise, _), keys in answers.items()
        if len(keys) > 1 and (notebook, tuple(sorted(keys))) not in of_one_file
    ]
    return [*_ordered(same_file), *_ordered(same_answer)]


def _ordered(groups: Sequence[Alike]) -> list[Alike]:
    return sorted(groups, key=lambda one: (len(one.students), one.where, one.what, one.students))
