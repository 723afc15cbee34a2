"""What a crash leaves in a notebook: plain HTML that is still there when the notebook is opened again.

Everything on it comes from the run's own files and the judge. This module must not judge.
"""

import os
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from labkit.core.errors import InvalidInput
from labkit.runs.expected import Cell, Expected, compared, expectations
from labkit.runs.pages.diagram import of_run
from labkit.runs.pages.report import label, shown
from labkit.runs.pages.simulated import at_failpoint
from labkit.runs.run import Run, history, result
from labkit.runs.scenario import plan
from labkit.spark.checkpoint import Checkpoint
from labkit.view.assets import asset
from labkit.view.charts import SIGNS, png, seen_over_time
from labkit.view.spacetime import svg
from labkit.view.timeline import Step, by_key


def fragment(run: Run, said: str | None = None, call: str = "") -> str:
    """A run that has been judged, as HTML for a notebook; `said` is what the learner predicted (None: nothing).

    The style sheets come with it, it names no other host, and without its script it is still complete.
    """
    environment = Environment(
        loader=PackageLoader("labkit.runs.pages", "."),
        autoescape=True,
        undefined=StrictUndefined,
    )
    template = environment.get_template("result.html.jinja")
    style = "".join(map(asset, ("scene.css", "stepper.css", "panel.css")))
    assert run.verdict is not None
    return template.render(
        run=shown(run),
        sign=SIGNS[run.verdict.guarantee.value],
        style=style,
        said=said,
        call=call,
        chart=_source("image/png", png(_chart(run))),
        diagram=_source(
            "image/svg+xml",
            svg(of_run(run.crashes, history(run).events), title=label(run)).encode(),
        ),
        files=list(_files(run)),
        expected=_expected(run),
        folder=_beside(run.folder.path),
        report=_beside(run.folder.report),
        **_player(run),
    )


def _source(kind: str, content: bytes) -> str:
    return f"data:{kind};base64,{b64encode(content).decode()}"


def _chart(run: Run) -> Any:
    tracks = by_key(history(run).events)
    key = _of_interest(run, tracks)
    return seen_over_time({label(run): tracks.get(key, [])}, key)[0]


def _of_interest(run: Run, tracks: dict[str, list[Step]]) -> str:
    """The key of the first witness of anything that went wrong, else the first key."""
    assert run.verdict is not None
    found = (case.key for cases in run.verdict.witnesses.values() for case in cases)
    return next((key for key in found if key in tracks), next(iter(tracks), "nothing"))


def _files(run: Run) -> Iterator[tuple[str, list[bool]]]:
    """Every file of the checkpoint that decides about recovery; whether it was there at each crash, and in the end."""
    moments = [
        *(crash["files"] for crash in run.crashes),
        Checkpoint(run.folder.checkpoint).files(),
    ]
    for name in sorted({name for files in moments for name in files}):
        yield name, [name in files for files in moments]


def _expected(run: Run) -> tuple[Expected, bool] | None:
    """What was predicted of this cell of the grid before any run, and whether it came so; None off the grid."""
    scenario = run.scenario
    crashes = [str(crash) for crash in scenario.crashes]
    order = None if scenario.order.value == "none" else scenario.order.value
    if len(crashes) != 1 or scenario != plan(
        sink=scenario.strategy.value, store=scenario.store, order=order, crashes=crashes
    ):
        return None
    cell = Cell(
        scenario.store, scenario.strategy, scenario.order, scenario.crashes[0].point
    )
    found = expectations().get(cell)
    return (found, found.compared() == compared(result(run))) if found else None


def _beside(path: Path) -> str:
    """The path as seen from the working folder, where it lies below it."""
    return os.path.relpath(path) if path.is_relative_to(Path.cwd()) else str(path)


def _player(run: Run) -> dict[str, str]:
    try:
        return {"player": at_failpoint(run.scenario).html(), "no_player": ""}
    except InvalidInput as error:
        return {"player": "", "no_player": str(error)}
