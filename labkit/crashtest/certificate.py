"""Formats the result of a test as one page to print: what was tested and measured, how often, and what was not.

The page repeats the sentences of the report unchanged.
"""

import platform
from collections.abc import Iterator, Sequence
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version

from labkit import __version__
from labkit.core.judge import Guarantee, Outcome
from labkit.crashtest.report import NOT_SEEN, Report
from labkit.crashtest.verdict import KERNEL, LINES, Group, Result
from labkit.view.card import code, document, items, para, section, table, tag
from labkit.view.signs import LOOKS

MOST_RUNS = 24
"""The number of runs that the page lists by name, beginning with the weakest; its table counts all of them."""

STYLE = """
@page{size:A4;margin:14mm}
body{font:13px/1.4 sans-serif;color:#222;background:#fff;max-width:48rem;margin:1.5rem auto;padding:0 1rem}
h1{font-size:1.2rem;margin:0}h2{font-size:1rem;margin:1rem 0 .2rem}p,ul{margin:.2rem 0}
.w{font-size:2.2rem;font-weight:bold;margin:.2rem 0}
code,pre{font:12px monospace;overflow-wrap:anywhere;white-space:pre-wrap}pre{margin:.2rem 0}
table{border-collapse:collapse;width:100%}
td,th{text-align:left;vertical-align:top;padding:.1rem .6rem .1rem 0;border-bottom:1px solid #ddd}
.r{columns:2;padding:0;list-style:none;font-size:12px}
@media print{body{font-size:11px;line-height:1.3;margin:0;max-width:none;padding:0}.w{font-size:1.7rem}
h2{margin:.6rem 0 .1rem}.r{columns:3;font-size:10px}code,pre{font-size:10px}}
"""

_RECORDED_BY = {KERNEL: "its system calls", LINES: "its lines in the driver alone"}


def certificate(report: Report) -> str:
    """Return the page as an HTML document that loads nothing from other hosts."""
    title = f"Crash test of {report.settings.subject}"
    look = report.claim.look
    large = tag("p", f"{look.sign} {report.claim}", class_="w", style=f"color:{look.shade}")
    return document(
        title,
        STYLE,
        tag("h1", title),
        large,
        *map(para, _under(report)),
        section("What was tested", para(_tested(report))),
        section("What holds", table(("axis", "", "runs that say so"), _axes(report))),
        section("What was measured, run by run", *_measured(report)),
        section("What was not measured", items(_unmeasured(report))),
        section("Versions", para(", ".join(_versions()))),
        section("Again", code(_again(report))),
    )


def _under(report: Report) -> Iterator[str]:
    """Yield the sentences that the page shows directly below the guarantee."""
    weakest = report.summary.weakest
    if weakest is not None:
        yield f"Weakest: {weakest.title}: {weakest.because}."


def _tested(report: Report) -> str:
    subject, adapter, shape = report.settings.subject, report.adapter, report.shape
    return f"{subject}: {adapter}, with effects recorded by {_RECORDED_BY[report.eyes]}; the reader returns {shape}."


def _axes(report: Report) -> Iterator[Sequence[str]]:
    runs = [each for each in report.summary.results if each.group not in (Group.CONDITION, Group.SEEING)]
    proof = sum(each.guarantee is not Guarantee.UNKNOWN for each in runs)
    for axis, outcome in report.axes.items():
        bad = [each.id for each in runs if each.rows_of(axis)]
        count = ""
        if outcome in (Outcome.HOLDS.value, NOT_SEEN):
            count = f"{proof} of {len(runs)}"
        elif bad:
            count = f"{len(bad)} of {len(runs)}, as {bad[0]}"
        yield axis, outcome, count
    for title, held in report.summary.condition_rows():
        yield title, held, "a condition, outside the guarantee"


def _measured(report: Report) -> Iterator[str]:
    runs = [each for each in report.summary.ranked() if each.group is not Group.SEEING]
    rows = []
    for group in dict.fromkeys(each.group for each in report.summary.results):
        of_group = [each for each in runs if each.group is group]
        wrong = sum(bool(each.violated) for each in of_group)
        right = sum(map(_is_right, of_group))
        numbers = (len(of_group), right, wrong, len(of_group) - right - wrong)
        if of_group:
            rows.append((group.value, *map(str, numbers)))
    yield table(("kind of run", "runs", "nothing wrong", "something wrong", "unknown"), rows)
    yield tag("ul", *(tag("li", *_run(each)) for each in runs[:MOST_RUNS]), class_="r")
    if len(runs) > MOST_RUNS:
        more = len(runs) - MOST_RUNS
        yield para(f"And {more} more. The weakest are listed above, and unknown ones below.")


def _is_right(result: Result) -> bool:
    """Return whether a run proves that nothing was wrong in it. A run without a verdict proves nothing."""
    return result.guarantee is not Guarantee.UNKNOWN and not result.violated


def _run(result: Result) -> Iterator[str]:
    look = LOOKS[result.guarantee]
    yield tag("span", look.sign, style=f"color:{look.shade}")
    axes = f" ({', '.join(result.violated)})" if result.violated else ""
    yield f" {result.id}: {result.guarantee.value}{axes}"


def _unmeasured(report: Report) -> Iterator[str]:
    coverage, results = report.summary.coverage, report.summary.results
    yield f"{coverage}."
    left = coverage.found - sum(each.group is Group.CRASH for each in results)
    if left > 0:
        yield f"{left} of {coverage.found} points have no run of their own."
    if coverage.directed > coverage.directed_tried:
        left_out = f"{coverage.directed - coverage.directed_tried} of {coverage.directed}"
        yield f"{left_out} directed pairs, which no single crash stands for, were not tried."
    if coverage.pairs > coverage.pairs_tried:
        untried = f"{coverage.pairs - coverage.pairs_tried} of {coverage.pairs}"
        yield f"{untried} pairs of a crash and one in its recovery were not tried."
    for each in results:
        if each.guarantee is Guarantee.UNKNOWN and not each.skipped:
            yield f"Unknown: {each.id}: {each.unknown or 'the run has no verdict'}"
    yield from (f"Not run: {each}." for each in report.not_run())
    axes = [axis for axis, held in report.axes.items() if held == Outcome.UNKNOWN.value]
    if axes:
        yield f"Unknown: {', '.join(axes)}."
    yield from report.notes
    if report.untested:
        yield report.untested


def _again(report: Report) -> str:
    """Return the shortest command that repeats the test; with `--only`, one command for each of the selected runs."""
    return "\n".join(map(report.settings.command, report.settings.only or ("",)))


def _versions() -> Iterator[str]:
    yield f"labkit {__version__}"
    yield f"Python {platform.python_version()}"
    with suppress(PackageNotFoundError):
        yield f"PySpark {version('pyspark')}"
    yield platform.system()
