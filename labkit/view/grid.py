"""A grid whose every square is a run: the guarantee in it, how it was found out, and what happened, one click away.

Text and HTML that need no script: a square is a `details` element, so that it opens with the mouse, with the keyboard,
in an exported page and in a notebook that nobody trusts; the first one is open.
"""

from collections.abc import Mapping, Sequence
from html import escape
from typing import NamedTuple

from labkit.view.assets import asset
from labkit.view.signs import LOOKS

Name = tuple[str, str, str]
"""Block, row and column."""


class Square(NamedTuple):
    """What is to be said of one run, or of many: the guarantee, and below it how anybody knows.

    `meanwhile` is what a reader could see on the way although it came right in the end. `origin` says whether it was
    simulated and how often, `real` what real runs say of the same (empty: none). `steps` are the sentences of one run
    that shows it, `call` the Python call that repeats it.
    """

    guarantee: str
    origin: str
    because: str
    call: str
    meanwhile: Sequence[str] = ()
    real: str = ""
    steps: Sequence[str] = ()
    names: Sequence[str] = ()
    """Who stands in this square."""


class Grid:
    """Squares by block, row and column. Every block must have the same columns."""

    def __init__(self, squares: Mapping[Name, Square]) -> None:
        self.squares = dict(squares)
        self.blocks, self.rows, self.columns = (list(dict.fromkeys(part)) for part in zip(*self.squares, strict=True))

    def __str__(self) -> str:
        """The guarantees as text; an asterisk: real runs say the same."""
        lines = [("", *self.columns)]
        for block in self.blocks:
            lines.append((block, *("" for _ in self.columns)))
            lines += [(f"  {row}", *(self._word(block, row, column) for column in self.columns)) for row in self.rows]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        text = ["  ".join(map(str.ljust, line, widths)).rstrip() for line in lines]
        if any(square.real for square in self.squares.values()):
            text.append("* also on real Spark")
        return "\n".join(text)

    __repr__ = __str__

    def _word(self, block: str, row: str, column: str) -> str:
        square = self.squares[block, row, column]
        return square.guarantee + (" *" if square.real else "")

    def html(self) -> str:
        """The grid as HTML that needs nothing else."""
        cols = "<col>" * (len(self.columns) + 1)
        head = "".join(f'<th scope="col">{escape(column)}</th>' for column in self.columns)
        width, body = len(self.columns) + 1, []
        for block in self.blocks:
            body.append(f'<tr><th class="lk-block" colspan="{width}" scope="rowgroup">{escape(block)}</th></tr>')
            for row in self.rows:
                cells = "".join(f"<td>{self._details((block, row, column))}</td>" for column in self.columns)
                body.append(f'<tr><th scope="row">{escape(row)}</th>{cells}</tr>')
        return (
            f'<div class="lk lk-grid" data-lm-suppress-shortcuts="true"><style>{asset("scene.css")}{asset("grid.css")}'
            f"</style><table><colgroup>{cols}</colgroup><thead><tr><td></td>{head}</tr></thead><tbody>{''.join(body)}</tbody></table>"
            '<p class="lk-hint">Choose a square: here it says how it was found out, and what happened.</p></div>'
        )

    def _details(self, name: Name) -> str:
        square = self.squares[name]
        look = square.guarantee if square.guarantee in LOOKS else "unknown"  # a square that cannot be has no guarantee
        meanwhile = f"<small>{escape(', '.join(square.meanwhile))}</small>" if square.meanwhile else ""
        origin = "simulated and real" if square.real else "simulated"
        if square.names:
            origin = ", ".join(square.names)
        is_open = " open" if name == next(iter(self.squares)) else ""
        steps = "".join(f"<li>{escape(step)}</li>" for step in square.steps)
        parts = [
            f"<h4>{escape(f'{name[0]} | {name[2]} | {name[1]}')}: {escape(square.guarantee)}</h4>",
            f"<p>{escape(square.because)}</p>",
        ]
        parts.append(f"<p>{escape(' '.join(filter(None, (square.origin, square.real))))}</p>")
        parts.append(f"<p>Again: <code>{escape(square.call)}</code></p>" + (f"<ol>{steps}</ol>" if steps else ""))
        return (
            f'<details name="lk-grid"{is_open} class="lk-{look}"><summary><b>'
            f"<i>{LOOKS[look].sign}</i> {escape(square.guarantee)}</b><small>{origin}</small>{meanwhile}</summary>"
            f'<div class="lk-panel" tabindex="0">{"".join(parts)}</div></details>'
        )

    def _repr_mimebundle_(self, **_: object) -> dict[str, str]:
        return {"text/html": self.html(), "text/plain": str(self)}
