"""Which cell comes first, where a cell of the course uses a name that another cell would have given.

Which notebook it is, the cells that were run say, since learners keep copies under names of their own; where all of
those are new, the file's name says it.
"""

import difflib
from collections import Counter
from collections.abc import Sequence
from pathlib import PurePath

from labkit.core.words import ordinal
from labkit.teach.exercises.cells import bound, normal
from labkit.teach.shipped import PlacedCell, notebooks, of_course, placed_cells

_LIKE = 0.6
"""A cell that was edited is taken for the released one that it is at least so much alike."""


def comes_first(name: str, executed: Sequence[str], file: str = "") -> str:
    """The sentence on the cell that gives a name; empty where no cell of this notebook does.

    `executed` are the sources of the cells that were run, the one that failed last; `file` is the notebook's.
    """
    cells = placed_cells(_notebook(executed, file))
    here = _place(executed[-1], cells) if executed else None
    gives_itself = bool(executed) and name in bound(executed[-1])
    giving = [
        place for place, cell in enumerate(cells) if name in bound(cell.source) and not (place == here and gives_itself)
    ]
    if not giving:
        return ""
    above = [place for place in giving if here is not None and place < here]
    place = above[-1] if above else giving[0]
    return f"`{name}` comes from {_called(cells, place)}: run that cell first."


def _notebook(executed: Sequence[str], file: str) -> str:
    """The notebook that most of these cells are from, or that a file is called after; empty where that is none."""
    released = {path.stem: {normal(cell.source) for cell in placed_cells(path.stem)} for path in of_course(notebooks())}
    common = Counter(source for sources in released.values() for source in sources)
    own = {source for source in map(normal, executed) if common[source] == 1}
    found = max(released, key=lambda name: len(own & released[name]), default="")
    if own:
        return found
    return max((name for name in released if name in PurePath(file).stem), default="")


def _place(source: str, cells: Sequence[PlacedCell]) -> int | None:
    """Which of the cells it is, perhaps edited."""
    released = [normal(cell.source) for cell in cells]
    close = difflib.get_close_matches(normal(source), released, n=1, cutoff=_LIKE)
    return released.index(close[0]) if close else None


def _called(cells: Sequence[PlacedCell], place: int) -> str:
    """A cell by its heading, and by its number where several stand there."""
    heading = cells[place].heading
    beside = [number for number, cell in enumerate(cells) if cell.heading == heading]
    if not heading:
        return f"the {ordinal(place + 1)} code cell"
    number = f"{ordinal(beside.index(place) + 1)} " if len(beside) > 1 else ""
    return f"the {number}cell under *{heading}*"
