"""Draw a chart of how long readers wait for a record, against the time between two commits of the writer.

Measurements are marks, with a shape and a colour for each series, and a prediction is a dashed line. The picture's
description contains the numbers.
"""

from collections.abc import Sequence
from typing import NamedTuple

from labkit.view.charts import BLUE, GREY, ORANGE
from labkit.view.measure import width
from labkit.view.svg import document, number, words

WIDE, HIGH = 560, 300
LEFT, RIGHT, TOP, BOTTOM = 44, 110, 20, 44
"""The margins of the picture in pixels; the right one is for the names of the series."""
STEPS = (0.1, 0.25, 0.5, 1, 2.5, 5, 10, 25)
"""The possible distances between two labels on an axis, in seconds; the chart uses the smallest that fits."""
PARTS = 4
"""The largest number of equal parts into which the labels divide an axis."""
SHADES = (BLUE, ORANGE, GREY)
STYLE = (
    "text{font:12px sans-serif}.lkp-a{stroke:currentColor;stroke-width:1}"
    ".lkp-p{stroke:currentColor;stroke-width:2;stroke-dasharray:6 5;fill:none}.lkp-m{fill:none;stroke-width:1.5}"
)


class Dots(NamedTuple):
    """A series of the chart: pairs (commit interval, measured wait), in seconds, sorted by interval."""

    name: str
    points: Sequence[tuple[float, float]]


class Plane(NamedTuple):
    """The scales of the chart's axes: the longest commit interval and the largest wait, in seconds."""

    longest: float
    highest: float

    def x(self, interval: float) -> float:
        """Return the horizontal position, in pixels from the left, of an interval in seconds."""
        return LEFT + (WIDE - LEFT - RIGHT) * interval / self.longest

    def y(self, wait: float) -> float:
        """Return the vertical position, in pixels from the top, of a wait in seconds, limited to the chart's height."""
        high = min(max(wait, 0.0), self.highest) / self.highest
        return HIGH - BOTTOM - (HIGH - TOP - BOTTOM) * high


def wait_chart(ways: Sequence[Dots], longest: float, predicted: float | None) -> str:
    """Draw a chart as SVG: the readers' wait for each commit interval, with one series of marks for each of `ways`.

    The horizontal axis ends at an interval of `longest` seconds. `predicted` is the predicted wait divided by the
    interval; the chart shows it as a straight line, or no line if it is None.
    """
    waits = [wait for way in ways for _, wait in way.points]
    # A predicted line far above the marks leaves the chart at its upper edge; otherwise it would flatten the marks.
    drawn = 0.5 * longest if predicted is None else min(predicted, 1.5) * longest
    plane = Plane(longest, PARTS * _step(max([*waits, drawn])))
    parts = [*_axes(plane)]
    if predicted is not None:
        parts += _line(plane, predicted)
    labels: list[float] = []
    for way, shade, sign in zip(ways, SHADES, "osx", strict=False):
        parts += _marks(plane, way, shade, sign, labels)
    lines = [
        f"{way.name}: " + ", ".join(f"{wait:.2f} s at {interval:g} s" for interval, wait in way.points) for way in ways
    ]
    if predicted is not None:
        lines.append(f"predicted: {predicted:g} s for each second of the interval")
    return document(
        "".join(parts),
        WIDE,
        HIGH,
        title="Typical wait until a reader has a record, against the interval",
        desc="; ".join(lines) or "an empty chart",
        style=STYLE,
    )


def _axes(plane: Plane) -> list[str]:
    left, bottom = plane.x(0), plane.y(0)
    parts = [
        f'<line class="lkp-a" x1="{number(left)}" x2="{WIDE - RIGHT}" y1="{number(bottom)}" y2="{number(bottom)}"/>',
        f'<line class="lkp-a" x1="{number(left)}" x2="{number(left)}" y1="{TOP}" y2="{number(bottom)}"/>',
        words(left, HIGH - 6, "interval between two commits, in seconds"),
        words(left + 6, TOP - 3, "wait, in seconds"),
    ]
    beside, up = _step(plane.longest), plane.highest / PARTS
    for part in range(PARTS + 1):
        if part * beside <= plane.longest:
            at = plane.x(part * beside)
            parts.append(words(at - 4, bottom + 16, f"{part * beside:g}"))
        parts.append(words(8, plane.y(part * up) + 4, f"{part * up:g}"))
    return parts


def _step(most: float) -> float:
    """Return the distance between two labels of an axis that ends at `most`, both in seconds."""
    return next((each for each in STEPS if PARTS * each >= most), most / PARTS)


def _line(plane: Plane, slope: float) -> list[str]:
    last = plane.longest
    if slope > 0:
        last = min(last, plane.highest / slope)
    x, y = plane.x(last), plane.y(slope * last)
    label, high = "your prediction", plane.y(slope * last / 2) - 6
    beside = max(plane.x(last / 2) - width(label, 12) - 8, plane.x(0) + 6)
    return [
        f'<path class="lkp-p" d="M{number(plane.x(0))} {number(plane.y(0))}L{number(x)} {number(y)}"/>',
        words(beside, high, label),
    ]


def _marks(plane: Plane, way: Dots, shade: str, sign: str, labels: list[float]) -> list[str]:
    at = [(plane.x(interval), plane.y(wait)) for interval, wait in way.points]
    path = "L".join(f"{number(x)} {number(y)}" for x, y in at)
    parts = [f'<path class="lkp-m" stroke="{shade}" d="M{path}"/>']
    parts += [_mark(x, y, shade, sign) for x, y in at]
    x, y = at[-1]
    while any(abs(y - other) < 14 for other in labels):
        y += 14
    labels.append(y)
    name = words(x + 12, y + 4, way.name)
    assert x + 12 + width(way.name, 12) < WIDE
    return [*parts, name]


def _mark(x: float, y: float, shade: str, sign: str) -> str:
    match sign:
        case "o":
            return f'<circle fill="{shade}" cx="{number(x)}" cy="{number(y)}" r="5"/>'
        case "s":
            return f'<rect fill="{shade}" x="{number(x - 5)}" y="{number(y - 5)}" width="10" height="10"/>'
        case _:
            cross = f"M{number(x - 5)} {number(y - 5)}l10 10m0 -10l-10 10"
            return f'<path stroke="{shade}" stroke-width="2.5" d="{cross}"/>'
