"""How fast a live page is from a plain static server: from the first click to the first step, and each step after it.

Each round begins with a browser that has nothing in its cache. Bytes are counted as a server sends them that compresses
nothing.
"""

import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from bench.browser import chromium
from bench.live import CHOOSE
from bench.rows import Rows, median, percentile, spread
from bench.static_site import served
from labkit.core.errors import ServiceUnavailable

ROOT = Path(__file__).parent.parent
CHOICES = 40
MOST_MB, MOST_SECONDS, MOST_MS = 8.0, 5.0, 50.0

SIMULATORS = {"two_phase_commit": r"^(start|read|hear|inquire)", "barriers": r"^(?!crash)", "pipeline": r"^(?!crash)"}
"""The simulators that are measured, each with a pattern of the actions that are chosen."""

_FIRST = """async (pattern) => {
  const wanted = new RegExp(pattern), place = document.querySelector(".lk-place"), before = place.textContent;
  const chips = [...document.querySelectorAll("button.lk-chip")];
  const chip = chips.find((each) => wanted.test(each.getAttribute("aria-label")));
  const begun = performance.now();
  chip.click();
  while (place.textContent === before) await new Promise((done) => setTimeout(done, 5));
  return (performance.now() - begun) / 1000;
}"""


def measure(rounds: int) -> Rows:
    """For some simulators the seconds to the first step, its megabytes, and milliseconds a step. Raises
    `ServiceUnavailable`.
    """
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, str(ROOT / "tools" / "build_site.py"), "--simulators", "--out", folder]
        if subprocess.run(command, check=False, stdout=subprocess.DEVNULL).returncode:
            raise ServiceUnavailable("the live pages could not be built; the line above says why.")
        with served(Path(folder)) as address, chromium() as browser:
            return [_measured(browser, address, Path(folder), name, rounds) for name in SIMULATORS]


def _measured(browser: Any, address: str, folder: Path, name: str, rounds: int) -> dict[str, Any]:
    first, steps, sizes, foreign = [], [], [], 0
    for _ in range(rounds):
        context = browser.new_context(viewport={"width": 1280, "height": 1200})
        page, asked = context.new_page(), list[str]()
        page.on("request", lambda request, asked=asked: asked.append(request.url))
        page.goto(f"{address}simulators/{name}.html")
        page.wait_for_selector("[data-lk-live]")
        first.append(page.evaluate(_FIRST, SIMULATORS[name]))
        steps += page.evaluate(CHOOSE, [SIMULATORS[name], CHOICES])
        own = {url for url in asked if url.startswith(address)}
        foreign += sum(not url.startswith((address, "data:", "blob:")) for url in asked)
        sizes.append(sum((folder / urlsplit(url).path.removeprefix("/")).stat().st_size for url in own) / 1e6)
        context.close()
    begun, step, megabytes = median(first, 1), median(steps, 0), max(sizes)
    return {
        "simulator": name,
        "s to first step": begun,
        "spread": spread(first, 1),
        "MB": round(megabytes, 2),
        "other hosts": foreign,
        "ms a step": round(step),
        "ms p95": round(percentile(steps, 95, 0)),
        "held": megabytes <= MOST_MB and begun <= MOST_SECONDS and step <= MOST_MS and not foreign,
    }
