"""Helpers for messages: suggest the intended name, turn a reason into a sentence, write rows as a table."""

import difflib
import re
from collections.abc import Sequence

from labkit.core.arguments import takes
from labkit.core.errors import InvalidInput


def nearest(text: str, names: list[str]) -> str:
    """Return the end of a message about the unknown name `text`: `did you mean 'x'?`, or all `names`."""
    close = difflib.get_close_matches(text, names, n=1, cutoff=0.5)
    return f"did you mean {close[0]!r}?" if close else f"choose one of {', '.join(names)}."


def name_in(value: object, example: str) -> str:
    """Return `value` if it is text. Otherwise raise `InvalidInput` with `example`, a correct call, in the message."""
    if not isinstance(value, str):
        raise InvalidInput(f"{value!r:.40} is not a name: write a name in quotation marks, as in {example}.")
    return value


def sentence(text: str) -> str:
    """Return a text as a sentence: capitalized, with one full stop."""
    return f"{text[:1].upper()}{text[1:].rstrip('.')}."


def printable(text: str) -> str:
    r"""Return a text on one line: line breaks, control characters and backslashes are escaped as in Python (`\n`)."""
    shown = (each if each.isprintable() and each != "\\" else each.encode("unicode_escape").decode() for each in text)
    return "".join(shown)


def ordinal(number: int) -> str:
    """Return the ordinal of a number: as a word up to ten (`third`), otherwise in digits (`21st`)."""
    words = (*("first", "second", "third", "fourth", "fifth"), *("sixth", "seventh", "eighth", "ninth", "tenth"))
    if number <= len(words):
        return words[number - 1]
    ends = {1: "st", 2: "nd", 3: "rd"} if number // 10 % 10 != 1 else {}
    return f"{number}{ends.get(number % 10, 'th')}"


@takes('lab.columns([["word", "count"], ["hello", "2"]])')
def columns(rows: Sequence[Sequence[str]]) -> str:
    """Return a table of words as text: one line for each row, with aligned columns and without trailing blanks."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = (zip(row, widths, strict=True) for row in rows)
    return "\n".join("  ".join(cell.ljust(width) for cell, width in line).rstrip() for line in lines)


def markdown_table(rows: Sequence[Sequence[str]]) -> str:
    """Return a table of words in Markdown; the first row is its heading."""
    head, *others = [f"| {' | '.join(row)} |" for row in rows]
    return "\n".join([head, "|---" * len(rows[0]) + "|", *others])


_ERROR = re.compile(r"(?i)\b(error|exception|fatal|panic)\b|[a-z](Error|Exception)\b")
_WARNING = re.compile(r"(^|\s)(WARN|WARNING|Warning)[:\s]")
"""Matches a warning in a program's log; Spark logs some in every run."""


def telling_line(text: str) -> str:
    """Return the line of a program's output that best explains the program's failure.

    This is the first line that mentions an error and is not indented. (The indented lines of a traceback are source
    code.) If no line mentions an error, the result is the last line that is not a warning. If all lines are warnings,
    the result is the last one, and without output it is an empty text.
    """
    every = [line.rstrip() for line in text.splitlines() if line.strip()]
    lines = [line for line in every if not _WARNING.search(line)]
    errors = (line for line in lines if _ERROR.search(line) and not line[0].isspace())
    return next(errors, [*every, *lines][-1].strip() if every else "")
