"""How fast a live page is from a plain static server: from the first click to the first step, and each step after it.

Each round begins with an empty browser cache. Bytes are those of files that a server sends without compression.
"""

import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from bench.browser import chromium
from bench.firefox import Firefox, Tab, find_firefox, firefox
from bench.live import CHOOSE
from bench.rows import Rows, median, percentile, spread
from bench.static_site import served
from labkit.core.errors import ServiceUnavailable

ROOT = Path(__file__).parent.parent
CHOICES = 40
MOST_MB, MOST_SECONDS, MOST_MS = 8.0, 5.0, 50.0

SIMULATORS = {"two_phase_commit": r"^(start|read|hear|inquire)", "barriers": r"^(?!crash)", "pipeline": r"^(?!crash)"}
"""The simulators to measure, each with a regular expression of the actions to choose."""
LONGER = {
    "barriers": "barriers~1~words.hello-world-hello-world-hello-world~~",
    "pipeline": "pipeline~1~words.hello-world-hello-world-hello-world~records_per_batch.1~~",
}
"""For simulators whose page's own run is too short: a longer run with which to continue."""

_LIVE = "() => document.querySelector('[data-lk-live]')"
_FIRST = """async (pattern) => {
  const wanted = new RegExp(pattern), place = document.querySelector(".lk-place"), before = place.textContent;
  const chips = [...document.querySelectorAll("button.lk-chip")];
  const chip = chips.find((each) => wanted.test(each.getAttribute("aria-label")));
  const begun = performance.now();
  chip.click();
  while (place.textContent === before) await new Promise((done) => setTimeout(done, 5));
  return (performance.now() - begun) / 1000;
}"""
_GO_ON = """async (trace) => {
  location.hash = trace;
  const place = document.querySelector(".lk-place");
  while (place.textContent !== "step 0 of 0") await new Promise((done) => setTimeout(done, 5));
}"""


def measure(rounds: int) -> Rows:
    """Return rows: seconds and MB to the first step, ms per step, in each browser. Raises `ServiceUnavailable`."""
    with tempfile.TemporaryDirectory() as folder:
        build_pages(Path(folder))
        with served(Path(folder)) as address:
            pages = _Pages(address, Path(folder), rounds)
            with chromium() as browser:
                rows = [pages.measured("Chromium", lambda: _in_chromium(browser), name) for name in SIMULATORS]
            if find_firefox():
                with firefox() as other:
                    rows += [pages.measured("Firefox", lambda: _in_firefox(other), name) for name in SIMULATORS]
            return rows


def _in_chromium(browser: Any) -> tuple[Any, list[str]]:
    page, asked = browser.new_page(viewport={"width": 1280, "height": 1200}), list[str]()
    page.on("request", lambda request: asked.append(request.url))
    return page, asked


def _in_firefox(browser: Firefox) -> tuple[Any, list[str]]:
    tab = Tab(browser)
    return tab, tab.asked


def build_pages(folder: Path) -> None:
    """Write the pages of `make simulators` into a folder. Raises `ServiceUnavailable`."""
    command = [sys.executable, str(ROOT / "tools" / "build_site.py"), "--simulators", "--out", str(folder)]
    if subprocess.run(command, check=False, stdout=subprocess.DEVNULL).returncode:
        raise ServiceUnavailable("the live pages could not be built; see the message above.")


class _Pages(NamedTuple):
    address: str
    folder: Path
    rounds: int

    def measured(self, browser: str, tab: Callable[[], tuple[Any, list[str]]], name: str) -> dict[str, Any]:
        first, after, steps, sizes, foreign = [], [], [], [], 0
        for _ in range(self.rounds):
            page, asked = tab()
            page.goto(f"{self.address}simulators/{name}.html")
            page.wait_for_function(_LIVE)
            first.append(page.evaluate(_FIRST, SIMULATORS[name]))
            # The browser is still busy with what it has loaded.
            after += page.evaluate(f"(given) => ({CHOOSE})(given)", [SIMULATORS[name], 1])
            if name in LONGER:
                page.evaluate(_GO_ON, LONGER[name])
            steps += page.evaluate(f"(given) => ({CHOOSE})(given)", [SIMULATORS[name], CHOICES])
            own = {url for url in asked if url.startswith(self.address)}
            foreign += sum(not url.startswith((self.address, "data:", "blob:")) for url in asked)
            files = (self.folder / urlsplit(url).path.removeprefix("/") for url in own)
            sizes.append(sum(each.stat().st_size for each in files) / 1e6)
            page.close()
        begun, slowest, megabytes = median(first, 1), percentile(steps, 95, 0), max(sizes)
        return {
            "simulator": name,
            "browser": browser,
            "s to first step": begun,
            "spread": spread(first, 1),
            "MB": round(megabytes, 2),
            "other hosts": foreign,
            "ms of the next": spread(after, 0),
            "steps": len(steps),
            "ms a step": round(median(steps, 0)),
            "ms p95": round(slowest),
            "held": megabytes <= MOST_MB and begun <= MOST_SECONDS and slowest <= MOST_MS and not foreign,
        }
