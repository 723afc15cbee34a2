"""A browser's page that looks at a notebook, and notebooks for it to look at. For the tests in `tests/jupyter`."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

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

    def check(self) -> None:
        assert sorted(self.outside) == []
        assert self.errors == [], self.errors


@contextmanager
def opened_page(browser, high: int = 900) -> Iterator[LabPage]:
    """A page that is checked when it closes."""
    page = browser.new_page()
    page.set_viewport_size({"width": 1280, "height": high})
    told = LabPage(page)
    yield told
    page.close()
    told.check()
