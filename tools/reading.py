"""How long a notebook takes, and how hard its sentences are to read.

Nothing here is measured on people: the numbers are an estimate that treats all notebooks alike. This module must not
know where notebooks lie.
"""

import ast
import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from math import ceil
from statistics import fmean
from typing import Any, NamedTuple

from nbformat import NotebookNode

from labkit.core.words import columns
from labkit.teach.exercises.cells import marked, python
from labkit.teach.exercises.registry import EXERCISES

WORDS_A_MINUTE = 130
"""Half of what is read of a novel: the sentences explain, and many readers' first language is another one."""
SECONDS = {"ask": 35, "picture": 90, "crash": 25, "measurement": 20, "crash test": 100, "short crash test": 15}
"""A question is read, thought about and answered; a picture or player is gone through; a real crash is waited for.
So is a measurement, or a whole test on Spark, or a short one, which kills at some places only."""
CALLS = {
    "ask": "ask",
    "show": "picture",
    "explorer": "picture",
    "panel": "picture",
    "strip": "picture",
    "matrix": "picture",
    "seen_over_time": "picture",
    "until_visible": "picture",
    "held_back": "picture",
    "done_and_left": "picture",
    "totals": "picture",
    "crash": "crash",
    "crash_each": "crash",
    "memory_sink": "crash",
    "measure_waits": "measurement",
    "measure_rows": "measurement",
    "count_effects": "measurement",
    "try_sink": "measurement",
    "crash_test": "crash test",
}
"""What takes time besides reading, by the name of `lab` that is called. `crash_each` runs as many jobs side by side."""
EXERCISE_MINUTES = {"easy": 5, "medium": 12, "hard": 25}
"""By its level. What the levels mean is defined by these minutes as much as the other way round."""
NOT_READ = {"task", "exercise", "solution", "check", "rules", "checked", "expected"}
"""Tags of cells that belong to the exercises or that no learner gets."""
MOST_MINUTES = 20
"""Without exercises. Who is tired predicts nothing; what takes longer is two notebooks."""
LONGEST = 28
"""Words of the longest sentence. The aim is fifteen; whoever reads in a foreign language reads a longer one twice."""
_NO_SENTENCE = re.compile(
    r"(?s:```.*?```|<summary>.*?</summary>|\$\$.*?\$\$|^[*_]*Sources\b.*?(?=\n\s*\n|\Z))|^ *\|.*$|^#+ .*$|^\{head\}$",
    re.MULTILINE,
)
"""Code, the line over a fold, formulas, the paragraph with sources, rows of tables, headings."""
_ONLY_CODE = re.compile(r"\s\((?:Code|[\s,:;/=])+\)")
"""What code names in brackets, with nothing else in them, is looked up and not read."""
_NEW = re.compile(r"\n(?=\s*\n)|\n *(?:>+ *)?(?:[-*+]|\d+\.) +|<br>|</?details>|</?p>")
"""Where a sentence begins anew without a full stop before it: a paragraph, an item of a list, a fold."""
_END = re.compile(r"(?:(?<=[.!?])|(?<=[.!?][\"'”’)]))(?<!\.\.)(?<!e\.g\.)(?<!i\.e\.)\s+")
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
    return sum(len(_WORD.findall(plain(cell.source))) for cell in cells if cell.cell_type == "markdown")


def plain(markdown: str) -> str:
    """Text as it is read: without addresses, pictures and marks."""
    markdown = re.sub(r"!\[[^]]*\]\([^)]*\)", "", markdown)
    markdown = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", markdown)
    return re.sub(r"[`#|>]+|https?://\S+|<[^>]*>|:?-{3,}:?", " ", markdown.replace("*", ""))


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
            is_short = any(each.arg == "only" for each in node.keywords)
            yield f"{'short ' * is_short}{CALLS[node.func.attr]}"


def _exercise_minutes(cell: NotebookNode) -> int:
    name = marked(cell.source) if "exercise" in _tags(cell) else None
    exercise = EXERCISES.get(name or "")
    return EXERCISE_MINUTES[exercise.level] if exercise else 0


def _tags(cell: Any) -> set[str]:
    return set(cell.metadata.get("tags", []))


class Reading(NamedTuple):
    """What is known of how a notebook reads."""

    minutes: int
    exercising: int
    words: int
    mean: float
    """Words of a sentence, on average."""
    longest: int
    flesch: float
    """Flesch's reading ease: above 60 is plain English, below 30 is hard."""
    too_long: list[str]
    """Sentences above `LONGEST`."""

    def complaints(self) -> list[str]:
        """What is beyond the limits, a sentence each."""
        found = [
            f"a sentence of {len(_words(each))} words, and {LONGEST} are allowed: {each[:70]}..."
            for each in self.too_long
        ]
        if self.minutes > MOST_MINUTES:
            found.append(
                f"about {self.minutes} minutes without exercises, and {MOST_MINUTES} are allowed: make two of it"
            )
        return found


def read(cells: Sequence[NotebookNode]) -> Reading:
    """How a notebook reads, of the cells that its learners get."""
    text = [sentence for cell in cells if cell.cell_type == "markdown" for sentence in sentences(cell.source)]
    lengths = [len(_words(each)) for each in text] or [0]
    return Reading(
        *minutes(cells),
        words([cell for cell in cells if not NOT_READ & _tags(cell)]),
        fmean(lengths),
        max(lengths),
        _flesch(text),
        [each for each in text if len(_words(each)) > LONGEST],
    )


def sentences(markdown: str) -> list[str]:
    """The sentences of a cell; code within one counts as a word."""
    text = _NO_SENTENCE.sub("\n\n", markdown)
    text = re.sub(r"`[^`]*`|\$[^$\n]+\$", "Code", text)
    text = _ONLY_CODE.sub("", text)
    found = []
    for part in _NEW.split(f"\n{text}"):
        whole = " ".join(plain(part).split())
        found += [each for each in _END.split(whole) if _words(each)]
    return found


def _words(sentence: str) -> list[str]:
    return _WORD.findall(sentence)


def _flesch(text: Sequence[str]) -> float:
    """206.835 - 1.015 words a sentence - 84.6 syllables a word (Flesch 1948)."""
    if not text:
        return 100.0
    inside = [word for each in text for word in _words(each)]
    syllables = sum(_syllables(word.lower()) for word in inside)
    return 206.835 - 1.015 * len(inside) / len(text) - 84.6 * syllables / len(inside)


@cache
def _syllables(word: str) -> int:
    """About how many syllables a word has: groups of vowels, without an e that is not heard.

    Counted here and not by textstat, which fetches a list of words from the network before it counts the first one.
    """
    groups = len(re.findall(r"[aeiouy]+", word))
    is_silent = re.search(r"[^aeiouyl]e[sd]?$", word) and not re.search(r"([td]ed|[sxzcg]es|[sc]hes)$", word)
    return max(1, groups - bool(is_silent))


def table(readings: dict[str, Reading]) -> str:
    """A line a notebook."""
    head = ("notebook", "minutes", "exercises", "words", "mean", "longest", "Flesch")
    rows: list[tuple[str, ...]] = [head]
    for name, each in readings.items():
        times = f"{each.minutes}", f"{each.exercising}", f"{each.words}"
        rows.append((name, *times, f"{each.mean:.1f}", f"{each.longest}", f"{each.flesch:.0f}"))
    return columns(rows)
