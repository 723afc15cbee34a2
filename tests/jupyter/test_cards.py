"""Cards in a real JupyterLab: a person is told from a program that runs notebooks, and a line changes in its place."""

import nbformat
import pytest
from nbclient import NotebookClient

driving = pytest.importorskip("bench.jupyter_driving", reason="the fixtures of tests/jupyter are not there")

pytestmark = pytest.mark.browser

LOOK = "from labkit.view import front_end\nfront_end.is_watched()"
LINE = """from labkit.view import front_end
line = front_end.line()
for step in range(1, 6):
    line.show(f"step {step}", step, 5)"""
STRIP = 'from labkit import lab\nlab.strip(killed="sink.after_pre_commit", sink="append")'
NAME = "97_cards.ipynb"


@pytest.mark.slow
def test_jupyterlab_is_watched_and_a_program_is_not(lab_server, lab_page):
    path = lab_server.folder / NAME
    driving.write_notebook(path, [LOOK, LINE, STRIP])
    page = lab_page.page
    driving.open_notebook(page, lab_server, NAME)
    driving.run_all(page)
    outputs = page.locator(".jp-CodeCell .jp-Cell-outputArea")
    assert outputs.nth(0).inner_text().strip().endswith("True")
    # Five changes have left one line with one bar.
    assert outputs.nth(1).locator("progress").count() == 1
    assert outputs.nth(1).inner_text().strip().endswith("step 5")
    strip = outputs.nth(2).locator("ol.lkc-strip")
    moments = strip.locator("li")
    assert moments.count() == 9
    assert "ready ✗ killed" in " ".join(moments.nth(3).inner_text().split())
    tops = moments.evaluate_all("all => all.map(each => each.getBoundingClientRect().top)")
    assert len(set(tops)) == 1
    outputs.nth(2).locator(".lkc").evaluate("each => { each.style.width = '420px'; }")
    tops = moments.evaluate_all("all => all.map(each => each.getBoundingClientRect().top)")
    assert len(set(tops)) == 3
    lab_page.keep("cards")
    executed = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(LOOK)])
    NotebookClient(executed, kernel_name="python3").execute()
    [found] = executed.cells[0].outputs
    assert found.data["text/plain"] == "False"
