"""The live pages in a real browser, other hosts cut off: every choice, links, exports, a phone, and what can fail."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

import build_docs
import build_site
import live_pages
import nbformat
import pytest
from axe_playwright_python.sync_playwright import Axe

from bench.firefox import Tab as FirefoxTab
from bench.firefox import firefox
from bench.static_site import served
from labkit.core.errors import ServiceUnavailable
from labkit.sim.models import MODELS
from labkit.sim.scenarios import every, find
from labkit.teach.export import export
from labkit.view.live import page_of
from labkit.view.session import Session
from labkit.view.show import show

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = [pytest.mark.slow, pytest.mark.browser]

PHONE = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}
DESK = {"viewport": {"width": 1280, "height": 1400}}
MOST_BYTES = 8_000_000
PATIENCE = 240_000
NO_STORAGE = """for (const name of ["localStorage", "sessionStorage", "indexedDB", "caches"])
  Object.defineProperty(window, name, { get() { throw new DOMException("forbidden", "SecurityError"); } });
delete Navigator.prototype.serviceWorker;"""
"""A window that may store nothing."""
NO_WASM = "delete window.WebAssembly;"
START = "two_phase_commit~1~~start"
BACKGROUNDS = """["body", ".lk"].map((name) =>
  getComputedStyle(document.querySelector(name)).backgroundColor.match(/\\d+/g).slice(0, 3).map(Number))"""
"""The background of a notebook's page and of a player in it, each as red, green and blue from 0 to 255."""

CUT = """() => [...document.querySelectorAll(".lk-handles select, .lk-handles input[type=text]")].filter((each) => {
  const width = each.offsetWidth;
  if (each.type === "text") return each.scrollWidth > each.clientWidth;
  each.style.cssText = "flex: none; max-width: none; width: max-content";
  return each.offsetWidth > width;
}).map((each) => each.value)"""
"""The values in the panel of parameters that are wider than their input."""


class Site(NamedTuple):
    address: str
    folder: Path


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """The simulators' pages, and a notebook's page with a player, two runs side by side and a live session."""
    folder = tmp_path_factory.mktemp("live") / "site"
    try:
        live = build_site.simulators(folder, live_pages.pyodide())
    except ServiceUnavailable as missing:
        pytest.skip(str(missing))
    pair = show("pipeline.commit_then_decide", "pipeline.decide_then_commit")
    shown = [show("pipeline.jump_back").html(), pair.html(), page_of(Session.of("two_phase_commit", crashes=3).story)]
    outputs = [nbformat.v4.new_output("display_data", {"text/html": html}) for html in shown]
    cells = [nbformat.v4.new_markdown_cell("# Players"), nbformat.v4.new_code_cell("", outputs=outputs)]
    page = build_site.page(nbformat.v4.new_notebook(cells=cells), "players", live=live)
    (folder / "players.html").write_text(page, encoding="utf-8")
    with served(folder) as address:
        yield Site(address, folder)


class Tab:
    """A page of the browser, with what it asked for and what it complained of."""

    def __init__(self, page: "Page", site: Site) -> None:
        self.page, self.site, self.folder = page, site.address, site.folder
        self.asked: list[str] = []
        self.said: list[str] = []
        page.on("request", lambda request: self.asked.append(request.url))
        page.on("console", lambda message: self.said.append(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda error: self.said.append(str(error)))

    def open(self, path: str) -> "Page":
        self.page.goto(self.site + path)
        self.page.wait_for_selector("[data-lk-live]")
        return self.page

    @property
    def status(self) -> str:
        return self.page.locator(".lk-status").first.inner_text()

    def at(self, step: str, root: Any = None) -> None:
        (root or self.page).locator(".lk-place", has_text=re.compile(f"^step {step}$")).first.wait_for()

    def says(self, text: str) -> None:
        self.page.locator(".lk-status", has_text=text).first.wait_for()

    def slot(self, words: str) -> Any:
        """A process or a message of the picture, by words in it."""
        return self.page.locator(".lk-stage .lk-pic > g text", has_text=words).first


@contextmanager
def tab(chrome: "Browser", site: Site, script: str = "", **options: Any) -> Iterator[Tab]:
    context = chrome.new_context(**(options or DESK))
    context.set_default_timeout(PATIENCE)
    # What is not this site's does not exist.
    context.route(lambda address: not address.startswith((site.address, "data:", "blob:")), lambda route: route.abort())
    if script:
        context.add_init_script(script)
    opened = Tab(context.new_page(), site)
    yield opened
    assert [url for url in opened.asked if not url.startswith((site.address, "data:", "blob:"))] == []
    context.close()


@pytest.fixture(scope="module")
def desk(chrome: "Browser", site: Site) -> Iterator[Tab]:
    """The page of two-phase commit, in a window that may store nothing; most tests go on with what is loaded there."""
    with tab(chrome, site, NO_STORAGE) as opened:
        opened.open("simulators/two_phase_commit.html")
        yield opened
        assert opened.said == []


def test_the_first_click_on_a_process_loads_python_and_crashes_it(desk: Tab) -> None:
    page = desk.page
    assert not any("pyodide" in url for url in desk.asked)
    page.keyboard.press("Tab")
    desk.slot("coordinator").click()
    assert desk.status.startswith("Python is being loaded into this page")
    page.locator("button.lk-chip").first.click()  # a hurried second choice, which must not replace the first
    assert desk.status.startswith("Your last choice is still being carried out")
    page.locator(".lk-say", has_text="The coordinator dies").wait_for()
    desk.at("1 of 1")
    assert desk.status == ""
    files = [urlsplit(url).path.removeprefix("/") for url in desk.asked]
    assert {"pyodide.asm.wasm.deflated", "labkit.zip", "worker.js"} <= {path.rpartition("/")[2] for path in files}
    # As stored, so also from a server that compresses nothing.
    assert sum((desk.folder / path).stat().st_size for path in files) < MOST_BYTES


def test_every_simulator_answers_a_choice(desk: Tab) -> None:
    box = desk.page.get_by_label("trace or scenario to open")
    for name in MODELS:
        box.fill(f"{name}~{MODELS[name].version}~~")
        box.press("Enter")
        desk.page.locator("h4", has_text=name.replace("_", " ")).first.wait_for()
        desk.at("0 of 0")
        desk.page.locator("button.lk-chip").first.click()
        desk.at("1 of 1")


def test_every_scenario_opens_with_all_its_steps(desk: Tab) -> None:
    box = desk.page.get_by_label("trace or scenario to open")
    for full, name in every().items():
        if name.model == "two_phase_commit":  # the links of other simulators lead to their own pages
            desk.page.evaluate(f"location.hash = '{full}'")
        else:
            box.fill(full)
            box.press("Enter")
        desk.page.locator(".lk-watch", has_text=name.watch_for).first.wait_for()
        desk.at(rf"\d+ of {len(name.trace.actions)}")


def test_a_message_is_lost_by_a_click_and_by_the_keyboard(desk: Tab) -> None:
    page = desk.page
    page.evaluate(f"location.hash = '{START}'")
    desk.at("1 of 1")
    desk.slot("prepare").click()
    page.locator(".lk-say", has_text="message to participant 0 is lost").wait_for()
    root = page.locator("[role=group][tabindex='0']")
    root.focus()
    page.keyboard.press("z")
    desk.at("1 of 1")
    page.keyboard.press("d")
    assert desk.status == "2 ways to drop: choose one"
    page.keyboard.press("Enter")
    desk.at("2 of 2")
    assert "lose_outward-0" in copied(desk, "copy the trace")


def copied(opened: Tab, button: str) -> str:
    opened.page.get_by_role("button", name=button).click()
    return opened.page.locator(".lk-trace[readonly]").input_value()


def test_a_link_opens_its_run_and_a_wrong_one_is_a_sentence(desk: Tab) -> None:
    desk.page.evaluate(f"location.hash = '{START}.lose_outward-0'")
    desk.at("2 of 2")
    link = copied(desk, "copy an address")
    address, _, trace = link.partition("#")
    assert address == desk.site + "simulators/two_phase_commit.html"
    desk.page.evaluate("location.hash = 'two_phase_commit~9~~start'")
    desk.says("recorded with version 9 of two_phase_commit, and this labkit has version 1")
    desk.at("2 of 2")
    desk.page.evaluate("location.hash = 'two_phase_commit.coordinator_gone'")
    desk.page.locator(".lk-watch", has_text="never returns").wait_for()
    desk.page.evaluate(f"location.hash = '{trace}'")
    desk.at("2 of 2")
    assert copied(desk, "copy the trace") == trace


def test_parameters_are_inputs_and_the_futures_lead_to_a_broken_claim(desk: Tab) -> None:
    page = desk.page
    page.evaluate(f"location.hash = '{START}.read-0'")
    page.locator(".lk-say", has_text=re.compile("^2. Participant 0")).wait_for()
    page.get_by_label("losses", exact=True).fill("0")
    page.get_by_label("losses", exact=True).press("Enter")
    page.locator("h4", has_text="losses=0").wait_for()
    page.get_by_label("broken", exact=True).select_option("heuristic")
    page.locator("h4", has_text="broken=heuristic").wait_for()
    desk.at("2 of 2")
    page.get_by_role("button", name="show for each choice").click()
    alone = page.locator(".lk-rung.lk-is-wrong", has_text="abort alone(0)")
    alone.wait_for()
    assert page.locator(".lk-rung").count() == page.locator("button.lk-chip").count()
    alone.get_by_role("button", name="go to the nearest schedule").click()
    desk.at("3 of 3")
    assert page.locator(".lk-claims .violated").count() == 1
    desk.says("The run now breaks a claim, after 1 step more.")
    page.locator(".lk-chips", has_text="Broken already: Claim 3: “A participant that voted yes aborts").wait_for()
    page.get_by_role("button", name="show for each choice").click()


def test_what_is_downloaded_is_what_python_exports(desk: Tab) -> None:
    desk.page.evaluate(f"location.hash = '{START}.read-1'")
    desk.page.locator(".lk-say", has_text=re.compile("^2. Participant 1")).wait_for()
    trace = copied(desk, "copy the trace")
    for to in ("mermaid", "plantuml", "shiviz", "svg"):
        with desk.page.expect_download() as download:
            desk.page.get_by_label("export", exact=True).select_option(to)
        assert Path(download.value.path()).read_text(encoding="utf-8") == export(trace, to)


def test_a_worker_that_fails_loses_nothing_and_the_next_choice_loads_it_again(chrome: "Browser", site: Site) -> None:
    with tab(chrome, site) as opened:
        opened.page.route("**/labkit.zip", lambda route: route.abort())
        page = opened.open("simulators/two_phase_commit.html")
        page.get_by_role("button", name="next step").click()
        page.locator("button.lk-chip").first.click()
        opened.says("Python stopped in this page")
        opened.at("1 of 11")
        page.get_by_role("button", name="next step").click()
        opened.at("2 of 11")
        page.unroute("**/labkit.zip")
        opened.slot("participant 1").click()
        page.locator(".lk-say", has_text="Participant 1 dies").wait_for()
        opened.at("3 of 3")
        page.reload()
        opened.at("3 of 3")


def test_a_task_is_ticked_by_the_readers_step_and_undo_leaves_it(desk: Tab) -> None:
    page = desk.page
    run, _, last = str(find("two_phase_commit.coordinator_gone").trace).rpartition(".")
    page.evaluate(f"location.hash = '{run}.{last}'")
    desk.at("8 of 8")
    tasks = page.get_by_role("list", name="tasks")
    assert tasks.get_by_role("listitem").count() == 3
    assert tasks.get_by_role("img", name="done").count() == 0  # a run by a link is not the reader's
    page.get_by_role("button", name="step back").click()
    page.locator("button.lk-chip", has_text="inquire(1)").click()
    tasks.get_by_role("img", name="done").wait_for()
    assert desk.status == "Done: Let a participant hold its lock for ever."  # its role is read out
    page.get_by_role("button", name="undo the last").click()
    page.locator(".lk-status:empty").wait_for(state="attached")
    assert tasks.get_by_role("img", name="done").count() == 1


def test_choices_go_on_beside_a_shorter_run_that_is_kept(desk: Tab) -> None:
    page = desk.page
    page.evaluate(f"location.hash = '{START}'")
    desk.at("1 of 1")
    page.get_by_role("button", name="keep this run").click()
    page.locator(".lk-pair").wait_for()
    assert not page.get_by_label("crashes", exact=True).is_visible()  # or the two pictures would differ in size
    one, other = (page.locator(".lk-stage").nth(number).bounding_box() for number in (0, 1))
    assert (one["y"], one["width"]) == (other["y"], other["width"])
    for step, choice in enumerate(("read(0)", "crash(1)"), start=2):
        page.locator("button.lk-chip", has_text=choice).first.click()
        desk.at(f"{step} of {step}")
    assert page.locator(".lk-trace[readonly]").first.input_value() == f"{START}.read-0.crash-1"
    page.get_by_role("button", name="put the other run away").click()
    page.locator(".lk-pair").wait_for(state="detached")
    assert page.get_by_label("crashes", exact=True).is_visible()


def test_no_page_lets_a_browser_ask_for_an_icon_that_is_not_there(site: Site) -> None:
    pages = {path.name: path.read_text(encoding="utf-8") for path in site.folder.rglob("*.html")}
    pages |= {"site": build_site.FRONT, "docs": build_docs.FRONT}
    assert [name for name, text in pages.items() if 'rel="icon"' not in text] == []


@pytest.mark.parametrize("name", [*MODELS])
def test_picture_controls_choices_and_the_addresses_of_the_page_are_seen_together(
    name: str, chrome: "Browser", site: Site
) -> None:
    with tab(chrome, site, viewport={"width": 1280, "height": 900}) as opened:
        page = opened.open(f"simulators/{name}.html")
        box = page.locator("button.lk-chip").first.bounding_box()
        assert box["y"] + box["height"] <= 900
        assert f'<iframe src="{opened.site}simulators/{name}.html?embed#' in page.locator("pre").inner_text()
        assert page.evaluate(CUT) == []
        assert ("a message to lose" in page.locator("header").inner_text()) == (
            name in ("delivery", "two_phase_commit")
        )
        page.set_viewport_size({"width": 600, "height": 900})
        page.goto(f"{opened.site}simulators/{name}.html?embed")
        page.wait_for_selector("[data-lk-live]")
        height = re.search(r'height="(\d+)"', page.locator("pre").text_content() or "")
        assert height
        assert page.evaluate("document.documentElement.scrollHeight") <= int(height[1])


def test_a_link_that_is_clicked_again_opens_its_run_again(desk: Tab) -> None:
    page = desk.page
    link = page.get_by_role("link", name="coordinator gone")
    link.click()
    desk.at("0 of 8")
    page.locator("button.lk-chip:not(.lk-taken)").first.click()
    desk.at("1 of 1")
    link.click()
    desk.at("0 of 8")
    page.evaluate(f"location.hash = '{START}'")
    desk.at("1 of 1")
    page.evaluate("location.hash = ''")
    desk.at("0 of 11")


def test_a_run_of_another_simulator_opens_on_its_own_page(chrome: "Browser", site: Site) -> None:
    with tab(chrome, site, NO_STORAGE) as opened:
        page = opened.open("simulators/two_phase_commit.html?embed#pipeline.jump_back")
        page.wait_for_url("**/simulators/pipeline.html?embed#pipeline.jump_back")
        page.locator(".lk-watch", has_text="hello is seen at 2").wait_for()


PLACE = "() => document.querySelector('.lk-place').textContent === '{}'"
ARROW_RIGHT = "\ue014"
"""The right arrow as WebDriver writes it."""


def test_firefox_takes_a_first_step_opens_a_link_and_obeys_the_keyboard(site: Site) -> None:
    try:
        with firefox() as browser:
            page = FirefoxTab(browser)
            page.goto(f"{site.address}simulators/two_phase_commit.html")
            page.wait_for_function("() => document.querySelector('[data-lk-live]')")
            page.click("document.querySelector('button.lk-chip')")
            page.wait_for_function(PLACE.format("step 1 of 11"))
            page.evaluate("(trace) => { location.hash = trace; }", f"{START}.read-0")
            page.wait_for_function(PLACE.format("step 2 of 2"))
            page.evaluate("() => document.querySelector(\"[role=group][tabindex='0']\").focus()")
            page.press("z")
            page.wait_for_function(PLACE.format("step 1 of 11"))
            page.press(ARROW_RIGHT)
            page.wait_for_function(PLACE.format("step 2 of 11"))
            assert [url for url in page.asked if not url.startswith((site.address, "data:", "blob:"))] == []
            page.close()
    except ServiceUnavailable as missing:
        pytest.skip(str(missing))


def test_without_webassembly_a_sentence_and_the_steps_remain(chrome: "Browser", site: Site) -> None:
    with tab(chrome, site, NO_WASM) as opened:
        page = opened.open("simulators/pipeline.html#pipeline~1~~start-1")
        opened.says("This browser has no WebAssembly")
        page.get_by_role("button", name="next step").click()
        opened.at("1 of 10")
        page.locator("button.lk-chip").first.click()
        opened.says("This browser has no WebAssembly")
        climb = page.get_by_role("button", name="show for each choice")
        climb.click()
        page.wait_for_function("(climb) => climb.getAttribute('aria-pressed') === 'false'", arg=climb.element_handle())
        refused = page.locator(".lk-handles input[type=number]").first
        before = refused.input_value()
        refused.fill(str(int(before) + 1))
        refused.press("Tab")
        page.wait_for_function("([input, value]) => input.value === value", arg=[refused.element_handle(), before])
        assert not any(url.endswith("worker.js") for url in opened.asked)


def test_a_phone_by_touch_embedded_in_another_page(chrome: "Browser", site: Site) -> None:
    with tab(chrome, site, NO_STORAGE, **PHONE) as opened:
        page = opened.open("simulators/delivery.html?embed#delivery~1~~send-0")
        opened.at("1 of 1")
        assert not page.locator("header").is_visible()
        fades = """() => document.querySelector(".lk-stage").classList.toString().match(/lk-more-\\w+/g)"""
        assert page.evaluate(fades) == ["lk-more-right"]
        page.evaluate("document.querySelector('.lk-stage').scrollLeft = 10000")
        page.wait_for_selector(".lk-stage.lk-more-left:not(.lk-more-right)")
        page.evaluate("document.querySelector('.lk-stage').scrollLeft = 0")
        assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["viewport"]["width"]
        message = page.locator(".lk-stage .lk-pic > g.can", has=page.locator("path.c")).filter(has_text="0").first
        message.locator("text").first.tap()
        menu = page.locator(".lk-menu button")
        assert menu.all_inner_texts() == [
            "The next record to process 1 is lost.",
            "The next record to process 1 is there a second time.",
        ]
        menu.last.tap()
        page.locator(".lk-say", has_text="there a second time").wait_for()
        opened.at("2 of 2")
        small = page.evaluate("""() => [...document.querySelectorAll(".lk button:not([hidden])")].filter((each) =>
          each.offsetParent && each.getBoundingClientRect().height < 40).map((each) => each.textContent)""")
        assert small == []
        found = Axe().run(page).response["violations"]
        assert [
            (each["id"], each["nodes"][0]["html"][:90]) for each in found if each["impact"] in ("serious", "critical")
        ] == []


def test_every_player_of_a_notebooks_page_is_live_and_shares_one_python(chrome: "Browser", site: Site) -> None:
    with tab(chrome, site) as opened:
        page = opened.open("players.html")
        single, pair, steered = page.locator("[data-lk-live]").all()
        steered.locator("button.lk-chip", has_text="start").click()
        opened.at("1 of 1", steered)
        single.get_by_role("button", name="next step").click()
        single.locator("button.lk-chip", has_text="crash").first.click()
        opened.at("2 of 2", single)
        pair.locator("button.lk-chip").first.click()
        opened.at(r"1 of \d+", pair)
        assert "crashes=3" in steered.locator("h4").inner_text()
        assert sum(url.endswith("labkit.zip") for url in opened.asked) == 1
        steps = page.locator(".lk-place").all_inner_texts()
        assert len(steps) == 4
        for scheme, is_dark in (("light", False), ("dark", True)):
            page.emulate_media(color_scheme=scheme)
            assert [sum(color) < 200 for color in page.evaluate(BACKGROUNDS)] == [is_dark, is_dark]
        assert copied_link(steered).startswith(
            site.address + "simulators/two_phase_commit.html#two_phase_commit~1~crashes.3~~start"
        )


def copied_link(root: Any) -> str:
    root.get_by_role("button", name="copy an address").click()
    return root.locator(".lk-trace[readonly]").input_value()
