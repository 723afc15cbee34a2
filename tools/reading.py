"""Estimate how many minutes a notebook takes, for the map of the course and the first cell of each notebook.

No reader was timed: the estimate counts words, lines of code and of output, questions, pictures and crashes, and treats
all notebooks alike.
"""

import ast
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import ceil
from typing import Any, NamedTuple

from nbformat import NotebookNode

from labkit.core.words import columns
from labkit.teach.exercises.cells import marked, python
from labkit.teach.exercises.registry import assignments

WORDS_A_MINUTE = 130
"""Half of the reading speed of a novel, because the text explains, and English is not every reader's first language."""
CODE_LINE = 4
"""The seconds for a visible line of code; blank lines are free."""
OUTPUT_LINE = 3
"""The seconds for a line that a cell prints, as far as the source states what it prints."""
SECONDS = {"ask": 35, "picture": 90, "crash": 25, "measurement": 20, "crash test": 100, "short crash test": 15}
"""The seconds for a question, a picture, and for waiting; a short crash test kills at some points only."""
CALLS = {
    "ask": "ask",
    "show": "picture",
    "explorer": "picture",
    "panel": "picture",
    "strip": "picture",
    "matrix": "picture",
    "seen_over_time": "picture",
    "totals": "picture",
    "crash": "crash",
    "crash_each": "crash",
    "measure_waits": "measurement",
    "measure_rows": "measurement",
    "count_effects": "measurement",
    "try_sink": "measurement",
    "crash_test": "crash test",
}
"""By function of `lab`, the key in `SECONDS` of the time that a call takes. `crash_each` runs its jobs in parallel."""
EXERCISE_MINUTES = {"easy": 5, "medium": 12, "hard": 25}
"""The minutes for an exercise, by level; they also define what the levels mean."""
NOT_READ = {"task", "exercise", "solution", "check", "rules", "checked", "expected"}
"""The tags of cells that belong to the exercises or that no learner gets."""
MOST_MINUTES = 25
"""The most minutes for a notebook without its exercises; split a longer one, because tired learners stop predicting."""
_WORD = re.compile(r"[^\W\d_][\w'’-]*|\d[\w.,:]*")


def minutes(cells: Sequence[NotebookNode], expected: Mapping[int, str] | None = None) -> tuple[int, int]:
    """Return the minutes without exercises, and those for exercises; `expected` is what cells print, by number."""
    shown = [cell for cell in cells if not NOT_READ & tags(cell)]
    seconds = words(shown) * 60 / WORDS_A_MINUTE
    seconds += sum(SECONDS[what] for cell in shown for what in _taken(cell))
    code = [cell.source for cell in shown if cell.cell_type == "code"]
    printed = [text for place, text in (expected or {}).items() if not NOT_READ & tags(cells[place])]
    seconds += CODE_LINE * _lines(code) + OUTPUT_LINE * _lines(printed)
    exercising = sum(_exercise_minutes(cell) for cell in cells)
    return ceil(seconds / 60), exercising


def _lines(texts: Iterable[str]) -> int:
    """Return the number of lines that are not blank."""
    return sum(bool(line.strip()) for text in texts for line in text.splitlines())


def words(cells: Iterable[NotebookNode]) -> int:
    """Return the number of words in text cells, without code."""
    return sum(len(_WORD.findall(plain(cell.source))) for cell in cells if cell.cell_type == "markdown")


def plain(markdown: str) -> str:
    """Return a Markdown text without addresses, pictures and markup."""
    markdown = re.sub(r"!\[[^]]*\]\([^)]*\)", "", markdown)
    markdown = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", markdown)
    return re.sub(r"[`#|>]+|https?://\S+|<[^>]*>|:?-{3,}:?", " ", markdown.replace("*", ""))


def _taken(cell: NotebookNode) -> Iterator[str]:
    """Yield the key in `SECONDS` of each call in a cell that takes time besides reading."""
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
            is_short = any(each.arg == "only" for each in node.keywords)
            yield f"{'short ' * is_short}{CALLS[node.func.attr]}"


def _exercise_minutes(cell: NotebookNode) -> int:
    name = marked(cell.source) if "exercise" in tags(cell) else None
    exercise = assignments().get(name or "")
    return EXERCISE_MINUTES[exercise.level] if exercise else 0


def tags(cell: Any) -> set[str]:
    """Return the tags of a cell."""
    return set(cell.metadata.get("tags", []))


class Reading(NamedTuple):
    """The estimate for one notebook: minutes without exercises, minutes for them, and words of text."""

    minutes: int
    exercising: int
    words: int

    def complaints(self) -> list[str]:
        """Return one sentence if the notebook is longer than `MOST_MINUTES`."""
        if self.minutes <= MOST_MINUTES:
            return []
        return [f"about {self.minutes} minutes without exercises, and {MOST_MINUTES} are allowed: split it"]


def read(cells: Sequence[NotebookNode], expected: Mapping[int, str] | None = None) -> Reading:
    """Estimate the minutes for the cells that learners get; `expected` is what cells print, by their number."""
    return Reading(*minutes(cells, expected), words([cell for cell in cells if not NOT_READ & tags(cell)]))


def table(readings: dict[str, Reading]) -> str:
    """Return the estimates as a table, one line per notebook."""
    rows: list[tuple[str, ...]] = [("notebook", "minutes", "exercises", "words")]
    rows += [(name, f"{each.minutes}", f"{each.exercising}", f"{each.words}") for name, each in readings.items()]
    return columns(rows)
