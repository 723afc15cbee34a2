"""Read a user's input files line by line: validated, limited in size, with errors that name the line and the remedy."""

from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec

from labkit.core.errors import InvalidInput

MAX_LINE = 16 * 1024 * 1024
"""The maximum length of an accepted line in bytes."""


class LogLine(msgspec.Struct, forbid_unknown_fields=True):
    """A line of an input log in JSON Lines, such as `{"word": "hello"}`. A line's offset is its number, from 0."""

    word: str


_decoder = msgspec.json.Decoder(LogLine)
_REMEDY = 'write one JSON object on each line, for example {"word": "hello"}'


def decode_line(raw: bytes, path: Path, offset: int) -> str:
    """Return the word in `raw`, which is line `offset` (from 0) of the input log `path`.

    Raises `InvalidInput` unless the line has the form of a `LogLine`, such as `{"word": "hello"}`.
    """
    _refuse_long(raw, path, offset)
    try:
        word = _decoder.decode(raw).word
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise InvalidInput(f"{path}, line {offset + 1}: {_reason(raw, error)}; {_REMEDY}.") from None
    if not word:
        raise InvalidInput(f"{path}, line {offset + 1}: the field `word` is empty; {_REMEDY}.")
    return word


def _refuse_long(raw: bytes, path: Path, offset: int) -> None:
    if len(raw) > MAX_LINE:
        raise InvalidInput(f"{path}, line {offset + 1}: this line is longer than 16 MB; split it into shorter lines.")


def _reason(raw: bytes, error: Exception) -> str:
    if b"\0" in raw:
        return "binary data, not text"
    try:
        raw.decode("utf-8")
    except UnicodeDecodeError as bad:
        return f"not UTF-8 (byte {bad.start + 1} of the line)"
    return "an empty line" if not raw.strip() else str(error)


def read_log(path: Path) -> Iterator[str]:
    """Yield the words of an input log. Raises `InvalidInput` if the file is missing, empty or malformed."""
    return _decoded(path, decode_line, _REMEDY)


def read_text(path: Path) -> Iterator[str]:
    """Yield the lines of a text file. Raises `InvalidInput` if the file is missing, empty, or not UTF-8 text."""
    return _decoded(path, decode_text, "name a text with words in it")


def _decoded(path: Path, decode: Callable[[bytes, Path, int], str], remedy: str) -> Iterator[str]:
    offset = -1
    for offset, raw in enumerate(log_lines(path)):
        yield decode(raw, path, offset)
    if offset < 0:
        raise InvalidInput(f"{path}: the input is empty; {remedy}.")


def decode_text(raw: bytes, path: Path, offset: int) -> str:
    """Return the text in `raw`, which is line `offset` (from 0) of the file `path`.

    Raises `InvalidInput` if the line is not UTF-8 text or is too long.
    """
    _refuse_long(raw, path, offset)
    try:
        line = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise InvalidInput(f"{path}, line {offset + 1}: {_reason(raw, error)}; save the text as UTF-8.") from None
    if "\0" in line:
        raise InvalidInput(f"{path}, line {offset + 1}: binary data, not text; name a text file in UTF-8.")
    return line


def log_lines(path: Path) -> Iterator[bytes]:
    """Yield the lines of a file as bytes, without line ends. Raises `InvalidInput` if the file cannot be read.

    A line longer than `MAX_LINE` bytes is cut to at most `MAX_LINE` + 2 bytes, so the caller can see that it was too
    long.
    """
    try:
        with path.open("rb") as file:
            while raw := file.readline(MAX_LINE + 2):
                yield raw.removesuffix(b"\n")
    except FileNotFoundError:
        raise InvalidInput(f"{path}: there is no such file; name the input log with --input FILE.") from None
    except IsADirectoryError:
        raise InvalidInput(f"{path}: this is a folder; name a file with --input FILE.") from None
    except OSError as error:
        raise InvalidInput(f"{path}: this file cannot be read ({error.strerror}); name a readable file.") from None
