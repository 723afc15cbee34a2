"""How fast the player is: from a click to the painted frame, and from a page's output to its first picture.

Measured in headless Chromium, with nothing between the browser and the page. Needs playwright (an extra of
development) and the system's Chromium. This module must not judge whether that is fast enough.
"""

import random
import statistics
from time import perf_counter
from typing import Any

from labkit.errors import ServiceUnavailable
from labkit.services.doctor import find_chromium
from labkit.sim.explore import walk
from labkit.sim.scenarios import find
from labkit.sim.trace import Replay, Trace, make
from labkit.view.session import Session
from labkit.view.stepper import Player

CLICKS = 60

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


def measure_player(rounds: int) -> list[dict[str, Any]]:
    """For some runs the size of their output and the times in a browser; for a live session the time of a choice.

    Raises `ServiceUnavailable` where no browser is there.
    """
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        raise ServiceUnavailable("playwright is missing: install the extra dev.") from None
    chromium = find_chromium()
    if chromium is None:
        raise ServiceUnavailable("no chromium on PATH: install the system's chromium package.")
    players = {name: Player(trace) for name, trace in _traces().items()}
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
        rows = [_measured(browser, name, player, rounds) for name, player in players.items()]
        browser.close()
    return rows


def _traces() -> dict[str, Trace]:
    chance = random.Random(1)
    barriers = make("barriers", {"words": "a-b-c-a-b-c-a", "sources": 3, "counts": 3, "checkpoints": 4, "crashes": 3})
    largest = max((walk(barriers, chance.randrange, 300)[0] for _ in range(20)), key=lambda each: len(each.actions))
    return {"pipeline.jump_back": find("pipeline.jump_back").trace, "largest barriers": largest, "2PC": _long_walk()}


def _long_walk() -> Trace:
    """300 steps: one participant never votes, and those in doubt ask again and again."""
    chance, going = random.Random(1), Replay(make("two_phase_commit", {"participants": 8}))
    while len(going.actions) < 300:
        enabled = [
            each for each in going.model.actions(going.state) if each.name in ("start", "read", "hear", "inquire")
        ]
        going.forward(chance.choice([each for each in enabled if each.which != 7]))
    return going.trace


def _measured(browser: Any, name: str, player: Player, rounds: int) -> dict[str, Any]:
    html, appeared, clicks = player.html(), [], []
    for _ in range(rounds):
        page = browser.new_page()
        page.set_content("<!doctype html><title>player</title><body></body>")
        appeared.append(page.evaluate(_APPEAR, html))
        clicks += page.evaluate(_CLICK, CLICKS)
        page.close()
    return {
        "player": name,
        "steps": len(player.story.actions),
        "kilobytes": round(len(html.encode()) / 1000),
        "ms to appear": round(statistics.median(appeared)),
        "ms click to frame": round(statistics.median(clicks), 1),
        "ms p95": round(statistics.quantiles(clicks, n=20)[-1], 1),
        "ms of Python for a choice": _choice(player.story.trace),
    }


def _choice(trace: Trace) -> float:
    """What Python needs for a choice in a live session, from the message to what is sent back."""
    from labkit.view.live import Explorer

    explorer = Explorer(Session(Trace(trace.model, trace.version, trace.parameters, trace.actions[:60])))
    taken = []
    for _ in range(10):
        choice = explorer.session.enabled
        if not choice:
            break
        begun = perf_counter()
        explorer.hear({"do": choice[0], "at": explorer.session.at})
        taken.append(perf_counter() - begun)
    return round(statistics.median(taken) * 1000, 1) if taken else 0.0
