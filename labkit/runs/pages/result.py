"""Show a finished run in a notebook as plain HTML, which is still there when the notebook is reopened.

The HTML is made from the run's record alone.
"""

import os
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from labkit.core.errors import InvalidInput
from labkit.runs.pages.diagram import of_run
from labkit.runs.pages.predicted import expected_of
from labkit.runs.pages.report import shown, template
from labkit.runs.pages.simulated import at_failpoint
from labkit.runs.record import RunRecord
from labkit.view.assets import asset
from labkit.view.charts import png, seen_over_time
from labkit.view.signs import LOOKS
from labkit.view.spacetime import svg
from labkit.view.timeline import by_key


def fragment(record: RunRecord, prediction: str | None = None, call: str = "") -> str:
    """Return a run's verdict, chart and diagram as HTML without external files, for the output of a notebook cell.

    `prediction` is the learner's guess of the verdict, or None; `call` is the Python call that repeats the run.
    """
    style = "".join(map(asset, ("scene.css", "stepper.css", "panel.css")))
    return template("result.html.jinja").render(
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
    keys = (case.key for cases in record.verdict.witnesses.values() for case in cases)
    key = next((key for key in keys if key in tracks), next(iter(tracks), "nothing"))
    return seen_over_time({record.scenario.label: tracks.get(key, [])}, key)[0]


def _files(record: RunRecord) -> Iterator[tuple[str, list[bool]]]:
    """Yield each file of the checkpoint with a list that says whether it existed at each crash and at the end."""
    moments = [*(crash["files"] for crash in record.crashes), record.files]
    for name in sorted({name for files in moments for name in files}):
        yield name, [name in files for files in moments]


def _beside(path: Path) -> str:
    return os.path.relpath(path) if path.is_relative_to(Path.cwd()) else str(path)


def _player(record: RunRecord) -> dict[str, str]:
    try:
        return {"player": at_failpoint(record.scenario).html(), "no_player": ""}
    except InvalidInput as error:
        return {"player": "", "no_player": str(error)}
