"""Draw the pictures that are in git: `python tools/build_pictures.py`; `--check` lists those that differ.

Golden pictures for the tests: a frame of every model, the space-time diagrams of a simulated and of a real run, with
their text as description. Stills for the README: the stepper, the jump back and the strip of one batch; `--stills`
draws only these.
"""

import argparse
import sys
from pathlib import Path

from still import Seen, seen_over_time
from still import stepper as stepper_still
from still import strip as strip_still
from systems_picture import systems

from labkit.core.failpoints import Crash, FailPoint, Order
from labkit.core.records import Observation, Reading
from labkit.core.strategies import Strategy
from labkit.runs.pages.diagram import of_run
from labkit.sim.models.pipeline.claims import Judge
from labkit.sim.models.pipeline.model import Pipeline
from labkit.sim.models.pipeline.scenarios import crashed
from labkit.sim.scenarios import find
from labkit.sim.trace import parse
from labkit.view import spacetime
from labkit.view.assets import asset
from labkit.view.stepper import Player, still
from labkit.view.strip import Strip
from labkit.view.timeline import Step, by_key

ROOT = Path(__file__).parent.parent
GOLDEN = ROOT / "tests" / "view" / "golden"
STILLS = ROOT / "docs"
GOES_BACK = 12
"""The step of the scenario jump_back in which the count of hello goes back to 1."""

FRAMES = {
    "delivery": ("delivery.strong_production", 6),
    "snapshot": ("snapshot.markers_flow", 6),
    "barriers": ("barriers.alignment", 12),
    "two_phase_commit": ("two_phase_commit~1~~start.read-0.hear-0.read-1.crash_coordinator", 5),
    "textbook": ("two_phase_commit~1~textbook.true~~prepare-0.hear-0", 1),
    "pipeline": ("pipeline.half_committed", 12),
    "changelog": ("changelog.retract_stream", 9),
    "kafka_log": ("kafka_log.half_visible", 9),
    "orders": ("orders.decided_then_finished", 7),
}
"""For each golden picture, a run (scenario or trace) and the step that is drawn."""


def player(text: str) -> Player:
    """Return the player of a run, given as a scenario's name or as a trace."""
    return Player(parse(text)) if "~" in text else Player(find(text).trace, find(text).watch_for)


def a_real_run() -> spacetime.Diagram:
    """Return the space-time diagram of a real run that was killed once."""
    crash = {"point": "sink.after_pre_commit", "batch": 0, "signal": 9, "offset_log": [0], "commit_log": []}
    rows = [Observation(offset, word, value, 0, 1) for offset, word, value in ((0, "hello", 1), (2, "hello", 2))]
    again = [row._replace(incarnation=2) for row in rows]
    return of_run([crash], [*rows, Reading("crash 1"), *again, Reading("end")])


STYLE = f"<style>{asset('scene.css')}</style>"
IMPORTED = '<style>@import "../../../labkit/view/static/scene.css";</style>'
"""The style that replaces `STYLE` in a golden picture: with it, a browser loads the style sheet itself."""


def pictures() -> dict[str, str]:
    """Return the content of every golden file, by name."""
    results = {f"{name}.svg": still(player(text).story, step) for name, (text, step) in FRAMES.items()}
    walk = player("barriers.alignment").story.diagram()
    for name, diagram in (("walk", walk), ("run", a_real_run())):
        results[f"spacetime_{name}.svg"] = spacetime.svg(diagram, title=f"Space-time diagram of a {name}")
    results["player.txt"] = f"{player('pipeline.jump_back')}\n"
    return {name: text.replace(STYLE, IMPORTED) for name, text in results.items()}


def seen(strategy: Strategy, order: Order, store: str) -> tuple[Seen, list[Step]]:
    """Return caption and steps of *hello* for this simulated sink, killed between pre-commit and commit."""
    walk = crashed(strategy, order, store, [Crash(FailPoint.AFTER_PRE_COMMIT)])
    assert isinstance(walk.model, Pipeline)
    judge = Judge(walk.model.settings)
    verdict = judge.verdict(walk.state)
    went_back = ", and a value jumped back" if verdict.regression else ""
    steps = by_key(judge.history(walk.state).events)["hello"]
    return Seen(strategy.value, f"{verdict.guarantee}{went_back}"), steps


def stills() -> dict[str, str]:
    """Return the SVG of the README's pictures, by file name."""
    sinks = [
        (Strategy.APPEND, Order.NONE, "files"),
        (Strategy.IDEMPOTENT, Order.NONE, "sqlite"),
        (Strategy.TWO_PHASE, Order.DECISION, "sqlite"),
    ]
    return {
        "stepper.svg": stepper_still(player("pipeline.jump_back").story, GOES_BACK),
        "jump_back.svg": seen_over_time(dict(seen(*sink) for sink in sinks), "hello"),
        "strip.svg": strip_still(Strip(FailPoint.AFTER_PRE_COMMIT)),
        "systems.svg": systems(),
    }


def main() -> int:
    """Write the pictures, or with --check compare them; return 1 if one differs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 when a picture is out of step")
    parser.add_argument("--stills", action="store_true", help="only the pictures of the README")
    chosen = parser.parse_args()
    check = chosen.check
    results = {STILLS / name: text for name, text in stills().items()}
    if not chosen.stills:
        results |= {GOLDEN / name: text for name, text in pictures().items()}
    wrong = []
    for path, text in results.items():
        name = path.name
        if check and (not path.exists() or path.read_text(encoding="utf-8") != text):
            wrong.append(name)
        elif not check:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
    if wrong:
        print(f"out of step: {', '.join(wrong)}; look at them, then run python tools/build_pictures.py")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
