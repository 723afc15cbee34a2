"""Every notebook of the course as a learner sees it: Run All in a real JupyterLab, in both themes and three widths,
and by keys alone.

A slow one is run only here, as its checked copy: what its cells say is compared as nbval compares it.
"""

import json
import shutil
from pathlib import Path

import nbformat
import pytest
from choosing import variant_but
from keyboard import unreached
from lab_pages import opened_page
from outputs import said

from bench.jupyter_driving import open_notebook, raised, run_all

pytestmark = [pytest.mark.browser, pytest.mark.slow]

FOLDER = Path(__file__).parents[2] / "notebooks"
CHECKED = FOLDER.parent / "checked"
BY_KEYS = ("00_start", "11_side_effects")
"""Notebooks through which Tab is pressed, some hundred times in each: with questions, figures, players and runs of
Spark.
"""
MINUTES_LONG = ("07_crash_spark", "14_capstone", "08_postgres", "09_kafka")
"""Notebooks with so many runs of Spark or a server that they begin first."""
IN_SHORT = ("07_crash_spark", "14_capstone", "00_start")
"""The slow notebooks that continuous integration runs; the nightly workflow runs all."""
NOTEBOOKS = [*MINUTES_LONG, *sorted({path.stem for path in FOLDER.glob("*.ipynb")} - {*MINUTES_LONG})]
MINUTES = 1500.0
WIDTHS = {"1280": 1280, "1024": 1024, "200 percent": 640}
MOST_BYTES = 50_000
MOST_TABS = 1_500
"""Presses of the Tab key after which everything in a notebook must have been reached."""

CUT = """() => [...document.querySelectorAll('.jp-OutputArea-output :is(button, label, td, th, h3, p, li, summary)')]
  .filter((each) => {
    const box = each.getBoundingClientRect(), area = each.closest('.jp-OutputArea-output').getBoundingClientRect();
    const scrolls = (node) => node && !node.matches('.jp-OutputArea-output')
      && (['auto', 'scroll'].includes(getComputedStyle(node).overflowX) || scrolls(node.parentElement));
    return box.width && !scrolls(each.parentElement) && (box.right > area.right + 1 || box.left < area.left - 1);
  }).map((each) => each.textContent.slice(0, 60))"""


def is_slow(name: str) -> bool:
    notebook = json.loads((CHECKED / f"{name}.ipynb").read_bytes())
    return bool(notebook["metadata"]["labkit"].get("slow", False))


def serious(page) -> list[tuple[str, str]]:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="install the extra dev: axe is missing")
    found = axe.Axe().run(page, context=".jp-OutputArea-output").response["violations"]
    return [(each["id"], each["nodes"][0]["html"][:200]) for each in found if each["impact"] in ("serious", "critical")]


def sizes_of_cards(page) -> list[int]:
    return page.evaluate(
        "() => window.jupyterapp.shell.currentWidget.content.model.sharedModel.cells"
        ".flatMap((cell) => cell.cell_type === 'code' ? cell.getOutputs() : [])"
        ".map((output) => [].concat(output.data?.['text/html'] ?? '').join(''))"
        ".filter((html) => html.includes('class=\"lkc\"')).map((html) => html.length)"
    )


OUTPUTS = """() => window.jupyterapp.shell.currentWidget.content.model.sharedModel.cells
  .map((cell) => cell.cell_type === 'code' ? cell.getOutputs() : [])"""


def others(page, notebook) -> list[tuple[str, str, str]]:
    """The cells that say something else than their checked copy: their source, what they say, and what they should.

    What `lab.check` answers a person is a card, and not the text that nbval sees.
    """
    found, compared = [], 0
    for cell, came in zip(notebook.cells, page.evaluate(OUTPUTS), strict=True):
        tags = cell.metadata.get("tags", [])
        if "nbval-check-output" in tags and "check" not in tags:
            compared += 1
            if said(came) != said(cell.outputs):
                found.append((cell.source, said(came), said(cell.outputs)))
    assert compared >= 3
    return found


@pytest.mark.parametrize("name", variant_but(IN_SHORT, filter(is_slow, NOTEBOOKS)))
def test_a_notebook_runs_and_can_be_read(name, java, lab_server, browser) -> None:
    notebook = nbformat.read(CHECKED / f"{name}.ipynb", as_version=4)
    copy = CHECKED if is_slow(name) else FOLDER
    shutil.copy(copy / f"{name}.ipynb", lab_server.folder / f"{name}.ipynb")
    # What another test has answered in this folder would stand beside what came.
    (lab_server.folder / "labkit-progress.json").unlink(missing_ok=True)
    with opened_page(browser, high=12_000) as told:
        page = told.page
        open_notebook(page, lab_server, f"{name}.ipynb")
        run_all(page, MINUTES)
        assert raised(page) == []
        assert not is_slow(name) or others(page, notebook) == []
        assert told.dialogs() == []
        code = nbformat.read(FOLDER / f"{name}.ipynb", as_version=4).cells
        asks = sum(each.source.count("lab.ask(") for each in code)
        told.wait_for(".lk-ask fieldset", asks)
        sizes = sizes_of_cards(page)
        assert sizes
        assert max(sizes) <= MOST_BYTES
        for theme in ("Light", "Dark"):
            page.evaluate(
                "theme => window.jupyterapp.commands.execute('apputils:change-theme', { theme })", f"JupyterLab {theme}"
            )
            light = "true" if theme == "Light" else "false"
            page.wait_for_function(f"() => document.body.dataset.jpThemeLight === '{light}'")
            assert serious(page) == [], theme
            told.keep(f"{name}-{theme.lower()}")
        if name in BY_KEYS:
            # As on a screen: where all cells are in view at once, every key has all of them drawn anew.
            page.set_viewport_size({"width": 1280, "height": 900})
            assert unreached(page, MOST_TABS) == []
        page.evaluate("() => window.jupyterapp.shell.collapseLeft()")
        for words, width in WIDTHS.items():
            page.set_viewport_size({"width": width, "height": 12_000})
            assert page.evaluate(CUT) == [], words
