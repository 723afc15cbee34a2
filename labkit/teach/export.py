"""Export a run, simulated or real, for other tools. `labkit export` does the same on the command line."""

from contextlib import suppress
from pathlib import Path

from labkit.core.arguments import takes
from labkit.runs.outcome import Outcome
from labkit.runs.pages.diagram import of_folder, of_run, title_of
from labkit.sim.scenarios import run_of
from labkit.sim.trace import Trace
from labkit.teach.results import Walk
from labkit.view.exports import written
from labkit.view.narration import Story
from labkit.view.spacetime import Diagram
from labkit.view.stepper import Player


@takes('lab.export("pipeline.jump_back", "mermaid")')
def export(run: str | Path | Trace | Walk | Player | Outcome, to: str) -> str:
    """Return a run as text for another tool: `mermaid`, `plantuml`, `shiviz` (a log with vector clocks) or `svg`.

    `run` is a simulated run (a scenario's name, a trace, or a result of `lab.replay`, `lab.simulate` or `lab.show`)
    or a real run (a result of `lab.crash`, or the path of its folder). Raises `InvalidInput` for an unknown format
    or scenario, for text that is not a trace, and for a folder without a finished run. Raises `InvalidAction` for a
    trace that cannot be replayed.
    """
    title, diagram = _described(run)
    return written(diagram, title, to)


def folder_of(text: str) -> Path | None:
    """Return `text` as a path if it names an existing folder; otherwise return None."""
    with suppress(OSError):  # a text too long for a path
        return Path(text) if "~" not in text and Path(text).is_dir() else None
    return None


def _described(run: str | Path | Trace | Walk | Player | Outcome) -> tuple[str, Diagram]:
    if isinstance(run, Outcome):
        record = run.record
        return title_of(record.scenario), of_run(record.crashes, record.events)
    if isinstance(run, Path):
        return of_folder(run)
    if isinstance(run, str) and (folder := folder_of(run)):
        return of_folder(folder)
    if isinstance(run, str | Trace):
        run = Player(run_of(run)[0])
    story = run.story if isinstance(run, Player) else Story(run.walk)
    return f"{story.title}, {story.chosen}", story.diagram()
