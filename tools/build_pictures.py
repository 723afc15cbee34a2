"""Golden pictures: `python tools/build_pictures.py` draws them anew, with `--check` it says which are out of step.

A frame of every model, the space-time diagrams of a simulated and of a real run, as SVG and as text.
"""

import argparse
import sys
from pathlib import Path

from labkit.records import Observation, Reading
from labkit.sim.scenarios import find
from labkit.sim.trace import Trace
from labkit.view import spacetime
from labkit.view.run_diagram import of_run
from labkit.view.stepper import Player, still

GOLDEN = Path(__file__).parent.parent / "tests" / "view" / "golden"

FRAMES = {
    "delivery": ("delivery.strong_production", 6),
    "snapshot": ("snapshot.markers_flow", 6),
    "barriers": ("barriers.alignment", 12),
    "two_phase_commit": ("two_phase_commit~1~~start.read-0.hear-0.read-1.crash_coordinator", 5),
    "textbook": ("two_phase_commit~1~textbook.true~~prepare-0.hear-0", 1),
    "pipeline": ("pipeline.half_committed", 12),
    "changelog": ("changelog.retract_stream", 9),
    "kafka_log": ("kafka_log.half_visible", 9),
}
"""Of every model a run and the step that is drawn."""


def player(text: str) -> Player:
    """A run by name or by trace."""
    return Player(Trace.parse(text)) if "~" in text else Player(find(text).trace, find(text).watch_for)


def a_real_run() -> spacetime.Diagram:
    """What a run folder says of a run that was killed once."""
    crash = {"point": "sink.after_pre_commit", "batch": 0, "signal": 9, "offset_log": [0], "commit_log": []}
    rows = [Observation(offset, word, value, 0, 1) for offset, word, value in ((0, "hello", 1), (2, "hello", 2))]
    again = [row._replace(attempt=2) for row in rows]
    return of_run([crash], [*rows, Reading("crash 1"), *again, Reading("end")])


def pictures() -> dict[str, str]:
    """Every golden file by its name."""
    made = {f"{name}.svg": still(player(text).story, step) for name, (text, step) in FRAMES.items()}
    walk = player("barriers.alignment").story.diagram()
    for name, diagram in (("walk", walk), ("run", a_real_run())):
        made[f"spacetime_{name}.svg"] = spacetime.svg(diagram, title=f"Space-time diagram of a {name}")
        made[f"spacetime_{name}.txt"] = spacetime.text(diagram) + "\n"
    made["player.txt"] = f"{player('pipeline.jump_back')}\n"
    return made


def main() -> int:
    """Writes or compares."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 when a picture is out of step")
    check = parser.parse_args().check
    wrong = []
    for name, text in pictures().items():
        path = GOLDEN / name
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
