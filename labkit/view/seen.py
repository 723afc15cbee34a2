"""Show the values of one key that a reader saw, as a small line chart with the kills marked, and as text."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import islice

from labkit.core.records import Observation, Reading
from labkit.view.card import Html, tag
from labkit.view.charts import Track, tracks
from labkit.view.svg import number
from labkit.view.timeline import Step, by_key

MOST_EVENTS = 400
"""The largest number of a run's events for which a card shows a chart."""
MOST_POINTS = 40
"""The largest number of values in one chart."""
WIDE, HIGH, TOP = 240.0, 84.0, 22.0
LABEL = 50.0
"""The width in pixels of a label at a kill."""


def few(events: Iterable[Observation | Reading]) -> dict[str, list[Step]] | None:
    """Return a dict from key to its history (see `by_key`); None if there are more than `MOST_EVENTS` events."""
    some = list(islice(events, MOST_EVENTS + 1))
    return by_key(some) if len(some) <= MOST_EVENTS else None


def worth_seeing(steps_by_key: Mapping[str, Sequence[Step]]) -> str | None:
    """Return the key to draw as a chart, the one with the most values; None if it has too few or too many values.

    A chart needs 2 values, and shows at most `MOST_POINTS`.
    """
    values = {key: sum(step.value is not None for step in steps) for key, steps in steps_by_key.items()}
    key = max(values, key=lambda each: values[each], default=None)
    return key if key is not None and 2 <= values[key] <= MOST_POINTS else None


def in_words(steps: Sequence[Step]) -> str:
    """Return the values of a key as text, with marks for the kills in between, such as `1 2 | killed | 1 2`."""
    words = [
        "| killed |" if step.value is None else str(step.value)
        for step in steps
        if step.value is not None or step.label != "end"
    ]
    return " ".join(words).removeprefix("| ").removesuffix(" |") or "nothing"


def line(steps: Sequence[Step], key: str) -> Html:
    """Draw the values of one key as SVG in the order in which they became visible, with a description as text."""
    track = tracks({key: steps})[key]
    alt = f"what a reader saw of {key:.40}: {in_words(steps)}"
    return tag(
        "svg",
        tag("title", alt),
        Html(_drawn(track)),
        tag("text", f"what a reader saw of {key if len(key) <= 16 else key[:15] + '…'}", x="2", y=number(HIGH + 16)),
        role="img",
        aria_label=alt,
        viewBox=f"0 0 {number(WIDE)} {number(HIGH + 22)}",
        width=number(WIDE),
        height=number(HIGH + 22),
    )


def _drawn(track: Track) -> str:
    last = max([point.place for point in track.points] + [place for place, _ in track.moments] + [1])
    most = max([point.value for point in track.points] + [1])
    least = min([point.value for point in track.points] + [0])

    def x(place: float) -> str:
        return number(6 + (WIDE - 18) * place / (last + 1))

    def y(value: float) -> str:
        return number(TOP + 10 + (HIGH - TOP - 18) * (most - value) / (most - least or 1))

    way, before = "", None
    for point in track.points:
        way += f"H{x(point.place)}V{y(point.value)}" if way else f"M{x(point.place)} {y(point.value)}"
    drawn = [f'<path class="a" d="M2 {number(HIGH)}H{number(WIDE)}"/>']
    if way:
        drawn.append(f'<path class="l" d="{way}H{number(WIDE - 8)}"/>')
    for place, label in track.moments:
        if label == "end":
            continue
        drawn.append(f'<path class="k" d="M{x(place)} 4V{number(HIGH)}"/>')
        # The label is to the left of its mark, or to the right if the mark is near the chart's left edge.
        side = 'text-anchor="end" dx="-3"' if place / (last + 1) > LABEL / WIDE else 'dx="3"'
        drawn.append(f'<text class="r" x="{x(place)}" y="12" {side}>killed ✗</text>')
    marked = False
    for point in track.points:
        drawn.append(f'<circle class="d" cx="{x(point.place)}" cy="{y(point.value)}" r="2.5"/>')
        if point.went_back and not marked and before is not None and point.value < before:
            drawn.append(f'<text class="r" x="{x(point.place)}" y="12" dx="3">jumps back</text>')
            marked = True
        before = point.value
    return "".join(drawn)
