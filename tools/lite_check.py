"""Run every notebook of `make lite` or `make site` in a real browser, offline: `make lite-check`.

The output of its cells is compared with the source's expected texts, as nbval does; a recorded cell must show what it
showed when it was recorded. This is a campaign to start by hand: it takes half a minute for each notebook.
"""

import argparse
import os
import re
import sys
import time
from pathlib import Path
from typing import Any

import build_notebooks
import lite_site
import nbformat
from nbformat import NotebookNode
from outputs import said
from playwright.sync_api import Page, sync_playwright
from reading import tags

from bench.firefox import Tab
from bench.jupyter_driving import IDLE, READY, cells, raised, run_all
from bench.static_site import served
from labkit.host.doctor import find_chromium

ROOT = Path(__file__).parent.parent
PATIENCE = 300
"""The most seconds that a notebook may take."""
OURS = re.compile(r"http://127\.0\.0\.1[:/]|data:|blob:")
OUTPUTS = """() => window.jupyterapp.shell.currentWidget.content.model.sharedModel.cells
  .map((cell) => cell.cell_type === 'code' ? cell.getOutputs() : [])"""
PLAYED = re.compile(r"^Recorded, not run here: .*\n")
REFUSED = "This cell needs real processes"


def open_notebook(page: Page | Tab, address: str, name: str) -> None:
    """Open a notebook of the site at this address, and wait until its kernel is idle."""
    page.goto(address + lite_site.address(name))
    page.wait_for_function(READY)
    page.wait_for_function(IDLE)


def checked(name: str) -> NotebookNode:
    """Return the checked copy of a notebook, with the outputs that its source states."""
    _, text = build_notebooks.build(ROOT / "notebooks" / "src" / f"{name}.py")
    notebook: NotebookNode = nbformat.reads(text, as_version=4)
    return notebook


def compared(page: Page | Tab, name: str) -> list[tuple[str, str, str]]:
    """Return the source, the actual and the expected output of each cell whose output the source states.

    Cells with `lab.check` are left out, because a person sees a card there and not the text that nbval sees.
    """
    claimed = {
        str(cell.source): said(cell.outputs)
        for cell in checked(name).cells
        if "nbval-check-output" in tags(cell) and "check" not in tags(cell)
    }
    outputs = zip(cells(page), outputs_of(page), strict=True)
    return [(source, _spoken(came), claimed[source]) for source, came in outputs if source in claimed]


def _spoken(outputs: list[Any]) -> str:
    """Return the text of a cell's outputs; of a recorded cell, that of the recording."""
    text = said(outputs)
    if not PLAYED.match(text):
        return text
    shown = [each for each in outputs if each["output_type"] == "display_data"]
    result = [{**each, "output_type": "execute_result"} for each in shown[-1:]]
    return PLAYED.sub("", said([*outputs, *result]))


def outputs_of(page: Page | Tab) -> list[Any]:
    """Return the outputs of every cell; a text cell has none."""
    results: list[Any] = page.evaluate(OUTPUTS)
    return results


def check(page: Page, address: str, name: str) -> list[str]:
    """Run a notebook from top to bottom, and return a sentence for each problem."""
    began = time.monotonic()
    open_notebook(page, address, name)
    opened = time.monotonic() - began
    run_all(page, PATIENCE)
    whole = time.monotonic() - began
    texts = [said(each) for each in outputs_of(page)]
    played, refused = (sum(text.startswith(words) for text in texts) for words in ("Recorded, not run here", REFUSED))
    results = [each for each in compared(page, name) if not each[1].startswith(REFUSED)]
    wrong = [f"{name}: raised {each}" for each in raised(page)]
    wrong += [f"{name}: {source!r} says {came!r}, not {claim!r}" for source, came, claim in results if came != claim]
    print(
        f"{name}: {len(results)} outputs compared, {played} cells recorded, {refused} without a recording, "
        f"{len(wrong)} wrong; open after {opened:.1f} s, ended after {whole:.1f} s",
        flush=True,
    )
    return wrong


def main(arguments: list[str] | None = None) -> int:
    """Check the notebooks; return 1 if an output is wrong, 69 without a browser or a site, otherwise 0."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NN_topic", help="default: all")
    parser.add_argument("--site", type=Path, default=ROOT / "build" / "site")
    options = parser.parse_args(arguments)
    chromium = find_chromium()
    files = options.site / lite_site.FOLDER / "files"
    if chromium is None or not files.is_dir():
        missing = "No chromium on PATH: install the system's package." if files.is_dir() else "Run make lite first."
        print(missing, file=sys.stderr)
        return 69
    wrong, outside = [], set[str]()
    with served(options.site) as address, sync_playwright() as playwright:
        root = ["--no-sandbox"] if os.geteuid() == 0 else []
        browser = playwright.chromium.launch(executable_path=chromium, args=["--disable-gpu", *root])
        for name in options.names or sorted(path.stem for path in files.glob("*.ipynb")):
            context = browser.new_context()
            context.set_default_timeout(PATIENCE * 1000)
            context.on("request", lambda request: None if OURS.match(request.url) else outside.add(request.url))
            wrong += check(context.new_page(), address, name)
            context.close()
        browser.close()
    wrong += [f"asked another host: {url}" for url in sorted(outside)]
    sys.stderr.writelines(f"{each}\n" for each in wrong)
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
