"""The sources of the cells that a notebook's kernel has executed; if a cell ran several times, only its last source."""

import sys
from typing import Any

_cells: dict[int, str] = {}
"""The id of the notebook's cell for each execution, by its position in IPython's history."""


def note_cells() -> None:
    """Record from now on which cell each execution belongs to, by JupyterLab's cell id; do nothing outside IPython."""
    if (shell := shell_here()) is not None:
        shell.events.register("pre_run_cell", _note)


def executed() -> list[str] | None:
    """Return the sources of the cells executed so far, oldest first; None outside of a notebook.

    The list has one text for each execution. If a cell was executed several times, only the last of its texts is a
    source, and the earlier ones are empty. Without cell ids from the front end, labkit cannot tell which cells were
    repeated, so the list contains all sources.
    """
    history = getattr(shell_here(), "history_manager", None)
    if history is None:
        return None
    sources = list(map(str, history.input_hist_raw))
    last = {cell: place for place, cell in _cells.items()}
    return ["" if last.get(_cells.get(place, ""), place) != place else each for place, each in enumerate(sources)]


def shell_here() -> Any:
    """Return IPython's shell, or None outside of IPython."""
    ipython = sys.modules.get("IPython")
    return None if ipython is None else ipython.get_ipython()


def _note(info: Any) -> None:
    if info.store_history and (cell := getattr(info, "cell_id", None)):
        _cells[len(shell_here().history_manager.input_hist_raw)] = cell
