"""Explain by a pipeline's own effects why it is weaker than exactly-once, and recommend the repair that fits.

Each harmful crash lies between two effects; if these two were atomic, the crash would do no harm.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from labkit.crashtest.blackbox.jobs import LATER
from labkit.crashtest.blackbox.points import EXIT, Point
from labkit.crashtest.diagnosis import Diagnosis, Recipe
from labkit.crashtest.verdict import Group, Result, Summary

MARKER = Recipe(
    "progress in the same step",
    "Make rows and what tells that they were written (an offset, a batch number) last in one step: one transaction, "
    "or one rename of a folder that holds both.",
    "notebooks/06_sinks.ipynb",
)
OVERWRITE = Recipe(
    "overwrite by name",
    "Write each part of the input to a place named after it, which a second run overwrites, and make it readable by "
    "one rename.",
    "notebooks/06_sinks.ipynb",
)
AFTER = Recipe(
    "progress after the rows",
    "Note how far the input was read only when its rows last, and let a second run recognise them.",
    "notebooks/01_guarantees.ipynb",
)
FORGIVE = Recipe(
    "expect the crash",
    "Let the next start find what the last one left: skip it, overwrite it or clean up first, and fail at nothing.",
    "notebooks/01_guarantees.ipynb",
)


SYNC = Recipe(
    "sync before you tell",
    "Sync the file, rename it, sync its folder, and only then note that it is there, which is synced as well.",
    "notebooks/06_sinks.ipynb",
)


class Stretch(NamedTuple):
    """Neighbouring crash points at which a crash violates the same property, such as "nothing is lost"."""

    first: Point
    """The first of these crash points; `opened` is the effect just before it."""
    last: Point
    """The last of these crash points; the effect just after it closes the stretch."""

    @property
    def opened(self) -> str:
        """The effect just before the first crash point, with its line; empty for the command's start."""
        return self.first.place_before

    def __str__(self) -> str:
        return f"[{self.opened or 'the start'}] and [{self.last.place}]"


def diagnose(summary: Summary, points: Mapping[str, Point]) -> Diagnosis | None:
    """Return the diagnosis of the weakest result in a test's summary, or None if no run violates a property.

    `points` maps the id of each single crash to its crash point.
    """
    weakest = summary.weakest
    if weakest is None:
        return None
    axis = weakest.violated[0]
    if weakest.group is Group.HEALTHY:
        return Diagnosis("wrong without a crash", f"without any crash {weakest.because}", FORGIVE)
    tried = [each for each in summary.results if each.id in points and not each.unknown]
    violating = [each for each in tried if each.rows_of(axis)]
    if not violating:
        return _alone(weakest)
    return _between(axis, stretch(tried, axis, points), violating)


def stretch(tried: Sequence[Result], axis: str, points: Mapping[str, Point]) -> Stretch:
    """Return the first stretch of neighbouring crash points whose results violate the property `axis`, such as `lost`.

    `tried` are the results to search, at least one of which violates the property.
    """
    ordered = sorted(tried, key=lambda each: points[each.id].number)
    flags = [bool(each.rows_of(axis)) for each in ordered]
    first = last = flags.index(True)
    while last + 1 < len(flags) and flags[last + 1]:
        last += 1
    return Stretch(points[ordered[first].id], points[ordered[last].id])


def _alone(weakest: Result) -> Diagnosis:
    """Return the diagnosis of harm that no single crash caused."""
    if weakest.group is Group.POWER:
        return Diagnosis("not synced", f"{weakest.title}: {weakest.because}", SYNC)
    if weakest.group is Group.PAIR:
        why = f"a crash during recovery does harm, and alone it was not seen to: {weakest.title}"
        return Diagnosis("recovery", why, FORGIVE)
    if weakest.id == LATER:
        why = f"the next plain start does not recognise that everything is done: {weakest.because}"
        return Diagnosis("replay not recognised", why, OVERWRITE)
    return Diagnosis("identity", f"{weakest.title}: {weakest.because}", MARKER)


def _between(axis: str, window: Stretch, bad: Sequence[Result]) -> Diagnosis:
    apart = f"a crash between {window} does harm: they must be one step"
    if axis == "stuck":
        why = f"the next start meets what a crash after [{window.opened or 'the start'}] left: {bad[0].stuck}"
        return Diagnosis("stuck on the replay", why, FORGIVE)
    if axis == "lost":
        why = f"{apart}; by then the input counts as read, and its rows are not written"
        return Diagnosis("marker before the data", why, AFTER)
    if axis == "regression":
        why = f"after a crash between {window} a value can be seen to go back"
        return Diagnosis("goes back", why, MARKER)
    if axis.endswith("_read"):
        why = f"rows can be read after [{window.opened}] that are taken back by the next start"
        return Diagnosis("readable too early", why, OVERWRITE)
    if window.last.name == EXIT:
        why = f"after [{window.opened}] nothing tells the next start that its rows are there: it writes them again"
        return Diagnosis("replay not recognised", why, OVERWRITE)
    why = f"{apart}; the rows are there, and nothing tells the next start so"
    return Diagnosis("marker after the data", why, MARKER)
