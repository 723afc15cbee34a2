"""The player in a real browser: keys, clicks, slider, two on a page, both themes, and nobody else is asked anything."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from labkit.sim.scenarios import find
from labkit.view.assets import asset
from labkit.view.live import Explorer
from labkit.view.session import Session, session
from labkit.view.show import show
from labkit.view.stepper import Player

pytestmark = pytest.mark.browser

JUMP = Player(find("pipeline.jump_back").trace, "hello goes back")
ALIGN = Player(find("barriers.alignment").trace)


class Page:
    """A page in the browser that notes what goes wrong on it."""

    def __init__(self, page):
        self.page, self.asked, self.said = page, [], []
        page.on("request", lambda request: self.asked.append(request.url))
        page.on("console", lambda message: self.said.append(message.text) if message.type != "log" else None)
        page.on("pageerror", lambda error: self.said.append(str(error)))

    def open(self, tmp_path: Path, body: str):
        path = tmp_path / "page.html"
        title = "<!doctype html><html lang='en'><meta charset='utf-8'><title>players</title>"
        path.write_text(f"{title}<body>{body}</body></html>", encoding="utf-8")
        self.page.goto(path.as_uri())
        self.page.wait_for_selector(".lk-place")
        return self.page

    def check(self):
        assert self.said == []
        assert [url for url in self.asked if not url.startswith(("file://", "data:"))] == []


@pytest.fixture
def page(browser) -> Iterator[Page]:
    opened = browser.new_page()
    told = Page(opened)
    yield told
    opened.close()
    told.check()


def steps(page):
    return [text.split()[1] for text in page.locator(".lk-place").all_inner_texts()]


def test_two_players_on_a_page_go_their_own_ways(page, tmp_path):
    shown = page.open(tmp_path, JUMP.html() + ALIGN.html())
    first, second = shown.locator("[role=group][tabindex='0']").all()
    assert steps(shown) == ["0", "0"]
    first.focus()
    for key in ("ArrowRight", "ArrowRight", "ArrowRight", "ArrowLeft"):
        shown.keyboard.press(key)
    assert steps(shown) == ["2", "0"]
    second.get_by_role("button", name="next step").click()
    shown.keyboard.press("End")
    assert steps(shown) == ["2", "29"]
    assert second.get_by_role("button", name="next step").get_attribute("aria-disabled") == "true"
    shown.keyboard.press("Home")
    assert steps(shown) == ["2", "0"]
    assert first.locator(".lk-say").inner_text() == "2. Recovery has resolved everything in doubt."
    assert first.locator(".lk-say").get_attribute("aria-live") == "polite"


def test_a_player_opens_at_its_step(page, tmp_path):
    shown = page.open(tmp_path, Player(find("pipeline.jump_back").trace, "hello goes back", 5).html() + JUMP.html())
    assert steps(shown) == ["5", "0"]
    shown.get_by_role("button", name="step back").first.click()
    assert steps(shown) == ["4", "0"]


def test_slider_diagram_and_table_all_lead_to_a_step(page, tmp_path):
    shown = page.open(tmp_path, JUMP.html())
    slider = shown.get_by_role("slider", name="step")
    slider.fill("9")
    assert steps(shown) == ["9"]
    assert slider.get_attribute("aria-valuetext").startswith("step 9 of 17: ")
    story = JUMP.to_json()
    box = shown.locator(".lk-strip svg").bounding_box()
    scale = box["width"] / story["lines"]["size"][0]
    shown.mouse.click(box["x"] + (story["lines"]["left"] + 5 * story["lines"]["step"]) * scale, box["y"] + 20)
    assert steps(shown) == ["5"]
    shown.locator("summary").click()
    shown.get_by_role("button", name="go to step 12").click()
    assert steps(shown) == ["12"]
    assert shown.locator("tr[aria-current=step]").inner_text().startswith("12")
    assert shown.locator("tbody tr").count() == 18


def test_every_step_shows_its_frame_its_verdicts_and_what_could_happen(page, tmp_path):
    shown = page.open(tmp_path, JUMP.html())
    story = JUMP.to_json()
    root = shown.locator("[role=group][tabindex='0']")
    for number, step in enumerate(story["steps"]):
        drawn = root.locator(".lk-stage svg").evaluate("svg => [...svg.children].map(group => group.textContent)")
        wanted = shown.evaluate(
            "pieces => pieces.map(piece => { const g = document.createElementNS('http://www.w3.org/2000/svg', 'g');"
            " g.innerHTML = piece; return g.textContent; })",
            [story["table"][piece] for piece in story["frames"][number]],
        )
        assert drawn == wanted
        classes = root.locator(".lk-claims li").evaluate_all("items => items.map(item => item.className[0])")
        assert classes == [outcome.replace("u", "o") for outcome, _ in step["v"]]
        assert root.locator(".lk-chip").count() == len(step["e"])
        if number + 1 < len(story["steps"]):
            root.get_by_role("button", name="next step").click()
    assert "Nothing more can happen" in root.locator(".lk-chips").inner_text()
    assert "since step" in root.locator(".lk-claims .violated").inner_text().lower()


def test_keys_do_not_leave_the_player(page, tmp_path):
    shown = page.open(tmp_path, JUMP.html())
    shown.evaluate("window.heard = []; document.addEventListener('keydown', (event) => window.heard.push(event.key))")
    root = shown.locator("[role=group][tabindex='0']")
    root.focus()
    for key in ("ArrowDown", "b", "d", "d", "ArrowRight", "?", "Enter"):
        shown.keyboard.press(key)
    assert shown.evaluate("window.heard") == []
    assert root.get_attribute("data-lm-suppress-shortcuts") == "true"
    assert shown.locator(".lk-help").is_visible()
    shown.keyboard.press("?")
    assert shown.locator(".lk-help").is_hidden()


def test_it_plays_when_asked_and_is_silent_meanwhile(page, tmp_path):
    shown = page.open(tmp_path, JUMP.html())
    root = shown.locator("[role=group][tabindex='0']")
    root.focus()
    shown.keyboard.press(" ")
    assert root.locator(".lk-say").get_attribute("aria-live") == "off"
    root.locator(".lk-place", has_text="step 1 of").wait_for()
    shown.keyboard.press(" ")
    assert root.locator(".lk-say").get_attribute("aria-live") == "polite"


def test_a_trace_can_be_copied_up_to_the_step(page, tmp_path):
    shown = page.open(tmp_path, JUMP.html())
    shown.get_by_role("slider").fill("3")
    shown.get_by_role("button", name="copy the trace").click()
    text = shown.locator(".lk-trace").input_value()
    assert str(show(text).story.trace) == text
    assert text.endswith("~~start-1.resolved-0.plan-0")


def test_two_runs_are_stepped_together(page, tmp_path):
    pair = show("pipeline.commit_then_decide", "pipeline.decide_then_commit")
    shown = page.open(tmp_path, pair.html())
    shown.get_by_role("button", name="next step").first.click()
    assert steps(shown) == ["1", "1"]
    shown.get_by_role("slider").nth(1).fill(str(pair.differs_at))
    assert steps(shown) == [str(pair.differs_at)] * 2
    assert shown.locator(".dif").count() == 2
    assert "The first difference is in step" in shown.locator(".lk-pair > .lk-say").inner_text()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("theme", ["", "true", "false"])
def test_text_can_be_read_in_every_theme(page, tmp_path, scheme, theme):
    """JupyterLab's theme comes first, then the system's; what is written keeps its contrast."""
    page.page.emulate_media(color_scheme=scheme)
    shown = page.open(tmp_path, JUMP.html())
    if theme:
        shown.evaluate("theme => document.body.setAttribute('data-jp-theme-light', theme)", theme)
    shown.get_by_role("slider").fill("12")
    dark = theme == "false" or (not theme and scheme == "dark")
    luminance = (
        "colour => { const [r, g, b] = colour.match(/[\\d.]+/g).map(Number); return 0.3 * r + 0.6 * g + 0.1 * b }"
    )
    read = "(selector, name) => getComputedStyle(document.querySelector(selector))[name]"
    background = shown.evaluate(f"({luminance})(({read})('.lk', 'backgroundColor'))")
    ink = shown.evaluate(f"({luminance})(({read})('.lk-stage text.h', 'fill'))")
    assert (background < 80) is dark
    assert abs(background - ink) > 150


def test_what_is_drawn_fits_as_it_was_measured(page, tmp_path):
    """With the browser's own fonts no text leaves its box: the estimate of widths errs to the safe side."""
    shown = page.open(tmp_path, JUMP.html() + ALIGN.html())
    for slider, to in zip(shown.get_by_role("slider").all(), ("12", "20"), strict=True):
        slider.fill(to)
    wrong = shown.evaluate("""() => [...document.querySelectorAll('.lk-stage svg')].flatMap((svg) => {
      const whole = svg.getBoundingClientRect();
      return [...svg.querySelectorAll('text')].filter((text) => {
        const at = text.getBoundingClientRect(), box = text.closest('g').querySelector('rect.b, rect.x');
        const frame = box ? box.getBoundingClientRect() : whole;
        return at.left < frame.left || at.right > frame.right || at.top < frame.top || at.bottom > frame.bottom;
      }).map((text) => text.textContent);
    })""")
    assert wrong == []


def test_axe_finds_nothing_serious(page, tmp_path):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="install the extra dev: axe is missing")
    pair = show("pipeline.commit_then_decide", "pipeline.decide_then_commit")
    for scheme in ("light", "dark"):
        page.page.emulate_media(color_scheme=scheme)
        shown = page.open(tmp_path, ALIGN.html() + pair.html())
        for slider in shown.get_by_role("slider").all():
            slider.fill("9")
        for summary in shown.locator("summary").all():
            summary.click()
        found = axe.Axe().run(shown).response["violations"]
        assert [each["id"] for each in found if each["impact"] in ("serious", "critical")] == [], found


# The live shell, with Python behind it and a model of anywidget's in front.

SHELL = """<div id="live"></div><script type="module">
{source}
const handlers = {{}};
const state = JSON.parse(await window.ask(""))[0];
const model = {{
  get: (name) => state[name],
  on: (name, act) => {{ handlers[name] = act; }},
  off: () => {{}},
  send: async (message) => {{
    for (const told of JSON.parse(await window.ask(JSON.stringify(message)))) {{
      if (!("shown" in told)) {{ handlers["msg:custom"](told); continue; }}
      Object.assign(state, told);
      for (const name of Object.keys(told)) handlers[`change:${{name}}`]?.();
    }}
  }},
}};
window.lost = () => model.get("shown").version -= 1;
render({{ model, el: document.getElementById("live") }});
</script><style>{style}</style>"""


@pytest.fixture
def live(page, tmp_path, monkeypatch):
    """Opens an explorer as JupyterLab would, without a kernel: messages go straight to Python."""

    def opened(going: Session):
        explorer = Explorer(going)
        sent = []
        monkeypatch.setattr(explorer, "send", sent.append)
        monkeypatch.setattr(explorer, "send_state", lambda key: sent.append({key: explorer.everything()}))

        def ask(text):
            sent.clear()
            if not text:
                return json.dumps([{"shown": explorer.everything()}])
            explorer.handle(json.loads(text))
            return json.dumps(sent)

        page.page.expose_function("ask", ask)
        source = asset("stepper.js").replace("export default { render };", "").replace("export function", "function")
        shown = page.open(tmp_path, SHELL.format(source=source, style=asset("scene.css") + asset("stepper.css")))
        return explorer, shown

    return opened


def wait_for_step(shown, step, last):
    shown.locator(".lk-place", has_text=f"step {step} of {last}").first.wait_for()


def test_a_faults_key_takes_it_or_leads_to_the_choice(live):
    explorer, shown = live(session("pipeline~1~~start-1"))
    root = shown.locator("[role=group][tabindex='0']")
    root.focus()
    shown.keyboard.press("c")
    wait_for_step(shown, 2, 2)
    assert explorer.trace.endswith("~~start-1.crash")
    shown.keyboard.press("d")
    assert shown.locator(".lk-status").inner_text() == "no drop is possible here"


def test_a_click_in_the_picture_parameters_and_futures_in_a_notebook(live):
    explorer, shown = live(session("two_phase_commit~1~losses.0~broken.heuristic~~start.read-0"))
    shown.locator(".lk-stage .lk-pic > g text", has_text="participant 1").first.click()
    wait_for_step(shown, 3, 3)
    assert explorer.trace.endswith("~~start.read-0.crash-1")
    shown.get_by_role("button", name="undo the last").click()
    wait_for_step(shown, 2, 2)
    shown.get_by_role("button", name="show for each choice").click()
    shown.locator(".lk-rung.lk-is-wrong", has_text="abort alone(0)").wait_for()
    assert shown.locator(".lk-rung").count() == len(explorer.session.enabled)
    limit = shown.get_by_label("crashes", exact=True)
    if not limit.is_visible():
        shown.locator(".lk-handles summary").click()
    limit.fill("7")
    limit.press("Enter")
    shown.get_by_text("crashes=7: choose a whole number from 0 to 3.").wait_for()
    assert limit.input_value() == "1"
    assert shown.get_by_role("button", name="copy an address").count() == 0  # a notebook has no address for it


def test_a_scenario_a_bad_trace_and_a_run_beside(live):
    explorer, shown = live(Session.of("pipeline"))
    shown.get_by_label("scenario", exact=True).select_option("jump_back")
    wait_for_step(shown, 0, 17)
    assert "hello is seen at 2" in shown.locator(".lk-watch").inner_text()
    box = shown.get_by_label("trace or scenario to open")
    box.fill("nonsense")
    box.press("Enter")
    shown.get_by_text("this is neither a trace nor a scenario: there is no scenario 'nonsense';").wait_for()
    box.fill("pipeline~1~~start-1.fly")
    box.press("Enter")
    shown.get_by_text("step 2 of the trace: fly is not enabled").wait_for()
    shown.get_by_role("slider").fill("8")
    shown.get_by_role("button", name="keep this run").click()
    shown.locator(".lk-pair").wait_for()
    assert shown.locator(".lk-place").all_inner_texts() == ["step 8 of 17", "step 8 of 8"]
    assert explorer.session.kept is not None


def test_another_models_scenario_brings_its_own_menu(live):
    explorer, shown = live(Session.of("pipeline"))
    box = shown.get_by_label("trace or scenario to open")
    box.fill("two_phase_commit.coordinator_gone")
    box.press("Enter")
    shown.locator("h4", has_text="two phase commit").wait_for()
    menu = shown.get_by_label("scenario", exact=True).locator("option").all_inner_texts()
    assert len(menu) == 1 + len(explorer.session.scenarios)
    assert any(entry.startswith("one says no: ") for entry in menu)


def test_a_view_that_missed_something_asks_again(live):
    explorer, shown = live(Session.of("two_phase_commit"))
    shown.get_by_role("button", name="start: ").click()
    wait_for_step(shown, 1, 1)
    shown.evaluate("window.lost()")
    shown.get_by_role("button", name="read(0): ").click()
    wait_for_step(shown, 2, 2)
    assert explorer.session.at == 2


def test_what_a_choice_sends_draws_what_the_whole_story_draws(live):
    """After choices, a branch, an undo and another layout: piece by piece the picture of a view that opens now."""
    explorer, shown = live(Session.of("barriers"))
    read = "() => [...document.querySelectorAll('.lk-stage > svg > g')].map((group) => group.textContent)"
    for nth in range(24):
        chips = shown.locator("button.lk-chip:not(.lk-fault)")
        before = shown.locator(".lk-place").inner_text()
        if nth == 12:
            shown.get_by_role("slider").fill("6")
            chips.last.click()
        else:
            chips.nth(nth % chips.count()).click()
        shown.wait_for_function("before => document.querySelector('.lk-place').textContent !== before", arg=before)
    shown.get_by_role("button", name="undo the last").click()
    wait_for_step(shown, 17, 17)
    told = Player(explorer.session.story.trace).to_json()
    wanted = shown.evaluate(
        "pieces => pieces.map(piece => { const g = document.createElementNS('http://www.w3.org/2000/svg', 'g');"
        " g.innerHTML = piece; return g.textContent; })",
        [told["table"][piece] for piece in told["frames"][explorer.session.at]],
    )
    assert sorted(filter(None, shown.evaluate(read))) == sorted(filter(None, wanted))
