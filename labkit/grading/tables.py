"""Reads and writes CSV tables as instructors and platforms use them.

A table may come from any spreadsheet program, so its separator and encoding are detected. A table that labkit writes
contains no formula, not even if a program splits its lines at semicolons.
"""

import csv
import io
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from labkit.core.errors import InvalidInput
from labkit.grading.platforms import text

MOST_BYTES = 64 * 1024**2
_FORMULA = ("=", "+", "-", "@", "\t", "\r")
_HARMLESS = re.compile(r"[\w .@:/()'-]*")
_NUMBER = re.compile(r"-?\d+(\.\d+)?")
_SEPARATORS = ",;\t"
_INNER_FORMULA = re.compile(r"([;,] *)(?=[=+@-])")
_GUARD = re.compile(r"^'(?=[=+@-])")
_INNER_GUARD = re.compile(r"([;,] *)'(?=[=+@-])")
_ACTING = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
"""Characters that act on a terminal or on the order of text, such as direction marks, and unencodable surrogates."""


@dataclass(frozen=True)
class Row:
    """One line of a CSV file: its cells, and its file and line number for error messages."""

    place: str
    cells: dict[str, str]
    """The cells by column title, in lower case."""

    def first(self, *titles: str) -> str:
        """Return the first non-empty cell in the columns with these titles, or an empty text."""
        return next((self.cells[title] for title in titles if self.cells.get(title)), "")


def read(path: Path, what: str, needed: Sequence[str] = ()) -> list[Row]:
    """Return the rows of a CSV file. Its first line must contain the column titles.

    `needed` are titles that must be among them. `what` names the file in messages, for example `the roster`. Raises
    `InvalidInput` for an unreadable file or a missing column.
    """
    name = text(str(path))
    try:
        with path.open("rb") as file:
            raw = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise InvalidInput(f"{name}: {what} cannot be read ({error.strerror}); name a CSV file.") from None
    if len(raw) > MOST_BYTES:
        raise InvalidInput(f"{name}: {what} is larger than {MOST_BYTES // 1024**2} MB; name a smaller file.")
    written = decoded(raw)
    if "\0" in written:
        raise InvalidInput(f"{name}: {what} is not text; save it as CSV.")
    first = written.split("\n", 1)[0]
    separator = max(_SEPARATORS, key=first.count)
    try:
        lines = list(csv.reader(io.StringIO(written, newline=""), delimiter=separator))
    except csv.Error as error:
        raise InvalidInput(f"{name}: {what} is not valid CSV ({error}); save it as CSV again.") from None
    if not lines or not any(lines[0]):
        raise InvalidInput(f"{name}: {what} is empty; its first line must contain the column titles.")
    titles = [title.strip().casefold() for title in lines[0]]
    rows = [
        Row(
            f"{name}, line {number}", {title: cell.strip() for title, cell in zip(titles, cells, strict=False) if title}
        )
        for number, cells in enumerate(lines[1:], start=2)
        if any(cell.strip() for cell in cells)
    ]
    if missing := [title for title in needed if rows and title not in titles]:
        raise InvalidInput(f"{name}: {what} has no column {missing[0]}; it needs the columns {', '.join(needed)}.")
    return rows


def decoded(raw: bytes) -> str:
    """Decode a file's bytes. Editors and spreadsheet programs write UTF-8, UTF-16 or Windows-1252."""
    if raw.startswith((b"\xff\xfe", b"\xfe\xff")):
        return raw.decode("utf-16", "replace")
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        return raw.decode("cp1252", "replace")


def written(lines: Iterable[Sequence[object]]) -> str:
    """Return a CSV text with these lines of cells. No cell can act as a formula in a spreadsheet program."""
    return "".join(",".join(map(_cell, line)) + "\n" for line in lines)


def printable(value: str) -> str:
    """Return a text with control characters escaped, and with `'` before any part that may act as a formula.

    Text after a semicolon or comma is such a part, because a spreadsheet program may split the line there.
    """
    escaped = _ACTING.sub(lambda found: found[0].encode("unicode_escape").decode(), value)
    return _INNER_FORMULA.sub(r"\1'", escaped)


def _cell(value: object) -> str:
    """Return a value as the text of a CSV cell that no spreadsheet program takes for a formula."""
    plain = amount(value) if isinstance(value, float) else str(value)
    plain = "\n".join(map(printable, plain.split("\n")))
    if plain.startswith(_FORMULA) and not _NUMBER.fullmatch(plain):
        plain = f"'{plain}"
    if _HARMLESS.fullmatch(plain) and plain.strip() == plain:
        return plain
    return '"' + plain.replace('"', '""') + '"'


def unguarded(cell: str) -> str:
    """Return a cell without the leading `'`, which keeps spreadsheet programs from reading a cell as a formula."""
    return _GUARD.sub("", cell)


def as_written(cell: str) -> str:
    """Return the text that a cell had before `written` added apostrophes against formulas."""
    return _INNER_GUARD.sub(r"\1", unguarded(cell))


def amount(points: float) -> str:
    """Return points as text with at most two decimals and without trailing zeros."""
    return f"{points:.2f}".rstrip("0").rstrip(".")
