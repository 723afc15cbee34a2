"""Prepare a notebook's kernel: explain a `NameError` in one sentence, and start Spark drivers before they are needed.

The sentence names the cell to run first. The exception itself remains a `NameError`, also for programs that run the
notebook, and other errors are not changed.
"""

import contextlib
import os
import sys
import threading
from importlib.util import find_spec
from pathlib import Path
from types import TracebackType
from typing import Any

from labkit.teach.executed import shell_here

FILE = "JPY_SESSION_NAME"
"""The environment variable in which Jupyter's server passes the path of the notebook to its kernel."""
CALLS = ("lab.crash(", "lab.panel(")
"""The calls that start Spark drivers, as a notebook's cells write them."""
MOST_BYTES = 5_000_000
"""The size in bytes above which a notebook is not searched for these calls."""


def install() -> None:
    """Make IPython show a `NameError` as one sentence that names the cell to run first.

    Does nothing during grading, or if another exception handler is registered already.
    """
    shell, is_graded = shell_here(), find_spec("labkit.teach.exercises.cells") is None
    if shell is not None and not shell.custom_exceptions and not is_graded:
        shell.set_custom_exc((NameError,), _shown)


def _shown(
    shell: Any, kind: type[NameError], error: NameError, trace: TracebackType, tb_offset: int | None = None
) -> None:
    """Display a `NameError` as one sentence if another cell of the course defines the name, else as IPython does."""
    from labkit.teach.first import comes_first

    if kind is NameError and error.name and _is_of(trace, shell.user_global_ns):
        executed = list(map(str, shell.history_manager.input_hist_raw))
        if sentence := comes_first(error.name, executed, os.environ.get(FILE, "")):
            # IPython displays the lines that this function returns, as it does for labkit's own errors.
            vars(error)["_render_traceback_"] = lambda: [f"NameError: {sentence}"]
    shell.showtraceback((kind, error, trace), tb_offset=tb_offset, running_compiled_code=True)


def _is_of(trace: TracebackType, namespace: object) -> bool:
    while trace.tb_next is not None:
        trace = trace.tb_next
    return trace.tb_frame.f_globals is namespace


def warm_up() -> None:
    """Start Spark drivers in the background if a person has the notebook open and its text contains one of `CALLS`."""
    path = Path(os.environ.get(FILE, ""))
    if "ipykernel" not in sys.modules or not _crashes(path):
        return
    from labkit.view.front_end import is_watched

    # Ask here, because only the thread that runs a cell knows whether a person watches it.
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
    # If the extra with Spark is not installed, the cell that needs a driver reports it.
    with contextlib.suppress(ImportError):
        from labkit.runs.warm_drivers import warm_drivers

        if drivers := warm_drivers():
            drivers.want()
