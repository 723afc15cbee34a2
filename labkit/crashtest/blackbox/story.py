"""Describe one run of a pipeline as a timeline: its starts, effects, crashes and readings, in order."""

from collections.abc import Iterator, Sequence

from labkit.crashtest.blackbox.effects import Effect
from labkit.crashtest.blackbox.points import WITHIN
from labkit.crashtest.blackbox.runs import PipelineRun
from labkit.crashtest.timeline import Line
from labkit.sim.rules import Event

FIRST, LAST = 4, 8
"""The number of effects of a start that a timeline shows from its beginning and from its end."""


def lines(run: PipelineRun) -> list[Line]:
    """Return the lines of one run's timeline, in order of time."""
    unordered = [*_starts(run), *_crashes(run), *_readings(run)]
    return sorted(unordered, key=lambda line: line.at)


def _starts(run: PipelineRun) -> Iterator[Line]:
    for number, start in enumerate(run.starts, start=1):
        began = start.watched.began
        word = "is started" if number == 1 else f"is started again ({number})"
        event = Event.STEP if number == 1 else Event.RESTART
        yield Line(began, "engine", f"the command {word}", event)
        for place, effect in enumerate(start.effects):
            left_out = len(start.effects) - FIRST - LAST
            if FIRST <= place < FIRST + left_out:
                if place == FIRST:
                    more = f"... {left_out} more effects"
                    yield Line(began + effect.call.seconds, "sink", more)
                continue
            yield Line(began + effect.call.seconds, "sink", said(effect))


def said(effect: Effect) -> str:
    """Return a short description of an effect: its name, its file and its size in bytes."""
    call = effect.call
    size = f"{call.size} bytes" if call.size > 0 else ""
    file = effect.file if effect.file != effect.where else ""
    more = ", ".join(part for part in (file, size, str(effect.line or "")) if part)
    return f"{effect.name} ({more})" if more else effect.name


def _crashes(run: PipelineRun) -> Iterator[Line]:
    for crash in run.crashes:
        where = crash["point"] if crash["point"].startswith(WITHIN) else f"before {crash['point']}"
        words = f"SIGKILL to every process of the pipeline {where}"
        yield Line(crash["at"], "engine", words, Event.CRASH)


def _readings(run: PipelineRun) -> Iterator[Line]:
    for reading in run.readings:
        words = f"reads {len(reading.values)} row(s) ({reading.moment})"
        yield Line(reading.at, "reader", words)


def plain(effects: Sequence[Effect]) -> list[dict[str, object]]:
    """Return effects as plain data for the JSON report."""
    return [
        {
            "name": each.name,
            "kind": each.kind.value,
            "file": each.file,
            "call": each.call.name,
            "size": each.call.size,
            "line": str(each.line or ""),
            "seconds": round(each.call.seconds, 4),
        }
        for each in effects
    ]
