"""A test as one page to print: what was tested, what was measured and how often, and what was not measured.

The page says what the report says, word for word.
"""

import platform
from collections.abc import Iterable, Iterator, Sequence
from html import escape
from importlib.metadata import PackageNotFoundError, version

from labkit import __version__
from labkit.core.judge import Guarantee, Outcome
from labkit.crashtest.report import Report
from labkit.crashtest.verdict import INSTRUMENTS, VARIANTS, Group, Result
from labkit.view.effects import SHADES

MOST_RUNS = 24
"""Runs that the page names one by one, the weakest first; its rows count all of them."""

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


def certificate(report: Report) -> str:
    """The page as an HTML document, which asks nothing of another host."""
    title = f"Crash test of {report.settings.subject}"
    shade, sign = SHADES[report.guarantee.value]
    parts = [
        f"<h1>{escape(title)}</h1>",
        f'<p class="w" style="color:{shade}">{sign} {escape(report.guarantee.value)}</p>',
        *(f"<p>{escape(said)}</p>" for said in _under(report)),
        *_section("What was tested", [_tested(report)]),
        *_section("What holds", [_table(("axis", "", "runs that say so"), _axes(report))]),
        *_section("What was measured, run by run", _measured(report)),
        *_section("What was not measured", [_items(_unmeasured(report))]),
        *_section("Versions", [f"<p>{escape(', '.join(_versions(report)))}</p>"]),
        *_section("Again", [f"<pre>{escape(_again(report))}</pre>"]),
    ]
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{escape(title)}</title>'
        f"<style>{STYLE}</style>{''.join(parts)}</html>\n"
    )


def _section(title: str, body: Iterable[str]) -> Iterator[str]:
    yield f"<h2>{escape(title)}</h2>"
    yield from body


def _under(report: Report) -> Iterator[str]:
    """What has to be said at once about the large word."""
    yield from report.restricted()
    weakest = report.summary.weakest
    if weakest is not None:
        yield f"Weakest: {weakest.title}: {weakest.because}."


def _tested(report: Report) -> str:
    eyes = "Python's libraries" if report.eyes == INSTRUMENTS else "its system calls"
    said = (
        f"{report.settings.subject}: {report.adapter}, with effects seen in {eyes}; the reader returns {report.shape}."
    )
    return f"<p>{escape(said)}</p>"


def _axes(report: Report) -> Iterator[Sequence[str]]:
    runs = [each for each in report.summary.results if each.group not in (Group.CONDITION, Group.SEEING)]
    proof = sum(each.guarantee is not Guarantee.UNKNOWN for each in runs)
    for axis, outcome in report.axes.items():
        bad = [each.id for each in runs if each.found(axis)]
        said = ""
        if outcome is Outcome.HOLDS:
            said = f"{proof} of {len(runs)}"
        elif bad:
            said = f"{len(bad)} of {len(runs)}, as {bad[0]}"
        yield axis, outcome.value, said
    for name, held in report.summary.conditions.items():
        yield VARIANTS.get(name, name), held.value, "a condition, outside the guarantee"


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
    yield _table(("kind of run", "runs", "nothing wrong", "something wrong", "unknown"), rows)
    named = "".join(f"<li>{_run(each)}</li>" for each in runs[:MOST_RUNS])
    yield f'<ul class="r">{named}</ul>'
    if len(runs) > MOST_RUNS:
        more = len(runs) - MOST_RUNS
        yield f"<p>And {more} more. The weakest stand above, and what is unknown below.</p>"


def _is_right(result: Result) -> bool:
    """Whether a run proves that nothing was wrong in it; one without a verdict proves nothing."""
    return result.guarantee is not Guarantee.UNKNOWN and not result.violated


def _run(result: Result) -> str:
    shade, sign = SHADES[result.guarantee.value]
    axes = f" ({', '.join(result.violated)})" if result.violated else ""
    said = escape(f"{result.id}: {result.guarantee.value}{axes}")
    return f'<span style="color:{shade}">{sign}</span> {said}'


def _unmeasured(report: Report) -> Iterator[str]:
    coverage, results = report.summary.coverage, report.summary.results
    yield f"{coverage}."
    left = coverage.found - sum(each.group is Group.CRASH for each in results)
    if left > 0:
        yield f"{left} of {coverage.found} points have no run of their own."
    if coverage.pairs > coverage.pairs_tried:
        untried = f"{coverage.pairs - coverage.pairs_tried} of {coverage.pairs}"
        yield f"{untried} pairs of a crash and one in its recovery were not tried."
    for each in results:
        if each.guarantee is Guarantee.UNKNOWN:
            yield f"Unknown: {each.id}: {each.unknown or 'the run has no verdict'}"
    axes = [axis for axis, held in report.axes.items() if held is Outcome.UNKNOWN]
    if axes:
        yield f"Unknown: {', '.join(axes)}."
    yield from report.notes
    if report.untested:
        yield report.untested


def _again(report: Report) -> str:
    """The shortest command that repeats the test; where only some runs were asked for, one for each of them."""
    return "\n".join(map(report.settings.command, report.settings.only or ("",)))


def _items(said: Iterable[str]) -> str:
    return f"<ul>{''.join(f'<li>{escape(each)}</li>' for each in said)}</ul>"


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    top = "".join(f'<th scope="col">{escape(name)}</th>' for name in head)
    body = "".join(f"<tr>{''.join(f'<td>{escape(said)}</td>' for said in row)}</tr>" for row in rows)
    return f"<table><tr>{top}</tr>{body}</table>"


def _versions(report: Report) -> Iterator[str]:
    yield f"labkit {__version__}"
    yield f"Python {platform.python_version()}"
    if report.eyes == INSTRUMENTS:
        try:
            yield f"PySpark {version('pyspark')}"
        except PackageNotFoundError:
            yield "PySpark unknown"
    yield platform.system()
