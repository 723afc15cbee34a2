"""Words for a person: the name that was probably meant, a reason as a sentence, and rows as aligned columns.

Everything that refuses or prints something uses these. This module must not know what is refused or printed.
"""

import difflib
from collections.abc import Sequence

from labkit.core.asked import takes
from labkit.core.errors import InvalidInput


def nearest(text: str, names: list[str]) -> str:
    """The end of a sentence that refuses `text`: the closest known name, or all of them."""
    close = difflib.get_close_matches(text, names, n=1, cutoff=0.5)
    return f"did you mean {close[0]!r}?" if close else f"choose one of {', '.join(names)}."


def name_in(given: object, example: str) -> str:
    """A name that somebody typed, such as stands in `example`. Raises `InvalidInput` for what is no text."""
    if not isinstance(given, str):
        raise InvalidInput(f"a name is text: write it in quotation marks, as in {example}.")
    return given


def sentence(said: str) -> str:
    """A reason as a sentence: a capital letter at its beginning and one full stop at its end."""
    return f"{said[:1].upper()}{said[1:].rstrip('.')}."


def ordinal(number: int) -> str:
    """A place in a row as a word, and from the eleventh on as a number."""
    words = (*("first", "second", "third", "fourth", "fifth"), *("sixth", "seventh", "eighth", "ninth", "tenth"))
    if number <= len(words):
        return words[number - 1]
    ends = {1: "st", 2: "nd", 3: "rd"} if number // 10 % 10 != 1 else {}
    return f"{number}{ends.get(number % 10, 'th')}"


@takes('lab.columns([["word", "count"], ["hello", "2"]])')
def columns(rows: Sequence[Sequence[str]]) -> str:
    """Rows of words as lines of text, each column as wide as its widest word, without blanks at the ends."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = (zip(row, widths, strict=True) for row in rows)
    return "\n".join("  ".join(cell.ljust(width) for cell, width in line).rstrip() for line in lines)
