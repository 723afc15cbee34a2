"""Every kind of player in a real JupyterLab: keys, clicks, branches, after a save, in an untrusted copy, as a page."""

import json
import urllib.request
from collections.abc import Iterator

import build_site
import nbformat
import pytest
from lab_pages import LabPage, open_saved, opened_page

from bench.jupyter_driving import cells, open_notebook, raised, run_all, save, selected_cell, write_notebook

pytestmark = pytest.mark.browser

SHOWN = {
    "delivery": 'lab.show("delivery.strong_production")',
    "snapshot": 'lab.show("snapshot.markers_flow")',
    "barriers": 'lab.show("barriers.alignment")',
    "two_phase_commit": 'lab.show("two_phase_commit.coordinator_gone")',
    "textbook": 'lab.show("two_phase_commit~1~textbook.true~~prepare-0.hear-0")',
    "pipeline": 'lab.show("pipeline.jump_back")',
    "changelog": 'lab.show("changelog.retract_stream")',
    "kafka_log": 'lab.show("kafka_log.half_visible")',
}
PAIR = 'lab.show("pipeline.commit_then_decide", "pipeline.decide_then_commit")'
LIVE = 'going = lab.explorer("two_phase_commit", crashes=3); going'
SOURCES = ["# Players", "from labkit import lab", *SHOWN.values(), PAIR, LIVE]
PLAYERS = len(SHOWN) + 2 + 1
DRAWN = f"() => document.querySelectorAll('.lk-place').length === {PLAYERS}"
ROOTS = "[role=group][tabindex='0']"
NOTEBOOK_KEYS = ("ArrowDown", "ArrowUp", "b", "a", "m", "y", "l", "o", "Shift+M", "Enter", "d", "d", "x", "v", "z", "k")
"""In the command mode of a notebook these move, insert, merge, delete, cut and paste cells."""


@pytest.fixture(scope="module")
def lab(lab_server, browser) -> Iterator[LabPage]:
    """One notebook with every kind of player, run once, for all tests of this module."""
    write_notebook(lab_server.folder / "players.ipynb", SOURCES)
    with opened_page(browser, high=7000) as told:
        open_notebook(told.page, lab_server, "players.ipynb")
        run_all(told.page)
        told.page.wait_for_function(DRAWN)
        yield told


def places(page) -> list[str]:
    return page.locator(".lk-place").all_inner_texts()


def live(page):
    return page.locator(ROOTS).last


def test_every_player_appears_and_no_cell_raises(lab):
    assert raised(lab.page) == []
    assert len(places(lab.page)) == PLAYERS
    assert lab.page.locator(".lk-static").count() == 0
    lab.keep("players-light")


@pytest.mark.parametrize("nth", range(len(SHOWN)), ids=list(SHOWN))
def test_keys_step_and_none_reaches_the_notebook(lab, nth):
    page = lab.page
    before, root = cells(page), page.locator(ROOTS).nth(nth)
    root.focus()
    selected = selected_cell(page)
    page.keyboard.press("Home")
    page.keyboard.press("ArrowRight")
    assert root.locator(".lk-place").inner_text().startswith("step 1 of")
    for key in NOTEBOOK_KEYS:
        page.keyboard.press(key)
    page.keyboard.press("End")
    assert root.get_by_role("button", name="next step").get_attribute("aria-disabled") == "true"
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("?")
    assert root.locator(".lk-help").is_visible()
    page.keyboard.press("?")
    assert cells(page) == before
    assert selected_cell(page) == selected


def wait_for_place(root, text: str) -> None:
    root.locator(".lk-place", has_text=text).first.wait_for()


def test_the_learner_chooses_branches_undoes_and_is_told_what_cannot_be(lab):
    page, root = lab.page, live(lab.page)
    before = cells(page)
    root.get_by_role("button", name="start: ").click()
    wait_for_place(root, "step 1 of 1")
    root.get_by_role("button", name="read(0): ").click()
    wait_for_place(root, "step 2 of 2")
    root.focus()
    page.keyboard.press("ArrowLeft")
    root.get_by_role("button", name="refuse(0): ").click()
    root.locator(".lk-say", has_text="aborts and votes no").wait_for()
    root.focus()
    page.keyboard.press("z")
    wait_for_place(root, "step 1 of 2")
    page.keyboard.press("x")
    root.locator(".lk-say", has_text="aborts and votes no").wait_for()
    root.focus()
    page.keyboard.press("c")  # three can crash: the key leads to the choice
    assert "choose one" in root.locator(".lk-status").inner_text()
    page.keyboard.press("Enter")
    wait_for_place(root, "step 3 of 3")
    root.get_by_label("trace or scenario to open").fill("nonsense")
    root.get_by_label("trace or scenario to open").press("Enter")
    root.locator(
        ".lk-status", has_text="this is neither a trace nor a scenario: there is no scenario 'nonsense';"
    ).wait_for()
    root.get_by_label("scenario", exact=True).select_option("coordinator_gone")
    root.locator(".lk-watch", has_text="never returns").wait_for()
    root.focus()
    page.keyboard.press("End")
    page.keyboard.press("ArrowLeft")
    root.locator("button.lk-taken").click()
    root.locator(".lk-status", has_text="Done: Let a participant hold its lock").wait_for()
    assert root.get_by_role("list", name="tasks").get_by_role("img", name="done").count() == 1
    root.get_by_role("button", name="copy the trace").click()
    assert root.locator(".lk-trace[readonly]").input_value().startswith("two_phase_commit~1~")
    assert cells(page) == before
    lab.keep("live")


def test_keys_of_the_live_session_stay_in_it(lab):
    page, root = lab.page, live(lab.page)
    before = cells(page)
    root.focus()
    selected = selected_cell(page)
    for key in ("ArrowDown", "ArrowUp", "b", "a", "m", "d", "d", "v", "Shift+M"):
        page.keyboard.press(key)
    assert cells(page) == before
    assert selected_cell(page) == selected


@pytest.mark.slow
def test_dark_theme_and_twice_the_size(lab):
    page = lab.page
    change = "theme => window.jupyterapp.commands.execute('apputils:change-theme', { theme })"
    luminance = """() => getComputedStyle(document.querySelector('.lk')).backgroundColor.match(/\\d+/g)
        .map(Number).reduce((one, other) => one + other) / 3"""
    assert page.evaluate(luminance) > 200
    page.evaluate(change, "JupyterLab Dark")
    page.wait_for_function("() => document.body.dataset.jpThemeLight === 'false'")
    page.wait_for_function(f"() => ({luminance})() < 80")
    lab.keep("players-dark")
    page.evaluate(change, "JupyterLab Light")
    page.wait_for_function("() => document.body.dataset.jpThemeLight === 'true'")
    page.evaluate("() => window.jupyterapp.shell.collapseLeft()")
    page.set_viewport_size({"width": 640, "height": 450})  # what 1280 by 900 is at 200 %
    cut = page.evaluate("""() => [...document.querySelectorAll(".lk button, .lk .lk-say, .lk li")].filter((each) => {
      const box = each.getBoundingClientRect(), root = each.closest(".lk").getBoundingClientRect();
      return box.width && (box.right > root.right + 1 || box.left < root.left - 1);
    }).map((each) => each.textContent)""")
    page.locator(ROOTS).nth(5).scroll_into_view_if_needed()
    lab.keep("players-200-percent")
    page.set_viewport_size({"width": 1280, "height": 7000})
    assert cut == []


def test_axe_finds_nothing_serious(lab):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="install the extra dev: axe is missing")
    found = axe.Axe().run(lab.page, context=".lk").response["violations"]
    assert [each["id"] for each in found if each["impact"] in ("serious", "critical")] == [], found


@pytest.fixture(scope="module")
def saved(lab, lab_server):
    """The notebook as it was saved with everything shown in it; the page is left, so that its kernel can be ended."""
    save(lab.page)
    lab.check()
    lab.page.goto("about:blank")
    return lab_server.folder / "players.ipynb"


@pytest.mark.slow
def test_after_a_save_the_players_still_step(lab, saved, lab_server, browser):
    """Opened again with no kernel that knows anything: every player steps, and the live one says what it cannot do."""
    with urllib.request.urlopen(lab_server.api("sessions"), timeout=10) as answer:
        sessions = json.loads(answer.read())
    for session in sessions:
        request = urllib.request.Request(lab_server.api(f"sessions/{session['id']}"), method="DELETE")
        urllib.request.urlopen(request, timeout=10).close()
    with opened_page(browser, high=7000) as again:
        page = again.page
        open_saved(again, lab_server, "players.ipynb", DRAWN)
        for nth in range(len(SHOWN)):
            root = page.locator(ROOTS).nth(nth)
            root.focus()
            page.keyboard.press("Home")
            page.keyboard.press("ArrowRight")
            wait_for_place(root, "step 1 of")
        root = live(page)
        root.focus()
        page.keyboard.press("End")
        page.keyboard.press("ArrowLeft")
        root.locator("button.lk-chip").first.click()
        root.locator(".lk-status", has_text="run the cell again").wait_for()


@pytest.mark.slow
def test_an_untrusted_copy_shows_a_picture_and_a_sentence(saved, lab_server, browser):
    notebook = nbformat.read(saved, as_version=4)
    notebook.cells[0].source = "# A copy from somebody else"
    nbformat.write(notebook, lab_server.folder / "untrusted.ipynb")
    with opened_page(browser, high=7000) as copy:
        open_notebook(copy.page, lab_server, "untrusted.ipynb")
        copy.page.wait_for_selector(".lk-static img")
        assert copy.page.locator(".lk-place").count() == 0
        pictures = copy.page.locator(".lk-static img")
        pictures.first.evaluate("picture => picture.decode()")
        assert pictures.first.evaluate("picture => picture.naturalWidth") > 300
        assert "after step" in copy.page.locator(".lk-static p").first.inner_text()
        copy.keep("untrusted")


def test_a_page_of_it_works_offline(saved, tmp_path, browser):
    path = tmp_path / "players.html"
    path.write_text(build_site.page(nbformat.read(saved, as_version=4), "players"), encoding="utf-8")
    with opened_page(browser) as offline:
        page = offline.page
        page.context.set_offline(True)
        try:
            page.goto(path.as_uri())
            page.wait_for_selector(".lk-place")
            assert page.locator(".lk-place").count() == PLAYERS
            for root in page.locator(ROOTS).all()[:-1]:  # the live one is shown as it began: with no step yet
                root.focus()
                page.keyboard.press("Home")
                page.keyboard.press("ArrowRight")
                assert root.locator(".lk-place").inner_text().startswith("step 1 of")
            offline.keep("site-page")
        finally:
            page.context.set_offline(False)
