"""Replace the traceback of a `NameError` in a notebook by a sentence that names the cell to run first.

The exception itself remains a `NameError`, also for programs that run the notebook. Other errors are not changed.
"""

import os
import sys
from importlib.util import find_spec
from types import TracebackType
from typing import Any

FILE = "JPY_SESSION_NAME"
"""The environment variable in which Jupyter's server passes the path of the notebook to its kernel."""


def install() -> None:
    """Make IPython show a `NameError` as one sentence that names the cell to run first.

    Does nothing outside of IPython, during grading, or if another exception handler is registered already.
    """
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    is_graded = find_spec("labkit.teach.exercises.cells") is None
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
            # IPython's protocol; as for the lab's own errors.
            vars(error)["_render_traceback_"] = lambda: [f"NameError: {sentence}"]
    shell.showtraceback((kind, error, trace), tb_offset=tb_offset, running_compiled_code=True)


def _is_of(trace: TracebackType, namespace: object) -> bool:
    while trace.tb_next is not None:
        trace = trace.tb_next
    return trace.tb_frame.f_globals is namespace
