"""A browser's page that looks at a notebook, and notebooks for it to look at. For the tests in `tests/jupyter`."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import TimeoutError as NotInTime

from bench.jupyter_driving import MILLISECONDS, PATIENCE, open_notebook

SCREENSHOTS = Path(__file__).parents[2] / "build" / "screenshots"
"""What a page looked like; CI keeps it, git does not."""

OURS = re.compile(r"((https?|wss?)://(127\.0\.0\.1|localhost)[:/]|file:|data:|blob:)")


class LabPage:
    """A browser's page that notes what goes wrong on it."""

    def __init__(self, page):
        self.page, self.outside, self.errors = page, set(), []
        page.on("request", lambda request: None if OURS.match(request.url) else self.outside.add(request.url))
        page.on("console", lambda message: self.errors.append(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda error: self.errors.append(str(error)))

    def keep(self, name: str) -> None:
        """Keeps a picture of the page."""
        SCREENSHOTS.mkdir(parents=True, exist_ok=True)
        self.page.screenshot(path=SCREENSHOTS / f"{name}.png")

    def dialogs(self) -> list[str]:
        """What JupyterLab asks or tells in a dialog, with what the page has noted until then: it may say why."""
        shown = self.page.locator(".jp-Dialog").all_inner_texts()
        return [*shown, *self.errors] if shown else []

    def wait_for(self, selector: str, count: int) -> None:
        """Waits until the page shows so many of them; if it does not, says what each output has, and what it shows."""
        try:
            self.page.wait_for_function(f"() => document.querySelectorAll({selector!r}).length >= {count}")
        except NotInTime as error:
            has, shows = self.page.evaluate(OUTPUTS)
            raise AssertionError(f"fewer than {count} of {selector}: {has}, {shows}, {self.errors}") from error

    def check(self) -> None:
        assert sorted(self.outside) == []
        assert self.errors == [], self.errors


OUTPUTS = """() => [
  window.jupyterapp.shell.currentWidget.content.model.sharedModel.cells
    .map((cell) => cell.cell_type === 'code' ? cell.getOutputs().map((each) => Object.keys(each.data ?? each)) : []),
  [...document.querySelectorAll('.jp-OutputArea-output')].map((each) => each.textContent.slice(0, 60)),
]"""
"""What kinds of data the outputs of each cell have, and the first words of each that is shown."""

LOST = "Error displaying widget: model not found"
OPENINGS = 3


def open_saved(lab_page: LabPage, server, name: str, drawn: str) -> None:
    """Opens a notebook whose widgets were saved with it, and waits for `drawn`, a function of the page's JavaScript.

    JupyterLab sometimes draws a saved widget before it has read the saved state: when its new kernel connects in
    between. It then says "model not found" until the page is loaded again. What else the page says is in the failure.
    """
    page = lab_page.page
    for _ in range(OPENINGS):
        open_notebook(page, server, name)
        try:
            page.wait_for_function(f"() => ({drawn})() || document.body.textContent.includes({LOST!r})")
        except NotInTime as error:
            raise AssertionError(f"{name} was not drawn: {[*lab_page.dialogs(), *lab_page.errors]}") from error
        if not page.get_by_text(LOST).count():
            return
        lab_page.errors[:] = [error for error in lab_page.errors if "widget model not found" not in error]
    raise AssertionError(f"{name}: {LOST}, {OPENINGS} times")


@contextmanager
def opened_page(browser, high: int = 900) -> Iterator[LabPage]:
    """A page that is checked when it closes."""
    page = browser.new_page()
    page.set_default_timeout(PATIENCE * MILLISECONDS)
    page.set_viewport_size({"width": 1280, "height": high})
    told = LabPage(page)
    yield told
    page.close()
    told.check()
