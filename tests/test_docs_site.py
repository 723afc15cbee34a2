"""The documentation as a site: `make docs` has no warning, asks no other host, and works on a phone and by keyboard."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import build_docs
import pytest
from axe_playwright_python.sync_playwright import Axe

from bench.static_site import served

if TYPE_CHECKING:
    from playwright.sync_api import BrowserContext, Page

pytestmark = [pytest.mark.slow, pytest.mark.browser]

PAGES = (
    "index.html",
    "docs/crashtest.html",
    "docs/reference/crashtest.html",
    "docs/reference/samples.html",
    "docs/design/crash.html",
    "docs/glossary.html",
    "docs/api.html",
    "notebooks/05_two_phase_commit.html",
)
PHONE = {"width": 390, "height": 844}
DESK = {"width": 1280, "height": 900}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a freshly built site."""
    folder = tmp_path_factory.mktemp("docs") / "site"
    subprocess.run([sys.executable, build_docs.__file__, "--out", folder], check=True)
    with served(folder) as address:
        yield address


@pytest.fixture
def page(browser: "BrowserContext", site: str) -> Iterator["Page"]:
    """A page of the browser that fails the test if anything is asked of another host."""
    page = browser.new_page()
    foreign: list[str] = []
    page.on("request", lambda asked: None if asked.url.startswith((site, "data:")) else foreign.append(asked.url))
    yield page
    page.close()
    assert foreign == []


@pytest.mark.parametrize("name", PAGES)
def test_a_page_fits_a_phone_and_can_be_used_by_everybody(page: "Page", site: str, name: str) -> None:
    page.set_viewport_size(PHONE)
    page.goto(site + name, wait_until="networkidle")
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
    assert page.evaluate("parseFloat(getComputedStyle(document.querySelector('article p')).fontSize)") >= 14
    found = Axe().run(page).response["violations"]
    serious = [
        (each["id"], [node["html"][:120] for node in each["nodes"][:3]])
        for each in found
        if each["impact"] == "critical"
    ]
    assert serious == []


def test_the_menu_of_a_phone_leads_to_the_reference(page: "Page", site: str) -> None:
    page.set_viewport_size(PHONE)
    page.goto(site + "docs/index.html", wait_until="networkidle")
    page.locator("header label[for=__navigation]").first.click()
    page.locator(".sidebar-tree a", has_text="Reference").first.click()
    page.wait_for_url("**/docs/reference/index.html")


def test_the_search_finds_words_of_pages_and_of_the_api_without_a_network(page: "Page", site: str) -> None:
    for word, target in (
        ("supervisor", "docs/design/crash.html"),
        ("crash_test", "docs/api.html"),
        ("barriers", "notebooks/"),
    ):
        page.goto(f"{site}search.html?q={word}")
        page.wait_for_selector(f"#search-results a[href*='{target}']")


def test_a_reader_reaches_search_and_text_by_keyboard(page: "Page", site: str) -> None:
    page.set_viewport_size(DESK)
    page.goto(site + "docs/index.html", wait_until="networkidle")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to content"
    for _ in range(12):
        if page.evaluate("document.activeElement.name") == "q":
            break
        page.keyboard.press("Tab")
    page.keyboard.type("exactly")
    page.keyboard.press("Enter")
    page.wait_for_selector("#search-results a")
    assert "q=exactly" in page.url


@pytest.mark.filterwarnings("default")  # as an error, a library's note on an old name would end the build first
def test_a_broken_link_fails_the_build(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "docs" / "index.md"
    page.parent.mkdir()
    page.write_text("# A page\n\n[broken](gone.md)\n", encoding="utf-8")
    (tmp_path / "docs" / "conf.py").write_text(
        'extensions = ["myst_parser"]\nroot_doc = "docs/index"\nmyst_heading_anchors = 4\n', encoding="utf-8"
    )
    monkeypatch.setattr(build_docs, "ROOT", tmp_path)
    assert build_docs.build(tmp_path / "site") != 0
    assert "gone.md" in capfd.readouterr().err
    page.write_text("# A page\n", encoding="utf-8")
    assert build_docs.build(tmp_path / "site") == 0
