"""Finds similar submissions: identical files, and answers that compute the same under different names.

Similarity proves nothing, since short answers have few possible forms. So answers that are too short are not
compared, and a person decides about the others.
"""

import ast
import hashlib
import warnings
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from labkit.grading.records import Record

FEWEST = 30
"""The smallest number of parts that the syntax tree of a compared answer has."""
_MOST_SOURCE = 50_000


@dataclass(frozen=True)
class Alike:
    """A group of students whose files are identical, or whose answers to one exercise have the same structure."""

    what: str
    """Either `the same file` or the name of an exercise."""
    where: str
    """The name of the notebook."""
    students: tuple[str, ...]
    """The keys of the students."""


def structure(source: str) -> str:
    """Return a digest of a cell's computation that ignores names, comments and layout; empty for a very short cell."""
    if len(source) > _MOST_SOURCE:
        return ""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # nobody reads warnings about the learner's code here
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
    """Append a syntax tree to `parts` in a form that ignores names: they are numbered by first use.

    Docstrings and annotations are left out.
    """
    parts.append(type(node).__name__)
    for field, value in ast.iter_fields(node):
        if field in {"annotation", "returns", "type_comment", "type_params", "kind"}:
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.Expr) and isinstance(child.value, ast.Constant):
                continue  # a docstring, or a value that nothing uses
            if isinstance(child, ast.AST):
                _walk(child, names, parts)
            elif field in {"id", "arg", "name"} and isinstance(child, str):
                parts.append(names.setdefault(child, f"n{len(names)}"))
            elif child is not None:
                parts.append(repr(child))


def alike(records: Iterable[Record]) -> list[Alike]:
    """Return groups of students with identical files or with answers of the same structure, smallest groups first."""
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
