"""The notebooks as learners get them: within an installed package, or beside it in a checkout."""

import json
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

PACKAGE = Path(__file__).parents[1]
STEM = re.compile(r"\d\d[a-z]?_\w+")
"""How a notebook of the course is called: a number, perhaps a letter, and a word. By name they lie in the course's
order.
"""

_HEADING = re.compile(r"^##+ +(.+?)\s*$", re.MULTILINE)


def notebooks() -> Path:
    """The folder with the notebooks as they were released; where a copy has none, there is no such folder."""
    inside = PACKAGE / "notebooks"
    return inside if inside.is_dir() else PACKAGE.parent / "notebooks"


def of_course(folder: Path, suffix: str = ".ipynb") -> list[Path]:
    """The notebooks of the course in a folder, or their sources, in the course's order."""
    found = (path for path in folder.glob(f"*{suffix}") if STEM.fullmatch(path.stem))
    return sorted(found, key=lambda path: path.stem)


class PlainCell(NamedTuple):
    """A code cell of a notebook."""

    source: str
    tags: frozenset[str] = frozenset()
    exercise: str | None = None


@cache
def released_cells(notebook: str) -> tuple[PlainCell, ...] | None:
    """The code cells of a notebook as it was released; None where it is not there or cannot be read."""
    try:
        return code_cells((notebooks() / f"{notebook}.ipynb").read_text(encoding="utf-8"))
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


class PlacedCell(NamedTuple):
    """A code cell with the heading that it stands under; the first heading, which is the notebook's, is empty."""

    source: str
    heading: str


@cache
def placed_cells(notebook: str) -> tuple[PlacedCell, ...]:
    """The code cells of a notebook as it was released; none where it is not there or cannot be read."""
    try:
        text = (notebooks() / f"{notebook}.ipynb").read_text(encoding="utf-8")
        return tuple(_placed(json.loads(text)["cells"]))
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return ()


def _placed(cells: list[dict[str, Any]]) -> Iterator[PlacedCell]:
    heading = ""
    for cell in cells:
        source = "".join(cell["source"])
        if cell["cell_type"] == "code":
            yield PlacedCell(source, heading)
        elif found := _HEADING.findall(source):
            heading = re.sub("[*`]", "", found[-1])


def code_cells(text: str) -> tuple[PlainCell, ...]:
    """The code cells of a notebook's text. Raises `ValueError`, `KeyError`, `TypeError` where it is no notebook."""
    return tuple(
        PlainCell("".join(cell["source"]), frozenset(map(str, cell.get("metadata", {}).get("tags", ()))))
        for cell in json.loads(text)["cells"]
        if cell["cell_type"] == "code"
    )
