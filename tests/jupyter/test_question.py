"""A question in a real browser: answered by keyboard in JupyterLab, seen again, and asked on a page without a
kernel.
"""

import json
from collections.abc import Iterator
from pathlib import Path

import build_notebooks
import build_site
import nbformat
import pytest
from nbclient import NotebookClient
from waiting import until

driving = pytest.importorskip("bench.jupyter_driving", reason="the fixtures of tests/jupyter are not there")

pytestmark = pytest.mark.browser

OTHER_KINDS = """
from labkit.teach.questions.question import Kind, Question, questions
several = "a log", "memory", "a table"
for made in (
    Question("98-number", Kind.NUMBER, "How many?", ("6",), "Three and three.", unit="rows"),
    Question("98-several", Kind.SEVERAL, "Which are durable?", ("a log", "a table"), "Both are files.", several),
):
    questions()[made.name] = made
"""
SOURCES = [
    "from labkit import lab\nlab.ask('00-rows')",
    "lab.answer('00-rows', 6)",
    f"{OTHER_KINDS}\nlab.ask('98-number')\nlab.ask('98-several')",
    build_notebooks.folded("Six, of course.", ["00-rows"]),
]
NOTEBOOK_KEYS = ("b", "a", "m", "d", "d", "x")
"""In the command mode of a notebook these insert, change, delete and cut cells."""
CUT = """() => [...document.querySelectorAll(".lk-ask, .lk-answer")].flatMap((top) => {
  const right = top.parentElement.getBoundingClientRect().right + 1;
  return [...top.querySelectorAll("*")]
    .filter((each) => each.getClientRects().length && each.getBoundingClientRect().right > right);
}).map((each) => each.outerHTML.slice(0, 80))"""
"""What does not fit into the width that the notebook gives it."""


@pytest.fixture
def asked(lab_server, lab_page, request) -> Iterator:
    """A notebook that asks, its first cell run; nothing is noted beside it, and its kernel is its own."""
    name = f"ask-{abs(hash(request.node.name))}.ipynb"
    (lab_server.folder / "labkit-progress.json").unlink(missing_ok=True)
    driving.write_notebook(lab_server.folder / name, SOURCES)
    driving.open_notebook(lab_page.page, lab_server, name)
    lab_page.page.evaluate("() => window.jupyterapp.shell.collapseLeft()")
    run(lab_page.page, 0)
    lab_page.page.locator("form.lk-ask").first.wait_for()
    yield lab_page
    assert driving.raised(lab_page.page) == []


def run(page, number: int) -> None:
    """Runs one cell, as Ctrl+Enter does on it."""
    page.evaluate(
        """(number) => { const panel = window.jupyterapp.shell.currentWidget; panel.content.activeCellIndex = number;
        return window.jupyterapp.commands.execute("notebook:run-cell"); }""",
        number,
    )


def noted(lab_server) -> dict:
    return json.loads((lab_server.folder / "labkit-progress.json").read_text())


def focused(page) -> str:
    return page.evaluate("() => document.activeElement.value || document.activeElement.textContent")


@pytest.mark.slow
def test_a_prediction_is_made_by_keyboard_and_shown_beside_what_came(asked, lab_server):
    page = asked.page
    form = page.locator("form.lk-ask")
    status = form.get_by_role("status")
    before = driving.cells(page)
    form.get_by_role("radio", name="0", exact=True).focus()
    for key in (*NOTEBOOK_KEYS, "Space", "ArrowRight"):
        page.keyboard.press(key)
    assert focused(page) == "3"
    page.keyboard.press("Tab")
    page.keyboard.type("the rows are there")
    page.keyboard.press("Tab")
    assert focused(page) == "That is my prediction"
    page.keyboard.press("Enter")
    status.get_by_text("Noted: 3. You can change it").wait_for()
    assert focused(page) == "Change my prediction"
    assert driving.cells(page) == before
    assert noted(lab_server)["00-rows"]["predicted"] == ["3"]
    assert noted(lab_server)["00-rows"]["why"] == "the rows are there"
    asked.keep("ask-noted")

    # A second visit, by another kernel, before the answer was shown.
    page.evaluate("() => window.jupyterapp.shell.currentWidget.sessionContext.session.kernel.restart()")
    page.wait_for_function(driving.IDLE)
    form.get_by_role("button", name="Change my prediction").press("Enter")
    status.get_by_text("Not noted yet: the kernel is busy, or").wait_for()
    run(page, 0)
    status.get_by_text("Noted: 3. You can change it").wait_for()
    assert form.get_by_role("radio", name="3", exact=True).is_checked()
    form.get_by_role("radio", name="4", exact=True).focus()
    page.keyboard.press("Space")
    page.keyboard.press("Enter")
    status.get_by_text("Noted: 4.").wait_for()

    behind = page.get_by_role("paragraph").get_by_text("Six, of course.")
    assert not behind.is_visible()
    run(page, 1)
    card = page.locator(".lk-answer")
    card.get_by_text("You said 4. It was 6.").wait_for()
    behind.wait_for()  # the fold opens with the answer
    card.get_by_text("so the second run wrote them again").wait_for()
    card.get_by_text("repeats the whole batch").wait_for()
    status.get_by_text("The answer has been shown, so your choice is final.").wait_for()
    assert form.get_by_role("radio", name="6", exact=True).is_disabled()
    assert form.get_by_role("button").count() == 0
    assert noted(lab_server)["00-rows"]["state"] == "other"
    assert "It was" not in form.inner_text()
    asked.keep("ask-answered")


@pytest.mark.slow
def test_nothing_is_noted_before_something_is_chosen_and_without_one_is_noted_too(asked, lab_server):
    page = asked.page
    form = page.locator("form.lk-ask")
    form.get_by_role("button", name="That is my prediction").focus()
    page.keyboard.press("Enter")
    form.get_by_text("Choose an option first").wait_for()
    assert not (lab_server.folder / "labkit-progress.json").exists()
    form.get_by_role("button", name="show me without one").focus()
    page.keyboard.press("Space")
    form.get_by_text("No prediction. The run shows the answer.").wait_for()
    assert noted(lab_server)["00-rows"]["state"] == "skipped"


@pytest.mark.slow
def test_a_number_and_several_options(asked, lab_server):
    page = asked.page
    run(page, 2)
    number = page.locator('[data-lk-question="98-number"]')
    field = number.get_by_role("textbox", name="How many? rows")
    field.focus()
    page.keyboard.type("six")
    page.keyboard.press("Enter")
    number.get_by_text("Write a number first").wait_for()
    field.fill("6.0")
    page.keyboard.press("Enter")
    number.get_by_text("Noted: 6.").wait_for()
    several = page.locator('[data-lk-question="98-several"]')
    for name in ("a log", "a table"):
        several.get_by_role("checkbox", name=name).focus()
        page.keyboard.press("Space")
    page.keyboard.press("Enter")
    several.get_by_text("Noted: a log, a table.").wait_for()
    until(lambda: noted(lab_server)["98-several"]["predicted"] == ["a log", "a table"], "both to be noted")
    asked.keep("ask-kinds")


@pytest.mark.slow
@pytest.mark.parametrize("theme", ["JupyterLab Light", "JupyterLab Dark"])
def test_it_can_be_read_by_everybody(asked, theme):
    page = asked.page
    form = page.locator("form.lk-ask").first
    form.get_by_role("radio", name="3" if theme.endswith("Dark") else "6").check()
    form.get_by_role("button", name="That is my prediction").click()
    form.get_by_text("Noted: ").wait_for()
    run(page, 1)
    page.locator(".lk-answer").wait_for()
    run(page, 2)
    page.locator('[data-lk-question="98-several"]').wait_for()
    page.evaluate("(theme) => window.jupyterapp.commands.execute('apputils:change-theme', { theme })", theme)
    page.wait_for_function(
        "(dark) => document.body.dataset.jpThemeLight === dark", arg=str(theme.endswith("Light")).lower()
    )
    assert page.locator(".lk-answer").count() == 1
    group = page.get_by_role("group", name="How many rows will a reader find?")
    assert group.get_by_role("radio").count() == 4
    assert page.locator("form.lk-ask").first.get_by_role("status").count() == 1
    for wide in (1280, 640, 320):
        page.set_viewport_size({"width": wide, "height": 900})
        assert page.evaluate(CUT) == [], wide
        asked.keep(f"ask-{theme[11:].lower()}-{wide}")
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="install the extra dev: axe is missing")
    for root in (".lk-ask", ".lk-answer"):
        found = axe.Axe().run(page, context=root).response["violations"]
        assert [each["id"] for each in found] == [], found


PAGE = [
    "from labkit import lab\nlab.ask('00-rows')",
    "print('six rows')",
    "lab.answer('00-rows', 6)",
    build_notebooks.folded("Six, of course.", ["00-rows"]),
    "print('what comes later')",
]


def offline(folder: Path, sources: list[str] = PAGE) -> Path:
    """The page of a notebook that asks, runs something, and answers."""
    driving.write_notebook(folder / "page.ipynb", sources)
    notebook = nbformat.read(folder / "page.ipynb", as_version=4)
    NotebookClient(notebook, resources={"metadata": {"path": str(folder)}}).execute()
    path = folder / "page.html"
    path.write_text(build_site.page(notebook, "page"), encoding="utf-8")
    return path


def test_a_page_without_a_kernel_asks_first_and_remembers(lab_page, tmp_path):
    page = lab_page.page
    page.goto(offline(tmp_path).as_uri())
    form = page.locator("form.lk-ask")
    results = ["It was 6.", "six rows", "Six, of course."]
    curtain = page.get_by_text("Covered until you have predicted")
    assert [page.get_by_text(each, exact=True).is_visible() for each in results] == [False, False, False]
    assert curtain.is_visible()
    assert page.get_by_text("what comes later", exact=True).is_visible()
    lab_page.keep("ask-page-covered")
    form.get_by_role("radio", name="3", exact=True).focus()
    page.keyboard.press("Space")
    page.keyboard.press("Enter")
    page.get_by_text("You said 3. It was 6.", exact=True).wait_for()
    page.get_by_text("Three rows were there before the crash").wait_for()
    assert not curtain.is_visible()
    lab_page.keep("ask-page-answered")
    page.reload()
    page.get_by_text("You said 3. It was 6.", exact=True).wait_for()
    form.get_by_role("button", name="Ask me again").press("Enter")
    curtain.wait_for()
    assert not page.get_by_text("six rows", exact=True).is_visible()
    form.get_by_role("button", name="show me without one").press("Enter")
    page.get_by_text("It was 6.", exact=True).wait_for()
    assert page.get_by_text("You said").count() == 0


def test_what_two_questions_cover_is_seen_when_both_are_answered(lab_page, tmp_path):
    page = lab_page.page
    asking = "lab.ask('00-second-rows')\nlab.ask('00-second-runs')"
    answers = ["lab.answer('00-second-rows', 3)", "lab.answer('00-second-runs', 'twice')"]
    page.goto(offline(tmp_path, [f"from labkit import lab\n{asking}", "print('three rows')", *answers]).as_uri())
    result = page.get_by_text("three rows", exact=True)
    for number in (0, 1):
        assert not result.is_visible()
        assert page.get_by_text("Covered until you have predicted").count() == 1
        form = page.locator("form.lk-ask").nth(number)
        form.get_by_role("button", name="show me without one").click()
    result.wait_for()
    page.get_by_text("It was twice.", exact=True).wait_for()
    assert not page.get_by_text("Covered until").is_visible()


@pytest.mark.slow
def test_a_page_that_may_keep_nothing_still_asks(lab_page, tmp_path):
    page = lab_page.page
    page.add_init_script("Object.defineProperty(window, 'localStorage', { get() { throw new Error('no'); } })")
    page.goto(offline(tmp_path).as_uri())
    page.locator("form.lk-ask").get_by_role("radio", name="6", exact=True).check()
    page.get_by_role("button", name="That is my prediction").click()
    page.get_by_text("You said 6. It was 6.", exact=True).wait_for()
    assert page.locator(".lk-answer").get_attribute("data-mark") == "agrees"
