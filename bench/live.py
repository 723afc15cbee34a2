"""How fast a live session is in a real JupyterLab, kernel included: from a click on an action to the painted frame.

Also measures how long notebook 00 takes to its first picture if it does not wait for Spark.
"""

import tempfile
import time
from pathlib import Path
from typing import Any

import nbformat

from bench.browser import chromium
from bench.jupyter_driving import MILLISECONDS, PATIENCE, begin_run, open_notebook, run_all, write_notebook
from bench.jupyter_server import Server, serving
from bench.rows import Rows, median, percentile, spread
from labkit.core.errors import InvalidInput
from labkit.teach.jupyter import first_notebook, notebook_folder

CHOICES = 60
AT_MOST_MS, FIRST_PICTURE_S = 60.0, 3.0


SESSIONS = {
    "two-phase commit, 2 participants": ('lab.explorer("two_phase_commit")', r"^(start|read|hear|inquire)"),
    "two-phase commit, 8 participants": (
        'lab.explorer("two_phase_commit", participants=8)',
        r"^(start|read|hear|inquire)(?!.*\(7\):)",
    ),
    "barriers": ('lab.explorer("barriers")', r"^(?!crash)"),
}

"""For each session to measure, the call that shows it, and a regular expression of the actions to choose."""

CHOOSE = """async ([pattern, choices]) => {
  const root = document.querySelector("[aria-roledescription=stepper]"), wanted = new RegExp(pattern), taken = [];
  for (let nth = 0; nth < choices; nth++) {
    const chips = [...root.querySelectorAll("button.lk-chip")];
    const chip = chips.find((each) => wanted.test(each.getAttribute("aria-label")));
    if (!chip) break;
    await new Promise((done) => setTimeout(done, 60 + (nth * 7) % 17));
    const place = root.querySelector(".lk-place"), before = place.textContent;
    const changed = new Promise((done) => {
      const watch = new MutationObserver(() => { if (place.textContent !== before) { watch.disconnect(); done(); } });
      watch.observe(place, { childList: true, characterData: true, subtree: true });
    });
    const begun = performance.now();
    chip.click();
    await changed;
    await new Promise((done) => requestAnimationFrame(() => {
      const after = new MessageChannel();
      after.port1.onmessage = done;
      after.port2.postMessage(0);
    }));
    taken.push(performance.now() - begun);
  }
  return taken;
}"""
_PICTURE = ".jp-OutputArea-output svg, .jp-OutputArea-output img"


def measure(rounds: int) -> Rows:
    """Return rows: milliseconds of a choice in each session, and seconds to the first picture of the first notebook."""
    with tempfile.TemporaryDirectory(prefix="labkit-bench-") as place:
        folder = Path(place) / "notebooks"
        folder.mkdir()
        for number, (call, _) in enumerate(SESSIONS.values()):
            write_notebook(folder / f"{number}.ipynb", ["from labkit import lab", call])
        start = _without_spark(folder)
        with serving(folder, Path(place) / "home") as server, chromium() as browser:
            rows: Rows = [_chosen(browser, server, number, name, rounds) for number, name in enumerate(SESSIONS)]
            if start:
                rows.append(_first_picture(browser, server, start, rounds))
    return rows


def _without_spark(folder: Path) -> str | None:
    """Copy the first notebook up to the cell that starts Spark; return its name, or None without notebooks."""
    try:
        notebooks = notebook_folder()
    except InvalidInput:
        return None
    name = first_notebook(notebooks)
    sources = [cell.source for cell in nbformat.read(notebooks / name, as_version=4).cells if cell.cell_type == "code"]
    end = next((number for number, source in enumerate(sources) if "lab.crash" in source), len(sources))
    write_notebook(folder / name, sources[:end])
    return name


def _chosen(browser: Any, server: Server, number: int, name: str, rounds: int) -> dict[str, Any]:
    taken: list[float] = []
    for _ in range(rounds):
        page = browser.new_page()
        open_notebook(page, server, f"{number}.ipynb")
        run_all(page)
        page.wait_for_selector("button.lk-chip")
        taken += page.evaluate(CHOOSE, [SESSIONS[name][1], CHOICES])
        page.close()
    middle, slowest = median(taken, 1), percentile(taken, 95, 1)
    return {
        "live session": name,
        "choices": len(taken),
        "ms click to frame": middle,
        "ms p95": slowest,
        "range": spread(taken, 0),
        "at most": AT_MOST_MS,
        "held": slowest <= AT_MOST_MS,
    }


def _first_picture(browser: Any, server: Server, name: str, rounds: int) -> dict[str, Any]:
    """Return the row of the time from Run All in a fresh kernel to the first picture."""
    taken: list[float] = []
    for _ in range(rounds):
        page = browser.new_page()
        open_notebook(page, server, name)
        page.evaluate("() => window.jupyterapp.shell.currentWidget.sessionContext.restartKernel()")
        begun = time.perf_counter()
        begin_run(page)
        page.wait_for_function(
            f"() => window.labkitRan || document.querySelector('{_PICTURE}')", timeout=PATIENCE * MILLISECONDS
        )
        taken.append(time.perf_counter() - begun)
        there = page.locator(_PICTURE).count() > 0
        page.close()
        if not there:
            return {"live session": f"{name} to its first picture", "s": "none before Spark", "held": False}
    middle = median(taken, 2)
    return {
        "live session": f"{name} to its first picture",
        "s": middle,
        "range": spread(taken),
        "at most": FIRST_PICTURE_S,
        "held": middle <= FIRST_PICTURE_S,
    }
