"""Draw a program's effects from top to bottom, and the points at which it was killed, with the result of each kill.

Effects are the program's writes to files and its requests to stores. Signs and words repeat the meaning of the
shades, so that no reader depends on colour.
"""

from collections.abc import Sequence
from enum import StrEnum
from typing import NamedTuple

from labkit.view.measure import width
from labkit.view.signs import LOOKS
from labkit.view.svg import document, number, words

ROW = 20
LANE = 18
TEXT = 36
SIZE = 13
SPACE = 24
"""Pixels: a row's height, the line's position, the left edge and size of texts, the space between columns."""

NO_HARM, BROKE = "nothing broke", "it breaks"
"""The words for the result of a kill in an incomplete test, which cannot show a guarantee such as exactly-once."""

SHADES = {name: (look.shade, look.sign) for name, look in LOOKS.items()}
SHADES |= {NO_HARM: ("#00695c", "○"), BROKE: ("#b71c1c", "!")}
"""The shade and the sign of each guarantee, and of each result of a kill if the test was not complete."""

STYLE = (
    "text{font:13px sans-serif;fill:#222}text.fx-code{font:12px monospace}text.fx-edge{font-weight:bold}"
    "text.fx-kill{font-size:12px}.fx-line{stroke:#999;stroke-width:2}.fx-lasting{fill:#0072b2}"
    ".fx-passing{fill:#fff;stroke:#777;stroke-width:1.5}.fx-bar{stroke:#777;stroke-width:2}"
)
"""The style sheet. No other picture uses its class names, because a notebook applies it to the whole page."""


class What(StrEnum):
    """The kinds of row in a picture of a program's effects, which are writes to files and requests to stores."""

    EDGE = "edge"
    """The beginning or end of a call, or a write of the engine to its log."""
    LASTING = "lasting"
    """An effect that remains if the process dies right after it."""
    PASSING = "passing"
    """An effect that is lost if the process dies right after it."""
    KILL = "kill"
    """A point at which the program was killed."""


class Row(NamedTuple):
    """One row in a picture of a program's effects: an effect, a kill, or the beginning or end of a call."""

    what: What
    label: str
    code: str = ""
    """The user's line of code that causes the effect, with its line number."""
    verdict: str = ""
    """The result of a kill, such as a guarantee; empty for other rows."""


def effect_line(rows: Sequence[Row], *, title: str) -> str:
    """Draw a program's effects as SVG along a line from top to bottom, with the points at which it was killed."""
    texts = [f"{row.label}: {row.verdict}" if row.what is What.KILL else row.label for row in rows]
    column = TEXT + max((width(text, SIZE, bold=True) for text in texts), default=0)
    code = max((width(row.code, 12) for row in rows), default=0)
    high = ROW * (len(rows) + 1)
    drawn = [f'<line class="fx-line" x1="{LANE}" x2="{LANE}" y1="{ROW / 2}" y2="{high - ROW / 2}"/>']
    for place, (row, text) in enumerate(zip(rows, texts, strict=True)):
        y = ROW * (place + 1)
        drawn.append(_sign(row, y))
        # Only the sign of a kill is coloured, because coloured text could not be read on a dark page.
        kind = {What.KILL: "fx-kill", What.EDGE: "fx-edge"}.get(row.what, "")
        drawn.append(words(TEXT, y + 4, text, kind))
        if row.code:
            drawn.append(words(column + SPACE, y + 4, row.code, "fx-code"))
    wide = column + SPACE + code + SPACE
    desc = f"{len(rows)} rows: effects of a sink in order, and the places at which its job was killed"
    return document("".join(drawn), wide, high, title=title, desc=desc, style=STYLE)


def _sign(row: Row, y: float) -> str:
    match row.what:
        case What.EDGE:
            return f'<line class="fx-bar" x1="{LANE - 8}" x2="{LANE + 8}" y1="{number(y)}" y2="{number(y)}"/>'
        case What.LASTING | What.PASSING:
            kind = "fx-lasting" if row.what is What.LASTING else "fx-passing"
            return f'<circle class="{kind}" cx="{LANE}" cy="{number(y)}" r="5"/>'
        case What.KILL:
            shade, sign = SHADES[row.verdict]
            box = f'<rect x="{LANE - 10}" y="{number(y - 7)}" width="20" height="14" rx="3" fill="{shade}"/>'
            return box + words(LANE, y + 5, sign, style="fill:#fff;text-anchor:middle;font-weight:bold")
