"""The browser that the doctor finds is one that a test can drive, without a request to any other host."""

import pytest
from playwright.sync_api import BrowserContext

pytestmark = pytest.mark.browser


def test_the_browser_shows_a_page(browser: BrowserContext) -> None:
    page = browser.new_page()
    page.set_content("<button onclick=\"this.textContent = 'stepped'\">step</button>")
    page.get_by_role("button", name="step").click()
    assert page.get_by_role("button", name="stepped").is_visible()
    page.close()
