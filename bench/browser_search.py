"""How much longer the largest searches of the first notebooks take in a browser's Python than in this one.

Both run the same simulators alternately, one search at a time, on one core; a ratio compares times of one round.
"""

import inspect
import json
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from bench import timed_search
from bench.browser import chromium
from bench.firefox import Tab, find_firefox, firefox
from bench.page import build_pages
from bench.rows import Rows, median, ratio
from bench.static_site import served

MOST_TIMES = 3.0

SEARCHES: dict[str, tuple[str, dict[str, object]]] = {
    "01": ("barriers", {"mode": "at_least_once", "sink": "two_phase", "counts": 1, "words": "hello-hello"}),
    "02": ("delivery", {"broken": "collect_early", "processes": 2, "records": 2, "window": 2}),
    "03": ("snapshot", {"algorithm": "chandy_lamport", "processes": 3, "transfers": 1}),
    "04": (
        "barriers",
        {"mode": "unaligned", "broken": "skip_channel_state", "words": "hello-hello-world", "counts": 1},
    ),
    "05": ("two_phase_commit", {"participants": 2, "broken": "heuristic"}),
    "06": ("pipeline", {"strategy": "idempotent", "store": "sqlite", "records_per_batch": 1}),
}
"""The search that takes longest in each notebook with simulated cells only: its simulator and parameters."""

_BEGIN = """async ([folder, source]) => {
  const { loadPyodide, plain } = await import(new URL("python.js", folder));
  window.python = await loadPyodide();
  const packed = await (await plain(new URL("labkit.zip", folder))).arrayBuffer();
  window.python.unpackArchive(packed, "zip", { extractDir: "/labkit" });
  window.python.runPython("import sys; sys.path.insert(0, '/labkit')");
  window.python.runPython(source);
}"""
_SEARCH = "(given) => window.python.globals.get('timed_search')(given)"


def measure(rounds: int) -> Rows:
    """Return a row for each search: states, seconds here, ratio in each browser. Raises `ServiceUnavailable`."""
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        build_pages(Path(folder))
        address = stack.enter_context(served(Path(folder)))
        (zipped,) = Path(folder).glob("live/*/labkit.zip")
        pages: dict[str, Any] = {"Chromium": stack.enter_context(chromium()).new_page()}
        if find_firefox():
            pages["Firefox"] = Tab(stack.enter_context(firefox()))
        for page in pages.values():
            page.goto(address)
            page.evaluate(_BEGIN, [f"{address}{zipped.parent.relative_to(folder)}/", inspect.getsource(timed_search)])
        return [_row(notebook, pages, rounds) for notebook in SEARCHES]


def _row(notebook: str, pages: dict[str, Any], rounds: int) -> dict[str, Any]:
    given = json.dumps(SEARCHES[notebook])
    native, taken = list[float](), {browser: list[float]() for browser in pages}
    for _ in range(rounds):
        states, seconds = json.loads(timed_search.timed_search(given))
        native.append(seconds)
        for browser, page in pages.items():
            same, there = json.loads(page.evaluate(_SEARCH, given))
            if same != states:
                raise AssertionError(f"{browser} visited {same} states in {notebook}, Python here {states}.")
            taken[browser].append(there)
    times = {browser: ratio(seconds, native, 1) for browser, seconds in taken.items()}
    return {
        "notebook": notebook,
        "search": SEARCHES[notebook][0],
        "states": states,
        "s here": median(native),
        **{f"times in {browser}": figure for browser, figure in times.items()},
        "held": max(times.values()) <= MOST_TIMES,
    }
