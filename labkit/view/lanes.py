"""Draw the durable writes in one step of several engines, one engine below the other, with the decision marked.

The caller supplies the writes of each engine, the place of its kill, and the verdict.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from labkit.view.measure import width
from labkit.view.scene import Kind
from labkit.view.signs import signed
from labkit.view.svg import CLASSES, ICONS, document, number, words

LEFT, BOX, GAP, HIGH, ROW = 246, 140, 24, 52, 92
"""Pixels: the width of the names, the width of a box, the gap between boxes, the height of a box and of a lane."""
TOP = 14
LEGEND = "Thick frame with a tick: the engine has noted that the step is done. Cross: killed here."


class Stage(NamedTuple):
    """One box: writes that become durable together, and the file or request that makes them durable."""

    label: str
    by: str
    decides: bool = False
    """Whether the step is done once this is durable, so that a restart continues after it."""
    shows: bool = False
    """Whether readers see the rows from here on."""


class Lane(NamedTuple):
    """One step of one engine."""

    name: str
    under: str
    stages: Sequence[Stage]
    killed: int = -1
    """The number of the box before which the process was killed, from 0; -1 if it was not killed."""
    verdict: str = ""
    """The verdict after the kill; empty if it is not shown."""


def picture(lanes: Sequence[Lane], title: str) -> str:
    """Return the lanes as SVG, with their text form as its description."""
    most = max((len(lane.stages) for lane in lanes), default=0)
    wide = LEFT + most * (BOX + GAP) + 12
    high = TOP + len(lanes) * ROW + 20
    drawn = [part for place, lane in enumerate(lanes) for part in _lane(lane, TOP + place * ROW)]
    drawn.append(words(12, high - 8, LEGEND, "dim"))
    return document("".join(drawn), wide, high, title=title, desc=text(lanes))


def text(lanes: Sequence[Lane]) -> str:
    """Return one line for each lane: its writes in order, the decision in brackets, and a cross at the kill."""
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
    yield words(12, top + 20, lane.name).replace("<text", '<text style="font-weight:bold;font-size:13px"')
    yield words(12, top + 37, lane.under, "dim")
    if lane.verdict:
        tone = "--ok" if lane.verdict == "exactly-once" else "--bad"
        sign = signed(lane.verdict)
        style = f'<text style="font-weight:bold;fill:var({tone})"'
        yield words(12, top + 55, sign).replace("<text", style)
    end = LEFT + len(lane.stages) * (BOX + GAP) - GAP
    middle = number(top + HIGH / 2)
    yield f'<path class="i" d="M{LEFT} {middle}H{end}"/>'
    for place, stage in enumerate(lane.stages):
        left = LEFT + place * (BOX + GAP)
        yield _box(stage, left, top)
        if place == lane.killed:
            yield _cross(left - GAP / 2, top)


def _box(stage: Stage, left: float, top: float) -> str:
    kind = CLASSES[Kind.COMMITTED if stage.decides else Kind.VISIBLE if stage.shows else Kind.VOLATILE]
    thick = ' style="stroke-width:3.5"' if stage.decides else ""
    frame = f'<rect class="{kind}" x="{number(left)}" y="{number(top)}" width="{BOX}" height="{HIGH}" rx="6"{thick}/>'
    sign = Kind.COMMITTED if stage.decides else Kind.VISIBLE if stage.shows else Kind.OPEN
    icon = f'<path class="i" d="{ICONS[sign]}" transform="translate({number(left + 8)} {number(top + 8)})"/>'
    label = words(left + 26, top + 18, stage.label).replace("<text", '<text style="font-weight:bold"')
    return f"{frame}{icon}{label}{words(left + 8, top + 40, _short(stage.by), 'dim')}"


def _cross(x: float, top: float) -> str:
    """Return a red cross with the word "killed", so that the place can be found without colour."""
    left, high = number(x - 7), number(top + HIGH / 2 - 7)
    style = "stroke:var(--bad);stroke-width:3.5;fill:none"
    move = f"translate({left} {high})"
    cross = f'<path d="M0 0l14 14M14 0l-14 14" transform="{move}" style="{style}"/>'
    half = width("killed", 11.5) / 2
    word = words(x - half, top + HIGH + 16, "killed")
    return cross + word.replace("<text", '<text style="fill:var(--bad)"')


def _short(name: str) -> str:
    """Return a name cut at its beginning to fit into a box, because its end is more informative."""
    kept = name
    while kept and width(kept, 11.5) > BOX - 22:
        kept = kept[1:]
    return name if kept == name else f"\u2026{kept}"
