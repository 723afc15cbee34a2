"""Formats the timeline of one run as text and as a space-time diagram."""

from collections.abc import Sequence
from typing import NamedTuple

from labkit.sim.rules import Event
from labkit.view.spacetime import Diagram, Step, svg


class Line(NamedTuple):
    """One event of a run. `who` is `engine`, `sink` or `reader`; `at` is a Unix time."""

    at: float
    who: str
    text: str
    event: Event = Event.STEP


def text(lines: Sequence[Line]) -> tuple[str, ...]:
    """Return the lines as text, with seconds since the first line."""
    begun = lines[0].at if lines else 0.0
    return tuple(f"{line.at - begun:7.2f} s  {line.who:<6}  {line.text}" for line in lines)


def picture(lines: Sequence[Line], title: str) -> str:
    """Return the lines as a space-time diagram, an SVG document."""
    names = {"engine": "engine", "sink": "sink", "reader": "reader"}
    steps = tuple(Step(line.who, line.event, (), line.text) for line in lines)
    return svg(Diagram(names, steps), title=title)
