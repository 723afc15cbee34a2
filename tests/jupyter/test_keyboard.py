"""A whole notebook without a mouse: a question, Run All, the folds of a card, a player; and everything can be reached.

Nothing here clicks or calls a command of JupyterLab: scripts only look at what keys have done.
"""

import shutil
from pathlib import Path

import nbformat
import pytest
from keyboard import go_to, unreached
from waiting import until

from bench.jupyter_driving import open_notebook, raised, selected_cell

pytestmark = [pytest.mark.browser, pytest.mark.slow]

FOLDER = Path(__file__).parents[2] / "notebooks"
MINUTES = 600
QUESTIONS = {"06_sinks": "06-hello"}
MOST = 400
"""Presses of the Tab key after which everything must have been reached."""
PALETTE = "Control+Shift+c"
STEPPER = "[aria-roledescription=stepper]"

PLACE = "() => document.activeElement.closest('.lk').querySelector('.lk-place').textContent.trim()"
FOCUSED = "selector => document.activeElement.matches(selector)"
COUNTED = """() => window.jupyterapp.shell.currentWidget.content.widgets
  .map((cell) => cell.model.sharedModel.execution_count ?? null)"""


def tab_to(page, selector: str) -> None:
    """Presses Tab until an element has the focus that a selector names."""
    for _ in range(MOST):
        page.keyboard.press("Tab")
        if page.evaluate(FOCUSED, selector):
            return
    pytest.fail(f"Tab never reaches {selector}")


def run_all(page, codes: list[int]) -> None:
    """Runs every cell by the palette of commands, and waits until each has been run again."""
    before = page.evaluate(COUNTED)
    page.keyboard.press(PALETTE)
    page.locator(".lm-CommandPalette-input:focus").wait_for()
    page.keyboard.type("Run All Cells")
    page.locator(".lm-CommandPalette-item.lm-mod-active", has_text="Run All Cells").first.wait_for()
    page.keyboard.press("Enter")
    until(
        lambda: all((page.evaluate(COUNTED)[each] or 0) > (before[each] or 0) for each in codes),
        "every cell to be run",
        MINUTES,
    )
    page.wait_for_function(
        "() => window.jupyterapp.shell.currentWidget.sessionContext.session.kernel.status === 'idle'",
        timeout=MINUTES * 1000,
    )


@pytest.mark.parametrize("name", QUESTIONS)
def test_keys_alone_are_enough_for_a_notebook(name, java, lab_server, lab_page) -> None:
    page, question = lab_page.page, QUESTIONS[name]
    shutil.copy(FOLDER / f"{name}.ipynb", lab_server.folder / f"{name}.ipynb")
    (lab_server.folder / "labkit-progress.json").unlink(missing_ok=True)
    cells = nbformat.read(FOLDER / f"{name}.ipynb", as_version=4).cells
    codes = [place for place, each in enumerate(cells) if each.cell_type == "code"]
    asks = next(place for place in codes if f'lab.ask("{question}")' in cells[place].source)
    open_notebook(page, lab_server, f"{name}.ipynb")

    # To the question, cell by cell, as one reads.
    while selected_cell(page) <= asks:
        page.keyboard.press("Shift+Enter")
    form = page.locator(f"form[data-lk-question='{question}']")
    form.wait_for(timeout=MINUTES * 1000)
    go_to(page, asks)
    tab_to(page, "form.lk-ask input[type=radio]")
    page.keyboard.press("Space")
    tab_to(page, "form.lk-ask button[type=submit]")
    page.keyboard.press("Enter")
    form.get_by_role("status").get_by_text("Noted:").wait_for()
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    assert page.evaluate("() => !document.activeElement.closest('form')")

    run_all(page, codes)
    assert raised(page) == []
    assert page.locator(".lk-answer").get_by_text("You said").count() == 1

    # A fold of a card.
    go_to(page, codes[0])
    tab_to(page, ".lkc details > summary")
    for is_open in (True, False):
        page.keyboard.press("Enter" if is_open else "Space")
        assert page.evaluate("() => document.activeElement.parentElement.open") is is_open

    # A player; where a learner chooses, an action first.
    tab_to(page, STEPPER)
    if page.evaluate(PLACE) == "step 0 of 0":
        for number in (1, 2):
            tab_to(page, f"{STEPPER} .lk-chips button")
            page.keyboard.press("Enter")
            page.wait_for_function(f"({PLACE})() === 'step {number} of {number}'")
    page.keyboard.press("Home")
    page.keyboard.press("ArrowRight")
    assert page.evaluate(PLACE).startswith("step 1 of")
    tab_to(page, f"{STEPPER} .lk-main")
    page.keyboard.press("Enter")
    assert page.evaluate(PLACE).startswith("step 2 of")

    # Everything else, from the top.
    assert unreached(page, MOST) == []
