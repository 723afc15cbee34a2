"""Whether a person looks at this output, and what is shown to one: a card once, or one line that changes.

A notebook that a program runs (nbval, papermill, nbconvert) gets plain text or nothing, so that what it prints is the
same every time.
"""

import sys
from collections.abc import Callable
from html import escape
from typing import Any, Protocol

from labkit.view.card import Card


def is_watched() -> bool:
    """Whether this is a notebook's kernel whose front end has a person who could be asked something.

    JupyterLab lets a cell ask for input; what runs notebooks by itself never does. Nothing else tells the two apart.
    """
    kernel = kernel_here()
    return kernel is not None and bool(getattr(kernel, "_allow_stdin", False))


def is_kernel() -> bool:
    """Whether this is a notebook's kernel, whoever runs it."""
    return kernel_here() is not None


def kernel_here() -> object | None:
    """The kernel of the notebook; None in a terminal. A program that has not loaded IPython is none."""
    if "IPython" not in sys.modules:
        return None
    from IPython.core.getipython import get_ipython

    return getattr(get_ipython(), "kernel", None)


def present(card: Card) -> bool:
    """Shows a card to a person, if there is one; says whether it did, so that a caller can print elsewhere."""
    if not is_watched():
        return False
    from IPython.display import display

    display(card)
    return True


class Line(Protocol):
    """What changes while something runs: words, and how far it has come."""

    def show(self, words: str, done: int, of: int) -> None:
        """Puts these words and this bar in the place of what was shown."""

    def end(self, words: str) -> None:
        """Leaves these words, without a bar; nothing where there are none."""


class DisplayedLine:
    """One line with a bar in a notebook's output. `display` is IPython's, which gives a handle for later changes."""

    def __init__(self, display: Callable[..., Any]) -> None:
        self._display = display
        self._handle: Any = None

    def show(self, words: str, done: int, of: int) -> None:
        """One line and its bar."""
        bar = f'<progress max="{of}" value="{min(done, of)}" aria-label="how far the run has come"></progress>'
        self._put(f"{bar} {escape(words, quote=False)}", words)

    def end(self, words: str) -> None:
        """The last words."""
        self._put(escape(words, quote=False), words)

    def _put(self, html: str, plain: str) -> None:
        data = {"text/html": f'<div style="font-size:13px">{html}</div>' if html else "", "text/plain": plain}
        if self._handle is None:
            self._handle = self._display(data, raw=True, display_id=True)
        else:
            self._handle.update(data, raw=True)


def line() -> Line:
    """A line in the output of the cell that runs."""
    from IPython.display import display

    return DisplayedLine(display)
