"""A notebook in JupyterLab by keys alone: to a cell, and through everything that takes a key.

Nothing here clicks. Scripts look at what keys have done, and lead to the first cell.
"""

from functools import partial

from waiting import until

from bench.jupyter_driving import selected_cell

NOTE = """() => {
  window.labkitReached = new WeakSet([document.activeElement]);
  document.addEventListener("focusin", (event) => window.labkitReached.add(event.target), true);
}"""
"""Has the page note whatever gets the focus."""
TO_THE_FIRST_CELL = """async () => {
  const notebook = window.jupyterapp.shell.currentWidget.content;
  document.activeElement.blur();
  notebook.activeCellIndex = 0;
  notebook.deselectAll();
  await notebook.scrollToItem(0);
  await window.jupyterapp.commands.execute("notebook:enter-command-mode");
  notebook.activeCell.node.focus();
}"""
IS_AT_THE_FIRST_CELL = """() => {
  const notebook = window.jupyterapp.shell.currentWidget.content;
  return notebook.activeCellIndex === 0 && notebook.activeCell.node.contains(document.activeElement);
}"""
LEFT = """() => {
  // Of the options of one question Tab reaches one, and the arrow keys the others.
  const reached = (each) => (each.type === "radio" ? [...document.getElementsByName(each.name)] : [each])
    .some((one) => window.labkitReached.has(one));
  return [...document.querySelectorAll(
    ":is(.jp-OutputArea-output, .jp-RenderedMarkdown) :is(a[href], button, input, select, textarea, summary, [tabindex='0'])"
  )].filter((each) => each.checkVisibility() && !each.disabled && !each.matches(".jp-InternalAnchorLink"))
    .filter((each) => !reached(each))
    .map((each) => each.outerHTML.slice(0, 120));
}"""  # noqa: E501
"""Everything in outputs and texts that takes a key and was not reached."""


def go_to(page, cell: int) -> None:
    """Selects a cell from the notebook's own mode for commands.

    A key that comes while JupyterLab lays out its cells anew may be lost, as it is for a person, who presses it again.
    """
    page.keyboard.press("Escape")
    while (at := selected_cell(page)) != cell:
        key = "ArrowDown" if cell > at else "ArrowUp"
        until(partial(_leaves, page, at, key), f"cell {at} to be left for cell {cell}")


def _leaves(page, cell: int, key: str) -> bool:
    if selected_cell(page) == cell:
        page.keyboard.press(key)
    return selected_cell(page) != cell


def unreached(page, most: int) -> list[str]:
    """What takes a key in outputs and texts and is not reached by so many presses of Tab from the first cell.

    A script selects the first cell: by keys that takes minutes in a long notebook on a busy machine.
    """
    page.evaluate(TO_THE_FIRST_CELL)
    until(lambda: page.evaluate(IS_AT_THE_FIRST_CELL), "the first cell to have the focus")
    left: list[str] = ["nothing was pressed"]
    page.evaluate(NOTE)
    for number in range(1, most + 1):
        page.keyboard.press("Tab")
        if number % 50 == 0 and not (left := page.evaluate(LEFT)):
            break
    return left
