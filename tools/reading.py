"""How long a notebook takes. Nothing here is measured on people: the numbers are an estimate that treats all alike.

This module must not know where notebooks lie.
"""

import ast
import re
from collections.abc import Iterable, Iterator, Sequence
from math import ceil
from typing import Any

from nbformat import NotebookNode

from labkit.teach.exercises.cells import marked, python
from labkit.teach.exercises.registry import EXERCISES

WORDS_A_MINUTE = 130
"""Half of what is read of a novel: the sentences explain, and many readers' first language is another one."""
SECONDS = {
    "ask": 35,
    "picture": 90,
    "crash": 25,
}
"""A question is read, thought about and answered; a picture or player is gone through; a real crash is waited for."""
CALLS = {
    "ask": "ask",
    "predict": "ask",
    "show": "picture",
    "explorer": "picture",
    "panel": "picture",
    "strip": "picture",
    "matrix": "picture",
    "seen_over_time": "picture",
    "until_visible": "picture",
    "held_back": "picture",
    "crash": "crash",
    "crash_each": "crash",
    "memory_sink": "crash",
}
"""What takes time besides reading, by the name of `lab` that is called. `crash_each` runs as many jobs side by side."""
EXERCISE_MINUTES = {"easy": 5, "medium": 12, "hard": 25}
"""By its level. What the levels mean is defined by these minutes as much as the other way round."""
NOT_READ = {"task", "exercise", "solution", "check", "rules", "checked", "expected"}
"""Tags of cells that belong to the exercises or that no learner gets."""
_WORD = re.compile(r"[^\W\d_][\w'’-]*|\d[\w.,:]*")


def minutes(cells: Sequence[NotebookNode]) -> tuple[int, int]:
    """Minutes without exercises, and minutes for the exercises."""
    shown = [cell for cell in cells if not NOT_READ & _tags(cell)]
    seconds = words(shown) * 60 / WORDS_A_MINUTE
    seconds += sum(SECONDS[what] for cell in shown for what in _taken(cell))
    exercising = sum(_exercise_minutes(cell) for cell in cells)
    return ceil(seconds / 60), exercising


def words(cells: Iterable[NotebookNode]) -> int:
    """Words of the text, without code."""
    return sum(
        len(_WORD.findall(plain(cell.source)))
        for cell in cells
        if cell.cell_type == "markdown"
    )


def plain(markdown: str) -> str:
    """Text as it is read: without addresses, pictures and marks."""
    markdown = re.sub(r"!\[[^]]*\]\([^)]*\)", "", markdown)
    markdown = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", markdown)
    return re.sub(r"[*_`#|>]+|https?://\S+|<[^>]*>|:?-{3,}:?", " ", markdown)


def _taken(cell: NotebookNode) -> Iterator[str]:
    """What a cell takes time for besides reading."""
    if cell.cell_type != "code":
        return
    for node in ast.walk(ast.parse(python(cell.source))):
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and isinstance(node.func.value, ast.Name)
            and node.func.value.id == "lab"
            and node.func.attr in CALLS
        ):
            yield CALLS[node.func.attr]


def _exercise_minutes(cell: NotebookNode) -> int:
    name = marked(cell.source) if "exercise" in _tags(cell) else None
    exercise = EXERCISES.get(name or "")
    return EXERCISE_MINUTES[exercise.level] if exercise else 0


def _tags(cell: Any) -> set[str]:
    return set(cell.metadata.get("tags", []))
