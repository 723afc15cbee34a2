"""Detect whether a person looks at this output, and show that person a result card (HTML) or a changing line of text.

A notebook that a program executes (nbval, papermill, nbconvert) gets plain text or nothing, so that its output is
always the same.
"""

import sys
from collections.abc import Callable
from html import escape
from typing import Any

from labkit.view.card import Card


def is_watched() -> bool:
    """Return whether this code runs in a notebook that a person uses, and not in a program such as papermill.

    The test is whether Jupyter lets a cell ask for input, because only a person can answer. A kernel in a browser
    always counts as used by a person.
    """
    kernel = kernel_here()
    return kernel is not None and bool(getattr(kernel, "_allow_stdin", "pyodide_kernel" in sys.modules))


def is_kernel() -> bool:
    """Return whether this code runs in a notebook's kernel."""
    return kernel_here() is not None


def kernel_here() -> object | None:
    """Return the notebook's kernel, or None outside of a notebook."""
    if "IPython" not in sys.modules:
        return None
    from IPython.core.getipython import get_ipython

    return getattr(get_ipython(), "kernel", None)


def present(card: Card) -> bool:
    """Show a card if a person sees this output. Return whether it was shown; if not, the caller can print text."""
    if not is_watched():
        return False
    from IPython.display import display

    display(card)
    return True


class Line:
    """A line of text with a progress bar in a notebook's output. `display` is IPython's function of this name."""

    def __init__(self, display: Callable[..., Any]) -> None:
        self._display = display
        self._handle: Any = None

    def show(self, words: str, done: int, of: int) -> None:
        """Replace the line by the text `words` and a progress bar that is filled to `done` of `of`."""
        bar = f'<progress max="{of}" value="{min(done, of)}" aria-label="how far the run has come"></progress>'
        self._put(f"{bar} {escape(words, quote=False)}", words)

    def end(self, words: str) -> None:
        """Replace the line by this text without a progress bar. An empty text removes the line."""
        self._put(escape(words, quote=False), words)

    def _put(self, html: str, plain: str) -> None:
        data = {"text/html": f'<div style="font-size:13px">{html}</div>' if html else "", "text/plain": plain}
        if self._handle is None:
            self._handle = self._display(data, raw=True, display_id=True)
        else:
            self._handle.update(data, raw=True)


def line() -> Line:
    """Return a line of text with a progress bar, which appears in the output of the running cell."""
    from IPython.display import display

    return Line(display)
