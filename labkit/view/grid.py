"""Show a grid whose squares are results of runs: the guarantee, its evidence, and the steps of a run after a click.

The grid is text and HTML without scripts. A square is a `details` element, which opens by mouse and keyboard, in an
exported page and in an untrusted notebook. The first square is open.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from labkit.core.words import columns
from labkit.view.assets import asset
from labkit.view.card import Html, Shown, joined, para, tag
from labkit.view.signs import LOOKS

Name = tuple[str, str, str]
"""The block (a group of rows), the row and the column of a square."""


class Square(NamedTuple):
    """One cell of a `Grid`: the guarantee (such as exactly-once) that runs of one case showed, and the evidence.

    `because` is the reason in one sentence. `meanwhile` lists anomalies that a reader could see before the result
    became correct. `origin` says how the runs were simulated. `real` says what real runs showed, and is empty without
    real runs. `steps` are the sentences of one run, and `call` is the Python call that repeats this run.
    """

    guarantee: str
    origin: str
    because: str
    call: str
    meanwhile: Sequence[str] = ()
    real: str = ""
    steps: Sequence[str] = ()
    names: Sequence[str] = ()
    """The names of the items in this square, such as engines."""


class Grid(Shown):
    """A table of guarantees by (block, row, column) that a notebook displays; a click on a cell shows its evidence."""

    def __init__(self, squares: Mapping[Name, Square]) -> None:
        self.squares = dict(squares)
        self.blocks, self.rows, self.columns = (list(dict.fromkeys(part)) for part in zip(*self.squares, strict=True))

    def __str__(self) -> str:
        """Return the guarantees as a text table. An asterisk marks each guarantee that real runs confirm."""
        lines = [("", *self.columns)]
        for block in self.blocks:
            lines.append((block, *("" for _ in self.columns)))
            for row in self.rows:
                squares = (self.squares[block, row, column] for column in self.columns)
                lines.append((f"  {row}", *(each.guarantee + " *" * bool(each.real) for each in squares)))
        note = "\n* also on real Spark" if any(square.real for square in self.squares.values()) else ""
        return columns(lines) + note

    def html(self) -> str:
        head = joined(tag("th", column, scope="col") for column in self.columns)
        width, body = str(len(self.columns) + 1), []
        for block in self.blocks:
            body.append(tag("tr", tag("th", block, class_="lk-block", colspan=width, scope="rowgroup")))
            for row in self.rows:
                cells = (tag("td", self._details((block, row, column))) for column in self.columns)
                body.append(tag("tr", tag("th", row, scope="row"), *cells))
        return tag(
            "div",
            Html(f"<style>{asset('scene.css')}{asset('grid.css')}</style>"),
            tag(
                "table",
                Html(f"<colgroup>{'<col>' * (len(self.columns) + 1)}</colgroup>"),
                tag("thead", tag("tr", tag("td"), head)),
                tag("tbody", *body),
            ),
            para("Click a square to see how its verdict was found, and what happened.", kind="lk-hint"),
            class_="lk lk-grid",
            data_lm_suppress_shortcuts="true",
        )

    def _details(self, name: Name) -> Html:
        square = self.squares[name]
        # A combination of row and column that is impossible says "cannot be" in place of a guarantee.
        look = square.guarantee if square.guarantee in LOOKS else "unknown"
        origin = ", ".join(square.names) or ("simulated and real" if square.real else "simulated")
        summary = [tag("b", tag("i", LOOKS[look].sign), f" {square.guarantee}"), tag("small", origin)]
        if square.meanwhile:
            summary.append(tag("small", ", ".join(square.meanwhile)))
        panel = [
            tag("h4", f"{name[0]} | {name[2]} | {name[1]}: {square.guarantee}"),
            para(square.because),
            para(" ".join(filter(None, (square.origin, square.real)))),
            para("Again: ", tag("code", square.call)),
        ]
        if square.steps:
            panel.append(tag("ol", *(tag("li", step) for step in square.steps)))
        return tag(
            "details",
            tag("summary", *summary),
            tag("div", *panel, class_="lk-panel", tabindex="0"),
            name="lk-grid",
            open="open" if name == next(iter(self.squares)) else "",
            class_=f"lk-{look}",
        )
