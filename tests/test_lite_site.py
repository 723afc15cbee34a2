"""The notebooks in a real browser without an installation: run to the end with all other hosts cut off, answered,
checked, kept over a reload, downloaded and graded.
"""

import csv
import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import build_site
import lite_site
import live_pages
import nbformat
import pytest
import recordings
from lite_check import OURS, checked, compared, open_notebook, outputs_of

from bench.firefox import Tab, firefox
from bench.jupyter_driving import cells, raised, run_all, save
from bench.static_site import served
from labkit.core.errors import ServiceUnavailable

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = [pytest.mark.slow, pytest.mark.browser]

ROOT = Path(__file__).parent.parent
NAME, RECORDED = "02_delivery", "00_start"
MADE = "on 2026-01-02 with Spark 4.2.0"
LONG_SEARCH = 'lab.explore("two_phase_commit", participants=3, crashes=2)'
PATIENCE = 240_000
NO_STORAGE = """Object.defineProperty(window, "indexedDB",
  { get() { throw new DOMException("forbidden", "SecurityError"); } });"""
WRITE = """([number, source]) =>
  window.jupyterapp.shell.currentWidget.content.widgets[number].model.sharedModel.setSource(source)"""
RUN = """async (numbers) => {
  const notebook = window.jupyterapp.shell.currentWidget.content;
  for (const number of numbers) {
    notebook.activeCellIndex = number;
    notebook.deselectAll();
    await window.jupyterapp.commands.execute("notebook:run-cell");
  }
}"""
BEGIN = """(number) => {
  window.jupyterapp.shell.currentWidget.content.activeCellIndex = number;
  window.jupyterapp.commands.execute("notebook:run-cell");
}"""
FILE = """async (path) =>
  (await window.jupyterapp.serviceManager.contents.get(path, { content: true, format: "text" })).content"""
SOLUTION = """# exercise 02-dedup
def receive(id, table, memory):
    return ["acknowledge"] if id in table else ["output and note", "acknowledge"]
"""


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server of static files with the site in it, and nothing else. The first notebook has been recorded."""
    root = tmp_path_factory.mktemp("lite")
    (root / "notebooks").mkdir()
    for name in (NAME, RECORDED):
        shutil.copy(ROOT / "notebooks" / f"{name}.ipynb", root / "notebooks")
    folder, recorded = root / "site", root / recordings.FOLDER
    recorded.mkdir(parents=True)
    kept = checked(RECORDED)
    kept.metadata["recorded"] = MADE
    nbformat.write(kept, recorded / f"{RECORDED}.ipynb")
    try:
        parts = lite_site.fetched()
        live = build_site.simulators(folder, live_pages.pyodide())
    except ServiceUnavailable as missing:
        pytest.skip(str(missing))
    lite_site.write(folder, live, root, parts)
    with served(folder) as where:
        yield where


def test_a_learner_takes_a_notebook_in_the_browser_and_hands_it_in(
    address: str, chrome: "Browser", tmp_path: Path
) -> None:
    context = chrome.new_context(viewport={"width": 1280, "height": 900})
    context.set_default_timeout(PATIENCE)
    # What is not this site's does not exist.
    outside: list[str] = []
    context.route(lambda url: not OURS.match(url), lambda route: (outside.append(route.request.url), route.abort()))
    page = context.new_page()
    open_notebook(page, address, NAME)
    run_all(page, PATIENCE / 1000)
    assert raised(page) == []
    results = compared(page, NAME)
    assert len(results) == 10
    assert [came for _, came, _ in results] == [claimed for _, _, claimed in results]

    ask, dedup = place(page, 'lab.ask("02-again")'), place(page, "# exercise 02-dedup")
    page.evaluate(RUN, [ask])
    predict(page, "at-least-once")
    page.evaluate(WRITE, [dedup, SOLUTION])
    page.evaluate(RUN, [dedup, dedup + 1])
    assert "public checks passed" in shown(page, dedup + 1)
    assert "after a restart, which a browser cannot do" in shown(page, dedup + 1)
    save(page)

    # A tab that is closed in the middle of a search loses the search alone.
    page.evaluate(WRITE, [ask, LONG_SEARCH])
    page.evaluate(BEGIN, ask)
    page.get_by_text("[*]:").first.wait_for()
    page.close(run_before_unload=False)
    page = context.new_page()
    open_notebook(page, address, NAME)
    assert cells(page)[dedup] == SOLUTION
    assert "public checks passed" in shown(page, dedup + 1)
    noted = json.loads(page.evaluate(FILE, "labkit-progress.json"))
    assert (noted["02-dedup"]["state"], noted["02-dedup"]["points"]) == ("done", 4)
    page.evaluate(RUN, [place(page, "from labkit import lab"), ask])
    page.get_by_text("Noted: at-least-once.").first.wait_for()

    with page.expect_download() as download:
        page.evaluate("() => window.jupyterapp.commands.execute('docmanager:download')")
    handed_in = tmp_path / "in" / "browser" / f"{NAME}.ipynb"
    download.value.save_as(handed_in)
    context.close()
    assert outside == []
    assert graded(tmp_path) == {"browser": ["4", "0", "4"], "jupyterlab": ["4", "0", "4"]}


@pytest.mark.variant
def test_firefox_runs_a_notebook(address: str) -> None:
    try:
        with firefox() as browser:
            tab = Tab(browser)
            open_notebook(tab, address, NAME)
            run_all(tab)
            results = compared(tab, NAME)
            assert len(results) == 10
            assert [came for _, came, _ in results] == [claimed for _, _, claimed in results]
            assert [url for url in tab.asked if not OURS.match(url)] == []
    except ServiceUnavailable as missing:
        pytest.skip(str(missing))


def test_a_cell_that_needs_spark_plays_its_recording_unless_the_learner_changed_what_it_uses(
    address: str, chrome: "Browser"
) -> None:
    context = chrome.new_context(viewport={"width": 1280, "height": 900})
    context.set_default_timeout(PATIENCE)
    page = context.new_page()
    open_notebook(page, address, RECORDED)
    run_all(page, PATIENCE / 1000)
    assert raised(page) == []
    crash, answer = place(page, "outcome = lab.crash("), place(page, 'lab.answer("00-rows"')
    assert f"Recorded, not run here: {MADE}." in shown(page, crash)
    assert "labkit lab" in shown(page, crash)
    assert "It was 6." in shown(page, answer)
    page.evaluate(WRITE, [answer, "outcome.verdict"])
    page.evaluate(RUN, [answer])
    assert "`outcome` is the result of a real run" in shown(page, answer)
    sink = place(page, 'sink = "append"')
    page.evaluate(WRITE, [sink, 'sink = "idempotent"\nfailpoint = "sink.after_pre_commit"'])
    page.evaluate(RUN, [sink, crash])
    assert "You changed `failpoint`, so the recording of this cell no longer fits." in shown(page, crash)
    context.close()


@pytest.mark.parametrize(
    ("script", "sentence"),
    [("delete window.WebAssembly;", "no cell can run here"), (NO_STORAGE, "nothing is kept: allow storage")],
)
def test_a_browser_that_lacks_something_says_so(address: str, chrome: "Browser", script: str, sentence: str) -> None:
    context = chrome.new_context()
    context.add_init_script(script)
    page = context.new_page()
    page.goto(address + lite_site.address(NAME))
    page.get_by_role("alert").filter(has_text=sentence).wait_for()
    context.close()


def place(page: "Page", begins: str) -> int:
    return next(number for number, source in enumerate(cells(page)) if source.startswith(begins))


def shown(page: "Page", number: int) -> str:
    return json.dumps(outputs_of(page)[number])


def predict(page: "Page", option: str) -> None:
    form = page.locator("form[data-lk-question='02-again']").first
    form.get_by_text(option, exact=True).click()
    form.locator("button[type=submit]").click()
    page.get_by_text(f"Noted: {option}.").first.wait_for()


def graded(folder: Path) -> dict[str, list[str]]:
    """The points of the notebook from the browser, and of one with the same answer from JupyterLab."""
    (folder / "in" / "jupyterlab").mkdir()
    notebook = nbformat.read(ROOT / "notebooks" / f"{NAME}.ipynb", as_version=4)
    next(cell for cell in notebook.cells if cell.source.startswith("# exercise 02-dedup")).source = SOLUTION
    nbformat.write(notebook, folder / "in" / "jupyterlab" / f"{NAME}.ipynb")
    command = [sys.executable, "-m", "labkit", "grade", folder / "in", "--out", folder / "out"]
    subprocess.run(command, check=True, capture_output=True)
    with (folder / "out" / "grades.csv").open(encoding="utf-8") as file:
        return {row[0]: row[1:4] for row in list(csv.reader(file))[1:]}
