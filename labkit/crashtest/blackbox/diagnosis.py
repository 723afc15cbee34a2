"""Explain by a pipeline's own effects why it is weaker than exactly-once, and recommend the repair that fits.

Each harmful crash lies between two effects; if these two were atomic, the crash would do no harm.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from labkit.crashtest.blackbox.jobs import GROWN, LATER, NEW_INPUT
from labkit.crashtest.blackbox.points import EXIT, Point
from labkit.crashtest.report import Diagnosis, Recipe
from labkit.crashtest.verdict import Group, Result, Summary
from labkit.host.syscalls.calls import CallKind
from labkit.host.syscalls.faults import Fault

MARKER = Recipe(
    "progress in the same step",
    "Make the rows and the record of them (an offset, a batch number) durable in one step: one transaction, or one "
    "rename of a folder that holds both.",
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
    "Record how far the input was read only when its rows are durable, and let a second run recognise these rows.",
    "notebooks/01_guarantees.ipynb",
)
FORGIVE = Recipe(
    "expect the crash",
    "Let the next start expect whatever the last one left: skip it, overwrite it or remove it, but never fail at it.",
    "notebooks/01_guarantees.ipynb",
)
PLAIN = Recipe(
    "right without a crash first",
    "Let one plain run write each row once: look for rows that are chosen or written twice, for writes that overtake "
    "each other, and for an input that is computed anew for each output.",
    "notebooks/01_guarantees.ipynb",
)


FINISH = Recipe(
    "stop between two steps",
    "Let the handler of SIGTERM only set a flag; finish the current step, and check the flag before the next one.",
    "notebooks/04b_stops.ipynb",
)
SYNC = Recipe(
    "sync before you tell",
    "Sync the file, rename it and sync its folder; only then record that it is there, and sync that record as well.",
    "notebooks/06_sinks.ipynb",
)


FLUSH = Recipe(
    "flush before you return",
    "Before the sink returns, flush, wait for every acknowledgement and raise every error: afterwards the engine "
    "counts the batch as done and never repeats it.",
    "notebooks/09_kafka.ipynb",
)
QUERY = Recipe(
    "bind the marker to the query",
    "Include the query's id in the key that identifies a batch: a new checkpoint counts its batches from 0 again.",
    "notebooks/06_sinks.ipynb",
)
RAISE = Recipe(
    "let every error rise",
    "Check what each call returns, and end with an error before anything counts as done. Write the part again from "
    "the input, because after a failed sync a second sync proves nothing.",
    "notebooks/01_guarantees.ipynb",
)
LOOP = Recipe(
    "write until all is written",
    "A write may accept only a part of the bytes: write the rest until none is left, or use a function that does so.",
    "notebooks/01_guarantees.ipynb",
)
KEY = Recipe(
    "repeat under the same key",
    "Give each request a key that depends on its rows alone, the same at every attempt, and let the server skip a key "
    "that it has seen.",
    "notebooks/02_delivery.ipynb",
)
QUERIES = ("fresh_checkpoint", "two_queries")
"""The runs with a second query on the same store."""


class Stretch(NamedTuple):
    """A series of neighbouring crash points at all of which a crash does the same harm, for example loses rows."""

    first: Point
    """The first of these crash points; `opened` is the effect just before it."""
    last: Point
    """The last of these crash points; the effect just after it closes the stretch."""

    @property
    def opened(self) -> str:
        """The last system call before the crash point `first`, with its line of Python; empty if there is none."""
        return self.first.place_before

    def __str__(self) -> str:
        return f"[{self.opened or 'the start'}] and [{self.last.place}]"


def diagnose(
    summary: Summary, points: Mapping[str, Point], decides: Callable[[str], bool] = lambda _: False
) -> Diagnosis | None:
    """Explain the worst run of a crash test and recommend a repair; None if no run went wrong.

    `points` maps the id of each run with one crash to its crash point. `decides` gets the name of a system call, and
    returns whether the engine records with this call that a batch is finished.
    """
    weakest = summary.weakest
    if weakest is None:
        return None
    axis = weakest.violated[0]
    if weakest.group is Group.HEALTHY:
        return _uncrashed(axis, f"without any crash {weakest.because}")
    tried = [each for each in summary.results if each.id in points and not each.unknown]
    violating = [each for each in tried if each.rows_of(axis)]
    if not violating:
        return _alone(weakest, axis)
    return _between(axis, stretch(tried, axis, points), violating, decides)


def _uncrashed(axis: str, happened: str) -> Diagnosis:
    return Diagnosis("wrong without a crash", happened, FLUSH if axis == "lost" else PLAIN)


def diagnose_fault(worst: Result) -> Diagnosis:
    """Explain `worst`, the worst run in which a system call suffered a fault, and recommend a repair."""
    [fault] = worst.evidence
    call, axis = f"{fault['call']} at [{fault['point']}]", worst.violated[0]
    if axis == "stuck":
        return Diagnosis("stuck after a fault", f"after {call} failed, the next starts fail: {worst.stuck}", FORGIVE)
    if fault["fault"] == Fault.LOST_ANSWER:
        if axis == "lost":
            return Diagnosis("request not repeated", f"the answer to {call} did not arrive: {worst.because}", AFTER)
        why = f"the answer to {call} did not arrive, and the request was sent again without the same key"
        return Diagnosis("request sent again without a key", why, KEY)
    if fault["fault"] == Fault.SIGTERM:
        when = "did not stop in time and was killed" if fault["overdue"] else "stopped"
        why = f"SIGTERM came at {call}, the command {when}, and the next start does harm: {worst.because}"
        return Diagnosis("stop at the wrong place", why, FINISH)
    if not fault["silent"]:
        why = f"the command that met the fault at {call} failed, and the next start does harm: {worst.because}"
        return Diagnosis("restart after an error", why, MARKER if axis == "duplicate" else AFTER)
    return _ignored(fault, call, worst.because)


def _ignored(fault: Mapping[str, Any], call: str, because: str) -> Diagnosis:
    match fault["fault"]:
        case Fault.SHORT_WRITE:
            why = f"{call} wrote half of its bytes, and the command did not write the rest"
            return Diagnosis("short write not continued", why, LOOP)
        case Fault.DELAY:
            why = f"{call} was late, and the command did not wait for it and ended well: {because}"
            return Diagnosis("late call given up", why, RAISE)
        case Fault.ONE_PROCESS:
            why = f"the process was killed before {call}, the command went on and ended well: {because}"
            return Diagnosis("the death of a process was ignored", why, RAISE)
    what = "the error of a sync" if fault["kind"] == CallKind.SYNC else "an error"
    why = f"{call} returned an error, the command went on and ended well: {because}"
    return Diagnosis(f"{what} was ignored", why, RAISE)


def stretch(tried: Sequence[Result], axis: str, points: Mapping[str, Point]) -> Stretch:
    """Return the first series of neighbouring crash points at which a crash violates a property.

    `axis` is the property, such as `lost`. `tried` are runs with one crash, at least one of which violates it; `points`
    maps the id of each run to its crash point.
    """
    ordered = sorted(tried, key=lambda each: points[each.id].number)
    flags = [bool(each.rows_of(axis)) for each in ordered]
    first = last = flags.index(True)
    while last + 1 < len(flags) and flags[last + 1]:
        last += 1
    return Stretch(points[ordered[first].id], points[ordered[last].id])


def _alone(weakest: Result, axis: str) -> Diagnosis:
    what = weakest.title
    happened = f"{what}: {weakest.because}"
    match weakest.group:
        case Group.POWER:
            return Diagnosis("not synced", happened, SYNC)
        case Group.LARGE if not weakest.evidence:
            return _uncrashed(axis, happened)
        case Group.LARGE | Group.RETRY:
            return _in_a_batch(weakest, axis, happened)
        case Group.PAIR:
            return _recovery(what, axis)
    return _another_start(weakest, axis, happened)


def _in_a_batch(weakest: Result, axis: str, happened: str) -> Diagnosis:
    if axis == "stuck":
        return Diagnosis("stuck on the replay", happened, FORGIVE)
    if weakest.group is Group.LARGE:
        why = f"a large batch is written in parts that become durable one by one: {weakest.title}"
        return Diagnosis("parts commit separately", why, MARKER)
    if axis == "lost":
        return Diagnosis("attempts", f"a task that dies runs again, and rows are missing: {happened}", AFTER)
    why = f"a task that dies runs again, and the effects of its first attempt remain: {weakest.title}"
    return Diagnosis("attempts", why, OVERWRITE)


def _recovery(what: str, axis: str) -> Diagnosis:
    if axis == "regression":
        return Diagnosis("goes back", f"while a batch is replayed, a value can be seen to go back: {what}", MARKER)
    if axis.endswith("_read"):
        why = f"while a batch is replayed, rows that were readable disappear: {what}"
        return Diagnosis("readable too early", why, OVERWRITE)
    why = f"a crash during recovery does harm that no run with a single crash showed: {what}"
    return Diagnosis("recovery", why, FORGIVE)


def _another_start(weakest: Result, axis: str, happened: str) -> Diagnosis:
    if weakest.id == LATER:
        why = f"the next plain start does not recognise that everything is done: {weakest.because}"
        return Diagnosis("replay not recognised", why, OVERWRITE)
    if (weakest.id == NEW_INPUT or weakest.id.startswith(GROWN)) and axis == "lost":
        why = f"a crash leaves a state in which new input is skipped: {weakest.because}"
        return Diagnosis("new input is skipped", why, FORGIVE)
    if weakest.id in QUERIES and axis == "lost":
        why = f"{weakest.title}: the rows were taken for those of an earlier query, and skipped or replaced"
        return Diagnosis("key outlives the query", why, QUERY)
    return Diagnosis("identity", happened, MARKER)


def _between(axis: str, window: Stretch, bad: Sequence[Result], decides: Callable[[str], bool]) -> Diagnosis:
    if axis in ("lost", "stuck"):
        return _missing(axis, window, bad, decides)
    if axis == "regression":
        why = f"after a crash between {window} a value can be seen to go back"
        return Diagnosis("goes back", why, MARKER)
    if axis.endswith("_read"):
        why = f"rows can be read after [{window.opened}] that are taken back by the next start"
        return Diagnosis("readable too early", why, OVERWRITE)
    if window.last.name == EXIT or decides(window.last.name):
        begun = window.opened or "the start"
        why = f"after [{begun}] nothing tells the next start that its rows are there: it writes them again"
        return Diagnosis("replay not recognised", why, OVERWRITE)
    why = f"{_apart(window)}; the rows are there, and nothing tells the next start so"
    return Diagnosis("marker after the data", why, MARKER)


def _missing(axis: str, window: Stretch, bad: Sequence[Result], decides: Callable[[str], bool]) -> Diagnosis:
    if axis == "stuck":
        why = f"the next start meets what a crash after [{window.opened or 'the start'}] left: {bad[0].stuck}"
        return Diagnosis("stuck on the replay", why, FORGIVE)
    if decides(window.first.after):
        why = f"the sink returned before its rows were safe: after [{window.opened}] the engine repeats nothing"
        return Diagnosis("returned too early", why, FLUSH)
    why = f"{_apart(window)}; by then the input counts as read, and its rows are not written"
    return Diagnosis("marker before the data", why, AFTER)


def _apart(window: Stretch) -> str:
    return f"a crash between {window} does harm: they must be one step"
