"""How fast the player is: from a click to the painted frame, and from a page's output to its first picture.

Measured in headless Chromium, with nothing between the browser and the page. Needs playwright (an extra for
development) and the system's Chromium. `bench.live` measures a choice in a live session.
"""

import random
from typing import Any

from bench.browser import chromium
from bench.explore import long_walk
from bench.rows import Rows, median, percentile
from labkit.sim.scenarios import find
from labkit.sim.trace import Replay, Trace, make
from labkit.view.stepper import Player

CLICKS = 60
MOST = (1000, 300, 12.0, 40.0)
"""The limits: kilobytes, milliseconds to appear, and median and 95th percentile from a click to its frame."""

_APPEAR = """async (html) => {
  const begun = performance.now(), place = document.body;
  place.innerHTML = html;
  for (const script of [...place.querySelectorAll("script")]) {
    const live = document.createElement("script");
    for (const { name, value } of script.attributes) live.setAttribute(name, value);
    live.textContent = script.textContent;
    script.replaceWith(live);
  }
  while (!document.querySelector(".lk-place")) await new Promise((done) => setTimeout(done));
  await new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
  return performance.now() - begun;
}"""

_CLICK = """async (clicks) => {
  const next = document.querySelector(".lk-main"), back = document.querySelector("[aria-label='first step']");
  const taken = [];
  for (let nth = 0; nth < clicks; nth++) {
    if (next.getAttribute("aria-disabled") === "true") back.click();
    await new Promise((done) => setTimeout(done, 30 + (nth * 7) % 17));  // at any moment between two frames
    const begun = performance.now();
    next.click();
    await new Promise((done) => requestAnimationFrame(() => {
      const after = new MessageChannel();
      after.port1.onmessage = done;
      after.port2.postMessage(0);
    }));
    taken.push(performance.now() - begun);
  }
  return taken;
}"""


def measure(rounds: int) -> Rows:
    """Return rows for some runs: the size of their output, and times in a browser. Raises `ServiceUnavailable`."""
    players = {name: Player(trace) for name, trace in traces().items()}
    with chromium() as browser:
        return [_measured(browser, name, player, rounds) for name, player in players.items()]


def traces() -> dict[str, Trace]:
    """Return the traces to show, by name: a run of the first notebooks, and the longest runs of the largest scenes."""
    return {
        "pipeline.jump_back": find("pipeline.jump_back").trace,
        "largest barriers": _barriers(),
        "2PC": long_walk(300).trace,
    }


def _barriers() -> Trace:
    """Return a long run of the simulator with the largest scene.

    The run takes every step of normal work that is possible, and crashes and cancels only if no other step is left.
    """
    given = {"words": "a-b-c-d-a-b-c-d", "sources": 3, "counts": 3, "checkpoints": 4, "concurrent": 3}
    chance, going = (random.Random(1), Replay(make("barriers", {**given, "crashes": 3, "cancels": 1})))
    while enabled := going.model.actions(going.state):
        working = [each for each in enabled if each.name in _WORK]
        failing = [each for each in enabled if each.name in ("crash", "cancel")]
        going.forward(chance.choice(working or failing or list(enabled)))
    return going.trace


_WORK = ("read", "process", "take_barrier", "take_end", "trigger", "inject")


def _measured(browser: Any, name: str, player: Player, rounds: int) -> dict[str, Any]:
    html, appeared, clicks = player.html(), [], []
    for _ in range(rounds):
        page = browser.new_page()
        page.set_content("<!doctype html><title>player</title><body></body>")
        appeared.append(page.evaluate(_APPEAR, html))
        clicks += page.evaluate(_CLICK, CLICKS)
        page.close()
    kilobytes, appear = round(len(html.encode()) / 1000), round(median(appeared, 0))
    click, slowest = median(clicks, 1), percentile(clicks, 95, 1)
    return {
        "player": name,
        "steps": len(player.story.actions),
        "kB": kilobytes,
        "ms to appear": appear,
        "ms click to frame": click,
        "ms p95": slowest,
        "held": all(value <= most for value, most in zip((kilobytes, appear, click, slowest), MOST, strict=True)),
    }
