"""Start drivers in the background for a notebook that crashes real jobs, so that its first crash is quick."""

import contextlib
import os
import sys
import threading
from pathlib import Path

from labkit.teach.name_errors import FILE

CALLS = ("lab.crash(", "lab.panel(")
"""The calls in a notebook's cells that start drivers."""
MOST_BYTES = 5_000_000
"""The size of a notebook above which nobody looks for these calls in it."""


def warm_up() -> None:
    """Start Spark drivers in the background if the notebook of this kernel calls `lab.crash` or `lab.panel`.

    Does nothing if the notebook is unknown, or if no person is watching.
    """
    path = Path(os.environ.get(FILE, ""))
    if "ipykernel" not in sys.modules or not _crashes(path):
        return
    from labkit.view.front_end import is_watched

    # Asked here, because only a cell's own thread knows whether a person runs it.
    if is_watched():
        threading.Thread(target=_start, name="labkit opened notebook", daemon=True).start()


def _crashes(notebook: Path) -> bool:
    try:
        if notebook.suffix != ".ipynb" or notebook.stat().st_size > MOST_BYTES:
            return False
        text = notebook.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return False
    return any(call in text for call in CALLS)


def _start() -> None:
    # Without an extra there are no drivers, and the cell that needs them says so.
    with contextlib.suppress(ImportError):
        from labkit.runs.warm_drivers import warm_drivers

        if drivers := warm_drivers():
            drivers.want()
