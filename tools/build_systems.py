"""Write the table of real systems in docs/reference/systems.md from the stored verdicts; `--check` only compares.

A row comes from a record in data/pipelines/engines/verdicts.jsonl, which `tools/pipelines.py NAME --keep` writes
after a real crash test; engines.toml adds the configuration, the quotation, the prediction and the repair.
"""

import html
import re
import sys
from collections import defaultdict
from collections.abc import Callable
from functools import partial

from build_sinks import ROOT, keep_in_step, with_parts
from pipeline_verdicts import Verdict, not_run, verdicts

from labkit.core.words import markdown_table
from labkit.crashtest.blackbox.disk import ALL_LOST, EXTREMES
from labkit.teach.engine_pipelines import Pipeline, pipelines

PAGE = ROOT / "docs" / "reference" / "systems.md"
STALE = f"{PAGE.relative_to(ROOT)} is out of step with data: run python tools/build_systems.py"
WHO = "written by tools/build_systems.py from data/pipelines/engines"
END = "<!-- end -->"
NAMES = frozenset(verdicts())
"""The pipelines that have a section on the page."""
DISK = f": {EXTREMES[ALL_LOST]}"
"""The part of a run's title after which the files are listed that the power cut removed; it follows the system call."""
KINDS = {
    "not there": "Missing files",
    "there again": "Removed files that are there again",
    "empty": "Empty files",
    "not as written": "Files that differ from what was written",
}
"""The words by which a run's title says how files differ, each with the words for the page."""

AXES = {
    "lost": "rows lost",
    "duplicate": "rows duplicated",
    "unexpected": "unexpected rows",
    "stuck": "the pipeline stuck",
}
"""What went wrong in a test, each with the words for a sentence."""


def short(*, power_cut: bool) -> str:
    """Return a Markdown table of the recorded verdicts of tests with power cuts, or of those without."""
    rows = [("system", "configuration", "verdict", "tried", "what breaks it", "what to change")]
    for pipeline, record in recorded():
        if ("--power-cut" in pipeline.options) is not power_cut:
            continue
        where = f"`{crash(record)}`" if record.weakest else "-"
        link = f"[{pipeline.system}](#{pipeline.name})"
        rows.append((link, pipeline.does, claim(record), extent(record), where, repair(pipeline) or "-"))
    return markdown_table(rows) + "\n"


def long() -> str:
    """Return a section for each recorded verdict, with the result, its cause, a repair, the promise and versions."""
    return "\n".join(section(pipeline, record) for pipeline, record in recorded())


def section(pipeline: Pipeline, record: Verdict) -> str:
    """Return the section of one verdict."""
    promised = "We found no promise of a delivery guarantee"
    if pipeline.promise:
        promised = f"\u201c{pipeline.promise}\u201d ([source]({pipeline.source}))"
    program = f"[the program](../../data/pipelines/engines/{pipeline.program.name})"
    result = outcome(record, power_cut="--power-cut" in pipeline.options)
    lines = [f"### {pipeline.name}", "", f"**{pipeline.system}**. Configuration: {pipeline.does}.", "", result, ""]
    if record.weakest:
        lines.append(f"- **{'Crash of the worst run' if record.runs > 2 else 'Crash'}:** {place(record)}.")
    if state := disk(record):
        lines.append(f"- **Disk after this power cut:** {state}.")
    lines.append(f"- **Where a crash reveals most:** {pipeline.at}.")
    if pipeline.why:
        lines.append(f"- **Explanation:** {pipeline.why}.")
    if pipeline.change:
        lines.append(f"- **To prevent this:** {repair(pipeline)}.")
    lines += [
        f"- **Documentation:** {promised}.",
        f"- **Our prediction before the first run:** {pipeline.predicted or expectation(pipeline)}.",
    ]
    if pipeline.report:
        text = f"[our report](../../data/reports/{pipeline.report}/README.md)"
        lines.append(f"- **For the maintainers:** {text} about this pipeline or a similar one.")
    versions = ", ".join(filter(None, (*record.versions, record.machine)))
    lines += [
        f"- **Versions:** {versions}; labkit {record.labkit}, {record.day}.",
        f"- **Repeat the test:** `make systems ONLY={pipeline.name}`, which crashes {program}.",
        "",
    ]
    return "\n".join(lines)


def count() -> str:
    """Return a sentence that counts verdicts and systems."""
    systems = {pipeline.system for pipeline, _record in recorded()}
    return f"{len(recorded())} verdicts on {len(systems)} systems, the losses of power included.\n"


def missing() -> str:
    """Return a Markdown table of the pipelines and systems without a verdict, with the reason."""
    untested = [each for name, each in pipelines().items() if name not in verdicts()]
    rows = [(each.name, f"{each.does}: no test recorded yet") for each in untested]
    return markdown_table([("not run", "why"), *rows, *not_run().items()]) + "\n"


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
    """Return how the disk differed after the power cut of the worst run; empty if the worst crash was no power cut."""
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
    """Return the verdict and the harm of the worst run, and then how many runs and crash points were tried."""
    unknown = f" {numeral(record.unknown).capitalize()} of these runs gave no result." if record.unknown else ""
    return f"Verdict: {spoken(record)}. {harm(record)}. {tried(record, power_cut=power_cut)}{unknown}"


def spoken(record: Verdict) -> str:
    """Return the verdict for a sentence, as `*no better than at-least-once* (rows duplicated)`."""
    name, bracket, _ = claim(record).partition(" (")
    name = re.sub(r"^none$", "no guarantee", name.replace("at best", "no better than"))
    name = name.replace("of its rows: unknown", "whether rows were lost is unknown")
    return f"*{name}*" + (f" ({', '.join(AXES[axis] for axis in record.violated)})" if bracket else "")


def tried(record: Verdict, *, power_cut: bool) -> str:
    """Return two sentences: which runs a test made, and at how many of the possible system calls it crashed."""
    crashes, found = record.runs - 1, record.found
    kind = "a kill or a power cut" if power_cut else "a kill" if crashes == record.tried else "kills"
    same = ", always before the same system call" if crashes > record.tried == 1 else ""
    runs = f"The test made {numeral(record.runs)} runs: one without a crash, and {numeral(crashes)} with {kind}{same}."
    number = "only one" if record.tried == 1 else numeral(record.tried)
    number = "all" if record.tried == found else number
    return (
        f"{runs} The pipeline has {found} crash points (places before a system call); the test tried {number} of them."
    )


def numeral(number: int) -> str:
    """Return a number from one to nine as a word, and any other number in digits."""
    words = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
    return words[number - 1] if 1 <= number <= len(words) else str(number)


def harm(record: Verdict) -> str:
    """Return what the worst crash did, as `After a kill, 3 of the 9 rows were lost, for example {"id": 6}`."""
    if not record.because:
        return "No crash did harm"
    _, _, rows = record.because.partition(", because ")
    _, _, stuck = record.because.partition(": after the crash ")
    because = re.sub(r"^(\d+) of (\d+) row\(s\)", r"\1 of the \2 rows", rows or stuck)
    because = because.replace("came out twice or more", "appeared more than once")
    text = html.escape(because.replace("got lost", "were lost").replace(", as {", ", for example {"), quote=False)
    after = f"after a {'power cut' if lost_power(record) else 'kill'}, {text}"
    # The first of two runs is the one without a crash.
    return f"In the worst run, {after}" if record.runs > 2 else f"{after[0].upper()}{after[1:]}"


def place(record: Verdict) -> str:
    """Return at which call the worst run crashed, as ``a kill before `send <kafka> Produce #2` ``."""
    call = crash(record).removeprefix("the power fails ").removeprefix("before ")
    return f"a {'power cut' if lost_power(record) else 'kill'} before `{call}`"


def lost_power(record: Verdict) -> bool:
    """Return whether the worst crash of a record was a power cut."""
    return record.weakest.startswith("the power fails ")


def repair(pipeline: Pipeline) -> str:
    """Return what to change in a pipeline, with a link to each pipeline that shows the change."""
    return re.sub(r"\b[a-z]+_\w+\b", lambda name: linked(name[0]), pipeline.change)


def linked(name: str) -> str:
    """Return a Markdown link to the section of a pipeline, or the text itself if the page has no such section."""
    return f"[{name}](#{name})" if name in NAMES else name


def extent(record: Verdict) -> str:
    """Return how much was tried, as `12 of 83 points, 25 runs`."""
    unknown = f", {record.unknown} of them unknown" if record.unknown else ""
    return f"{record.tried} of {record.found} points, {record.runs} runs{unknown}"


def page(text: str) -> str:
    """Return the text of the page with new tables."""
    return with_parts(text, PARTS, WHO, END)


if __name__ == "__main__":
    sys.exit(keep_in_step(PAGE, page, STALE, __doc__))
