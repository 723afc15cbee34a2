"""Reads a submitted notebook as data: its code cells and metadata, without any of its outputs.

The file may be anything: not JSON, nested a million times, or larger than memory. Such a file raises `NotANotebook`.
"""

import codecs
import hashlib
import json
import zlib
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import TypeVar

import msgspec

from labkit.core.errors import InvalidInput
from labkit.teach.shipped import Cell

MOST_BYTES = 16 * 1024**2
MOST_CELLS = 1_000
_WITH_SHEETS = 3
"""The notebook format (`nbformat`) in which cells are inside worksheets."""
_BEGINNING = 1_000
MOST_SOURCE = 200_000
"""The largest number of characters in one cell; a notebook with a longer one is refused."""


class NotANotebook(InvalidInput):
    """Raised if a file cannot be graded as a notebook; the message gives the reason in one sentence."""


StructT = TypeVar("StructT", bound=msgspec.Struct)


class _Cell(msgspec.Struct):
    cell_type: str = ""
    source: str | list[str] = ""
    input: str | list[str] = ""
    """The source of a code cell in version 3 of the notebook format."""
    metadata: msgspec.Raw = msgspec.Raw(b"{}")


class _Sheet(msgspec.Struct):
    cells: list[_Cell] = []


class _Tags(msgspec.Struct):
    tags: object = None
    exercise: object = None


class _Metadata(msgspec.Struct):
    kernelspec: object = None
    labkit: object = None


class _Notebook(msgspec.Struct):
    cells: list[_Cell] | None = None
    worksheets: list[_Sheet] | None = None
    """The cells in format 3, which Jupyter wrote until 2015 and some tools still write."""
    nbformat: float = 0
    metadata: msgspec.Raw = msgspec.Raw(b"{}")


@dataclass(frozen=True)
class Notebook:
    """The parts of a submitted notebook that affect its grade, such as code cells, digest, kernel and name."""

    cells: tuple[Cell, ...]
    sha256: str
    kernel: str = ""
    language: str = ""
    lab_version: str = ""
    name: str = ""
    """The course's notebook from which the file was made, such as `06_sinks`, according to its metadata."""


def says_notebook(name: str) -> bool:
    """Return whether a file name contains `.ipynb`, even if a browser has appended something to it."""
    return ".ipynb" in name.lower()


def may_be_notebook(name: str) -> bool:
    """Return whether a file name contains `.ipynb`, or ends in `.json` or `.txt`, which some browsers write."""
    return says_notebook(name) or PurePath(name.lower()).suffix in {".json", ".txt"}


def store(notebook: Notebook, folder: Path) -> Path:
    """Copy a notebook to a file in `folder`, because the student's own file may change; return the copy's path."""
    path = folder / notebook.sha256
    if not path.exists():
        path.write_bytes(zlib.compress(msgspec.json.encode(notebook), 1))
    return path


def stored(path: Path) -> Notebook:
    """Return the notebook in a file that `store` has written."""
    return msgspec.json.decode(zlib.decompress(path.read_bytes()), type=Notebook)


def read_file(path: Path) -> Notebook:
    """Read a notebook from a file. Raises `NotANotebook` if the file cannot be read or is too large."""
    try:
        with path.open("rb") as file:
            raw = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise NotANotebook(f"The file cannot be read ({error.strerror}); make it readable, and try again.") from None
    return read(raw)


def read(raw: bytes) -> Notebook:
    """Parse the bytes of a notebook file. Raises `NotANotebook` if the file cannot be graded as a notebook."""
    if len(raw) > MOST_BYTES:
        raise NotANotebook(f"The file is larger than {MOST_BYTES // 1024**2} MB; clear its outputs and resubmit it.")
    try:
        decoded = _decoded(_in_utf8(raw))
        metadata = _typed(decoded.metadata, _Metadata)
    except (msgspec.DecodeError, ValueError) as error:
        raise NotANotebook(_why(raw, error)) from None
    except RecursionError:
        raise NotANotebook("The file is not a notebook: its JSON is nested too deeply.") from None
    sheets = decoded.worksheets if decoded.nbformat == _WITH_SHEETS else None
    cells = decoded.cells if sheets is None else [cell for sheet in sheets for cell in sheet.cells]
    if cells is None or decoded.nbformat not in {_WITH_SHEETS, 4}:
        raise NotANotebook("The file is not a notebook of format 3 or 4; save it with JupyterLab and submit it again.")
    if len(cells) > MOST_CELLS:
        raise NotANotebook(
            f"The notebook has {len(cells):,} cells, but at most {MOST_CELLS:,} are allowed; "
            "delete some cells, and submit it again."
        )
    return Notebook(
        tuple(_cell(cell) for cell in cells if cell.cell_type == "code"),
        hashlib.sha256(raw).hexdigest(),
        _entry(metadata.kernelspec, "name"),
        _entry(metadata.kernelspec, "language"),
        _entry(metadata.labkit, "version"),
        _entry(metadata.labkit, "notebook"),
    )


def _in_utf8(raw: bytes) -> bytes:
    if raw.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return raw.decode("utf-16").encode()
    return raw.removeprefix(codecs.BOM_UTF8)


def _decoded(text: bytes) -> _Notebook:
    """Parse a notebook's JSON. Also accept NaN, infinities and lone surrogates, which only Python's JSON allows."""
    try:
        return msgspec.json.decode(text, type=_Notebook)
    except (msgspec.DecodeError, UnicodeDecodeError):
        plain = json.loads(text.decode(errors="replace"), parse_constant=lambda _: None)
        repaired = json.dumps(plain, ensure_ascii=False).encode(errors="replace")
        return msgspec.json.decode(repaired, type=_Notebook)


def _why(raw: bytes, error: Exception) -> str:
    """Return a sentence that explains why a file is not a notebook, for example because it is a web page."""
    start = raw[:_BEGINNING].lstrip().lower()
    kinds = (
        (not start, "The file is empty."),
        (start.startswith(b"<"), "The file is a web page (HTML), not a notebook."),
        (start.startswith(b"pk"), "The file is a ZIP archive or an Office document, not a notebook."),
        (b"\n<<<<<<< " in raw, "The file contains the marks of a merge conflict of Git; resolve the conflict first."),
        (
            start.startswith(b"{") and not raw.rstrip().endswith(b"}"),
            "The file ends in the middle, so it was not saved or uploaded completely; submit it again.",
        ),
    )
    return next((why for holds, why in kinds if holds), f"The file is not a notebook: {str(error)[:200]}.")


def _cell(cell: _Cell) -> Cell:
    lines = cell.source or cell.input
    source = lines if isinstance(lines, str) else "".join(lines)
    if len(source) > MOST_SOURCE:
        raise NotANotebook(
            f"A cell has {len(source):,} characters, but at most {MOST_SOURCE:,} are allowed; shorten it."
        )
    try:
        metadata = _typed(cell.metadata, _Tags)
    except (msgspec.DecodeError, RecursionError):
        metadata = _Tags()
    tags = metadata.tags if isinstance(metadata.tags, list) else []
    return Cell(source, frozenset(filter(None, map(_word, tags))), _word(metadata.exercise) or None)


def _typed(raw: msgspec.Raw, kind: type[StructT]) -> StructT:
    return msgspec.json.decode(raw, type=kind) if bytes(raw).lstrip()[:1] == b"{" else kind()


def _entry(table: object, key: str) -> str:
    return _word(table.get(key)) if isinstance(table, dict) else ""


def _word(value: object) -> str:
    return value[:100] if isinstance(value, str) else ""
