"""Write the table of observed orders of writes: of each pipeline of a real engine, and of each of labkit's sinks.

The data are in data/pipelines/cells.toml; tests/pipelines/test_orders.py compares them with runs and real kills.
"""

import tomllib
from pathlib import Path
from typing import Any

from labkit.core.words import markdown_table
from labkit.sim.orders.outcomes import find
from labkit.sim.writes import Design
from labkit.teach.engine_pipelines import pipelines

CELLS = Path(__file__).parent.parent / "data" / "pipelines" / "cells.toml"


def seen() -> str:
    """Return the Markdown table, pipelines of engines first."""
    cells: dict[str, Any] = tomllib.loads(CELLS.read_text(encoding="utf-8"))
    rows = [
        ("who", "recorded writes of a step", "output, and what a restart reads", "guarantee"),
        *(
            _row(f"{each.does} (`{name}`)", cells["engine"][name])
            for name, each in pipelines().items()
            if name in cells["engine"]
        ),
        *(_row(f"the lab's sink `{name}`", each) for name, each in cells["sink"].items()),
    ]
    return markdown_table(rows) + "\n"


def _row(who: str, said: dict[str, Any]) -> tuple[str, ...]:
    design = Design.parse(said["design"])
    guarantee = find(design).guarantee.value
    for place, measured in said.get("differs", {}).items():
        verdict, _, why = measured.partition(": ")
        guarantee += f"; a real kill {place} gives {verdict}, unlike a simulated one, because {why}"
    return who, f"`{design.order}`", f"{design.output}; {design.recovery}", guarantee
