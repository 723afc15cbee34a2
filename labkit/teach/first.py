"""Find the cell of a notebook that defines a missing name, so that a `NameError` can say what to run first.

Learners rename their copies, so the executed cells identify the notebook. The file name decides only if no
executed cell occurs in exactly one released notebook.
"""

import difflib
from collections import Counter
from collections.abc import Sequence
from pathlib import PurePath

from labkit.core.words import ordinal
from labkit.teach.exercises.cells import bound, normal
from labkit.teach.shipped import Cell, notebooks, of_course, released_cells

_LIKE = 0.6
"""The smallest similarity (`difflib`), from 0 to 1, at which an edited cell counts as the released one."""


def comes_first(name: str, executed: Sequence[str], file: str = "") -> str:
    """Return a sentence that says which cell defines `name` and must run first; empty if no cell defines it.

    The last of the `executed` cells is the one that failed because `name` was not defined. `file` is the notebook's
    file name.
    """
    cells = released_cells(_notebook(executed, file)) or ()
    own = _place(executed[-1], cells) if executed else None
    gives_itself = bool(executed) and name in bound(executed[-1])
    giving = [
        place for place, cell in enumerate(cells) if name in bound(cell.source) and not (place == own and gives_itself)
    ]
    if not giving:
        return ""
    above = [place for place in giving if own is not None and place < own]
    place = above[-1] if above else giving[0]
    return f"`{name}` comes from {_called(cells, place)}: run that cell first."


def _notebook(executed: Sequence[str], file: str) -> str:
    """Return the name of the released notebook that contains most of the executed cells.

    Cells that occur in several notebooks do not count. If no cell is left, returns the notebook whose name is part of
    `file`, or an empty text.
    """
    cells = {path.stem: released_cells(path.stem) or () for path in of_course(notebooks())}
    released = {name: {normal(cell.source) for cell in of_it} for name, of_it in cells.items()}
    common = Counter(source for sources in released.values() for source in sources)
    own = {source for source in map(normal, executed) if common[source] == 1}
    best = max(released, key=lambda name: len(own & released[name]), default="")
    if own:
        return best
    return max((name for name in released if name in PurePath(file).stem), default="")


def _place(source: str, cells: Sequence[Cell]) -> int | None:
    released = [normal(cell.source) for cell in cells]
    close = difflib.get_close_matches(normal(source), released, n=1, cutoff=_LIKE)
    return released.index(close[0]) if close else None


def _called(cells: Sequence[Cell], place: int) -> str:
    heading = cells[place].heading
    neighbours = [number for number, cell in enumerate(cells) if cell.heading == heading]
    if not heading:
        return f"the {ordinal(place + 1)} code cell"
    number = f"{ordinal(neighbours.index(place) + 1)} " if len(neighbours) > 1 else ""
    return f"the {number}cell under *{heading}*"
