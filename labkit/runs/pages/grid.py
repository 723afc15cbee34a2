"""Show the verdicts of all crashes as a grid: a row for each sink and store, a column for each failpoint.

Each cell shows its verdict as a sign, a word and a shade, and links to its run.
"""

import json
import os
from collections.abc import Iterator, Sequence
from html import escape
from pathlib import Path
from typing import Any, NamedTuple

from labkit.core.errors import InvalidInput
from labkit.core.failpoints import Crash, FailPoint, Order
from labkit.core.strategies import Strategy
from labkit.core.verdict import Guarantee
from labkit.host import durable
from labkit.runs.expected import Cell, grid
from labkit.sim.models.pipeline.scenarios import crashed
from labkit.sim.models.pipeline.state import STORES
from labkit.sim.verdicts import verdict_of
from labkit.view.assets import asset
from labkit.view.card import Html, Shown, document, para, tag
from labkit.view.signs import signed

JUMPED = "↩"
"""The sign for a cell in which a reader saw a value go back."""

KEY = f"{JUMPED}: a reader saw a value go back. An empty cell: the sink does not have this failpoint."


class Square(NamedTuple):
    """One cell of the grid: a crash of one sink at one failpoint, and its verdict.

    `run` is the name of the run's folder, or for a simulated run its trace as a text that `labkit.lab.show` accepts.
    """

    cell: Cell
    guarantee: str
    jumped_back: bool
    because: str
    run: str

    @property
    def row(self) -> str:
        """The label of the row that contains this cell: sink, store and commit order (sink or Spark first)."""
        order = f", {self.cell.order.spoken}" if self.cell.order.spoken else ""
        return f"{self.cell.strategy} on {self.cell.store}{order}"

    @property
    def words(self) -> str:
        """The verdict as text: its sign and its name. A ↩ follows if a reader saw an older value after a newer one."""
        return signed(self.guarantee) + (f" {JUMPED}" if self.jumped_back else "")


class VerdictGrid(Shown):
    """A table of verdicts, all simulated or all real.

    It has a row for each sink, store and commit order, and a column for each failpoint.
    """

    def __init__(self, squares: Sequence[Square], source: str, base: Path | None = None) -> None:
        self.squares = list(squares)
        self.source = source
        self._base = base

    def __getitem__(self, cell: tuple[str, str]) -> Square:
        """Return the cell at (row label, failpoint). Raises `InvalidInput` if there is none."""
        square = self._by_place().get(cell)
        if square is None:
            raise InvalidInput(f"the grid has no cell {cell} (row, failpoint); its rows are {', '.join(self.rows)}.")
        return square

    def _by_place(self) -> dict[tuple[str, str], Square]:
        return {(square.row, square.cell.point.value): square for square in self.squares}

    @property
    def rows(self) -> list[str]:
        """The labels of the grid's rows (sink, store, and whether sink or Spark commits first), top to bottom."""
        return list(dict.fromkeys(square.row for square in self.squares))

    @property
    def points(self) -> list[FailPoint]:
        """The failpoints of the grid's columns, in the order in which a batch passes them."""
        reached = {square.cell.point for square in self.squares}
        return [point for point in FailPoint if point in reached]

    def html(self, beside: str = "") -> str:
        """Return the grid as an HTML table.

        For a grid of real runs, each cell links to its run's report; `beside` is the URL of the folder of these runs.
        """
        head = (
            tag("th", Html(escape(point).replace(".", ".<wbr>").replace("_", "_<wbr>")), scope="col")
            for point in self.points
        )
        rows = (tag("tr", tag("th", row, scope="row"), *self._cells(row, beside)) for row in self.rows)
        table = tag(
            "table",
            tag("thead", tag("tr", tag("th", "killed at", scope="col"), *head)),
            tag("tbody", *rows),
            class_="lk-cells",
        )
        style = asset("scene.css") + asset("stepper.css") + asset("verdict_grid.css")
        region = {"tabindex": "0", "role": "region", "aria_label": "Every sink at every moment"}
        return tag(
            "div",
            Html(f"<style>{style}</style>"),
            para(f"{self.source} {KEY}"),
            tag("div", table, class_="lk-wide", **region),
            class_="lk lk-verdicts",
        )

    def _cells(self, row: str, beside: str) -> Iterator[Html]:
        places = self._by_place()
        for point in self.points:
            square = places.get((row, point.value))
            if square is None:
                yield tag("td")
            elif self._base is None:
                title = f"{square.because}; lab.show('{square.run}')"
                yield tag("td", square.words, class_=f"lk-{square.guarantee}", title=title)
            else:
                link = tag("a", square.words, href=f"{beside}{square.run}/report.html")
                yield tag("td", link, class_=f"lk-{square.guarantee}", title=f"{square.because}; {square.run}")

    def __str__(self) -> str:
        wide = max((len(str(square.cell)) for square in self.squares), default=0)
        return "\n".join(f"{str(square.cell).ljust(wide)}  {square.words}" for square in self.squares)

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        beside = f"{os.path.relpath(self._base)}/" if self._base is not None else ""
        return {"text/html": self.html(beside), "text/plain": str(self)}


def simulated() -> VerdictGrid:
    """Crash every sink at every failpoint in the simulator, and return the grid of the verdicts."""
    return VerdictGrid(list(_simulated()), "The simulator ran every cell.")


def _simulated() -> Iterator[Square]:
    stores = {
        name: frozenset(each for each in Strategy if store.keyed or not each.facts.replaces)
        for name, store in STORES.items()
    }
    for cell in grid(stores):
        walk = crashed(cell.strategy, cell.order, cell.store, [Crash(cell.point)])
        verdict = verdict_of(walk)
        yield Square(cell, verdict.guarantee.value, bool(verdict.regression), verdict.because, str(walk.trace))


def of_runs(base: Path) -> VerdictGrid:
    """Return the grid of the real runs with one crash in `base`. Raises `InvalidInput` if there is none."""
    by_cell = {square.cell: square for path in sorted(base.glob("*/verdict.json")) for square in _real(path)}
    if not by_cell:
        raise InvalidInput(
            f"{base}: the folder contains no run with a verdict; name a folder that `labkit matrix` has filled."
        )
    squares = [by_cell[cell] for cell in sorted(by_cell, key=_place)]
    return VerdictGrid(squares, "Every cell is a real run; click it to open its report.", base)


def _place(cell: Cell) -> tuple[int, str, str, int]:
    return (list(Strategy).index(cell.strategy), cell.order.value, cell.store, list(FailPoint).index(cell.point))


def _real(path: Path) -> Iterator[Square]:
    try:
        verdict = json.loads(path.read_text(encoding="utf-8"))
        scenario, crashes = verdict["scenario"], verdict["crashes"]
        if len(crashes) != 1:
            return
        point = FailPoint(crashes[0]["point"])
        cell = Cell(scenario["store"], Strategy(scenario["sink"]), Order(scenario["order"]), point)
        guarantee, jumped = Guarantee(verdict["guarantee"]).value, bool(verdict["regression"])
        because = str(verdict["because"])
    except (ValueError, KeyError, TypeError) as error:
        raise InvalidInput(
            f"{path}: the file is damaged ({error!r}); delete the run's folder, or repeat the run."
        ) from None
    yield Square(cell, guarantee, jumped, because, path.parent.name)


def write(base: Path) -> Path:
    """Write the grid of the real runs in the folder `base` to `grid.html` there, and return the file's path.

    Raises `InvalidInput` if the folder has no run with one crash, or a damaged run.
    """
    page = base / "grid.html"
    durable.replace(page, document("Sinks by failpoints", "", Html(of_runs(base).html())))
    return page
