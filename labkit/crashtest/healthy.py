"""The run without a crash: what the sink does, what its reader returns, and how far the test sees what writes.

Where something writes unseen the run is made once more, line by line, so that the job can be killed beside the
statement that does it. This module must not judge rows, and must not decide where the job is killed.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from labkit.core.errors import InvalidInput
from labkit.crashtest.harness.runs import Harness, Run
from labkit.crashtest.harness.subject import BY_NAME, IN_JVM, Adapter
from labkit.crashtest.instrument.effects import Effect, Kind, Point
from labkit.crashtest.judging import ours, point_readings
from labkit.crashtest.rows import Shape, shape_of
from labkit.crashtest.seeing import (
    Gap,
    askable,
    doubts,
    gaps,
    imports,
    read_logged,
    unseen_effects,
)
from labkit.crashtest.settings import Settings


@dataclass(frozen=True)
class Healthy:
    """The recorded run."""

    run: Run
    shape: Shape
    recorded: tuple[Effect, ...]
    """All that was recorded, lines as well."""
    log: tuple[Effect, ...]
    """The effects, with what lines must have done unseen."""
    beside: tuple[Point, ...]
    """The places before lines between which something was written unseen."""
    doubts: tuple[str, ...]
    """Why nothing may be said of the guarantee, a sentence each."""
    slow: tuple[str, ...]
    """What to know of the reader's speed."""


def healthy_run(
    wanted: Settings,
    adapter: Adapter,
    harness: Harness,
    tell: Callable[[str, str], None],
) -> Healthy:
    """Makes the run. Raises `InvalidInput` if the sink or the reader does not even do without a crash."""
    tell("run", "a run without a crash, to find the points")
    run, shape = _recorded(wanted, harness, "healthy")
    found = _gaps(run)
    if found and not harness.lines and adapter not in BY_NAME:
        harness.lines = True
        tell("run", "something writes unseen; the same once more, line by line")
        run, shape = _recorded(wanted, harness, "healthy-lines")
        found = _gaps(run)
    recorded = tuple(run.effects())
    log = tuple(each for each in recorded if each.kind is not Kind.LINE)
    return Healthy(
        run,
        shape,
        recorded,
        _with_unseen(log, unseen_effects(found)),
        _beside(found),
        tuple(_doubts(run, wanted, adapter)),
        _slow(run, recorded),
    )


def _recorded(wanted: Settings, harness: Harness, name: str) -> tuple[Run, Shape]:
    with harness.run(name, "no crash") as run:
        harness.execute(run)
        if not run.raised:
            harness.settle(run)
    sink = wanted.subject
    if run.raised:
        raise InvalidInput(
            f"{sink}: without any crash the sink raised {run.raised}; make it run once by hand first."
        )
    if run.unknown:
        raise InvalidInput(
            f"{sink}: the run without a crash did not come to its end: {run.unknown}"
        )
    return run, _shape(wanted, harness, run)


def _shape(wanted: Settings, harness: Harness, run: Run) -> Shape:
    resets, last = harness.reader.resets, run.watcher.samples[-1]
    if not last.seen:
        raise InvalidInput(
            f"{wanted.reader}: the reader read nothing after the sink was given "
            f"{len(run.rows.expected())} rows and raised no error; one of the two looks elsewhere."
        )
    shape = shape_of(ours(run, [last], resets)[0].seen, run.rows)
    if shape is Shape.SUMS and not resets:
        raise InvalidInput(
            f"{wanted.reader}: sums of several runs cannot be told apart; write a reset() too."
        )
    return shape


def _gaps(run: Run) -> list[Gap]:
    return gaps(point_readings(run), read_logged(run.log))


def _doubts(run: Run, wanted: Settings, adapter: Adapter) -> list[str]:
    return doubts(
        point_readings(run),
        read_logged(run.log),
        imports(Path(wanted.subject.file)),
        in_jvm=adapter in IN_JVM,
    )


def _beside(found: list[Gap]) -> tuple[Point, ...]:
    edges = [edge for gap in found for edge in gap.edges if edge.kind is Kind.LINE]
    return tuple(dict.fromkeys(edges))


def _with_unseen(log: tuple[Effect, ...], unseen: list[Effect]) -> tuple[Effect, ...]:
    """The log with these effects behind the last one of their call that came before."""
    found = list(log)
    for effect in unseen:
        before = [
            place
            for place, each in enumerate(found)
            if (each.batch, each.where) == (effect.batch, effect.where)
            and each.place <= effect.place
        ]
        found.insert(max(before, default=len(found) - 1) + 1, effect)
    return tuple(found)


def _slow(run: Run, recorded: tuple[Effect, ...]) -> tuple[str, ...]:
    asked, places = len(run.watcher.readings), len(askable(recorded))
    said = f"the reader is slow or was locked out: it gave an answer at {asked} of more than {places} places"
    return (said,) if asked < places else ()
