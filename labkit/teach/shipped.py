"""Find and read the released notebooks, inside an installed package or next to it in a checkout."""

import json
import re
from functools import cache
from pathlib import Path
from typing import NamedTuple

PACKAGE = Path(__file__).parents[1]
STEM = re.compile(r"\d\d[a-z]?_\w+")
"""The names of the course's notebooks: two digits, perhaps a letter, and words. Sorting gives their order."""

_HEADING = re.compile(r"^##+ +(.+?)\s*$", re.MULTILINE)


def notebooks() -> Path:
    """Return the path of the folder with the original notebooks; it does not exist if none are installed."""
    inside = PACKAGE / "notebooks"
    return inside if inside.is_dir() else PACKAGE.parent / "notebooks"


def of_course(folder: Path, suffix: str = ".ipynb") -> list[Path]:
    """Return the sorted paths of the course's notebooks in a folder; with the suffix `.py`, those of their sources."""
    paths = (path for path in folder.glob(f"*{suffix}") if STEM.fullmatch(path.stem))
    return sorted(paths, key=lambda path: path.stem)


class Cell(NamedTuple):
    """A code cell of a notebook: its text, its tags, and the exercise that its metadata names."""

    source: str
    tags: frozenset[str] = frozenset()
    exercise: str | None = None
    heading: str = ""
    """The nearest heading above the cell; empty if only the notebook's title is above it."""


@cache
def released_cells(notebook: str) -> tuple[Cell, ...] | None:
    """Return the code cells of an original notebook of the course; None if it is missing or unreadable."""
    try:
        return code_cells((notebooks() / f"{notebook}.ipynb").read_text(encoding="utf-8"))
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def code_cells(text: str) -> tuple[Cell, ...]:
    """Return a notebook's code cells. Raises `ValueError`, `KeyError` or `TypeError` if the text is no notebook."""
    cells, heading = list[Cell](), ""
    for cell in json.loads(text)["cells"]:
        if cell["cell_type"] == "code":
            metadata = cell.get("metadata", {})
            exercise = metadata.get("exercise")
            tags = frozenset(map(str, metadata.get("tags", ())))
            cells.append(Cell("".join(cell["source"]), tags, exercise if isinstance(exercise, str) else None, heading))
        elif headings := _HEADING.findall("".join(cell.get("source", ""))):
            heading = re.sub("[*`]", "", headings[-1])
    return tuple(cells)
