"""Builds the timeline of one run of a sink: effects, crashes, restarts and readings in order of time."""

import json
import signal
from collections.abc import Iterator, Sequence
from pathlib import Path

from labkit.crashtest.harness.runs import Run
from labkit.crashtest.instrument.effects import BOUNDS, Effect, Kind
from labkit.crashtest.samples import Sample
from labkit.crashtest.timeline import Line
from labkit.sim.rules import Event


def lines(run: Run, *, resets: bool = True) -> list[Line]:
    """Return the timeline of one run, in order of time; `resets` says whether the store was emptied before the run."""
    unordered = [*_effects(run), *_crashes(run), *_readings(run.watcher.samples, run, resets=resets)]
    return sorted(unordered, key=lambda line: line.at)


def timed_effects(log: Path) -> Iterator[tuple[Effect, float]]:
    """Yield the effects of a log with their Unix times; a line that is not complete is ignored."""
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
            yield Line(at - 1e-6, "engine", f"driver {driver} continues from the checkpoint", Event.RESTART)
        who = "engine" if effect.kind is Kind.BEGIN else "sink"
        words = _bound(effect) if effect.kind in BOUNDS else f"effect {effect.number}: {effect.label()}"
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
