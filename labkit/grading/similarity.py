"""Finds pairs of similar submissions: identical files, and answers that differ only in names, comments or layout.

Similarity proves nothing, because a short answer can be written in few ways. So very short answers, and answers that
many students have, are not compared, and a person decides about the others.
"""

import ast
import hashlib
import warnings
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations

from labkit.grading.records import Record

FEWEST = 30
"""The least number of parts (nodes, names, constants) of an answer's syntax tree; shorter answers are not compared."""
_MOST_SOURCE = 50_000
MOST_ALIKE = 4
"""The largest number of students whose equal answers are suspicious; if more have an answer, it is the usual one."""
SAME_FILE = "the same file"


@dataclass(frozen=True)
class Match:
    """One similarity between two students' work: the same file, or code of the same structure for one exercise."""

    what: str
    """Either `SAME_FILE` or the name of an exercise."""
    notebook: str
    shared_by: int
    """The number of students with this file or answer."""


@dataclass(frozen=True)
class Pair:
    """A pair of students, named by their keys, with all similarities between their work."""

    first: str
    second: str
    matches: tuple[Match, ...]

    @property
    def weight(self) -> float:
        """The degree of suspicion: a match adds 1 if only these two students share it, and less if others share it."""
        return sum(1 / (match.shared_by - 1) for match in self.matches)


def structure(source: str) -> str:
    """Return a digest of a cell's code that ignores names, comments and layout; empty for a short cell."""
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
    """Append a description of each node to `parts`. The first name becomes n0, the next new one n1, and so on.

    `names` maps the names that have occurred so far to these replacements.
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


def pairs(records: Iterable[Record]) -> list[Pair]:
    """Return the pairs of students whose files or answers are equal, the most suspicious pair first.

    Files and answers that more than `MOST_ALIKE` students have do not count.
    """
    files: dict[tuple[str, str], set[str]] = defaultdict(set)
    answers: dict[tuple[str, str, str], set[str]] = defaultdict(set)
    for record in records:
        if any(item.code for item in record.items):
            files[record.notebook, record.sha256].add(record.key)
        for item in record.items:
            if item.structure:
                answers[record.notebook, item.name, item.structure].add(record.key)
    found: dict[tuple[str, str], list[Match]] = defaultdict(list)
    for (notebook, _), keys in files.items():
        _add(found, keys, Match(SAME_FILE, notebook, len(keys)))
    for (notebook, exercise, _), keys in answers.items():
        _add(found, keys, Match(exercise, notebook, len(keys)))
    made = [Pair(*keys, tuple(_without_files_answers(matches))) for keys, matches in found.items()]
    return sorted(made, key=lambda pair: (-pair.weight, pair.first, pair.second))


def _add(found: dict[tuple[str, str], list[Match]], keys: set[str], match: Match) -> None:
    if len(keys) <= MOST_ALIKE:
        for two in combinations(sorted(keys), 2):
            found[two].append(match)


def _without_files_answers(matches: Sequence[Match]) -> Iterable[Match]:
    """Yield the matches of identical files, then the matches of answers, without those in identical files."""
    files = {match.notebook for match in matches if match.what == SAME_FILE}
    for match in sorted(matches, key=lambda one: (one.what != SAME_FILE, one.shared_by, one.notebook, one.what)):
        if match.what == SAME_FILE or match.notebook not in files:
            yield match
