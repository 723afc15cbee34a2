"""Runs with a loss of power: bring the folders into a state that the loss may leave, and start the pipeline on them.

Writes that were not synced may be missing; `labkit.crashtest.blackbox.power_cut` computes the extreme states.
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
"""The maximum number of points at which the power fails, with and without `--quick`. Each leaves at most
five states.
"""

POWER = "power cut "
"""The prefix of the id of a run with a loss of power; the name of the point follows."""
STATE = ", "
"""The separator, in the id of such a run, between the name of the point and the name of the state of the disk."""


def outages(harness: Harness, run: PipelineRun, at: Point) -> Iterator[PipelineRun]:
    """Run the pipeline to a point, then yield a finished run from each state that a loss of power may leave there."""
    with harness.crash_recorded(run, at) as journal:
        blind = not_modelled(journal, run)
        for number, state in enumerate(_states(journal), start=1):
            yield _after(harness, run, state, number, blind)


def _states(journal: Journal) -> list[State]:
    """Return the states that a loss of power after all recorded calls may leave.

    The call at which the pipeline was killed is not among the calls, because it did not happen.
    """
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
    """Return the reason why the computed states cannot be trusted, such as calls that the model does not know.

    The text is empty if the states can be trusted.
    """
    unknown: Mapping[str, tuple[str, ...]] = journal.not_modelled()
    named = [f"{name}{f' ({Path(files[0]).name})' if files else ''}" for name, files in unknown.items()]
    if any(each.kind is CallKind.SEND for each in run.last.effects):
        named.append("what was sent to servers")
    if not named:
        return ""
    return f"what a loss of power leaves is not known of {', '.join(named)}"
