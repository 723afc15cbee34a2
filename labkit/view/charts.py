"""Draw with matplotlib what a reader saw in real runs, also for screen readers and readers who see no colours."""

import base64
import html
import io
from collections.abc import Mapping, Sequence
from itertools import accumulate, zip_longest
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from labkit.view.timeline import Step

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

BLUE, ORANGE, GREY, RED = "#0072b2", "#d55e00", "#666666", "#a3171f"
"""Colours of Okabe and Ito, which colour-blind readers can tell apart, also in greyscale."""


def png(figure: "Figure") -> bytes:
    """Return a matplotlib figure as the bytes of a PNG file."""
    content = io.BytesIO()
    figure.savefig(content, dpi=110)
    return content.getvalue()


def words(figure: "Figure") -> str:
    """Return all texts in a drawn matplotlib figure, from top to bottom, as a description for screen readers."""
    from matplotlib.text import Text

    places = {
        (-round(box.y0, -1), box.x0, " ".join(text.get_text().split()))
        for text in figure.findobj(Text)
        if text.get_visible() and text.get_text().strip()
        for box in [text.get_window_extent()]
    }
    return "Figure: " + "; ".join(label for _, _, label in sorted(places))


def chart(wide: float, high: float) -> "Figure":
    """Return an empty matplotlib figure with an alt text for notebooks. `wide` and `high` are in inches.

    pyplot is not used, because a notebook would then show the figure twice.
    """
    from matplotlib.figure import Figure

    class Chart(Figure):
        def _repr_png_(self) -> bytes:
            return png(self)

        def _repr_html_(self) -> str:
            # JupyterLab prefers HTML to a PNG, which has no text that a screen reader could read aloud.
            source = base64.b64encode(png(self)).decode()
            alt = html.escape(words(self))
            return f'<img alt="{alt}" src="data:image/png;base64,{source}">'

    return Chart(figsize=(wide, high), layout="constrained", facecolor="white")


class Point(NamedTuple):
    """One point of a chart: a value that a reader could see, and whether a larger value was visible earlier."""

    place: int
    value: int
    driver: int
    went_back: bool


class Track(NamedTuple):
    """The chart data of one run: the values of one key that a reader could see.

    `moments` is a list of pairs (position, label), one for each time at which the reader read the whole output: after a
    crash, or at the end.
    """

    points: list[Point]
    moments: list[tuple[int, str]]


def tracks(runs: Mapping[str, Sequence[Step]]) -> dict[str, Track]:
    """Return a dict from the name of each run to its chart data: the values of one key as they became visible.

    `runs` maps the name of a run to the run's steps for this key, which `labkit.view.timeline.by_key` returns. A step
    is a value that became visible, or a read of the whole output after a crash or at the end. The nth read of the
    output has the same position in the charts of all runs, so that runs can be compared.
    """
    parts = {name: _between_moments(steps) for name, steps in runs.items()}
    longest = [max(map(len, alike)) for alike in zip_longest(*parts.values(), fillvalue=())]
    starts = list(accumulate(longest, initial=0))
    return {name: _track(some, starts) for name, some in parts.items()}


def _between_moments(steps: Sequence[Step]) -> list[list[Step]]:
    parts: list[list[Step]] = [[]]
    for step in steps:
        parts[-1].append(step)
        if step.value is None:
            parts.append([])
    return parts


def _track(parts: Sequence[Sequence[Step]], starts: Sequence[int]) -> Track:
    track, largest = Track([], []), 0
    for part, start, end in zip(parts, starts, starts[1:], strict=False):
        for place, step in enumerate(part, start=start + 1):
            if step.value is None:
                track.moments.append((end, step.label))
            else:
                track.points.append(Point(place, step.value, step.incarnation or 0, step.value < largest))
                largest = max(largest, step.value)
    return track


Seen: TypeAlias = "tuple[Figure, dict[str, Track]]"
"""A figure, and for each run the values that it shows."""


def seen_over_time(runs: Mapping[str, Sequence[Step]], key: str) -> Seen:
    """Draw the values of `key` that a reader could have seen in each run, with crashes and jumps back."""
    data = tracks(runs)
    figure = chart(7.5, 0.8 + 1.2 * len(data))
    rows = figure.subplots(len(data), 1, squeeze=False, sharex=True, sharey=True)[:, 0]
    for axes, (name, shown) in zip(rows, data.items(), strict=True):
        _draw(axes, name, shown)
    rows[0].set_title(f"{key}: what a reader could have seen", loc="left", fontsize=11)
    rows[-1].set_xlabel("order in which it became visible; circle: first driver, square: after a restart", fontsize=9)
    return figure, data


def _draw(axes: "Axes", name: str, shown: Track) -> None:
    places, values = ([point.place for point in shown.points], [point.value for point in shown.points])
    axes.plot(places, values, color=GREY, linewidth=1, zorder=1, drawstyle="steps-post")
    for driver, colour, shape in ((1, BLUE, "o"), (2, ORANGE, "s")):
        points = [point for point in shown.points if (point.driver > 1) == (driver > 1)]
        axes.scatter([p.place for p in points], [p.value for p in points], s=55, c=colour, marker=shape, zorder=3)
    for point, before in zip(shown.points, [0, *values], strict=False):
        _annotate(axes, point, before)
    for place, label in shown.moments:
        if label != "end":
            _mark_crash(axes, place, label)
    axes.set_ylabel(name.replace(", ", "\n"), rotation=0, ha="right", va="center", fontsize=9)
    axes.set_xticks([])
    axes.set_yticks(sorted({point.value for point in shown.points}) or [0])
    axes.margins(x=0.08, y=0.45)
    axes.spines[["top", "right"]].set_visible(False)


def _annotate(axes: "Axes", point: Point, before: int) -> None:
    """Write a point's value next to it, in red if it jumps back; `before` is the value of the previous point."""
    side = -14 if point.went_back else 7
    axes.annotate(str(point.value), (point.place, point.value), (6, side), textcoords="offset points", fontsize=9)
    if point.went_back:
        if before > point.value:
            arrow = {"arrowstyle": "-|>", "color": RED, "linewidth": 2.6, "shrinkA": 0, "shrinkB": 4}
            axes.annotate("", (point.place, point.value), (point.place, before), arrowprops=arrow, zorder=2)
        axes.annotate(
            "jumps back",
            (point.place, point.value),
            (16, side),
            textcoords="offset points",
            fontsize=9,
            color=RED,
            weight="bold",
        )


def _mark_crash(axes: "Axes", place: int, label: str) -> None:
    axes.axvline(place, color="black", linestyle=":", linewidth=1.6)
    for words, side, align in ((f"\u2717 {label}", -4, "right"), ("restart \u25b8", 4, "left")):
        at = (side, -10)
        axes.annotate(
            words, (place, 1), at, ("data", "axes fraction"), textcoords="offset points", fontsize=9, ha=align
        )
