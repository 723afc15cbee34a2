"""Performs the run without a crash, which shows the sink's effects, the form of the reader's rows, and unrecorded
writes.

If rows change without a recorded effect, the run is repeated with each source line recorded, so that the test can kill
the job next to the statement that writes.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from labkit.core.errors import InvalidInput
from labkit.crashtest.harness.runs import Harness, Run
from labkit.crashtest.instrument.effects import Effect, Kind, Point
from labkit.crashtest.rows import Shape, shape_of
from labkit.crashtest.seeing import Gap, askable, doubts, gaps, imports, read_logged, unseen_effects
from labkit.crashtest.settings import Settings
from labkit.crashtest.sink_judging import ours, point_readings
from labkit.crashtest.subject import BY_NAME, IN_JVM, Adapter


@dataclass(frozen=True)
class Healthy:
    """The findings of a sink's run without a crash."""

    run: Run
    shape: Shape
    recorded: tuple[Effect, ...]
    """All recorded effects, including those for source lines about to be executed."""
    log: tuple[Effect, ...]
    """The recorded effects without source lines, plus an inferred write for each line next to which rows changed."""
    beside: tuple[Point, ...]
    """The crash points before those source lines between which rows changed without a recorded effect."""
    doubts: tuple[str, ...]
    """The reasons why the test can claim no guarantee, each as a sentence."""
    slow: tuple[str, ...]
    """A note if the reader is too slow to answer at every crash point, in a tuple that is empty otherwise."""


def healthy_run(wanted: Settings, adapter: Adapter, harness: Harness, tell: Callable[[str, str], None]) -> Healthy:
    """Perform the run without a crash and return its findings.

    Raises `InvalidInput` if the sink or its reader fails.
    """
    tell("run", "a run without a crash, to find the points")
    run, shape = _recorded(wanted, harness, "healthy")
    unexplained = _gaps(run)
    if unexplained and not harness.lines and adapter not in BY_NAME:
        harness.lines = True
        tell("run", "rows changed without a recorded effect; the run is repeated with every source line recorded")
        run, shape = _recorded(wanted, harness, "healthy-lines")
        unexplained = _gaps(run)
    recorded = tuple(run.effects())
    log = tuple(each for each in recorded if each.kind is not Kind.LINE)
    return Healthy(
        run,
        shape,
        recorded,
        _with_unseen(log, unseen_effects(unexplained)),
        _beside(unexplained),
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
            f"{sink}: the sink failed without any crash: {run.raised}; make it run without this test first."
        )
    if run.unknown:
        raise InvalidInput(f"{sink}: the run without a crash did not finish: {run.unknown}")
    return run, _shape(wanted, harness, run)


def _shape(wanted: Settings, harness: Harness, run: Run) -> Shape:
    resets, last = harness.reader.resets, run.watcher.samples[-1]
    if not last.seen:
        raise InvalidInput(
            f"{wanted.rows_reader}: the reader found no rows, although the sink got "
            f"{len(run.rows.expected())} rows and raised no error; make both use the same store."
        )
    shape = shape_of(ours(run, [last], resets)[0].seen, run.rows)
    if shape is Shape.SUMS and not resets:
        raise InvalidInput(
            f"{wanted.rows_reader}: the test cannot tell the sums of several runs apart; add a function "
            "reset() that empties the store."
        )
    return shape


def _gaps(run: Run) -> list[Gap]:
    return gaps(point_readings(run), read_logged(run.log))


def _doubts(run: Run, wanted: Settings, adapter: Adapter) -> list[str]:
    return doubts(
        point_readings(run), read_logged(run.log), imports(Path(wanted.subject.file)), in_jvm=adapter in IN_JVM
    )


def _beside(unexplained: list[Gap]) -> tuple[Point, ...]:
    edges = [edge for gap in unexplained for edge in gap.edges if edge.kind is Kind.LINE]
    return tuple(dict.fromkeys(edges))


def _with_unseen(log: tuple[Effect, ...], unseen: list[Effect]) -> tuple[Effect, ...]:
    """Return the log with each inferred write inserted after the last earlier effect of its call."""
    effects = list(log)
    for effect in unseen:
        before = [
            place
            for place, each in enumerate(effects)
            if (each.batch, each.where) == (effect.batch, effect.where) and each.place <= effect.place
        ]
        effects.insert(max(before, default=len(effects) - 1) + 1, effect)
    return tuple(effects)


def _slow(run: Run, recorded: tuple[Effect, ...]) -> tuple[str, ...]:
    answered, places = len(run.watcher.readings), len(askable(recorded))
    note = f"the reader is slow or was locked out: it answered at {answered} of more than {places} points"
    return (note,) if answered < places else ()
