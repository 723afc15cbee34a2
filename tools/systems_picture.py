"""Draw the orders of writes of real systems side by side: docs/systems.svg, from recorded runs and verdicts."""

import tomllib
from collections.abc import Iterator
from typing import Any

from pipeline_verdicts import Verdict, verdicts
from seen_orders import CELLS
from still import style

from labkit.crashtest.blackbox.standing import standing
from labkit.crashtest.blackbox.writes import engine_rows, meanings
from labkit.teach.engine_pipelines import Pipeline, kept, pipelines
from labkit.teach.engines import stage
from labkit.view.lanes import Lane, picture

TITLE = "One step of each system, from left to right"
HARMLESS = "not refuted"


def systems() -> str:
    """Return the picture as SVG: a row for each pipeline whose order of writes and verdict are recorded."""
    return picture(list(_lanes()), TITLE, style() + ".lk-pic { background: var(--bg); }")


def _lanes() -> Iterator[Lane]:
    cells, known = tomllib.loads(CELLS.read_text(encoding="utf-8"))["engine"], verdicts()
    for name, each in pipelines().items():
        if name in cells and name in known:
            yield _lane(each, cells[name], known[name])


def _lane(pipeline: Pipeline, cell: dict[str, Any], record: Verdict) -> Lane:
    own = [*meanings(cell.get("writes", {})), *engine_rows(*cell.get("with", ()))]
    orders = standing(kept(pipeline.name).effects, own, cell.get("ends")).orders
    assert orders is not None, f"{pipeline.name}: its order of writes is not known"
    step = orders.steps[min(1, len(orders.steps) - 1)]
    weakest = record.weakest.removeprefix("before ").partition(" (")[0]
    place = orders.place(weakest) if record.violated else None
    return Lane(
        pipeline.name,
        record.versions[0],
        [stage(each) for each in step],
        -1 if place is None else place[1],
        record.guarantee if record.violated else HARMLESS,
    )
