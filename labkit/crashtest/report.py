"""Formats the result of a test for people, programs and builds: text, JSON, JUnit XML and a badge."""

import shlex
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from xml.sax.saxutils import escape, quoteattr

from labkit.core.judge import Guarantee, Outcome, satisfies
from labkit.crashtest.claim import Claim, FaultClaim, Goal, Strength, claim, fault_claims
from labkit.crashtest.options import SharedOptions
from labkit.crashtest.rows import Shape
from labkit.crashtest.verdict import MEANINGS, Group, Result, Summary
from labkit.view.signs import LOOKS

SHOWN = 5
"""The number of runs that the text names for each violated property, unless their ids are long."""
WIDTH, INDENT = 100, 18
"""The characters of a line of the text, and those before its values. Commands to copy are not wrapped."""

NOT_SEEN = "not seen"
"""The outcome of a property that no run violated, although not everything was tried."""


class Recipe(NamedTuple):
    """A repair that a report recommends for a sink or pipeline, and the notebook that explains it."""

    name: str
    sentence: str
    notebook: str


class Diagnosis(NamedTuple):
    """The explanation of a run that went wrong: a short name for the mistake, the reason, and the repair."""

    code: str
    why: str
    recipe: Recipe


@dataclass(frozen=True)
class Report:
    """The result of one crash test, which can be shown as text, JSON, HTML or JUnit XML."""

    settings: SharedOptions
    adapter: str
    """How rows reach the sink or pipeline: the name of a Spark interface such as `foreachBatch`, or a command."""
    eyes: str
    """How effects were observed: `kernel` (system calls) or `lines` (of Python)."""
    shape: Shape
    summary: Summary
    effects: tuple[Mapping[str, Any], ...]
    """The durable effects of the run without a crash, as plain data."""
    diagnosis: Diagnosis | None = None
    """The explanation of the weakest result, and the repair; None if nothing is wrong."""
    fault_diagnoses: Mapping[str, Diagnosis] = field(default_factory=dict)
    """The explanation of the weakest run with each kind of fault that did harm, and the repair."""
    picture: str = ""
    """The weakest run as a space-time diagram (SVG); empty if no run violates a property."""
    notes: tuple[str, ...] = ()
    untested: str = ""
    """A sentence on the faults that this kind of test does not try."""

    @property
    def claim(self) -> Claim:
        """The guarantee that this test supports, with a qualifier such as `not refuted` unless the test is complete."""
        return claim(self.summary)

    @property
    def faults(self) -> tuple[FaultClaim, ...]:
        """The claims about the kinds of faults that the user asked for; the guarantee is separate from them."""
        return tuple(each for each in fault_claims(self.summary) if each.found is not None)

    def fault_rows(self) -> list[tuple[str, str]]:
        """Return (label, text) pairs about each kind of fault that the user asked for: claim, worst run and repair."""
        rows = []
        for each in self.faults:
            rows.append((f"under {each.fault}", str(each)))
            if each.worst is not None:
                rows.append(("", f"{each.worst.title}: {each.worst.because}"))
                if (why := self.fault_diagnoses.get(each.fault)) is not None:
                    rows += [("", f"{why.code}: {why.why}"), ("", f"{why.recipe.name}: {why.recipe.sentence}")]
                rows.append(("", f"repeat: {self.settings.command(each.worst.id)}"))
        return rows

    @property
    def axes(self) -> dict[str, str]:
        """The outcome of each property: violated, unknown, holds, or not seen.

        `Not seen` means that no run violated the property, but not everything was tried.
        """
        held = Outcome.HOLDS.value if self.summary.coverage.complete else NOT_SEEN
        return {
            axis: held if outcome is Outcome.HOLDS else outcome.value for axis, outcome in self.summary.axes.items()
        }

    def replay(self) -> str:
        """Return the command that repeats the worst run, or the whole test if no run went wrong."""
        weakest = self.summary.weakest
        return self.settings.command(weakest.id if weakest else "")

    def repeat(self) -> str:
        """Return the command that repeats the worst run from any folder; for a pipeline it begins with `cd`."""
        folder = getattr(self.settings, "folder", None)
        return f"cd {shlex.quote(str(folder))} && {self.replay()}" if folder else self.replay()

    def code(self, goal: Goal | None, also: Sequence[str] = ()) -> int:
        """Return the exit code: 0 if the test meets the demands `goal` and `also`, 1 if not, 2 if that is unknown.

        `Report.reaches` explains the demands. Without a goal, the code is 2 if the guarantee is unknown, otherwise 0.
        """
        if goal is None:
            return 2 if self.claim.strength is Strength.UNKNOWN else 0
        return {True: 0, False: 1, None: 2}[self.reaches(goal, also)]

    def reaches(self, goal: Goal, also: Sequence[str] = ()) -> bool | None:
        """Return whether the test meets the demands `goal` and `also`; None if that is unknown.

        The guarantee and each claim about a fault must reach `goal`, no property in `also` may be violated, and no run
        may be stuck.
        """
        outcomes = [self.axes[axis] for axis in (*also, "stuck")]
        claims = [self.claim.reaches(goal), *(each.reaches(goal) for each in self.faults)]
        if False in claims or Outcome.VIOLATED.value in outcomes:
            return False
        sampled = goal is not Goal.NOT_REFUTED and NOT_SEEN in outcomes
        return None if sampled or Outcome.UNKNOWN.value in outcomes or None in claims else True

    def text(self) -> str:
        """Return the report as text for a terminal. The guarantee, the reason for it, and the repair come first."""
        summary, weakest, why = self.summary, self.summary.weakest, self.diagnosis
        rows = [("guarantee", str(self.claim)), ("", self.claim.meaning)]
        if self.claim.at_best is Guarantee.EXACTLY_ONCE and summary.coverage.of_states:
            rows += [("states of files", summary.coverage.of_states)]
        early = [axis for axis, held in self.axes.items() if held == Outcome.VIOLATED.value]
        if self.claim.at_best is Guarantee.EXACTLY_ONCE and early and not self.claim.is_stuck:
            seen = f"wrong or unfinished rows ({', '.join(early)}), as follows"
            rows += [("readers", f"until a recovery has ended, they can see {seen}")]
        if why is not None:
            rows += [("why", why.why), ("pattern", why.code)]
            rows += [("repair", f"{why.recipe.name}: {why.recipe.sentence} ({why.recipe.notebook})")]
        if weakest is not None:
            rows += [("weakest", f"{weakest.title}: {weakest.because}")]
            rows += weakest.verdict_notes()
        rows += [("repeat", self.repeat())]
        for axis, held in self.axes.items():
            meaning = f": {MEANINGS[axis]}" if held == Outcome.VIOLATED.value and MEANINGS[axis] else ""
            rows += [(axis, f"{held:<9} {_first(summary.violating(axis))}{meaning}".rstrip())]
        rows += [("condition", f"{title}: {held} (does not count)") for title, held in summary.condition_rows()]
        rows += self.fault_rows()
        rows += [("coverage", str(summary.coverage))]
        rows += [("unknown", sentence) for sentence in self._unknown_runs()]
        rows += [("not run", sentence) for sentence in self.not_run()]
        rows += [("note", note) for note in self.notes]
        head = f"{self.settings.subject}, {self.adapter}; the reader returns {self.shape}."
        body = "\n".join(_row(name, value) for name, value in rows if value)
        story = "\n".join(f"  {line}" for line in weakest.story) if weakest else ""
        timeline = f"\n\nWhat happened in {weakest.id}:\n{story}" if weakest else ""
        return f"{head}\n\n{body}{timeline}\n\n{_filled(self.untested)}"

    def not_run(self) -> list[str]:
        """Return sentences that say which runs were not made, and why: for example for lack of time."""
        left_out = ["every run that --only does not name"] if self.settings.only else []
        reasons = _by_reason(self.summary.skipped()).items()
        return left_out + [f"{_first(ids)}: {reason.removeprefix('not run: ')}" for reason, ids in reasons]

    def _unknown_runs(self) -> list[str]:
        runs = _by_reason(self.summary.unknown()).items()
        return [f"{ids[0] if len(ids) == 1 else f'{len(ids)} runs, as {ids[0]}'}: {reason}" for reason, ids in runs]

    def to_json(self) -> dict[str, Any]:
        """Return the report as a dict for JSON."""
        why, summary = self.diagnosis, self.summary
        weakest = summary.weakest
        return {
            "subject": str(self.settings.subject),
            "door": self.adapter,
            "eyes": self.eyes,
            "reader_returns": self.shape.value,
            "guarantee": str(self.claim),
            "claim": {"strength": self.claim.strength.value, "at_best": self.claim.at_best.value},
            "axes": self.axes,
            "conditions": {name: held.value for name, held in summary.conditions.items()},
            "faults": {each.fault.value: each.to_json() for each in fault_claims(self.summary)},
            "weakest": weakest.to_json() if weakest else None,
            "pattern": why.code if why else None,
            "why": why.why if why else None,
            "repair": why.recipe._asdict() if why else None,
            "coverage": dict(vars(summary.coverage)),
            "effects": [dict(each) for each in self.effects],
            "runs": [each.to_json() for each in summary.ranked()],
            "timeline": list(weakest.story) if weakest else [],
            "notes": list(self.notes),
            "command": self.replay(),
        }

    def junit(self, goal: Goal | None = None, also: Sequence[str] = ()) -> str:
        """Return the report as JUnit XML: a test case for each run, and one for the demands on the whole crash test.

        The demands are the guarantee `goal`, and that no run violates a property in `also`, such as `aborted_read`.
        """
        least = (goal or Goal.NOT_REFUTED).guarantee
        cases = [_case(each, least, also, str(self.settings.subject)) for each in self.summary.results]
        cases.append(self._claim_case(goal, also))
        failed, errors, skipped = (sum(tag in case for case in cases) for tag in ("<failure", "<error", "<skipped"))
        numbers = f'tests="{len(cases)}" failures="{failed}" errors="{errors}" skipped="{skipped}"'
        name = quoteattr(f"labkit crashtest {self.settings.subject}")
        return (
            '<?xml version="1.0" encoding="utf-8"?>\n'
            f"<testsuites {numbers}>\n<testsuite name={name} {numbers}>\n{''.join(cases)}</testsuite>\n</testsuites>\n"
        )

    def _claim_case(self, goal: Goal | None, also: Sequence[str]) -> str:
        name = quoteattr(f"guarantee: {self.claim}")
        head = f"<testcase classname={quoteattr(str(self.settings.subject))} name={name}"
        message = quoteattr(f"{goal or 'a result'} is demanded, and the test says: {self.words}")
        ends = {0: "/>", 1: f"><failure message={message}/></testcase>", 2: f"><error message={message}/></testcase>"}
        return f"{head}{ends[self.code(goal, also)]}\n"

    @property
    def words(self) -> str:
        """The guarantee, followed by the claim about each kind of fault that the user asked for."""
        return "; ".join([str(self.claim), *(f"{each.fault}: {each}" for each in self.faults)])

    def badge(self) -> str:
        """Return an SVG badge with the guarantee, and with the result for each kind of fault that was tried."""
        violated = [LOOKS[each.at_best].shade for each in self.faults if each.is_violated]
        label, value, colour = "crash-tested", self.words, (violated or [self.claim.look.shade])[0]
        left, right = 7 * len(label) + 12, 7 * len(value) + 12
        texts = "".join(
            f'<text x="{x}" y="14" fill="#fff" font-family="Verdana,sans-serif" font-size="11" '
            f'textLength="{6.4 * len(word):.0f}">{word}</text>'
            for x, word in ((6, label), (left + 6, value))
        )
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{left + right}" height="20" role="img" '
            f'aria-label="{label}: {value}"><rect width="{left}" height="20" fill="#444"/>'
            f'<rect x="{left}" width="{right}" height="20" fill="{colour}"/>{texts}</svg>\n'
        )


def _by_reason(results: Sequence[Result]) -> dict[str, list[str]]:
    """Return a dict from each reason why a run proves nothing to the ids of the runs with this reason."""
    ids: dict[str, list[str]] = {}
    for each in results:
        ids.setdefault(each.unknown, []).append(each.id)
    return ids


def _first(ids: Sequence[str]) -> str:
    """Return, as text, as many of the first ids as fit into two lines, but at least one and at most `SHOWN`."""
    shown = next((n for n in range(SHOWN, 1, -1) if len(", ".join(ids[:n])) < 2 * (WIDTH - INDENT - SHOWN)), 1)
    return ", ".join(ids[:shown]) + (f", ... ({len(ids)} runs)" if len(ids) > shown else "")


def _row(name: str, value: str) -> str:
    """Return a labelled line of the text report; a long value is wrapped and indented, unless it is a command."""
    head = f"{name:<{INDENT - 1}} "
    if name == "repeat" or value.startswith("repeat: "):
        return head + value
    return _filled(value, head)


def _filled(text: str, head: str = "") -> str:
    further = " " * len(head)
    return textwrap.fill(
        text, WIDTH, initial_indent=head, subsequent_indent=further, break_long_words=False, break_on_hyphens=False
    )


def weaker(result: Result, expected: Guarantee, also: Sequence[str] = ()) -> str:
    """Return a sentence that says why a run is weaker than expected, or which property in `also` it violates.

    The text is empty if neither is true, if the run proves nothing, or if it has a fault that no sink needs to
    withstand.
    """
    if result.group is Group.CONDITION or result.unknown:
        return ""
    broken = [axis for axis in (*also, "stuck") if result.rows_of(axis)]
    return "" if satisfies(result.guarantee, expected) and not broken else result.because


def _case(result: Result, expected: Guarantee, also: Sequence[str], subject: str) -> str:
    head = f"<testcase classname={quoteattr(subject)} name={quoteattr(f'{result.id} {result.title}')}"
    head += f' time="{result.seconds:.2f}"'
    if result.skipped:
        return f"{head}><skipped message={quoteattr(result.unknown)}/></testcase>\n"
    if result.unknown:
        return f"{head}><error message={quoteattr(result.unknown)}/></testcase>\n"
    message = weaker(result, expected, also)
    story = escape("\n".join(result.story))
    return f"{head}><failure message={quoteattr(message)}>{story}</failure></testcase>\n" if message else f"{head}/>\n"
