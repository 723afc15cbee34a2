"""Driving an open JupyterLab through a browser's page, as a learner's hands would: open, run, save, read.

For tests and measurements; the page is playwright's.
"""

import json
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import nbformat
from nbformat import v4

from bench.jupyter_server import Server

MILLISECONDS = 1000
PATIENCE = 60
"""Seconds for JupyterLab to be ready and its kernel to be idle."""

_READY = "() => window.jupyterapp?.shell.currentWidget?.context?.isReady"
_IDLE = "() => window.jupyterapp.shell.currentWidget.sessionContext.session?.kernel?.status === 'idle'"
_RUN = """() => {
  window.labkitRan = null;
  const ended = (word) => () => { window.labkitRan = word; };
  window.jupyterapp.commands.execute("notebook:run-all-cells").then(ended("ran"), ended("failed"));
}"""
_SAVE = "() => window.jupyterapp.shell.currentWidget.context.save()"
_CELLS = "() => window.jupyterapp.shell.currentWidget.content.widgets.map((cell) => cell.model.sharedModel.getSource())"


def write_notebook(path: Path, sources: Sequence[str]) -> None:
    """A notebook of code cells; a source that begins with # and a blank, or with HTML, is text."""
    cells = [v4.new_markdown_cell(each) if each.startswith(("# ", "<")) else v4.new_code_cell(each) for each in sources]
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    nbformat.write(v4.new_notebook(cells=cells, metadata={"kernelspec": kernel}), path)


def open_notebook(page: Any, server: Server, name: str) -> None:
    """Opens a notebook alone and waits until its kernel is idle."""
    page.goto(server.page(name))
    page.wait_for_function(_READY, timeout=PATIENCE * MILLISECONDS)
    page.wait_for_function(_IDLE, timeout=PATIENCE * MILLISECONDS)


def end_kernels(server: Server) -> None:
    """Ends every kernel of the server, as "Shut Down All Kernels" does, and waits until it has."""
    with urllib.request.urlopen(server.api("sessions"), timeout=PATIENCE) as answer:  # noqa: S310  # our own server
        sessions = json.load(answer)
    for session in sessions:
        ending = urllib.request.Request(server.api(f"sessions/{session['id']}"), method="DELETE")  # noqa: S310  # the same
        urllib.request.urlopen(ending, timeout=PATIENCE).close()  # noqa: S310  # the same


def begin_run(page: Any) -> None:
    """Run All, without waiting for its end."""
    page.evaluate(_RUN)


def run_all(page: Any, seconds: float = PATIENCE) -> None:
    """Run All, and waits until the last cell has ended."""
    begin_run(page)
    page.wait_for_function("() => window.labkitRan", timeout=seconds * MILLISECONDS)


def save(page: Any) -> None:
    """Saves the notebook."""
    page.evaluate(_SAVE)


def cells(page: Any) -> list[str]:
    """The sources of all cells as they are now."""
    result: list[str] = page.evaluate(_CELLS)
    return result


def selected_cell(page: Any) -> int:
    """The number of the cell that the notebook's own commands would act on."""
    result: int = page.evaluate("() => window.jupyterapp.shell.currentWidget.content.activeCellIndex")
    return result


def raised(page: Any) -> list[str]:
    """What cells have raised, as it is shown."""
    shown = '[data-mime-type="application/vnd.jupyter.error"], [data-mime-type="application/vnd.jupyter.stderr"]'
    result: list[str] = page.locator(shown).all_inner_texts()
    return result
