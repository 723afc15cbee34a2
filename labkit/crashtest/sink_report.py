"""Builds the report on a sink's test from the summary of its runs and the effects of its run without a crash."""

from collections.abc import Sequence
from dataclasses import replace

from labkit.crashtest.diagnosis import diagnose
from labkit.crashtest.instrument.effects import Effect, Kind
from labkit.crashtest.report import Report
from labkit.crashtest.rows import Shape
from labkit.crashtest.settings import Settings
from labkit.crashtest.subject import Adapter
from labkit.crashtest.verdict import INSTRUMENTS, Summary

UNTESTED = (
    "Not tested: loss of power (what was written and not synced survives a SIGKILL), several hosts, clocks that jump, "
    "writes below Python, batches of more than {rows} rows, effects that only batches after the first {batches} "
    "have, errors of the store (locked, full), and SIGTERM."
)


def sink_report(settings: Settings, adapter: Adapter, shape: Shape, summary: Summary, log: Sequence[Effect]) -> Report:
    """Return the report without a picture and without notes on the test's own runs; `finished` adds both."""
    return Report(
        settings,
        str(adapter),
        INSTRUMENTS,
        shape,
        summary,
        tuple(each.to_json() for each in log),
        diagnose(summary, log, shape),
        notes=tuple(_unseen(log)),
        untested=UNTESTED.format(rows=0, batches=settings.batches),
    )


def finished(report: Report, picture: str, notes: Sequence[str], largest: int, batches: int) -> Report:
    """Return the report with the picture of the weakest run, further notes, and the number of rows in the largest
    batch.

    `batches` is the number of batches in each run.
    """
    return replace(
        report,
        picture=picture,
        notes=(*notes, *report.notes),
        untested=UNTESTED.format(rows=largest, batches=batches),
        facts={"largest_batch": largest},
    )


def _unseen(log: Sequence[Effect]) -> list[str]:
    """Return a note on lines that write through the JVM, because no crash was placed within these calls.

    The list is empty if there are no such lines.
    """
    lines = sorted({each.line for each in log if each.kind is Kind.JVM})
    where = ", ".join(map(str, lines))
    note = f"line {where} lets the JVM write; no crash was placed within that call"
    return [note] if lines else []
