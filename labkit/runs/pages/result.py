"""What a crash leaves in a notebook: plain HTML that is still there when the notebook is opened again.

Everything on it comes from the run's record.
"""

import os
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from labkit.core.errors import InvalidInput
from labkit.core.verdict import Verdict
from labkit.runs.pages.diagram import of_run
from labkit.runs.pages.predicted import expected_of
from labkit.runs.pages.report import shown
from labkit.runs.pages.simulated import at_failpoint
from labkit.runs.record import RunRecord
from labkit.view.assets import asset
from labkit.view.charts import png, seen_over_time
from labkit.view.signs import LOOKS
from labkit.view.spacetime import svg
from labkit.view.timeline import Step, by_key


def fragment(record: RunRecord, prediction: str | None = None, call: str = "") -> str:
    """A run as HTML for a notebook; `prediction` is what the learner predicted (None: nothing).

    The style sheets come with it, it names no other host, and without its script it is still complete.
    """
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("labkit.runs.pages", "."), autoescape=True, undefined=StrictUndefined
    )
    template = environment.get_template("result.html.jinja")
    style = "".join(map(asset, ("scene.css", "stepper.css", "panel.css")))
    return template.render(
        run=shown(record),
        sign=LOOKS[record.verdict.guarantee].sign,
        style=style,
        said=prediction,
        call=call,
        chart=_source("image/png", png(_chart(record))),
        diagram=_source(
            "image/svg+xml", svg(of_run(record.crashes, record.events), title=record.scenario.label).encode()
        ),
        files=list(_files(record)),
        expected=expected_of(record),
        folder=_beside(record.folder.path),
        report=_beside(record.folder.report),
        **_player(record),
    )


def _source(kind: str, content: bytes) -> str:
    return f"data:{kind};base64,{b64encode(content).decode()}"


def _chart(record: RunRecord) -> Any:
    tracks = by_key(record.events)
    key = _of_interest(record.verdict, tracks)
    return seen_over_time({record.scenario.label: tracks.get(key, [])}, key)[0]


def _of_interest(verdict: Verdict, tracks: dict[str, list[Step]]) -> str:
    """The key of the first witness of anything that went wrong, else the first key."""
    keys = (case.key for cases in verdict.witnesses.values() for case in cases)
    return next((key for key in keys if key in tracks), next(iter(tracks), "nothing"))


def _files(record: RunRecord) -> Iterator[tuple[str, list[bool]]]:
    """Every file of the checkpoint that decides about recovery; whether it was there at each crash, and in the end."""
    moments = [*(crash["files"] for crash in record.crashes), record.files]
    for name in sorted({name for files in moments for name in files}):
        yield name, [name in files for files in moments]


def _beside(path: Path) -> str:
    """The path as seen from the working folder, where it lies below it."""
    return os.path.relpath(path) if path.is_relative_to(Path.cwd()) else str(path)


def _player(record: RunRecord) -> dict[str, str]:
    try:
        return {"player": at_failpoint(record.scenario).html(), "no_player": ""}
    except InvalidInput as error:
        return {"player": "", "no_player": str(error)}
