"""Chooses which versions of a package to test, and states between which versions a pipeline's guarantee changed.

This module runs no test. A version's *side* is what its test has shown, such as `at best at-least-once`; a version
whose test showed nothing, or that cannot be installed, has no side. A change lies between two versions with different
sides.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from labkit.core.errors import InvalidInput
from labkit.core.judge import Outcome
from labkit.crashtest.claim import Strength

BETWEEN = ".."
"""The separator between the first and the last version of a range."""

AS_EXPECTED, WEAKER = "as expected", "weaker than expected"


class Range(NamedTuple):
    """A package's versions within a bisection's range; only `versions` (no pre-releases, not yanked) are tested."""

    versions: tuple[str, ...]
    pre_releases: tuple[str, ...] = ()
    yanked: tuple[str, ...] = ()


def chosen(available: Sequence[str], wanted: str, yanked: frozenset[str] = frozenset()) -> Range:
    """Return the versions of a package that lie within `wanted`, a range `FIRST..LAST`; either end may be left out.

    `available` lists all versions, `yanked` the withdrawn ones. Raises `InvalidInput` for a malformed or empty range.
    """
    first, last = bounds(wanted)
    known = sorted({each for text in available if (each := _version(text)) is not None})
    within = [each for each in known if (first is None or first <= each) and (last is None or each <= last)]
    withdrawn = {each for text in yanked if (each := _version(text)) is not None}
    final = [each for each in within if not each.is_prerelease and each not in withdrawn]
    if not final:
        known_range = f"the package has {known[0]} to {known[-1]}" if known else "pip finds no version of the package"
        excluded = ", and those in the range are pre-releases or yanked" if within else ""
        raise InvalidInput(
            f"--versions {wanted}: no version is in this range ({known_range}{excluded}); name another range."
        )
    return Range(
        tuple(map(str, final)),
        tuple(str(each) for each in within if each.is_prerelease),
        tuple(str(each) for each in within if each in withdrawn and not each.is_prerelease),
    )


def bounds(wanted: str) -> tuple[Version | None, Version | None]:
    """Return both ends of a range `FIRST..LAST`, None for a missing end. Raises `InvalidInput` for any other text."""
    first, separator, last = wanted.partition(BETWEEN)
    if wanted and not separator:
        raise InvalidInput(f"--versions {wanted}: this is not a range; write one, as in 1.18.0..1.31.0.")
    ends: list[Version | None] = []
    for text in (first.strip(), last.strip()):
        if text and _version(text) is None:
            raise InvalidInput(
                f"--versions {wanted}: {text} is not a version number; write a range, as in 1.18.0..1.31.0."
            )
        ends.append(_version(text) if text else None)
    if ends[0] is not None and ends[1] is not None and ends[0] > ends[1]:
        raise InvalidInput(f"--versions {wanted}: the first version is later than the last; swap the two.")
    return ends[0], ends[1]


def _version(text: str) -> Version | None:
    try:
        return Version(text)
    except InvalidVersion:
        return None


Sides = Mapping[int, str | None]
"""The side (test result) of each tested version, by its position in the range; None if the test was inconclusive."""


def next_to_try(count: int, sides: Sides) -> int | None:
    """Return the index of the version that a bisection of `count` versions tests next; None when it has finished.

    `sides` maps the index of each tested version to its test result; None is an inconclusive result. The bisection
    tests both ends of the range first. If an end is inconclusive, it tests the next version inwards, until a result is
    conclusive. Of the conclusive results, it then takes the oldest two neighbours that differ, and tests the untested
    version nearest to the middle between them.
    """
    for end in (0, count - 1):
        if end not in sides:
            return end
    for order in (range(count), range(count - 1, -1, -1)):
        first = next((each for each in order if sides.get(each, "") is not None), None)
        if first is not None and first not in sides:
            return first
    if not (changes := _changes(sides)):
        return None
    before, after = changes[0]
    untried = [each for each in range(before + 1, after) if each not in sides]
    return min(untried, key=lambda each: (abs(2 * each - before - after), each), default=None)


def _changes(sides: Sides) -> list[tuple[int, int]]:
    known = [each for each in sorted(sides) if sides[each] is not None]
    return [(one, other) for one, other in pairwise(known) if sides[one] != sides[other]]


@dataclass(frozen=True)
class Trial:
    """One version of a package that a bisection tested, with the result of its crash test."""

    version: str
    day: str = ""
    side: str | None = None
    """The result, such as `at best at-least-once`, by which versions are compared; None if the test showed nothing."""
    words: str = ""
    """The guarantee with its strength, and the claims about faults, in the words of the crash test's report."""
    sampled: bool = False
    """Whether the test left something out, so that a complete test may find a weaker guarantee."""
    point: str = ""
    """The crash point of the weakest run; empty if no run was wrong."""
    because: str = ""
    not_tried: str = ""
    """The reason why there is no report: the version cannot be installed, or the pipeline does not work with it."""
    refused: bool = False
    """Whether the crash test itself refused the pipeline."""
    packages: tuple[str, ...] = ()
    """Everything that is installed in the version's environment, as `name==version`."""
    command: str = ""
    """The command that repeats the crash test."""


def trial_of(version: str, day: str, report: Mapping[str, Any], code: int, expected: str = "") -> Trial:
    """Return the result of testing one version, from the JSON `report` and the exit `code` of its crash test.

    `day` is the version's release date. A bisection compares versions by the `side` of their results, which is a text.
    If `expected` names a guarantee, the side says whether the pipeline met it. Otherwise the side is the best guarantee
    that the test leaves possible, such as `at best at-least-once`, or `stuck, at best ...` if a run was stuck.
    """
    claim, weakest = report["claim"], report["weakest"] or {}
    unknown = claim["strength"] == Strength.UNKNOWN
    is_stuck = report["axes"].get("stuck") == Outcome.VIOLATED
    side = None if unknown else f"{'stuck, ' if is_stuck else ''}at best {claim['at_best']}"
    if expected:
        side = {0: AS_EXPECTED, 1: WEAKER}.get(code)
    faults = [f"{name}: {each['claim']}" for name, each in report["faults"].items() if each["found"] is not None]
    return Trial(
        version,
        day,
        side,
        "; ".join([str(report["guarantee"]), *faults]),
        sampled=claim["strength"] in (Strength.SAMPLED, Strength.REFUTED),
        point=str(weakest.get("id", "")),
        because=str(report["why"] or weakest.get("because", "")),
        command=str(report["command"]),
    )


class Change(NamedTuple):
    """Two tested versions of a package with different results, and no conclusive result between them."""

    package: str
    before: Trial
    after: Trial
    undecided: tuple[str, ...]
    """The versions between them whose tests were inconclusive."""
    untried: tuple[str, ...]

    @property
    def is_exact(self) -> bool:
        """Whether the two versions with different results are adjacent, so that the later one brought the change."""
        return not self.undecided and not self.untried

    @property
    def others(self) -> list[str]:
        """The other packages whose versions differ between the two tests, as texts such as `name 1.0 -> 2.0`."""
        one, other = (_installed(each) for each in (self.before, self.after))
        names = sorted({*one, *other} - {canonicalize_name(self.package)})
        return [
            f"{name} {one.get(name, 'not there')} -> {other.get(name, 'not there')}"
            for name in names
            if one.get(name) != other.get(name)
        ]


def _installed(trial: Trial) -> dict[str, str]:
    pairs = (each.partition("==") for each in trial.packages)
    return {canonicalize_name(name): version for name, _, version in pairs}


@dataclass(frozen=True)
class Answer:
    """The answer of a bisection: the tested versions of a package, and where their guarantee changed."""

    package: str
    range: Range
    trials: Mapping[int, Trial]
    """The test of each version that was tested, by the version's position in the range."""
    notes: tuple[str, ...] = ()

    @property
    def sides(self) -> dict[int, str | None]:
        """A dict from the index of each tested version to its result; None for an inconclusive test."""
        return {position: each.side for position, each in self.trials.items()}

    @property
    def known(self) -> list[Trial]:
        """The tested versions with a conclusive result, oldest first."""
        return [self.trials[each] for each in sorted(self.trials) if self.trials[each].side is not None]

    @property
    def changes(self) -> list[Change]:
        """The pairs of tested versions between which the result changed, oldest first."""
        found = []
        for one, other in _changes(self.sides):
            between = range(one + 1, other)
            undecided = tuple(self.range.versions[each] for each in between if each in self.trials)
            untried = tuple(self.range.versions[each] for each in between if each not in self.trials)
            found.append(Change(self.package, self.trials[one], self.trials[other], undecided, untried))
        return found

    @property
    def untried(self) -> list[str]:
        """The versions that were not tested, oldest first."""
        return [each for position, each in enumerate(self.range.versions) if position not in self.trials]

    @property
    def is_definite(self) -> bool:
        """Whether the bisection found an answer.

        It did if the tests of both ends of the range were conclusive, and if one of two conditions holds: all
        conclusive results are equal, or the result changes at least once between two adjacent versions.
        """
        return not self._undecided_ends and (not self.changes or any(each.is_exact for each in self.changes))

    @property
    def _undecided_ends(self) -> list[str]:
        ends = dict.fromkeys((0, len(self.range.versions) - 1))
        return [self.range.versions[each] for each in ends if self.sides.get(each) is None]

    def code(self, expected: str = "") -> int:
        """Return the exit code of the bisection: 0 if it found an answer (`is_definite`), 2 if not.

        If `expected` names a guarantee that the newest version with a conclusive result does not meet, the code is 1.
        """
        if expected and self.known and self.known[-1].side == WEAKER:
            return 1
        return 0 if self.is_definite else 2

    def sentences(self) -> list[str]:
        """Return the bisection's answer in sentences: where the guarantee changed, and what remains uncertain."""
        if not self.known:
            return ["No test showed a guarantee, so it is unknown whether the guarantee changed."]
        answer = list(map(_change_text, self.changes)) or [self._agreement()]
        if self._undecided_ends and not self.changes:
            answer.append(f"Nothing is known about {self.package} {' and '.join(self._undecided_ends)}.")
        left_out = (("pre-release", self.range.pre_releases), ("yanked version", self.range.yanked))
        answer += [f"Left out: {_counted(what, versions)}." for what, versions in left_out if versions]
        if any(each.sampled for each in self.known):
            answer.append("Some tests left points out, so a whole test (without --quick) may find a weaker guarantee.")
        return [*answer, *self.notes]

    def _agreement(self) -> str:
        known = self.known
        if len(known) == 1:
            return f"Only {self.package} {known[0].version} shows a guarantee: {_in_words(known[0])}."
        untried = self.untried
        kept = f"; {_counted('version', untried)} between were not tried, and --all tries them" if untried else ""
        ends = list(dict.fromkeys(map(_in_words, (known[0], known[-1]))))
        return f"{self.package} {known[0].version} and {known[-1].version} agree: {' and '.join(ends)}{kept}."

    def to_json(self) -> dict[str, Any]:
        """Return the answer of the bisection as a dict for JSON."""
        return {
            "package": self.package,
            "versions": list(self.range.versions),
            "left_out": {"pre_releases": list(self.range.pre_releases), "yanked": list(self.range.yanked)},
            "tried": [{**vars(each), "packages": list(each.packages)} for _, each in sorted(self.trials.items())],
            "untried": self.untried,
            "changes": [
                {
                    "before": each.before.version,
                    "after": each.after.version,
                    "from": _in_words(each.before),
                    "to": _in_words(each.after),
                    "exact": each.is_exact,
                    "undecided": list(each.undecided),
                    "untried": list(each.untried),
                    "other_packages": each.others,
                }
                for each in self.changes
            ],
            "definite": self.is_definite,
            "answer": self.sentences(),
        }


def _in_words(trial: Trial) -> str:
    return f"{trial.words} ({trial.side})" if trial.side in (AS_EXPECTED, WEAKER) else trial.words


def _change_text(change: Change) -> str:
    day = f" ({change.after.day})" if change.after.day else ""
    ends = f"{change.package} {change.before.version} and {change.after.version}{day}"
    text = f"The guarantee changed between {ends}: from {_in_words(change.before)} to {_in_words(change.after)}."
    if change.undecided:
        text += f" The exact version is unknown: {_counted('version', change.undecided)} between them showed nothing."
    if change.untried:
        text += f" {_counted('version', change.untried)} between them were not tried."
    others = change.others
    return text + (f" Other packages changed as well: {', '.join(others)}." if others else "")


def _counted(what: str, versions: Sequence[str]) -> str:
    shown = f"{', '.join(versions[:3])}, ..." if len(versions) > 3 else ", ".join(versions)
    return f"{len(versions)} {what}{'s' if len(versions) != 1 else ''} ({shown})"
