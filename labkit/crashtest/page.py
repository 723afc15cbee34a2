"""Shows a test on one page for a browser: the measured guarantee, the crash points, and the result of each kill.

The file is self-contained: it has no script and loads nothing from other hosts.
"""

from collections.abc import Iterable, Iterator

from labkit.core.judge import Guarantee
from labkit.core.words import sentence
from labkit.crashtest.blackbox.points import EXIT, WITHIN
from labkit.crashtest.report import Report
from labkit.crashtest.verdict import KERNEL, LINES, Group, Result
from labkit.host.syscalls.calls import CallKind
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
    KERNEL: "the kernel, system calls of every program",
    LINES: "lines of Python in the driver, and nothing within a line",
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

    An effect stands with its line of Python, if that is known.
    """
    kills = {each.id: each for each in report.summary.results if each.group is Group.CRASH}
    rows: list[Row] = []
    is_whole = not report.settings.only
    for effect in report.effects:
        if effect["kind"] == CallKind.EXIT:
            continue
        name = effect["name"]
        here = [kills[point] for point in (name, f"{WITHIN}{name}") if point in kills]
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
