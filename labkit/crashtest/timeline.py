"""The timeline of one run: effects, crashes, restarts and readings in order, as lines and as a diagram.

This module only words what was recorded; it must not judge.
"""

import json
import signal
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from labkit.crashtest.harness.runs import Run
from labkit.crashtest.instrument.effects import BOUNDS, Effect, Kind
from labkit.crashtest.samples import Sample
from labkit.sim.rules import Event
from labkit.view.spacetime import Diagram, Step, svg


class Line(NamedTuple):
    """One event of a run. `who`: `engine`, `sink`, `reader`."""

    at: float
    who: str
    said: str
    event: Event = Event.STEP


def lines(run: Run, *, resets: bool = True) -> list[Line]:
    """The timeline of one run, in order of time."""
    unordered = [*_effects(run), *_crashes(run), *_readings(run.watcher.samples, run, resets=resets)]
    return sorted(unordered, key=lambda line: line.at)


def timed_effects(log: Path) -> Iterator[tuple[Effect, float]]:
    """The effects of a log with their moments, without a line that was not finished."""
    text = log.read_text(encoding="utf-8") if log.exists() else ""
    for raw in text.splitlines():
        try:
            data = json.loads(raw)
            yield Effect.from_json(data), data["at"]
        except (ValueError, KeyError):
            continue


def _effects(run: Run) -> Iterator[Line]:
    driver = 1
    for effect, at in timed_effects(run.log):
        if effect.kind is Kind.LINE:
            continue
        if effect.driver > driver:
            driver = effect.driver
            yield Line(at - 1e-6, "engine", f"driver {driver} goes on from the checkpoint", Event.RESTART)
        who = "engine" if effect.kind is Kind.BEGIN else "sink"
        words = _bound(effect) if effect.kind in BOUNDS else f"effect {effect.number}: {effect.said()}"
        failed = " and raises" if effect.failed else ""
        yield Line(at, who, f"batch {effect.batch}, {effect.where}: {words}{failed}")


def _bound(effect: Effect) -> str:
    if effect.kind is Kind.BEGIN:
        return f"offsets/{effect.batch} is written, the call begins"
    return "the call returns"


def _crashes(run: Run) -> Iterator[Line]:
    for crash in run.crashes:
        if "at" in crash:
            stopped = crash["signal"] == signal.SIGSTOP
            sign = "SIGSTOP" if stopped else "SIGKILL"
            yield Line(crash["at"], "engine", f"{sign} to every process of the driver at {crash['point']}", Event.CRASH)


def _readings(samples: Sequence[Sample], run: Run, *, resets: bool) -> Iterator[Line]:
    ids = {row["id"] for batch in run.rows.batches for row in batch.rows}
    for sample in samples:
        ours = [row for row in sample.seen if resets or row.id is None or row.id in ids]
        when = f" ({sample.moment})" if sample.moment else ""
        yield Line(sample.at, "reader", f"reads {len(ours)} row(s){when}")


def text(found: Sequence[Line]) -> tuple[str, ...]:
    """The lines as text, with seconds since the first line."""
    begun = found[0].at if found else 0.0
    return tuple(f"{line.at - begun:7.2f} s  {line.who:<6}  {line.said}" for line in found)


def picture(found: Sequence[Line], title: str) -> str:
    """The lines as a space-time diagram, an SVG document."""
    names = {"engine": "engine", "sink": "sink", "reader": "reader"}
    steps = tuple(Step(line.who, line.event, (), line.said) for line in found)
    return svg(Diagram(names, steps), title=title)
