"""A certificate of one test for whoever relies on the sink: one page that says what was measured, and what was not.

It says nothing that the report does not say. Where the guarantee is unknown, or only some runs were asked for, it says so
in the place of the guarantee. This module must not decide anything.
"""

import platform
from html import escape
from importlib.metadata import PackageNotFoundError, version

from labkit.core.judge import Guarantee, Outcome
from labkit.crashtest.page import STYLE, axis_table, verdict_mark
from labkit.crashtest.report import Report
from labkit.crashtest.settings import VARIANTS
from labkit.crashtest.verdict import Group

PRINT = "@media print{body{margin:0;font-size:12px}h2{margin-top:1rem}}"
TRIED = {
    Group.HEALTHY: "without a crash",
    Group.CRASH: "killed by SIGKILL once",
    Group.PAIR: "killed again while it recovered",
    Group.POWER: "power cut, what was not synced is gone",
    Group.RETRY: "a task that failed and was repeated",
    Group.LARGE: "a large batch",
    Group.IDENTITY: "another query, or an older checkpoint",
    Group.CONDITION: "under another condition",
}
"""What was done to the job, in the order of the page."""


def certificate(report: Report) -> str:
    """The page as an HTML document, which needs no other file."""
    title = f"What {report.settings.subject} guarantees"
    parts = [
        f"<h1>{escape(title)}: {verdict_mark(report.guarantee)}</h1>",
        f"<p>{escape(_sentence(report))}</p>",
        "<h2>What was measured</h2>",
        f"<p>{escape(str(report.summary.coverage))}.</p>",
        _tried(report),
        axis_table(report),
        "<h2>Under which conditions</h2>",
        _conditions(report),
        "<h2>What was not measured</h2>",
        _not_measured(report),
        "<h2>With what, and how to repeat it</h2>",
        f"<p>{escape(_versions())}.</p><pre>{escape(report.settings.command())}</pre>",
    ]
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{escape(title)}</title>'
        f"<style>{STYLE}{PRINT}</style>{''.join(parts)}</html>\n"
    )


def _sentence(report: Report) -> str:
    """The guarantee in a sentence; nothing is claimed that was not measured."""
    if report.settings.only:
        return "Only some runs were made, and some runs can refute a guarantee and prove none."
    if report.guarantee == Guarantee.UNKNOWN:
        unknown = [each.unknown for each in report.summary.unknown()]
        return f"The guarantee is unknown: {unknown[0] if unknown else 'not enough was seen'}."
    violated = [
        axis.replace("_", " ")
        for axis, held in report.axes.items()
        if held is Outcome.VIOLATED
    ]
    if violated:
        return f"In some of the runs below the rows, or what a reader saw of them, were wrong: {', '.join(violated)}."
    return "In every run below each row had its effect once, and no reader saw anything else."


def _tried(report: Report) -> str:
    """How often each kind of run was made, and in how many of them something was wrong."""
    lines = []
    for group, said in TRIED.items():
        runs = [each for each in report.summary.results if each.group is group]
        if not runs:
            continue
        wrong = sum(bool(each.violated) for each in runs)
        unknown = sum(bool(each.unknown) for each in runs)
        more = f", {unknown} unknown" if unknown else ""
        lines.append((said, str(len(runs)), f"{wrong} wrong{more}"))
    rows = "".join(
        "<tr>" + "".join(f"<td>{escape(each)}</td>" for each in line) + "</tr>"
        for line in lines
    )
    head = "<tr><th>what was done to the job</th><th>runs</th><th>of these</th></tr>"
    return f"<table>{head}{rows}</table>"


def _conditions(report: Report) -> str:
    """What came of the runs that say under which condition the guarantee holds."""
    found = [
        f"{VARIANTS.get(name, name)}: {guarantee}"
        for name, guarantee in report.summary.conditions.items()
    ]
    return _items(found or ["No condition was tried."])


def _not_measured(report: Report) -> str:
    unknown = [f"{each.title}: {each.unknown}" for each in report.summary.unknown()]
    return _items([*unknown, report.untested, *report.notes])


def _items(texts: list[str]) -> str:
    inside = "".join(f"<li>{escape(text)}</li>" for text in texts if text)
    return f"<ul>{inside}</ul>"


def _versions() -> str:
    parts = [f"Python {platform.python_version()}", platform.system()]
    for name in ("labkit", "pyspark"):
        try:
            parts.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            continue
    return ", ".join(parts)
