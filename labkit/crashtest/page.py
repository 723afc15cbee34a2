"""A test as one page for a browser: the measured guarantee, the points of the kills, and the result of each kill.

The file holds everything; it has no script and asks nothing of another host.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

from labkit.core.judge import Guarantee
from labkit.core.words import sentence
from labkit.crashtest.instrument.effects import BOUNDS, DURABLE, Effect, Kind, Point
from labkit.crashtest.points import place
from labkit.crashtest.report import Report
from labkit.crashtest.verdict import INSTRUMENTS, KERNEL, VARIANTS, Group, Result
from labkit.view.effects import BROKE, HELD, SHADES, Row, What, effect_line

STYLE = """
body{font:15px/1.5 sans-serif;color:#222;max-width:72rem;margin:2rem auto;padding:0 1rem}
h1{font-size:1.5rem}h2{font-size:1.15rem;margin-top:2rem}code,pre{font:13px monospace}
pre{background:#f4f4f4;padding:.7rem;overflow-x:auto;white-space:pre-wrap}
table{border-collapse:collapse}
td,th{text-align:left;vertical-align:top;padding:.25rem .8rem .25rem 0;border-bottom:1px solid #ddd}
.g{color:#fff;border-radius:.3rem;padding:.1rem .5rem;white-space:nowrap}figure{margin:0;overflow-x:auto}
"""

SEEN_BY = {
    INSTRUMENTS: "instruments, wrappers around Python's libraries",
    KERNEL: "the kernel, system calls of every program",
}


def page(report: Report) -> str:
    """The page as an HTML document; the lines of the sink's file are those of the file as it is now."""
    summary = report.summary
    title = f"Crash test of {report.settings.subject}"
    parts = [
        f"<h1>{escape(title)}: {verdict_mark(report.guarantee)}</h1>",
        f"<p>{escape('; '.join(_facts(report)))}.</p>",
        *(f"<p>{escape(said)}</p>" for said in report.restricted()),
        *_why(report),
        _section("Again", f"<pre>{escape(report.replay())}</pre>"),
        _section("What holds", axis_table(report)),
        _section("Effects and kills", f"<figure>{effects_and_kills(report)}</figure>"),
        _section("Runs, the weakest first", _runs(summary.ranked())),
    ]
    if report.picture:
        parts.append(_section("The weakest run", f"<figure>{report.picture}</figure>"))
    if report.notes:
        notes = "".join(f"<li>{escape(note)}</li>" for note in report.notes)
        parts.append(_section("Notes", f"<ul>{notes}</ul>"))
    parts.append(f"<p>{escape(report.untested)}</p>")
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{escape(title)}</title>'
        f"<style>{STYLE}</style>{''.join(parts)}</html>\n"
    )


def _facts(report: Report) -> Iterator[str]:
    yield report.adapter
    yield f"eyes: {SEEN_BY[report.eyes]}"
    yield f"the reader returns {report.shape}"
    yield str(report.summary.coverage)


def _section(title: str, body: str) -> str:
    return f"<h2>{escape(title)}</h2>{body}"


def verdict_mark(guarantee: Guarantee) -> str:
    """A guarantee with its shade and its sign."""
    shade, sign = SHADES[guarantee.value]
    return f'<span class="g" style="background:{shade}">{sign} {guarantee.value}</span>'


def _why(report: Report) -> Iterator[str]:
    weakest, why = report.summary.weakest, report.diagnosis
    if weakest is not None:
        yield f"<p>{escape(weakest.title)}: {escape(weakest.because)}.</p>"
        for _, said in weakest.beside_verdict():
            yield f"<p>{escape(sentence(said))}</p>"
    if why is not None:
        repair = f"{why.recipe.name}: {why.recipe.sentence} ({why.recipe.notebook})"
        yield f"<p><b>Why</b> {escape(why.why)}</p><p><b>Repair</b> {escape(repair)}</p>"
    unknown = [f"{each.id}: {each.unknown}" for each in report.summary.unknown()]
    if unknown:
        lines = "".join(f"<li>{escape(said)}</li>" for said in unknown)
        yield f"<p><b>Unknown</b></p><ul>{lines}</ul>"


def axis_table(report: Report) -> str:
    """What holds and what is violated, and the conditions below."""
    rows = [
        (axis, outcome.value, ", ".join(_violating(axis, report.summary.results)))
        for axis, outcome in report.axes.items()
    ]
    rows += [
        (VARIANTS.get(name, name), held.value, "a condition, outside the guarantee")
        for name, held in report.summary.conditions.items()
    ]
    return _table(("axis", "", "violated by"), rows)


def _violating(axis: str, results: Iterable[Result]) -> list[str]:
    return [each.id for each in results if each.found(axis) and each.group is not Group.CONDITION]


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    top = "".join(f"<th>{escape(name)}</th>" for name in head)
    body = "".join(f"<tr>{''.join(f'<td>{escape(said)}</td>' for said in row)}</tr>" for row in rows)
    return f"<table><tr>{top}</tr>{body}</table>"


def _runs(results: Sequence[Result]) -> str:
    return "".join(_run(each) for each in results if each.group is not Group.SEEING)


def _run(result: Result) -> str:
    axes = f" ({', '.join(result.violated)})" if result.violated else ""
    head = f"{verdict_mark(result.guarantee)} <code>{escape(result.id)}</code> {escape(result.title + axes)}"
    told = [sentence(each) for _, each in result.beside_verdict()]
    said = [result.because, *told, *result.notes, *result.story]
    body = escape("\n".join(each for each in said if each))
    return f"<details><summary>{head}</summary><pre>{body}</pre></details>"


def effects_and_kills(report: Report) -> str:
    """The healthy run from top to bottom, with the places at which the job was killed, as SVG; empty for a pipeline."""
    try:
        log = [Effect.from_json(dict(each)) for each in report.effects]
    except (KeyError, ValueError):
        return ""  # of a test that is none of a sink
    source, whole = _source(report.settings), not report.settings.only
    rows = effect_rows(log, report.summary.results, source, whole=whole)
    return effect_line(rows, title="Effects of the run without a crash, and kills")


def _source(settings: Any) -> Mapping[int, str]:
    """The lines of the sink's own file, by number; none if it is not there any more."""
    file = Path(getattr(settings.subject, "file", ""))
    try:
        text = file.read_text(encoding="utf-8") if file.is_file() else ""
    except (OSError, UnicodeDecodeError):
        return {}
    return dict(enumerate(text.splitlines(), start=1))


def effect_rows(
    log: Sequence[Effect], results: Sequence[Result], source: Mapping[int, str], *, whole: bool = True
) -> list[Row]:
    """Effects, edges of calls and kills, in the order of their batches, calls and numbers.

    `whole`: whether all that belongs to the test was run; else no kill is told by a guarantee.
    """
    kills = {each.points[0]: each for each in results if each.points and each.group is Group.CRASH}
    ordered: list[tuple[tuple[Any, ...], Row]] = []
    for effect in log:
        if effect.driver == 1 and not effect.failed and not effect.late:
            at = (effect.batch, place(effect.where), effect.place, 1)
            ordered.append((at, _of_effect(effect, source)))
    ordered += [(_order(point), _of_kill(each, whole=whole)) for point, each in kills.items()]
    return [row for _, row in sorted(ordered, key=lambda pair: pair[0])]


def _order(point: Point) -> tuple[Any, ...]:
    if point.kind is Kind.COMMITS:
        return (point.batch, (2, 0), point.place, 2)
    behind = point.side.value == "after"
    return (point.batch, place(point.where), point.place, 2 if behind else 0)


def _of_effect(effect: Effect, source: Mapping[int, str]) -> Row:
    if effect.kind in BOUNDS:
        return Row(What.EDGE, f"batch {effect.batch}, {effect.where} {effect.kind}")
    lasting = effect.kind in DURABLE or effect.kind is Kind.PREPARE
    what = What.LASTING if lasting else What.PASSING
    code = source.get(effect.line, "").strip() if not effect.file else effect.file
    said = f"{effect.number}  {effect.said()}"
    return Row(what, said, f"{effect.line}  {code}" if effect.line else "")


def _of_kill(result: Result, *, whole: bool) -> Row:
    axes = f" ({', '.join(result.violated)})" if result.violated else ""
    word = result.guarantee.value
    if not whole and result.violated:
        word = BROKE
    elif not whole and result.guarantee is not Guarantee.UNKNOWN:
        word = HELD
    return Row(What.KILL, f"killed at {result.id}{axes}", verdict=word)
