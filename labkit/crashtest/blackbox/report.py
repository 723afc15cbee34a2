"""The report on the crash test of a pipeline."""

from collections.abc import Mapping, Sequence

from labkit.crashtest.blackbox.diagnosis import diagnose_fault
from labkit.crashtest.blackbox.healthy import Healthy
from labkit.crashtest.blackbox.points import LOOP
from labkit.crashtest.blackbox.runs import IDLE, LEASE, ONCE_MORE, OUTAGE
from labkit.crashtest.blackbox.settings import PipelineSettings
from labkit.crashtest.blackbox.story import Line, picture, plain
from labkit.crashtest.claim import fault_claims
from labkit.crashtest.report import Diagnosis, Report
from labkit.crashtest.verdict import KERNEL, LINES, Result, Summary
from labkit.host.syscalls.faults import Fault

UNTESTED = (
    "Not tested: {power}, markers and leases that expire {pause}, timers that need a longer job, several hosts, "
    "clocks that jump, a restart on another day, {grown}the death of a server that the pipeline writes to, reads, "
    "closes and new connections that fail, a store that is locked{faults}, more than {loops} crashes at one place, and "
    "more than two at different places; pairs of places that leave the files as another crash does are a sample."
)
BETWEEN_LINES = (
    "the test killed only before lines of your Python in the driver, so the guarantee is at best not refuted: it "
    "cut nothing within a line or a commit, in the JVM, in Spark's workers or while a module is imported, and left out "
    "the runs with a large batch, other rows for a batch, new rows and a dying task ({why})"
)
"""The note on a test that could not watch system calls, with the reason for that."""
POWER_SENTENCES = {
    False: "loss of power (what was written and not synced survives a SIGKILL; --power-cut tries it)",
    True: "states between the extremes that a loss of power may leave, changes of times, modes, owners and extended "
    "attributes that it may lose",
}


def late_notes(results: Sequence[Result]) -> list[str]:
    """Return notes on runs in which rows were missing after the restart.

    The rows came with one more start, or never came because further starts did nothing, as with a lease.
    """
    late = [each.id for each in results if ONCE_MORE in each.notes and not each.rows_of("lost") and not each.stuck]
    idle = [
        (each.id, note) for each in results for note in each.notes if note.startswith(IDLE) and each.rows_of("lost")
    ]
    messages = [
        f"{name}: {note}; rows that would come after a longer wait, as for a lease, count as lost (--limit)"
        for name, note in idle[:1]
    ]
    if not late:
        return messages
    return [
        *messages,
        (
            f"after {len(late)} crash(es), as {late[0]}, one restart ended well without all rows; they "
            "came with another start"
        ),
    ]


def outage_notes(results: Sequence[Result]) -> list[str]:
    """Return notes on runs in which the reader failed until the recovery, or the command refused to run for a while."""
    notes = []
    for beginning in (OUTAGE, LEASE):
        recovered = (each for each in results if not each.stuck)
        found = [(each.id, note) for each in recovered for note in each.notes if note.startswith(beginning)]
        count = len({name for name, _ in found})
        notes += [f"in {count} run(s), as {name}, {note}" for name, note in found[:1]]
    return notes


def pipeline_report(
    settings: PipelineSettings,
    healthy: Healthy,
    summary: Summary,
    diagnosis: Diagnosis | None,
    *,
    stories: Mapping[str, Sequence[Line]],
    notes: Sequence[str],
) -> Report:
    """Return the report on a crash test of a pipeline; `stories` maps the id of each run to its timeline."""
    weakest, pause = summary.weakest, settings.pause
    expiring = f"after more than {pause:.3g} s" if pause else "(--pause tries one start after so many seconds)"
    unjudged = settings.unjudged(healthy.effects)
    not_judged = [f"not judged: {' and '.join(unjudged)}, since {settings.WHY_UNJUDGED}"] if unjudged else []
    between = [BETWEEN_LINES.format(why=settings.unwatchable.rstrip("."))] if settings.unwatchable else []
    untried = [each.value for each in Fault if each not in settings.faults]
    worst = [each.worst for each in fault_claims(summary) if each.worst is not None]
    drawn = picture(stories[weakest.id], weakest.title) if weakest and weakest.id in stories else ""
    return Report(
        settings,
        settings.adapter,
        LINES if settings.unwatchable else KERNEL,
        healthy.expectation.shape,
        summary,
        tuple(plain(healthy.effects)),
        diagnosis,
        {each.fault: diagnose_fault(each) for each in worst},
        drawn,
        tuple(dict.fromkeys([*between, *notes, *not_judged])),
        settings.untested(summary.results)
        or UNTESTED.format(
            power=POWER_SENTENCES[settings.power_cut],
            pause=expiring,
            grown="" if settings.more else "input that grows between a crash and its restart (--more tries it), ",
            faults=f", the faults {', '.join(untried)} (--fault tries them)" if untried else "",
            loops=LOOP,
        ),
    )
