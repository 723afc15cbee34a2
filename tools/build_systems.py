"""Write the table of real systems in docs/reference/systems.md from the stored verdicts; `--check` only compares.

A row comes from a record in data/pipelines/engines/verdicts.jsonl, which `tools/pipelines.py NAME --keep` writes
after a real crash test; engines.toml adds the configuration, the quotation, the prediction and the repair.
"""

import html
import sys
from collections import defaultdict
from collections.abc import Callable
from functools import partial

from build_sinks import ROOT, keep_in_step, with_parts

from labkit.crashtest.blackbox.disk import ALL_LOST, EXTREMES
from labkit.crashtest.engines import Pipeline, Verdict, not_run, pipelines, verdicts

PAGE = ROOT / "docs" / "reference" / "systems.md"
STALE = f"{PAGE.relative_to(ROOT)} is out of step with data: run python tools/build_systems.py"
WHO = "written by tools/build_systems.py from data/pipelines/engines"
END = "<!-- end -->"
DISK = f": {EXTREMES[ALL_LOST]}"
"""The part of a run's title after which the files are listed that the power cut removed; it follows the system call."""
KINDS = {
    "not there": "Missing files",
    "there again": "Removed files that are there again",
    "empty": "Empty files",
    "not as written": "Files that differ from what was written",
}
"""The words by which a run's title says how files differ, each with the words for the page."""


def short(*, power_cut: bool) -> str:
    """Return a Markdown table with a row for each recorded verdict with, or else without, losses of power."""
    columns = ("system", "configuration", "verdict", "tried", "what breaks it", "what to change")
    rows = [f"| {' | '.join(columns)} |", "|---|---|---|---|---|---|"]
    for pipeline, record in recorded():
        if ("--power-cut" in pipeline.options) is not power_cut:
            continue
        where = f"`{crash(record)}`" if record.weakest else "-"
        rows.append(
            f"| [{pipeline.system}](#{pipeline.name}) | {pipeline.does} | {claim(record)} | {extent(record)} "
            f"| {where} | {pipeline.change or '-'} |"
        )
    return "\n".join(rows) + "\n"


def long() -> str:
    """Return a section for each recorded verdict, with the promise, the results, the cause, a repair and versions."""
    return "\n".join(section(pipeline, record) for pipeline, record in recorded())


def section(pipeline: Pipeline, record: Verdict) -> str:
    """Return the section of one verdict."""
    promised = "We found no promise of a delivery guarantee in its documentation"
    if pipeline.promise:
        promised = f"Guarantee in the documentation: \u201c{pipeline.promise}\u201d ([source]({pipeline.source}))"
    program = f"[the program](../../data/pipelines/engines/{pipeline.program.name})"
    lines = [
        f"### {pipeline.name}",
        "",
        f"{pipeline.system}: {pipeline.does}.",
        f"- {promised}.",
        f"- Our prediction before the first run: {pipeline.predicted or expectation(pipeline)}.",
        f"- Result of all runs: {outcome(record, power_cut='--power-cut' in pipeline.options)}.",
    ]
    if record.because:
        lines += [
            f"- Worst single run: {html.escape(record.because.replace(', as {', ', for example {'), quote=False)}.",
            f"- Place of the crash in that run: `{crash(record)}`.",
        ]
    if state := disk(record):
        lines.append(f"- Disk after this power cut: {state}.")
    if pipeline.why:
        lines.append(f"- Explanation: {pipeline.why}.")
    lines.append(f"- Where a crash tells most about this design: {pipeline.at}.")
    if pipeline.change:
        lines.append(f"- What to change: {pipeline.change}.")
    if pipeline.report:
        text = f"[a report for the maintainers](../../data/reports/{pipeline.report}/README.md)"
        lines.append(f"- We wrote {text} about this pipeline or a similar one.")
    versions = ", ".join(filter(None, (*record.versions, record.machine)))
    lines += [
        f"- Versions: {versions}; labkit {record.labkit}, {record.day}.",
        f"- Repeat: `make systems ONLY={pipeline.name}`; {program}.",
        "",
    ]
    return "\n".join(lines)


def count() -> str:
    """Return a sentence that counts verdicts and systems."""
    systems = {pipeline.system for pipeline, _record in recorded()}
    return f"{len(recorded())} verdicts on {len(systems)} systems, the losses of power included.\n"


def missing() -> str:
    """Return a Markdown table of the pipelines and systems without a verdict, with the reason."""
    rows = ["| not run | why |", "|---|---|"]
    untested = [each for name, each in pipelines().items() if name not in verdicts()]
    rows += [f"| {each.name} | {each.does}: no test recorded yet |" for each in untested]
    rows += [f"| {name} | {why} |" for name, why in not_run().items()]
    return "\n".join(rows) + "\n"


PARTS: dict[str, Callable[[], str]] = {
    "count": count,
    "verdicts": partial(short, power_cut=False),
    "power cuts": partial(short, power_cut=True),
    "details": long,
    "missing": missing,
}


def recorded() -> list[tuple[Pipeline, Verdict]]:
    """Return every pipeline that has a record, with the record."""
    known = verdicts()
    return [(each, known[each.name]) for each in pipelines().values() if each.name in known]


def expectation(pipeline: Pipeline) -> str:
    """Return what the test must say, as `at-least-once (duplicate)`."""
    return pipeline.guarantee + (f" ({', '.join(pipeline.axes)})" if pipeline.axes else "")


def claim(record: Verdict) -> str:
    """Return the guarantee with its strength, as `at best at-least-once (duplicate)`."""
    if record.guarantee == "unknown":
        return record.claim
    if record.strength == "sampled" and not record.violated:
        return "not refuted"
    best = f"at best {record.guarantee}" if record.strength in {"refuted", "sampled"} else record.guarantee
    return best + (f" ({', '.join(record.violated)})" if record.violated else "")


def crash(record: Verdict) -> str:
    """Return at which call the worst run crashed, as `the power fails before create checkpoint/draft #3`."""
    return record.weakest.partition(DISK)[0]


def disk(record: Verdict) -> str:
    """Return how the disk differed after the power cut of the worst run; empty if that was another crash."""
    _, found, differences = record.weakest.partition(f"{DISK}: ")
    if not found:
        return ""
    names: dict[str, list[str]] = defaultdict(list)
    for difference in differences.split("; "):  # an older labkit listed each watched folder apart
        kind = next(kind for kind in KINDS if difference.endswith(f" {kind}"))
        files = difference.removesuffix(f" {kind}").replace(" ...", ", ...").split(", ")
        names[kind] += ["and others" if file == "..." else f"`{file}`" for file in files]
    return f"{EXTREMES[ALL_LOST]}. " + ". ".join(f"{KINDS[kind]}: {', '.join(files)}" for kind, files in names.items())


def outcome(record: Verdict, *, power_cut: bool = False) -> str:
    """Return the result, as `not refuted (no crash did harm); 1 of 98 possible crash points was tried, in 2 runs`, and
    what these runs were.
    """
    harmless = " (no crash did harm)" if claim(record) == "not refuted" else ""
    unknown = f", {record.unknown} of which are unknown" if record.unknown else ""
    were = "was" if record.tried == 1 else "were"
    tried = f"{record.tried} of {record.found} possible crash points {were} tried, in {record.runs} runs"
    tried += f" (one without a crash{', the others with a kill or a power cut' * power_cut})"
    return f"{claim(record).replace('none', 'no guarantee', 1)}{harmless}; {tried}{unknown}"


def extent(record: Verdict) -> str:
    """Return how much was tried, as `12 of 83 points, 25 runs`."""
    unknown = f", {record.unknown} of them unknown" if record.unknown else ""
    return f"{record.tried} of {record.found} points, {record.runs} runs{unknown}"


def page(text: str) -> str:
    """Return the text of the page with new tables."""
    return with_parts(text, PARTS, WHO, END)


if __name__ == "__main__":
    sys.exit(keep_in_step(PAGE, page, STALE, __doc__))
