"""Start the browser that a measurement drives: the system's Chromium, headless."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from labkit.core.errors import ServiceUnavailable
from labkit.host.doctor import find_chromium


@contextmanager
def chromium() -> Iterator[Any]:
    """Provide playwright's browser within a `with` block. Raises `ServiceUnavailable` if one is missing."""
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        raise ServiceUnavailable("playwright is missing: install the extra dev.") from None
    program = find_chromium()
    if program is None:
        raise ServiceUnavailable("no chromium on PATH: install the system's chromium package.")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox", "--disable-gpu"])
        try:
            yield browser
        finally:
            browser.close()
