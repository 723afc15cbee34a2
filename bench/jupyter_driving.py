"""Drive an open JupyterLab through a page of playwright, as a learner would: open, run, save, read."""

import json
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import nbformat
from nbformat import v4
from playwright.sync_api import Error
from playwright.sync_api import TimeoutError as NotInTime

from bench.jupyter_server import Server

MILLISECONDS = 1000
PATIENCE = 180
"""The seconds for JupyterLab to be ready and its kernel to be idle, on a machine whose cores are busy."""

READY = "() => window.jupyterapp?.shell.currentWidget?.context?.isReady"
_STATUS = "() => String(window.jupyterapp?.shell.currentWidget?.sessionContext?.session?.kernel?.status)"
IDLE = "() => window.jupyterapp.shell.currentWidget.sessionContext.session?.kernel?.status === 'idle'"
_ASK = """() => {
  window.labkitAnswered = null;
  const { kernel } = window.jupyterapp.shell.currentWidget.sessionContext.session;
  kernel.requestExecute({ code: "", silent: true }).done.then(() => { window.labkitAnswered = true; });
}"""
_RUN = """() => {
  window.labkitRan = null;
  const ended = (word) => () => { window.labkitRan = word; };
  window.jupyterapp.commands.execute("notebook:run-all-cells").then(ended("ran"), ended("failed"));
}"""
_SAVE = "() => window.jupyterapp.shell.currentWidget.context.save()"
_CELLS = "() => window.jupyterapp.shell.currentWidget.content.widgets.map((cell) => cell.model.sharedModel.getSource())"


def write_notebook(path: Path, sources: Sequence[str]) -> None:
    """Write a notebook of code cells; a source that begins with `# ` or `<` becomes a text cell."""
    cells = [v4.new_markdown_cell(each) if each.startswith(("# ", "<")) else v4.new_code_cell(each) for each in sources]
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    nbformat.write(v4.new_notebook(cells=cells, metadata={"kernelspec": kernel}), path)


def open_notebook(page: Any, server: Server, name: str) -> None:
    """Open a notebook and no other tab, and wait until its kernel has answered this page on every channel.

    It is not enough that JupyterLab shows the kernel as idle: the page may still be connecting the channels, and
    would lose messages that the kernel publishes in this time.
    """
    page.goto(server.page(name))
    try:
        page.wait_for_function(READY, timeout=PATIENCE * MILLISECONDS)
        page.wait_for_function(IDLE, timeout=PATIENCE * MILLISECONDS)
        page.evaluate(_ASK)
        page.wait_for_function("() => window.labkitAnswered", timeout=PATIENCE * MILLISECONDS)
    except NotInTime as error:
        raise AssertionError(f"{name} did not open; its kernel is {_status(page)}; {server.said()}") from error


def _status(page: Any) -> object:
    try:
        return page.evaluate(_STATUS)
    except Error:
        return "unknown"


def end_kernels(server: Server) -> None:
    """End every kernel of the server, as "Shut Down All Kernels" does, and wait until they have ended."""
    with urllib.request.urlopen(server.api("sessions"), timeout=PATIENCE) as answer:  # noqa: S310  # our own server
        sessions = json.load(answer)
    for session in sessions:
        ending = urllib.request.Request(server.api(f"sessions/{session['id']}"), method="DELETE")  # noqa: S310  # the same
        urllib.request.urlopen(ending, timeout=PATIENCE).close()  # noqa: S310  # the same


def begin_run(page: Any) -> None:
    """Start Run All, without waiting for its end."""
    page.evaluate(_RUN)


def run_all(page: Any, seconds: float = PATIENCE) -> None:
    """Run all cells, and wait at most `seconds` until the last one has ended."""
    begin_run(page)
    page.wait_for_function("() => window.labkitRan", timeout=seconds * MILLISECONDS)


def save(page: Any) -> None:
    """Save the notebook."""
    page.evaluate(_SAVE)


def cells(page: Any) -> list[str]:
    """Return the present sources of all cells."""
    result: list[str] = page.evaluate(_CELLS)
    return result


def selected_cell(page: Any) -> int:
    """Return the index of the cell on which the notebook's commands would act."""
    result: int = page.evaluate("() => window.jupyterapp.shell.currentWidget.content.activeCellIndex")
    return result


def raised(page: Any) -> list[str]:
    """Return the text of each error or standard error output that the page shows."""
    shown = '[data-mime-type="application/vnd.jupyter.error"], [data-mime-type="application/vnd.jupyter.stderr"]'
    result: list[str] = page.locator(shown).all_inner_texts()
    return result
