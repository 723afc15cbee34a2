"""Compares two reports of a crash test, such as before and after a change, and describes the difference in Markdown."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path

import msgspec
from msgspec import Struct

from labkit.core.errors import InvalidInput
from labkit.core.judge import Guarantee, satisfies
from labkit.crashtest.claim import Strength

SHOWN = 8
"""The number of runs that each list in the description names."""

VIOLATED = "violated"


class ClaimPart(Struct, frozen=True):
    """The claim in a JSON report: how firmly the test supports the guarantee, and the best guarantee still possible."""

    strength: Strength
    at_best: Guarantee


class CoveragePart(Struct, frozen=True):
    """How many crash points and directed runs (such as crash loops) there are, and how many of each were tried."""

    found: int
    tried: int
    directed: int
    directed_tried: int
    alike: int = 0
    """The number of points that leave the files as a tried one does."""

    @property
    def served(self) -> int:
        """The number of crash points that were tried, or that leave the same files as one that was tried."""
        return self.tried + self.alike


class RunPart(Struct, frozen=True):
    """One run in a JSON report of a crash test, with the fields that a comparison needs."""

    id: str
    title: str
    group: str
    because: str
    unknown: str
    stuck: str
    guarantee: Guarantee


class FaultPart(Struct, frozen=True):
    """What a JSON report of a crash test claims about one kind of fault, such as a write to a full disk."""

    claim: str
    at_best: Guarantee
    """The guarantee in the runs with this fault; `unknown` if no such run proved anything."""
    weakest: str | None
    """The id of the worst run with this fault that violates a property, or never recovers; None if none does."""

    @property
    def is_known(self) -> bool:
        """Whether a run with this fault proved something."""
        return self.at_best is not Guarantee.UNKNOWN


UNTRIED = FaultPart("not tested", Guarantee.UNKNOWN, None)
"""Stands for a kind of fault that a report does not name."""


class ReportPart(Struct, frozen=True):
    """A JSON report of a crash test, with the fields that a comparison needs; other fields are ignored."""

    subject: str
    guarantee: str
    claim: ClaimPart
    axes: dict[str, str]
    conditions: dict[str, str]
    coverage: CoveragePart
    runs: list[RunPart]
    command: str
    faults: dict[str, FaultPart] = {}
    """The claims about the kinds of faults that the user asked for (`--fault`), by the name of the fault."""
    why: str | None = None

    @property
    def harmful(self) -> dict[str, RunPart]:
        """The runs, by id, whose rows were wrong at the end or whose job never recovered."""
        return {
            run.id: run
            for run in self.runs
            if run.group != "condition"
            and (run.stuck or run.guarantee not in (Guarantee.EXACTLY_ONCE, Guarantee.UNKNOWN))
        }


class Change(IntEnum):
    """How a later report differs from an earlier one; the value is the exit code of `labkit compare`."""

    NOT_WEAKER = 0
    WEAKER = 1
    UNKNOWN = 2
    """The later test knows less than the earlier one, so it cannot say that nothing became weaker."""


def read_report(path: Path) -> ReportPart:
    """Read a report of `labkit crashtest --json` or `--out`. Raises `InvalidInput` if the file is no such report."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=ReportPart)
    except OSError as error:
        raise InvalidInput(f"{path}: this report cannot be read ({error.strerror}); name another file.") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise InvalidInput(
            f"{path}: this is not a report of a crash test ({error}); name a file with the output of `labkit crashtest "
            "--json`, or report.json in the folder of --out."
        ) from None


@dataclass(frozen=True)
class Comparison:
    """Compares a crash test's report (`after`) with an earlier report (`before`; None if there is no earlier one)."""

    before: ReportPart | None
    after: ReportPart

    @property
    def change(self) -> Change:
        """Whether the later report is weaker, is not weaker, or knows too little to tell.

        The later report is weaker if it violates a property that the earlier one does not violate, or if its guarantee
        under crashes, or under one kind of fault, is weaker.
        """
        before, after = self.before, self.after
        if before is None:
            return Change.UNKNOWN if after.claim.strength is Strength.UNKNOWN else Change.NOT_WEAKER
        newly = any(after.axes[axis] == VIOLATED != before.axes.get(axis) for axis in after.axes)
        if newly or not satisfies(after.claim.at_best, before.claim.at_best):
            return Change.WEAKER
        if any(_is_weaker(before.faults.get(name, UNTRIED), fault) for name, fault in after.faults.items()):
            return Change.WEAKER
        less = any(fault.is_known > after.faults.get(name, UNTRIED).is_known for name, fault in before.faults.items())
        if less or self._tried_less or after.claim.strength is Strength.UNKNOWN is not before.claim.strength:
            return Change.UNKNOWN
        return Change.NOT_WEAKER

    @property
    def _tried_less(self) -> bool:
        """Whether the later test tried less than the earlier one, so that it may have missed a weaker guarantee."""
        assert self.before is not None
        was, now = self.before.claim, self.after.claim
        if was.at_best is Guarantee.NONE or now.strength is Strength.COMPLETE:
            return False
        earlier, later = self.before.coverage, self.after.coverage
        return (
            was.strength is Strength.COMPLETE
            or (later.served < earlier.served and later.found - later.served > earlier.found - earlier.served)
            or (
                later.directed_tried < earlier.directed_tried
                and later.directed - later.directed_tried > earlier.directed - earlier.directed_tried
            )
        )

    def markdown(self) -> str:
        """Return the comparison as Markdown: the guarantees, the changes, and the runs that go wrong only now."""
        return "\n".join(self._lines()) + "\n"

    def _lines(self) -> Iterator[str]:
        before, after = self.before, self.after
        yield f"### Crash test of `{_inline(after.subject)}`: {self._headline()}"
        if before is None:
            yield from self._alone()
            return
        if before.subject != after.subject:
            yield from ("", f"Before, this was the test of `{_inline(before.subject)}`.")
        yield ""
        yield "| | before | now |"
        yield "|---|---|---|"
        yield f"| guarantee | {before.guarantee} | **{after.guarantee}** |"
        yield f"| points tried | {_extent(before)} | {_extent(after)} |"
        for axis, held in after.axes.items():
            earlier = before.axes.get(axis, "not tested")
            if earlier != held or held == VIOLATED:
                yield f"| {axis} | {earlier} | {f'**{held}**' if held == VIOLATED else held} |"
        for name, held in after.conditions.items():
            if before.conditions.get(name) != held:
                yield f"| condition {name} | {before.conditions.get(name, 'not tested')} | {held} |"
        for name, fault in after.faults.items():
            earlier = before.faults.get(name, UNTRIED).claim
            if earlier != fault.claim:
                yield f"| fault {name} | {_inline(earlier)} | {_inline(fault.claim)} |"
        yield from self._why()
        harmless = {run.id for run in after.runs if not run.unknown} - set(after.harmful)
        new = [run for name, run in after.harmful.items() if name not in before.harmful]
        gone = [run for name, run in before.harmful.items() if name not in after.harmful]
        yield from _runs("Harmful now, and not seen to be before", new)
        yield from _runs("Harmful before, and not now", [run for run in gone if run.id in harmless])
        yield from _runs("Harmful before, and not tried now", [run for run in gone if run.id not in harmless])
        yield from self._end()

    def _alone(self) -> Iterator[str]:
        yield from ("", f"There is no earlier report to compare with. Points tried: {_extent(self.after)}.")
        yield from self._why()
        yield from _runs("Harmful", list(self.after.harmful.values()))
        yield from self._end()

    def _why(self) -> Iterator[str]:
        if self.after.why:
            yield from ("", f"**Why now:** {_inline(self.after.why)}")

    def _end(self) -> Iterator[str]:
        if unknown := [run for run in self.after.runs if run.unknown]:
            first = f"`{_inline(unknown[0].id)}`: {_inline(unknown[0].unknown)}"
            yield from ("", f"**Unknown:** {len(unknown)} run(s), as {first}")
        yield from ("", f"Repeat with `{_inline(self.after.command)}`")

    def _headline(self) -> str:
        if self.before is None:
            return self.after.guarantee
        is_sample = self.after.claim.strength is Strength.SAMPLED
        words = {
            Change.WEAKER: "weaker than before",
            Change.UNKNOWN: "perhaps weaker: less is known than before",
            Change.NOT_WEAKER: "nothing weaker was seen" if is_sample else "not weaker than before",
        }
        return words[self.change]


def _is_weaker(before: FaultPart, after: FaultPart) -> bool:
    """Return whether one kind of fault does more harm in the later report (`after`) than in the earlier one (`before`).

    That is so if a run with this fault goes wrong only in the later report, or if runs go wrong in both, and the later
    report's guarantee under this fault is weaker.
    """
    if not after.weakest:
        return False
    return not before.weakest or not satisfies(after.at_best, before.at_best)


def _runs(title: str, runs: Sequence[RunPart]) -> Iterator[str]:
    if not runs:
        return
    yield from ("", f"**{title}:** {len(runs)} run(s)", "")
    for run in runs[:SHOWN]:
        yield f"- `{_inline(run.id)}`: {_inline(run.stuck or run.because)}"
    if len(runs) > SHOWN:
        yield f"- and {len(runs) - SHOWN} more"


def _extent(report: ReportPart) -> str:
    coverage = report.coverage
    points = f"{coverage.served} of {coverage.found}"
    return f"{points}, {coverage.directed_tried} of {coverage.directed} directed runs" if coverage.directed else points


def _inline(text: str) -> str:
    # These characters would end Markdown code or a table cell.
    return " ".join(text.split()).replace("`", "'").replace("|", "\\|").replace("<", "&lt;")
