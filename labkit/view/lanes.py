"""Draw the durable writes of one batch or checkpoint of several engines, one below the other; mark the decisive write.

After the decisive write, a restarted engine does not repeat the batch. The caller supplies the writes, the write before
which each engine was killed, and the verdict.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from labkit.view.measure import width
from labkit.view.scene import Kind
from labkit.view.signs import LOOKS, signed
from labkit.view.svg import KINDS, document, number, words

LEFT, BOX, GAP, HIGH, ROW = 246, 140, 24, 52, 92
"""Pixels: the width of the names, the width of a box, the gap between boxes, and the height of a box and of a row."""
TOP = 14
LEGEND = "Thick frame with a tick: the engine has noted that the step is done. Cross: killed here."


class Stage(NamedTuple):
    """A box for writes that become durable together. `by` names the file or request that makes them durable."""

    label: str
    by: str
    decides: bool = False
    """Whether this is the decision: once it is durable, a restart continues after this step."""
    shows: bool = False
    """Whether readers see the rows from this write on."""


class Lane(NamedTuple):
    """One row of the picture: the durable writes of one stream processor in one batch, the first on the left."""

    name: str
    under: str
    stages: Sequence[Stage]
    killed: int = -1
    """The position, from 0, of the box before which the process was killed; -1 if it was not killed."""
    verdict: str = ""
    """The guarantee that the kill showed, or `not refuted`; empty if it is not shown."""


def picture(lanes: Sequence[Lane], title: str, style: str = "") -> str:
    """Draw the durable writes of several engines as SVG, one row for each; `style` is its CSS (empty: the default)."""
    most = max((len(lane.stages) for lane in lanes), default=0)
    wide = LEFT + most * (BOX + GAP) + 12
    high = TOP + len(lanes) * ROW + 20
    drawn = [part for place, lane in enumerate(lanes) for part in _lane(lane, TOP + place * ROW)]
    drawn.append(words(12, high - 8, LEGEND, "dim"))
    return document("".join(drawn), wide, high, title=title, desc=text(lanes), style=style)


def text(lanes: Sequence[Lane]) -> str:
    """Return a text with one line for each stream processor: its writes, the first on the left.

    Brackets mark the decisive write: after it, a restart does not repeat the batch. ✗ marks the place of the kill.
    """
    return "\n".join(_line(lane) for lane in lanes)


def _line(lane: Lane) -> str:
    parts = []
    for place, stage in enumerate(lane.stages):
        killed = "\u2717 " if place == lane.killed else ""
        text = f"[{stage.label}]" if stage.decides else stage.label
        parts.append(f"{killed}{text}")
    end = f"  {lane.verdict}" if lane.verdict else ""
    return f"{lane.name}: {' > '.join(parts)}{end}"


def _lane(lane: Lane, top: float) -> Iterator[str]:
    yield words(12, top + 20, lane.name, style="font-weight:bold;font-size:13px")
    yield words(12, top + 37, lane.under, "dim")
    if lane.verdict:
        tone = "--ok" if lane.verdict in {"exactly-once", "not refuted"} else "--bad"
        sign = signed(lane.verdict) if lane.verdict in LOOKS else lane.verdict
        yield words(12, top + 55, sign, style=f"font-weight:bold;fill:var({tone})")
    end = LEFT + len(lane.stages) * (BOX + GAP) - GAP
    middle = number(top + HIGH / 2)
    yield f'<path class="i" d="M{LEFT} {middle}H{end}"/>'
    for place, stage in enumerate(lane.stages):
        left = LEFT + place * (BOX + GAP)
        yield _box(stage, left, top)
        if place == lane.killed:
            yield _cross(left - GAP / 2, top)


def _box(stage: Stage, left: float, top: float) -> str:
    kind = KINDS[Kind.COMMITTED if stage.decides else Kind.VISIBLE if stage.shows else Kind.VOLATILE].css
    thick = ' style="stroke-width:3.5"' if stage.decides else ""
    frame = f'<rect class="{kind}" x="{number(left)}" y="{number(top)}" width="{BOX}" height="{HIGH}" rx="6"{thick}/>'
    sign = Kind.COMMITTED if stage.decides else Kind.VISIBLE if stage.shows else Kind.OPEN
    icon = f'<path class="i" d="{KINDS[sign].icon}" transform="translate({number(left + 8)} {number(top + 8)})"/>'
    label = words(left + 26, top + 18, stage.label, style="font-weight:bold")
    return f"{frame}{icon}{label}{words(left + 8, top + 40, _short(stage.by), 'dim')}"


def _cross(x: float, top: float) -> str:
    left, high = number(x - 7), number(top + HIGH / 2 - 7)
    style = "stroke:var(--bad);stroke-width:3.5;fill:none"
    move = f"translate({left} {high})"
    cross = f'<path d="M0 0l14 14M14 0l-14 14" transform="{move}" style="{style}"/>'
    return cross + words(x - width("killed", 11.5) / 2, top + HIGH + 16, "killed", style="fill:var(--bad)")


def _short(name: str) -> str:
    # A name that is too long for its box loses its beginning, because the end is more informative.
    kept = name
    while kept and width(kept, 11.5) > BOX - 22:
        kept = kept[1:]
    return name if kept == name else f"\u2026{kept}"
