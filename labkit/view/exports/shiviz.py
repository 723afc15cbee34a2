"""Write a space-time diagram as a log with vector clocks, which ShiViz draws (https://bestchai.bitbucket.io/shiviz).

A step of the diagram becomes one event in each process that takes part: the process that acts, the processes that it
reaches or changes, and those that send or receive a message in this step. The event of the acting process comes after
all earlier events of the other participants, because the step may read their state. The other participants' events
come after the event of the acting process, because the step may change their state.
"""

import json
import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from labkit.core.errors import InvalidInput
from labkit.view.spacetime import Diagram, event_text

REGEX = r"(?<event>.*)\n(?<host>\S*) (?<clock>{.*})"
"""The regular expression with which ShiViz reads the log (its default). An uploaded file begins with it."""

Clock = Mapping[str, int]
"""An event's vector clock: the number of events of each process, by its id, that happened before it, plus itself."""


class Happening(NamedTuple):
    """One event of one process in a log for ShiViz. A step that affects several processes has one event for each."""

    step: int
    lane: str
    text: str
    clock: Clock


def happenings(diagram: Diagram) -> Iterator[Happening]:
    """Yield all events of a space-time diagram with their vector clocks, in the order of the steps."""
    clocks: dict[str, Clock] = {lane: {} for lane in diagram.lanes}
    # For each step and process: the clock that this process puts into the messages that it sends in this step.
    sent: dict[tuple[int, str], Clock] = {}
    for number, step in enumerate(diagram.steps, start=1):
        flights = [each for each in diagram.flights if each.source in clocks and each.target in clocks]
        arrived = [each for each in flights if each.received == number and not each.lost]
        begun = [each.source for each in flights if each.sent == number]
        others = dict.fromkeys((*step.touches, *step.changes, *(each.target for each in arrived), *begun))
        others = {lane: None for lane in others if lane in clocks and lane != step.lane}
        received = [sent.get((each.sent, each.source), {}) for each in arrived]
        clock = _next(step.lane, clocks[step.lane], *(clocks[lane] for lane in others), *received)
        yield Happening(number, step.lane, event_text(diagram, number), clock)
        clocks[step.lane] = sent[number, step.lane] = clock
        for lane in others:
            clocks[lane] = sent[number, lane] = _next(lane, clocks[lane], clock)
            yield Happening(number, lane, f"reached by {diagram.lanes[step.lane]}", clocks[lane])


def _next(lane: str, *before: Clock) -> Clock:
    merged: dict[str, int] = {}
    for clock in before:
        merged |= {name: max(time, merged.get(name, 0)) for name, time in clock.items()}
    merged[lane] = merged.get(lane, 0) + 1
    return merged


def write(diagram: Diagram, _title: str) -> str:
    """Return a space-time diagram as a log file for ShiViz. Raises `InvalidInput` if the diagram has no step."""
    if not diagram.steps:
        raise InvalidInput("this run has no step yet, and ShiViz refuses a log without events; make a step first.")
    titles = {lane: re.sub(r"\s+", "_", title) for lane, title in diagram.lanes.items()}
    given = list(titles.values())
    # The name of a host is unique and has no spaces, so equal titles get the id of their process appended.
    hosts = {lane: title if given.count(title) == 1 else f"{title}.{lane}" for lane, title in titles.items()}
    lines = [REGEX, ""]
    for each in happenings(diagram):
        clock = {host: each.clock[lane] for lane, host in hosts.items() if lane in each.clock}
        # The step's number comes first, so that no text looks like a host with its clock.
        lines.append(" ".join(f"step {each.step}: {each.text}".split()))
        lines.append(f"{hosts[each.lane]} {json.dumps(clock, ensure_ascii=False)}")
    return "".join(f"{line}\n" for line in lines)
