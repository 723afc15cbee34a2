"""Estimate the width of text without a browser, from a table of widths, so that no text overlaps another or is cut.

The widths are those of DejaVu Sans, which is wider than almost every other sans-serif font, so texts are rarely
wider than the estimate.
"""

from functools import cache

_PLAIN = (
    "32 40 46 84 64 95 78 27 39 39 50 84 32 36 32 34 64 64 64 64 64 64 64 64 64 64 34 34 84 84 84 53 100 68 69 70 "
    "77 63 58 77 75 29 29 66 56 86 75 79 60 79 69 63 61 73 68 99 69 61 69 39 34 39 84 50 50 61 63 55 63 62 35 63 "
    "63 28 28 58 28 97 63 61 63 63 41 52 39 63 59 82 59 59 52 64 34 64 84 "
)
_BOLD = (
    "35 46 52 84 70 100 87 31 46 46 52 84 38 42 38 37 70 70 70 70 70 70 70 70 70 70 40 40 84 84 84 58 100 77 76 "
    "73 83 68 68 82 84 37 37 77 64 100 84 85 73 85 77 72 68 81 77 110 77 72 73 46 37 46 84 50 50 67 72 59 72 68 "
    "44 72 71 34 34 67 34 104 71 69 72 72 49 60 48 71 65 92 65 65 58 71 37 71 84 "
)
_TABLES = tuple([int(width) for width in table.split()] for table in (_PLAIN, _BOLD))
_OTHER = 105
"""The width of a character outside ASCII, in hundredths of the font size: the width of the widest common one."""


@cache
def width(text: str, size: float, *, bold: bool = False) -> float:
    """Return an upper estimate of a text's width in pixels; `size` is the font size in pixels."""
    table = _TABLES[bold]
    return sum(table[ord(sign) - 32] if 32 <= ord(sign) < 127 else _OTHER for sign in text) * size / 100


def wrap(text: str, size: float, most: float, *, bold: bool = False) -> list[str]:
    """Break a text into lines of at most `most` pixels, if necessary inside a word; `size` is the font size."""
    lines: list[str] = []
    for word in text.split():
        joined = f"{lines[-1]} {word}" if lines else word
        if lines and width(joined, size, bold=bold) <= most:
            lines[-1] = joined
        else:
            lines += _broken(word, size, most, bold=bold)
    return lines or [""]


def _broken(word: str, size: float, most: float, *, bold: bool) -> list[str]:
    parts = [""]
    for sign in word:
        if parts[-1] and width(parts[-1] + sign, size, bold=bold) > most:
            parts.append("")
        parts[-1] += sign
    return parts
