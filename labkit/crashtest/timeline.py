"""Formats the timeline of one run of a crash test as text and as a space-time diagram."""

from collections.abc import Sequence
from typing import NamedTuple

from labkit.sim.rules import Event
from labkit.view.spacetime import Diagram, Step, svg


class Line(NamedTuple):
    """One event of a run: who did it (`engine`, `sink` or `reader`), when (`at`, a Unix time), and what it was."""

    at: float
    who: str
    text: str
    event: Event = Event.STEP


def text(lines: Sequence[Line]) -> tuple[str, ...]:
    """Return the lines of a timeline as text, each with the seconds since the first line."""
    begun = lines[0].at if lines else 0.0
    return tuple(f"{line.at - begun:7.2f} s  {line.who:<6}  {line.text}" for line in lines)


def picture(lines: Sequence[Line], title: str) -> str:
    """Return the lines of a timeline as a space-time diagram, an SVG document."""
    names = {"engine": "engine", "sink": "sink", "reader": "reader"}
    steps = tuple(Step(line.who, line.event, (), line.text) for line in lines)
    return svg(Diagram(names, steps), title=title)
