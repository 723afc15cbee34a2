"""Reports of crash tests from runs that a test makes up."""

from collections.abc import Mapping, Sequence
from typing import Any

from labkit.crashtest.report import Diagnosis, Report
from labkit.crashtest.rows import Shape
from labkit.crashtest.settings import Settings
from labkit.crashtest.verdict import KERNEL, Summary

UNTESTED = "Not tested: loss of power."


def report_of(
    wanted: Settings, summary: Summary, effects: Sequence[Mapping[str, Any]] = (), diagnosis: Diagnosis | None = None
) -> Report:
    """The report of a sink's test with these runs."""
    return Report(wanted, "foreachBatch", KERNEL, Shape.ROWS, summary, tuple(effects), diagnosis, untested=UNTESTED)


def flat(report: Report) -> str:
    """The report's text with single spaces in place of line breaks and of spaces that align it."""
    return " ".join(report.text().split())
