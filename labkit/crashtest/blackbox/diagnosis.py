"""Explain by a pipeline's own effects why it is weaker than exactly-once, and recommend the repair that fits.

Each harmful crash lies between two effects; if these two were atomic, the crash would do no harm.
"""

import tomllib
from collections.abc import Callable, Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Any, NamedTuple

from labkit.crashtest.blackbox.effects import without_number
from labkit.crashtest.blackbox.jobs import GROWN, LATE, LATER, NEW_INPUT, UNREAD
from labkit.crashtest.blackbox.points import EXIT, WITHIN, Point
from labkit.crashtest.blackbox.sqlite_files import JOURNAL, LOG
from labkit.crashtest.report import Diagnosis, Recipe
from labkit.crashtest.verdict import Group, Result, Summary, weakness
from labkit.host.syscalls.calls import CallKind
from labkit.host.syscalls.faults import Fault

_TEXTS = tomllib.loads(resources.files("labkit.crashtest.blackbox").joinpath("repairs.toml").read_text("utf-8"))


def _recipe(key: str) -> Recipe:
    return Recipe(**_TEXTS[key])


MARKER = _recipe("marker")
OVERWRITE = _recipe("overwrite")
AFTER = _recipe("after")
FORGIVE = _recipe("forgive")
COVERS = _recipe("covers")
PLAIN = _recipe("plain")
FINISH = _recipe("finish")
SYNC = _recipe("sync")
FLUSH = _recipe("flush")
QUERY = _recipe("query")
RAISE = _recipe("raise")
LOOP = _recipe("loop")
KEY = _recipe("key")
SERVER = _recipe("server")
EITHER = _recipe("either")
WHOLE = _recipe("whole")
UNDO = _recipe("undo")
STEP = _recipe("step")
AGAIN = _recipe("again")
TOGETHER = _recipe("together")
DATABASE = _recipe("database")
WAIT = _recipe("wait")

_OTHER_CRASHES = (
    (
        UNREAD,
        "half a commit",
        "a reader repairs what the crash left, and a start that comes before any reader does harm",
        DATABASE,
    ),
    (LATE, "order left to chance", "nothing makes the other threads or processes wait for this call", WAIT),
)
"""Runs with an unusual crash: the beginning of their ids, the name of the mistake, the reason, and the repair."""

QUERIES = FRESH, TWO_QUERIES = "fresh_checkpoint", "two_queries"
"""The runs with a second query on the same store: after the first one, and at the same time."""

_TOO_EARLY = {
    "aborted_read": "rows can be read that disappear later",
    "precommitted_read": "a batch can be read that its sink has not finished",
    "fractured_read": "a part of a batch can be read without the rest",
}
"""What a crash shows if rows are readable too early, by the property that this violates."""

_NEW_INPUT = {
    "lost": ("new input is skipped", "new input is skipped"),
    "duplicate": ("old input is repeated", "old input is processed again together with new input"),
}
"""The mistake that a run with new input shows, and what happens, by the property that this violates."""

_GROWING = frozenset({CallKind.CREATE, CallKind.TRUNCATE, CallKind.WRITE})
_REMOVING = frozenset({CallKind.TRUNCATE, CallKind.UNLINK})
_SQLITE = (JOURNAL, LOG)
"""How the names of SQLite's logs end: a commit removes or shortens a journal, and appends to a write-ahead log."""
_HTTP = ("POST", "PUT", "PATCH")
"""HTTP methods in the name of a message; DELETE is missing, as it is also a statement of SQL."""


class _Step(NamedTuple):
    """A system call without its running number: its kind, and what it acts on (a file, or a server and a message).

    For example, `rename a #2` has the kind `rename` and acts on `a`.
    """

    kind: str
    where: str

    @classmethod
    def of(cls, name: str) -> "_Step":
        kind, _, where = without_number(name).partition(" ")
        return cls(kind, where)


class Stretch(NamedTuple):
    """A stretch of a run: neighbouring crash points at which a crash does the same harm, such as a loss of rows."""

    first: Point
    """The first of these crash points; `opened` is the effect just before it."""
    last: Point
    """The last of these crash points; `closing` is the effect just after it."""
    is_bounded: bool = False
    """Whether a crash just before the system call `opening` was tried and did no harm, so that this call matters."""

    are_cuts: bool = False
    """Whether each of these crashes cuts a write."""

    @property
    def opened(self) -> str:
        """The last system call before the first harmful crash point, with its line of Python if that is known.

        Empty if the first harmful crash point comes before every system call.
        """
        return self.first.place_before

    @property
    def opening(self) -> str:
        """The call with which the harmful stretch of the run begins: a crash during this call or after it does harm."""
        return self.first.effect if self.first.cut else self.first.after

    @property
    def closing(self) -> str:
        """The call that ends the harmful stretch of the run: a crash after this call does no harm."""
        return self.last.effect

    def includes(self, point: Point) -> bool:
        return self.first.number <= point.number <= self.last.number

    @property
    def begun(self) -> str:
        """Where the harmful stretch begins: `after [...]`, or `within [...]` if its first crash cuts a write."""
        name = self.first.place.removeprefix(WITHIN)
        return f"within [{name}]" if self.first.cut else f"after [{self.opened or 'the start'}]"

    def __str__(self) -> str:
        if self.first.cut:
            return self.begun if self.are_cuts else f"{self.begun} or later, up to [{self.last.place}],"
        return f"between [{self.opened or 'the start'}] and [{self.last.place}]"


def diagnose(
    summary: Summary,
    points: Mapping[str, Point],
    decides: Callable[[str], bool] = lambda _: False,
    files: Mapping[str, str] | None = None,
) -> Diagnosis | None:
    """Return an explanation of the worst run of a crash test, with a repair; None if no run went wrong.

    If the worst run has no crash (for example, one with a second query), but runs with one crash go wrong in another
    way, the explanation names both.

    `points` maps the id of each run with one crash to its crash point. `decides` returns whether the engine uses a call
    to record that a batch is finished. The name of a call contains only a masked path such as `out/<n>`, which several
    files may share; `files` maps the call's name to the real path.
    """
    weakest = summary.weakest
    if weakest is None:
        return None
    axis = weakest.violated[0]
    if weakest.group is Group.HEALTHY:
        return _uncrashed(axis, f"without any crash {weakest.because}")
    both_ways = _harm_both_ways(summary)
    tried = [each for each in summary.results if each.id in points and not each.unknown]

    def of_single_crashes(axis: str) -> Diagnosis:
        violating = [each for each in tried if each.rows_of(axis)]
        window = stretch(tried, axis, points)
        within = [each for each in violating if window.includes(points[each.id])]
        if axis == "lost" and not decides(window.first.after):
            return _lost(window, within, both_ways, files or {})
        return _between(axis, window, violating, decides)

    if any(each.rows_of(axis) for each in tried):
        return of_single_crashes(axis)
    if weakest.id == TWO_QUERIES:  # what one query does to a later one, it does to one at the same time as well
        weakest = next((each for each in summary.results if each.id == FRESH and each.rows_of(axis)), weakest)
    alone = _alone(weakest, axis, both_ways)
    crashed = min((each for each in tried if each.violated), key=weakness, default=None)
    if crashed is None or weakest.group is Group.PAIR:
        return alone
    second = of_single_crashes(crashed.violated[0])
    return alone._replace(why=f"{alone.why}; in addition, {second.why} (repair: {second.recipe.name})")


def _harm_both_ways(summary: Summary) -> str:
    # The group PAIR also has the runs with a crash loop.
    crashed = [each for each in summary.results if each.group in (Group.CRASH, Group.PAIR) and not each.unknown]
    losing, doubling = (sum(bool(each.rows_of(axis)) for each in crashed) for axis in ("lost", "duplicate"))
    both = f"rows are lost in {losing} of the runs with crashes and doubled in {doubling}"
    return both if losing and doubling else ""


def _uncrashed(axis: str, happened: str) -> Diagnosis:
    return Diagnosis("wrong without a crash", happened, FLUSH if axis == "lost" else PLAIN)


def diagnose_fault(worst: Result) -> Diagnosis:
    """Explain the run `worst`, in which a system call suffered a fault, and recommend a repair."""
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
    """Return the first series of neighbouring crash points at which a crash violates the property `axis`.

    `tried` are runs with one crash, of which at least one violates it. `points` maps their ids to their crash points.
    """
    ordered = sorted(tried, key=lambda each: points[each.id].number)
    flags = [bool(each.rows_of(axis)) for each in ordered]
    first = last = flags.index(True)
    while last + 1 < len(flags) and flags[last + 1]:
        last += 1
    places = [points[each.id] for each in ordered[first : last + 1]]
    found = Stretch(places[0], places[-1], are_cuts=all(place.cut for place in places))
    harmless = {each.id for each, is_bad in zip(ordered, flags, strict=True) if not is_bad}
    return found._replace(is_bounded=not found.opening or found.opening in harmless)


def _alone(weakest: Result, axis: str, both_ways: str) -> Diagnosis:
    what = weakest.title
    happened = f"{what}: {weakest.because}"
    match weakest.group:
        case Group.POWER:
            why = "a power cut loses what was not synced, and a later start relies on it"
            return Diagnosis("not synced", why, SYNC)
        case Group.LARGE if not weakest.evidence:
            return _uncrashed(axis, happened)
        case Group.LARGE | Group.RETRY:
            return _in_a_batch(weakest, axis, happened)
        case Group.PAIR:
            new = " (new input came after the first)" if weakest.id.startswith(GROWN) else ""
            return _recovery(f"{max(len(weakest.evidence), 2)} crashes{new}", axis, both_ways)
    return _another_start(weakest, axis, happened)


def _in_a_batch(weakest: Result, axis: str, happened: str) -> Diagnosis:
    if axis == "stuck":
        return Diagnosis("stuck on the replay", happened, FORGIVE)
    if weakest.group is Group.LARGE:
        why = f"a large batch is written in parts that become durable one by one: {weakest.title}"
        return Diagnosis("parts commit separately", why, WHOLE if axis == "fractured_read" else MARKER)
    if axis == "lost":
        return Diagnosis("attempts", f"a task that dies runs again, and rows are missing: {happened}", AFTER)
    why = f"a task that dies runs again, and the effects of its first attempt remain: {weakest.title}"
    return Diagnosis("attempts", why, OVERWRITE)


def _recovery(crashes: str, axis: str, both_ways: str) -> Diagnosis:
    if axis == "regression":
        return Diagnosis("goes back", "while a batch is replayed, readers see an older value again", MARKER)
    if axis in _TOO_EARLY:
        # Only the reading after the first crash shows whether a batch was finished.
        is_first = axis == "precommitted_read"
        return _too_early(axis, "after the first crash" if is_first else "while a batch is replayed,")
    why = f"{crashes}, each later one in the recovery from those before, do harm that no single crash did"
    if axis == "lost" and both_ways:
        return Diagnosis("recovery", f"{why}; {both_ways}", EITHER)
    return Diagnosis("recovery", why, FORGIVE if axis == "stuck" else AGAIN)


def _another_start(weakest: Result, axis: str, happened: str) -> Diagnosis:
    if axis == "stuck" and not weakest.evidence:
        return Diagnosis("stuck without a crash", happened, TOGETHER)
    for beginning, code, what, recipe in _OTHER_CRASHES:
        if weakest.id.startswith(beginning):
            return Diagnosis(code, f"{what}: {happened}", recipe)
    if weakest.id.startswith(LATER) and axis != "stuck":
        why = f"the next plain start does not recognise that everything is done: {weakest.because}"
        return Diagnosis("replay not recognised", why, OVERWRITE)
    if weakest.id.startswith((NEW_INPUT, GROWN)) and axis in _NEW_INPUT:
        code, what = _NEW_INPUT[axis]
        return Diagnosis(code, f"a crash leaves a state in which {what}: {weakest.because}", COVERS)
    if weakest.id in QUERIES and axis == "lost":
        return _of_queries(weakest)
    return Diagnosis("identity", happened, MARKER)


def _of_queries(weakest: Result) -> Diagnosis:
    if weakest.id == TWO_QUERIES:
        why = f"{weakest.title}: perhaps one writes back what it read before the other one wrote, or removes its rows"
        return Diagnosis("queries disturb each other", why, TOGETHER)
    why = f"{weakest.title}: the rows were taken for those of an earlier query, and skipped or replaced"
    return Diagnosis("key outlives the query", why, QUERY)


def _between(axis: str, window: Stretch, bad: Sequence[Result], decides: Callable[[str], bool]) -> Diagnosis:
    if axis == "lost":
        why = f"the sink returned before its rows were safe: after [{window.opened}] the engine repeats nothing"
        return Diagnosis("returned too early", why, FLUSH)
    if axis == "stuck":
        why = f"the next start fails at what a crash {window.begun} left: {bad[0].stuck}"
        return Diagnosis("stuck on the replay", why, FORGIVE)
    if axis == "regression":
        why = f"after a crash {window} readers see an older value again"
        return Diagnosis("goes back", why, MARKER)
    if axis in _TOO_EARLY:
        return _too_early(axis, f"after a crash {window.begun}" if window.first.cut else window.begun)
    return _repeated(window, decides)


def _too_early(axis: str, when: str) -> Diagnosis:
    recipe = WHOLE if axis == "fractured_read" else OVERWRITE
    return Diagnosis("readable too early", f"{when} {_TOO_EARLY[axis]}", recipe)


def _repeated(window: Stretch, decides: Callable[[str], bool]) -> Diagnosis:
    at_server = _at_server(window)
    if window.last.name == EXIT or decides(window.last.name):
        begun = f"after a crash {window.begun}" if window.first.cut else window.begun
        why = f"{begun} nothing tells the next start that its rows are there: it writes them again"
        return Diagnosis("replay not recognised", why, at_server or OVERWRITE)
    there = "the rows are there, and perhaps nothing tells the next start so"
    if at_server is not None:
        why = f"a crash {window} does harm: {there}"
        return Diagnosis("marker after the data", why, at_server)
    return Diagnosis("marker after the data", f"{_apart(window)}; {there}", MARKER)


def _at_server(window: Stretch) -> Recipe | None:
    """Return the repair if the call `window.opening` gives a server rows outside of a transaction; otherwise None."""
    opening = _Step.of(window.opening)
    _, _, word = opening.where.rpartition(" ")
    if opening.kind != CallKind.SEND or word not in (*_HTTP, "DELETE", opening.where):
        return None
    return KEY if word in _HTTP and window.is_bounded else SERVER


def _lost(window: Stretch, within: Sequence[Result], both_ways: str, files: Mapping[str, str]) -> Diagnosis:
    apart = _apart(window)
    if both_ways:
        return Diagnosis("not one step", f"{apart}; {both_ways}", EITHER)
    opening, closing = _Step.of(window.opening), _Step.of(window.closing)
    is_log = closing.where.endswith(_SQLITE)
    opened, closed = files.get(window.opening) or opening.where, files.get(window.closing) or closing.where
    # After a crash between two writes to one file, the rest of a row or of a compressed block may be missing. If the
    # next start appends to that, a row that could be read becomes unreadable, although nothing removes it.
    is_torn = opening.kind == closing.kind == CallKind.WRITE and opened == closed
    if not is_torn and all(set(each.rows_of("lost")) & set(each.rows_of("aborted_read")) for each in within):
        why = f"{apart}; the next start removes rows that could be read, and does not write them again"
        return Diagnosis("rows removed for good", why, UNDO)
    if opening.kind in _GROWING and closing.kind == CallKind.WRITE and opened == closed and not is_log:
        return _in_one_file(window, closing.where)
    if closing.kind in _REMOVING and not is_log:
        return Diagnosis("not one step", f"{apart}; rows are missing at the end", STEP)
    why = f"{apart}; by then the input counts as read, and its rows are not written"
    return Diagnosis("marker before the data", why, AFTER)


def _in_one_file(window: Stretch, file: str) -> Diagnosis:
    if not window.is_bounded:
        unsure = f"rows are missing at the end (no harmless crash before [{window.opening}] was tried)"
        return Diagnosis("not one step", f"{_apart(window)}; {unsure}", STEP)
    harm = f"takes the part of {file} that is there for the whole"
    if window.are_cuts:
        harm = f"appends to an unfinished row, or {harm}"
    return Diagnosis("part taken for the whole", f"{_apart(window)}; perhaps the next start {harm}", WHOLE)


def _apart(window: Stretch) -> str:
    if window.are_cuts:
        return f"a crash {window} does harm"
    one, other, both = window.first.line if window.first.cut else window.first.line_before, window.last.line, ""
    if one is not None and other is not None and one.stack[0] == other.stack[0]:
        callers = next((pair for pair in zip(one.stack, other.stack, strict=False) if pair[0] != pair[1]), ())
        is_clear = len({Path(file).name for file, _ in callers}) == len({file for file, _ in callers})
        named = " and ".join(f"{Path(file).name if is_clear else file}:{number}" for file, number in callers)
        both = f" (called from {named})" if named else " (both by the same line of Python)"
    return f"a crash {window} does harm: they must be one step{both}"
