"""Shows a test on one page for a browser: the measured guarantee, the crash points, and the result of each kill.

The file is self-contained: it has no script and loads nothing from other hosts.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from labkit.core.judge import Guarantee
from labkit.core.words import sentence
from labkit.crashtest.instrument.effects import BOUNDS, DURABLE, Effect, Kind, Point
from labkit.crashtest.points import place
from labkit.crashtest.report import Report
from labkit.crashtest.verdict import INSTRUMENTS, KERNEL, Group, Result
from labkit.view.card import Html, code, document, items, para, section, table, tag
from labkit.view.effects import BROKE, NO_HARM, Row, What, effect_line
from labkit.view.signs import LOOKS, Look

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
    """Return the page as an HTML document. It quotes lines of the sink's file as the file is at that time."""
    title = f"Crash test of {report.settings.subject}"
    return document(
        title,
        STYLE,
        tag("h1", f"{title}: ", _mark(str(report.claim), report.claim.look)),
        para(f"{'; '.join(_facts(report))}."),
        *_why(report),
        section("Again", code(report.repeat())),
        section("What holds", axis_table(report)),
        section("Effects and kills", tag("figure", Html(effects_and_kills(report)))),
        section("Runs, the weakest first", *_runs(report.summary.ranked())),
        section("The weakest run", tag("figure", Html(report.picture))) if report.picture else "",
        section("Notes", items(report.notes)) if report.notes else "",
        para(report.untested),
    )


def _facts(report: Report) -> Iterator[str]:
    yield report.adapter
    yield f"eyes: {SEEN_BY[report.eyes]}"
    yield f"the reader returns {report.shape}"
    yield str(report.summary.coverage)


def verdict_mark(guarantee: Guarantee) -> Html:
    """Return a guarantee with its colour and sign, as HTML."""
    return _mark(guarantee.value, LOOKS[guarantee])


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


def axis_table(report: Report) -> Html:
    """Return an HTML table of the checked properties with their outcomes, followed by the conditions of the
    guarantee.
    """
    rows = [
        (axis, outcome, ", ".join(_violating(axis, report.summary.results))) for axis, outcome in report.axes.items()
    ]
    rows += [(title, held, "a condition, outside the guarantee") for title, held in report.summary.condition_rows()]
    return table(("axis", "", "violated by"), rows)


def _violating(axis: str, results: Iterable[Result]) -> list[str]:
    return [each.id for each in results if each.rows_of(axis) and each.group is not Group.CONDITION]


def _runs(results: Iterable[Result]) -> Iterator[Html]:
    for each in results:
        if each.group is not Group.SEEING:
            remarks = [sentence(remark) for _, remark in each.verdict_notes()]
            lines = [each.because, *remarks, *each.notes, *each.story]
            head = (verdict_mark(each.guarantee), " ", tag("code", each.id), f" {each.title}{_violations(each)}")
            yield tag("details", tag("summary", *head), tag("pre", "\n".join(filter(None, lines))))


def _violations(result: Result) -> str:
    """Return the properties that a run violates, in brackets; empty if there are none."""
    return f" ({', '.join(result.violated)})" if result.violated else ""


def effects_and_kills(report: Report) -> str:
    """Return an SVG picture of the run without a crash, from top to bottom, with the places of the kills.

    It is empty for a pipeline.
    """
    try:
        log = [Effect.from_json(dict(each)) for each in report.effects]
    except (KeyError, ValueError):
        return ""  # of a test that is none of a sink
    source, is_whole = _source(report.settings), not report.settings.only
    rows = effect_rows(log, report.summary.results, source, is_whole=is_whole)
    return effect_line(rows, title="Effects of the run without a crash, and kills")


def _source(settings: Any) -> Mapping[int, str]:
    """Return the source lines of the file that defines the sink, by number; empty if the file no longer exists."""
    file = Path(getattr(settings.subject, "file", ""))
    try:
        text = file.read_text(encoding="utf-8") if file.is_file() else ""
    except (OSError, UnicodeDecodeError):
        return {}
    return dict(enumerate(text.splitlines(), start=1))


def effect_rows(
    log: Sequence[Effect], results: Sequence[Result], source: Mapping[int, str], *, is_whole: bool = True
) -> list[Row]:
    """Return a row of the picture for each effect, call boundary and kill, in the order of batches, calls and effects.

    `log` are the effects of the run without a crash and `source` the lines of the sink's file. `is_whole` says whether
    the whole test ran; otherwise a kill is shown without its guarantee, only with whether something was wrong.
    """
    kills = {each.points[0]: each for each in results if each.points and each.group is Group.CRASH}
    ordered: list[tuple[tuple[Any, ...], Row]] = []
    for effect in log:
        if effect.driver == 1 and not effect.failed and not effect.late:
            at = (effect.batch, place(effect.where), effect.place, 1)
            ordered.append((at, _of_effect(effect, source)))
    ordered += [(_order(point), _of_kill(each, is_whole=is_whole)) for point, each in kills.items()]
    return [row for _, row in sorted(ordered, key=lambda pair: pair[0])]


def _order(point: Point) -> tuple[Any, ...]:
    if point.kind is Kind.COMMITS:
        return (point.batch, (2, 0), point.place, 2)
    is_after = point.side.value == "after"
    return (point.batch, place(point.where), point.place, 2 if is_after else 0)


def _of_effect(effect: Effect, source: Mapping[int, str]) -> Row:
    if effect.kind in BOUNDS:
        return Row(What.EDGE, f"batch {effect.batch}, {effect.where} {effect.kind}")
    lasting = effect.kind in DURABLE or effect.kind is Kind.PREPARE
    what = What.LASTING if lasting else What.PASSING
    code = source.get(effect.line, "").strip() if not effect.file else effect.file
    text = f"{effect.number}  {effect.label()}"
    return Row(what, text, f"{effect.line}  {code}" if effect.line else "")


def _of_kill(result: Result, *, is_whole: bool) -> Row:
    word = result.guarantee.value
    if not is_whole and result.violated:
        word = BROKE
    elif not is_whole and result.guarantee is not Guarantee.UNKNOWN:
        word = NO_HARM
    return Row(What.KILL, f"killed at {result.id}{_violations(result)}", verdict=word)
