"""Runs with a loss of power: put the folders into a state that it may leave, and start the pipeline on them.

Writes that were not synced may be missing; `labkit.crashtest.blackbox.power_cut` lists the extreme states.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path

from labkit.core.errors import JobFailed
from labkit.crashtest.blackbox.points import Point
from labkit.crashtest.blackbox.power_cut import Journal, State, states_after_power_cut
from labkit.crashtest.blackbox.runs import Harness, PipelineRun
from labkit.crashtest.harness.reader import ReaderFailed
from labkit.host.syscalls.calls import CallKind

QUICK_OUTAGES, OUTAGES = 4, 12
"""The maximum number of points with a loss of power, with and without `--quick`. Each has at most five states."""

POWER = "power cut "
"""The prefix of a run's name, before the name of its point."""
STATE = ", "
"""The separator between the name of a point and the name of a state."""


def outages(harness: Harness, run: PipelineRun, at: Point) -> Iterator[PipelineRun]:
    """Run to a point, then yield a complete run from each state that a loss of power may leave there."""
    with harness.crash_recorded(run, at) as journal:
        blind = not_modelled(journal, run)
        for number, state in enumerate(_states(journal), start=1):
            yield _after(harness, run, state, number, blind)


def _states(journal: Journal) -> list[State]:
    """Return the possible states after all recorded calls; the call at which the pipeline was killed did not happen."""
    return states_after_power_cut(journal, len(journal.entries))


def _after(harness: Harness, run: PipelineRun, state: State, number: int, blind: str) -> PipelineRun:
    after = PipelineRun(
        f"{run.id}{STATE}{state.extreme}",
        f"{run.title}: {state.sentence.rstrip('.')}",
        run.folder / f"state-{number}",
        starts=list(run.starts),
        crashes=list(run.crashes),
        unknown=blind,
        made_outside=set(run.made_outside),
    )
    after.folder.mkdir()
    if blind:
        return after
    try:
        state.build(harness.settings.watched)
        harness.look(after, "the power is back")
        harness.recover(after)
    except (JobFailed, ReaderFailed) as error:
        after.unknown = str(error)
    return after


def not_modelled(journal: Journal, run: PipelineRun) -> str:
    """Return the reason why the states cannot be trusted; empty if they can."""
    unknown: Mapping[str, tuple[str, ...]] = journal.not_modelled()
    named = [f"{name}{f' ({Path(files[0]).name})' if files else ''}" for name, files in unknown.items()]
    if any(each.kind is CallKind.SEND for each in run.last.effects):
        named.append("what was sent to servers")
    if not named:
        return ""
    return f"what a loss of power leaves is not known of {', '.join(named)}"
