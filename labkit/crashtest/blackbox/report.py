"""The report of a test of a pipeline. This module must not decide anything: what was measured is the summary."""

from collections.abc import Mapping, Sequence

from labkit.crashtest.blackbox.healthy import Healthy
from labkit.crashtest.blackbox.runs import ONCE_MORE
from labkit.crashtest.blackbox.settings import PipelineSettings
from labkit.crashtest.blackbox.story import plain
from labkit.crashtest.diagnosis import Diagnosis
from labkit.crashtest.report import Report
from labkit.crashtest.settings import KERNEL
from labkit.crashtest.timeline import Line, picture
from labkit.crashtest.verdict import Result, Summary

UNTESTED = (
    "Not tested: {power}, several hosts, clocks that jump, the death of a server that the pipeline writes to, and a "
    "single write that a SIGKILL cuts in two."
)
POWER_SAID = {
    False: "loss of power (what was written and not synced survives a SIGKILL; --power-cut tries it)",
    True: "states between the extremes that a loss of power may leave",
}

UNJUDGED = ("precommitted_read", "fractured_read")
"""Which rows belong together nobody said, so a part of them is told from all of them by nothing."""

NOT_JUDGED = f"not judged: {' and '.join(UNJUDGED)}, since nobody said which rows belong together"


def late_notes(results: Sequence[Result]) -> list[str]:
    """Runs whose rows came only with a start more than the crash asked for."""
    late = [
        each.id
        for each in results
        if ONCE_MORE in each.notes and not each.found("lost")
    ]
    if not late:
        return []
    return [
        f"after {len(late)} crash(es), as {late[0]}, one restart ended well without all rows; they came with another start"
    ]


def pipeline_report(
    settings: PipelineSettings,
    healthy: Healthy,
    summary: Summary,
    diagnosis: Diagnosis | None,
    stories: Mapping[str, Sequence[Line]],
) -> Report:
    """The report; `stories` are what happened in each run, by its id."""
    weakest = summary.weakest
    drawn = (
        picture(stories[weakest.id], weakest.title)
        if weakest and weakest.id in stories
        else ""
    )
    return Report(
        settings,
        "a command",
        KERNEL,
        healthy.expectation.shape,
        summary,
        tuple(plain(healthy.effects)),
        diagnosis,
        drawn,
        tuple(dict.fromkeys([*healthy.notes, NOT_JUDGED])),
        UNTESTED.format(power=POWER_SAID[settings.power_cut]),
    )
