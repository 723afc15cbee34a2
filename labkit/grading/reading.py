"""A submitted notebook as data: its code cells and its own statements, and nothing of its outputs.

The file may be anything: no JSON, nested a million times, larger than memory. Each is one sentence of `NotANotebook`.
"""

import hashlib
import zlib
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import TypeVar

import msgspec

from labkit.core.errors import InvalidInput

MOST_BYTES = 16 * 1024**2
MOST_CELLS = 1_000
MOST_SOURCE = 200_000
"""Characters of one cell."""


class NotANotebook(InvalidInput):
    """The file cannot be graded as a notebook; the message is one sentence on why."""


StructT = TypeVar("StructT", bound=msgspec.Struct)


class _Cell(msgspec.Struct):
    cell_type: str = ""
    source: str | list[str] = ""
    metadata: msgspec.Raw = msgspec.Raw(b"{}")


class _Tags(msgspec.Struct):
    tags: object = None
    exercise: object = None


class _Kernel(msgspec.Struct):
    name: object = None
    language: object = None


class _Lab(msgspec.Struct):
    version: object = None
    notebook: object = None


class _Metadata(msgspec.Struct):
    kernelspec: object = None
    labkit: object = None


class _Notebook(msgspec.Struct):
    cells: list[_Cell] | None = None
    nbformat: int = 0
    metadata: msgspec.Raw = msgspec.Raw(b"{}")


@dataclass(frozen=True)
class Cell:
    """A code cell."""

    source: str
    tags: frozenset[str] = frozenset()
    exercise: str | None = None
    """The exercise that the cell claims to answer."""


@dataclass(frozen=True)
class Notebook:
    """The parts of a notebook that count."""

    cells: tuple[Cell, ...]
    sha256: str
    kernel: str = ""
    language: str = ""
    lab_version: str = ""
    name: str = ""
    """The course's notebook that the file claims to be."""


def says_notebook(name: str) -> bool:
    """Whether a file calls itself a notebook, also where a browser has added something to its name."""
    return ".ipynb" in name.lower()


def may_be_notebook(name: str) -> bool:
    """Whether a file of this name may be a notebook: some browsers save notebooks as JSON or text."""
    return says_notebook(name) or PurePath(name.lower()).suffix in {".json", ".txt"}


def store(notebook: Notebook, folder: Path) -> Path:
    """Keeps the parts of a notebook that count, whatever becomes of the file. Equal notebooks are kept once."""
    path = folder / notebook.sha256
    if not path.exists():
        path.write_bytes(zlib.compress(msgspec.json.encode(notebook), 1))
    return path


def stored(path: Path) -> Notebook:
    """A notebook that `store` has kept."""
    return msgspec.json.decode(zlib.decompress(path.read_bytes()), type=Notebook)


def read_file(path: Path) -> Notebook:
    """The notebook in a file, of which no more than allowed is read. Raises `NotANotebook`."""
    try:
        with path.open("rb") as file:
            raw = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise NotANotebook(f"It cannot be read ({error.strerror}).") from None
    return read(raw)


def read(raw: bytes) -> Notebook:
    """The notebook in these bytes. Raises `NotANotebook`."""
    if len(raw) > MOST_BYTES:
        raise NotANotebook(f"It is larger than {MOST_BYTES // 1024**2} MB; clear its outputs and submit it again.")
    try:
        decoded = msgspec.json.decode(raw, type=_Notebook)
        metadata = _typed(decoded.metadata, _Metadata)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise NotANotebook(f"It is not a notebook: {str(error)[:200]}.") from None
    except RecursionError:
        raise NotANotebook("It is not a notebook: it is nested too deeply.") from None
    if decoded.cells is None or decoded.nbformat != 4:
        raise NotANotebook("It is not a notebook of format 4; save it with JupyterLab and submit it again.")
    if len(decoded.cells) > MOST_CELLS:
        raise NotANotebook(f"It has {len(decoded.cells):,} cells, and {MOST_CELLS:,} are allowed.")
    kernel, lab = _kernel(metadata.kernelspec), _lab(metadata.labkit)
    return Notebook(
        tuple(_cell(cell) for cell in decoded.cells if cell.cell_type == "code"),
        hashlib.sha256(raw).hexdigest(),
        _word(kernel.name),
        _word(kernel.language),
        _word(lab.version),
        _word(lab.notebook),
    )


def _cell(cell: _Cell) -> Cell:
    source = cell.source if isinstance(cell.source, str) else "".join(cell.source)
    if len(source) > MOST_SOURCE:
        raise NotANotebook(f"A cell has {len(source):,} characters, and {MOST_SOURCE:,} are allowed.")
    try:
        metadata = _typed(cell.metadata, _Tags)
    except (msgspec.DecodeError, RecursionError):
        metadata = _Tags()
    tags = metadata.tags if isinstance(metadata.tags, list) else []
    return Cell(source, frozenset(filter(None, map(_word, tags))), _word(metadata.exercise) or None)


def _typed(raw: msgspec.Raw, kind: type[StructT]) -> StructT:
    return msgspec.json.decode(raw, type=kind) if bytes(raw).lstrip()[:1] == b"{" else kind()


def _kernel(kernelspec: object) -> _Kernel:
    return _Kernel(kernelspec.get("name"), kernelspec.get("language")) if isinstance(kernelspec, dict) else _Kernel()


def _lab(entry: object) -> _Lab:
    return _Lab(entry.get("version"), entry.get("notebook")) if isinstance(entry, dict) else _Lab()


def _word(value: object) -> str:
    """A short string; empty for a value that is none."""
    return value[:100] if isinstance(value, str) else ""
