"""Formats a report as two HTML pages: one has every run and its timeline, the other is a certificate to print.

The certificate says what was tested, what was measured and how often, and what was not measured. Both pages repeat the
sentences of the report unchanged, have no script and load nothing from other hosts.
"""

import json
import platform
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from labkit import __version__
from labkit.core.judge import Guarantee, Outcome
from labkit.core.words import sentence
from labkit.crashtest.blackbox.points import EXIT, effect_of
from labkit.crashtest.report import NOT_SEEN, Report
from labkit.crashtest.verdict import KERNEL, LINES, Group, Result
from labkit.host.syscalls.calls import CallKind
from labkit.view.card import Html, code, document, items, para, section, table, tag
from labkit.view.effects import BROKE, NO_HARM, Row, What, effect_line
from labkit.view.signs import LOOKS, Look

PAGE_STYLE = """
body{font:15px/1.5 sans-serif;color:#222;max-width:72rem;margin:2rem auto;padding:0 1rem}
h1{font-size:1.5rem}h2{font-size:1.15rem;margin-top:2rem}code,pre{font:13px monospace}
pre{background:#f4f4f4;padding:.7rem;overflow-x:auto;white-space:pre-wrap}
table{border-collapse:collapse}
td,th{text-align:left;vertical-align:top;padding:.25rem .8rem .25rem 0;border-bottom:1px solid #ddd}
.g{color:#fff;border-radius:.3rem;padding:.1rem .5rem;white-space:nowrap}figure{margin:0;overflow-x:auto}
"""

CERTIFICATE_STYLE = """
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

MOST_RUNS = 24
"""The number of runs that the certificate lists by name, beginning with the weakest; its table counts all runs."""

SEEN_BY = {
    KERNEL: "the system calls of every program",
    LINES: "lines of Python in the driver, and nothing within a line",
}

_RECORDED_BY = {KERNEL: "its system calls", LINES: "its lines in the driver alone"}


def page(report: Report) -> str:
    """Return the report of a crash test as an HTML page, with every run and its timeline."""
    title, seen_by = f"Crash test of {report.settings.subject}", f"observed: {SEEN_BY[report.eyes]}"
    held = [(axis, held, ", ".join(report.summary.violating(axis))) for axis, held in report.axes.items()]
    facts = (report.adapter, seen_by, f"the reader returns {report.shape}", str(report.summary.coverage))
    return document(
        title,
        PAGE_STYLE,
        tag("h1", f"{title}: ", _mark(str(report.claim), report.claim.look)),
        para(sentence(report.claim.meaning)) if report.claim.meaning else "",
        para(f"{'; '.join(facts)}."),
        *_why(report),
        section("Again", code(report.repeat())),
        section("What holds", table(("axis", "", "violated by"), [*held, *_condition_rows(report)])),
        *_faults(report),
        section("Effects and kills", tag("figure", Html(effects_and_kills(report)))),
        section("Runs, the weakest first", *_runs(report.summary.ranked())),
        section("The weakest run", tag("figure", Html(report.picture))) if report.picture else "",
        section("Notes", items(report.notes)) if report.notes else "",
        para(report.untested),
    )


def _mark(word: str, look: Look) -> Html:
    return tag("span", f"{look.sign} {word}", class_="g", style=f"background:{look.shade}")


def _why(report: Report) -> Iterator[Html]:
    weakest, why = report.summary.weakest, report.diagnosis
    if weakest is not None:
        yield para(f"{weakest.title}: {weakest.because}.")
        for _, remark in weakest.verdict_notes():
            yield para(sentence(remark))
    if why is not None:
        yield para(tag("b", "Why"), f" {why.why}")
        yield para(tag("b", "Repair"), f" {why.recipe.name}: {why.recipe.sentence} ({why.recipe.notebook})")
    unknown = [f"{each.id}: {each.unknown}" for each in report.summary.unknown()]
    if unknown:
        yield para(tag("b", "Unknown"))
        yield items(unknown)
    yield from (para(tag("b", "Not run"), f" {each}") for each in report.not_run())


def _faults(report: Report) -> Iterator[Html]:
    if report.faults:
        yield section("Under faults, apart from the guarantee", table(("", ""), report.fault_rows()))


def _condition_rows(report: Report) -> list[tuple[str, str, str]]:
    return [(title, held, "a condition, outside the guarantee") for title, held in report.summary.condition_rows()]


def _runs(results: Iterable[Result]) -> Iterator[Html]:
    for each in results:
        if each.group is not Group.SEEING:
            remarks = [sentence(remark) for _, remark in each.verdict_notes()]
            lines = [each.because, *remarks, *each.notes, *each.story]
            mark, name = _mark(each.guarantee.value, LOOKS[each.guarantee]), tag("code", each.id)
            head = tag("summary", mark, " ", name, f" {each.title}{_violations(each)}")
            yield tag("details", head, tag("pre", "\n".join(filter(None, lines))))


def _violations(result: Result) -> str:
    return f" ({', '.join(result.violated)})" if result.violated else ""


def effects_and_kills(report: Report) -> str:
    """Return an SVG picture that lists the durable effects of the run without a crash, and the kills between them."""
    kills = {each.id: each for each in report.summary.results if each.group is Group.CRASH}
    rows: list[Row] = []
    is_whole = not report.settings.only
    for effect in report.effects:
        if effect["kind"] == CallKind.EXIT:
            continue
        name = effect["name"]
        here = [each for point, each in kills.items() if effect_of(point) == name]
        rows += [_of_kill(each, is_whole=is_whole) for each in here]
        what = What.PASSING if effect["kind"] == CallKind.SYNC else What.LASTING
        rows.append(Row(what, name, effect["line"]))
    rows += [_of_kill(each, is_whole=is_whole) for name, each in kills.items() if name == EXIT]
    return effect_line(rows, title="Effects of the run without a crash, and kills")


def _of_kill(result: Result, *, is_whole: bool) -> Row:
    word = result.guarantee.value
    if not is_whole and result.violated:
        word = BROKE
    elif not is_whole and result.guarantee is not Guarantee.UNKNOWN:
        word = NO_HARM
    return Row(What.KILL, f"killed {result.title}{_violations(result)}", verdict=word)


def certificate(report: Report) -> str:
    """Return a printable HTML certificate of a crash test: what was tested and measured, and what was not."""
    title = f"Crash test of {report.settings.subject}"
    look, weakest = report.claim.look, report.summary.weakest
    recorded = f"with effects recorded by {_RECORDED_BY[report.eyes]}"
    large = tag("p", f"{look.sign} {report.claim}", class_="w", style=f"color:{look.shade}")
    return document(
        title,
        CERTIFICATE_STYLE,
        tag("h1", title),
        large,
        para(sentence(report.claim.meaning)) if report.claim.meaning else "",
        para(f"Weakest: {weakest.title}: {weakest.because}.") if weakest else "",
        section(
            "What was tested",
            para(f"{report.settings.subject}: {report.adapter}, {recorded}; the reader returns {report.shape}."),
        ),
        section("What holds", table(("axis", "", "runs that say so"), _axis_rows(report))),
        *_faults(report),
        section("What was measured, run by run", *_measured(report)),
        section("What was not measured", items(_unmeasured(report))),
        section("Versions", para(", ".join(_versions()))),
        section("Again", code("\n".join(map(report.settings.command, report.settings.only or ("",))))),
    )


def _axis_rows(report: Report) -> Iterator[Sequence[str]]:
    runs = [each for each in report.summary.results if not each.group.is_apart and each.group is not Group.SEEING]
    proof = sum(each.guarantee is not Guarantee.UNKNOWN for each in runs)
    for axis, outcome in report.axes.items():
        bad = [each.id for each in runs if each.rows_of(axis)]
        count = ""
        if outcome in (Outcome.HOLDS.value, NOT_SEEN):
            count = f"{proof} of {len(runs)}"
        elif bad:
            count = f"{len(bad)} of {len(runs)}, as {bad[0]}"
        yield axis, outcome, count
    yield from _condition_rows(report)


def _measured(report: Report) -> Iterator[str]:
    runs = [each for each in report.summary.ranked() if each.group is not Group.SEEING]
    rows = []
    for group in dict.fromkeys(each.group for each in report.summary.results):
        of_group = [each for each in runs if each.group is group]
        wrong = sum(bool(each.violated) for each in of_group)
        right = sum(each.guarantee is not Guarantee.UNKNOWN and not each.violated for each in of_group)
        numbers = (len(of_group), right, wrong, len(of_group) - right - wrong)
        if of_group:
            rows.append((group.value, *map(str, numbers)))
    yield table(("kind of run", "runs", "nothing wrong", "something wrong", "unknown"), rows)
    yield tag("ul", *(tag("li", *_certified_run(each)) for each in runs[:MOST_RUNS]), class_="r")
    if len(runs) > MOST_RUNS:
        more = len(runs) - MOST_RUNS
        yield para(f"And {more} more. The weakest are listed above, and unknown ones below.")


def _certified_run(result: Result) -> Iterator[str]:
    look = LOOKS[result.guarantee]
    yield tag("span", look.sign, style=f"color:{look.shade}")
    yield f" {result.id}: {result.guarantee.value}{_violations(result)}"


def _unmeasured(report: Report) -> Iterator[str]:
    coverage, results = report.summary.coverage, report.summary.results
    yield f"{coverage}."
    left = coverage.found - coverage.tried - coverage.alike
    if left > 0:
        yield f"{left} of {coverage.found} points have no run of their own."
    if coverage.directed > coverage.directed_tried:
        left_out = f"{coverage.directed - coverage.directed_tried} of {coverage.directed}"
        yield f"{left_out} directed runs, which no plain run with one crash can replace, were not made."
    if coverage.pairs > coverage.pairs_tried:
        untried = f"{coverage.pairs - coverage.pairs_tried} of {coverage.pairs}"
        yield f"{untried} possible runs with a crash in a recovery were not made."
    if coverage.of_states:
        yield f"States of the files: {coverage.of_states}."
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


def _versions() -> Iterator[str]:
    yield f"labkit {__version__}"
    yield f"Python {platform.python_version()}"
    with suppress(PackageNotFoundError):
        yield f"PySpark {version('pyspark')}"
    yield platform.system()


def keep(report: Report, out: Path) -> None:
    """Write the report of a crash test into the folder `out`, in every format (text, JSON, HTML, badge)."""
    (out / "report.txt").write_text(report.text() + "\n", encoding="utf-8")
    (out / "report.json").write_text(json.dumps(report.to_json(), indent=2), encoding="utf-8")
    (out / "report.html").write_text(page(report), encoding="utf-8")
    (out / "certificate.html").write_text(certificate(report), encoding="utf-8")
    (out / "badge.svg").write_text(report.badge(), encoding="utf-8")
    if report.picture:
        (out / "weakest.svg").write_text(report.picture, encoding="utf-8")
