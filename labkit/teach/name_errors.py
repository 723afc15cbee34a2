"""A NameError in a notebook of the course says in one sentence which cell comes first.

It stays an error for whatever runs the notebook, and every other error stays Python's own.
"""

import os
import sys
from importlib.util import find_spec
from types import TracebackType
from typing import Any

FILE = "JPY_SESSION_NAME"
"""The variable in which Jupyter's server tells a kernel the notebook's file."""


def install() -> None:
    """Lets a notebook's kernel say it. Elsewhere, or where somebody already listens to errors, nothing happens."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    is_graded = find_spec("labkit.teach.exercises.cells") is None
    if shell is not None and not shell.custom_exceptions and not is_graded:
        shell.set_custom_exc((NameError,), _shown)


def _shown(
    shell: Any, kind: type[NameError], error: NameError, trace: TracebackType, tb_offset: int | None = None
) -> None:
    """Shows the error as IPython would, or with our sentence in place of its lines of code."""
    from labkit.teach.first import comes_first

    if kind is NameError and error.name and _is_of(trace, shell.user_global_ns):
        executed = list(map(str, shell.history_manager.input_hist_raw))
        if sentence := comes_first(error.name, executed, os.environ.get(FILE, "")):
            # IPython's protocol; as for the lab's own errors.
            vars(error)["_render_traceback_"] = lambda: [f"NameError: {sentence}"]
    shell.showtraceback((kind, error, trace), tb_offset=tb_offset, running_compiled_code=True)


def _is_of(trace: TracebackType, namespace: object) -> bool:
    """Whether the code that failed is the notebook's own."""
    while trace.tb_next is not None:
        trace = trace.tb_next
    return trace.tb_frame.f_globals is namespace
