"""Choose the points at which the test kills the pipeline: before each effect of a run without a crash, and at its end.

The point after one effect is the point before the next; the point after the last effect is the command's own end. A
sync changes nothing that a SIGKILL could lose, so the state just before a sync is the state before the effect that
follows, and the test of SIGKILL needs no point there.
"""

import math
import random
import re
from collections import Counter, defaultdict
from collections.abc import Container, Hashable, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from labkit.crashtest.blackbox.effects import Effect
from labkit.crashtest.blackbox.sqlite_files import JOURNAL, LOG
from labkit.host.changed_lines import ChangedLines
from labkit.host.python_line import Line
from labkit.host.syscalls.calls import Call, CallKind

PAGE = 4096
"""The bytes of a page of memory. Linux may end a write between two pages if its thread was killed meanwhile."""
_BLOCKS = (512, 1024, 2048)
"""Usual sizes of aligned blocks, none of which crosses a page. 4096 is missing: many unaligned buffers have it."""
SINCE_POINTS = 3
"""The number of crash points that a test of changed lines (`--since`) tries although their lines have not changed."""
SEED = 7

EXIT = "exit"
"""The name of the crash point at the command's own end, or, if it never ends, when all rows can be read."""

WITHIN = "within "
"""The beginning of the name of a crash point within a write; the name of the write follows."""
FIRST, LAST, ROW_END, LAST_ROW = ", first page", ", last page", ", end of a row", ", in the last row"
"""How such a name ends, by where the write is cut; without one of these ends, the cut is near the middle."""
LOOP = 5
"""The number of crashes, one after the other at the same point, in a run with a crash loop."""
_LINES = 3
"""How many of the points between two lines of Python are as important as a point before a rename; see `choose`."""
THEN = " then "
"""The separator, in the id of a run, between the crash point and the second crash point during the recovery."""

_CREATED = re.compile("^truncate")
_NEWLINE = ord("\n")
_DECIDING = frozenset({CallKind.RENAME, CallKind.LINK, CallKind.UNLINK, CallKind.TRUNCATE})


class Extent(NamedTuple):
    """How many runs of each kind a crash test plans at most. If time is left, the test makes more runs."""

    points: int
    """The runs with one crash."""
    pairs: int
    """The pairs that are not directed."""
    directed: int
    """The directed pairs; see `Recoveries.directed`."""
    grown: int
    """The crash points at which new input comes before the restart."""
    loops: int
    outages: int
    """The points at which the power fails, each of which leaves at most five states."""
    faults: int
    large: int
    seconds: float
    """The time budget for all runs in seconds, raised if the planned runs need more."""
    states: int
    """The runs that, after several crashes, restart from a state of the files from which no other run did."""
    ended: int
    """The runs with plain starts after a recovery that left other files than the one at the command's end."""
    paused: int
    """With `--pause`, the runs with a pause between a crash and the restart."""
    unread: int
    """The runs in which nobody reads before the end, because the reader changed files after a crash."""
    late: int
    """The runs in which a call is held while other threads go on, and only then everything is killed."""
    later: int = 3
    """The plain starts after a recovery, in one run."""
    conditions: bool = True
    """Whether the test also tries conditions, situations that no sink withstands without help."""
    every_state: bool = True
    """Whether the guarantee needs a restart from every known state of the files."""


QUICK = Extent(
    points=12,
    pairs=3,
    directed=6,
    grown=3,
    loops=1,
    outages=4,
    faults=12,
    large=2,
    seconds=170.0,
    states=0,
    ended=1,
    paused=2,
    unread=2,
    late=2,
)
WHOLE = Extent(
    points=60,
    pairs=8,
    directed=40,
    grown=40,
    loops=3,
    outages=12,
    faults=60,
    large=4,
    seconds=900.0,
    states=300,
    ended=6,
    paused=8,
    unread=300,
    late=12,
)
UNLIMITED = 1_000_000
EXHAUSTIVE = WHOLE._replace(states=UNLIMITED, unread=UNLIMITED, ended=UNLIMITED, seconds=math.inf)
# Each run of a Spark sink costs a start of Spark for each start of the job.
QUICK_SINK = QUICK._replace(
    points=6, pairs=0, directed=1, loops=0, large=1, seconds=60.0, later=1, ended=0, conditions=False
)._replace(unread=0, late=0, every_state=False)
WHOLE_SINK = WHOLE._replace(pairs=0, states=4, loops=2, later=1, ended=0, unread=3, late=0, every_state=False)


class Point(NamedTuple):
    """A crash point: before a system call with a durable effect, within a write, or at the command's end."""

    name: str
    number: int
    """The position of the point among all points of the run without a crash, from 1."""
    after: str = ""
    """The name of the last effect before this point, or empty. Syncs count only if they have points of their own."""
    line: Line | None = None
    """The line of Python that makes the effect `name`; None if it is not known."""
    line_before: Line | None = None
    """The line of Python that makes the effect `after`; None if it is not known."""
    cut: int = 0
    """The bytes of the write that reach the file before the crash; 0 for a crash before the effect."""

    @property
    def effect(self) -> str:
        """The name of the system call that a crash here prevents, or, if it is a write, lets happen only in part.

        At the command's end, this is `exit`.
        """
        return effect_of(self.name)

    @property
    def kind_of_cut(self) -> str:
        """The end of the point's name, which says where the crash cuts a write, such as `, first page`.

        It is empty for a cut in the middle of the write.
        """
        return self.name.removeprefix(WITHIN).removeprefix(self.effect)

    @property
    def place(self) -> str:
        """The name of the system call after this point, followed by its line of Python if that is known."""
        return f"{self.name} ({self.line})" if self.line else self.name

    @property
    def place_before(self) -> str:
        """The name of the system call before this point, followed by its line of Python if that is known."""
        return f"{self.after} ({self.line_before})" if self.line_before else self.after

    def is_called(self, name: str) -> bool:
        """Return whether `name` means this point: it is the point's own name, or a line such as `job.py:16`."""
        return name == self.name or (
            self.line is not None and name == f"{Path(self.line.file).name}:{self.line.number}"
        )

    def has_changed(self, changed: ChangedLines) -> bool:
        """Return whether a changed line of Python makes, or leads to, the system call before or after this point.

        A line leads to a call if it is one of the nearest `MOST_CALLERS` callers of the line that makes the call.
        """
        lines = [line for line in (self.line, self.line_before) if line]
        return any(changed.include(*place) for line in lines for place in line.stack)

    def __str__(self) -> str:
        if self.name == EXIT:
            return f"at the end of the command, after {self.place_before or 'nothing'}"
        return f"{self.place}, after {self.cut} of its bytes" if self.cut else f"before {self.place}"


def borders(call: Call) -> range:
    """Return, as a range, the byte counts at which SIGKILL may cut a write short.

    Linux ends a write only between two pages of memory. The range is empty if the call is no write, or if the write
    lies within one page. Source: `generic_perform_write` in mm/filemap.c.
    """
    if call.kind is not CallKind.WRITE or call.offset < 0 or call.name == "ioctl":
        return range(0)
    return range(PAGE - call.offset % PAGE, call.size, PAGE)


MOST_REWRITTEN = 8
"""The pairs tried at most because a recovery wrote equal files in another order; there may be very many."""
BORDERS = 3
"""The number of borders between pages at which the test cuts one write: the first, one near the middle, the last."""


def cuts(call: Call) -> dict[str, int]:
    """Return up to five places at which the test cuts a write: a dict from the place's name to a number of bytes.

    The number says how many bytes of the write reach the file. Three places are borders between memory pages, because
    Linux may end the write of a killed process there. If the write is a text with one row per line, there are two more
    places: the end of a row, and a place within the last row. A page border could lie there if the text began at
    another offset of the file.

    A write within one page crosses no border, so only the two places in a text are left. Even these are left out if
    the write begins at offset 0 or is an aligned block, because then its offset is the same in every run.
    """
    pages = borders(call)
    places = {}
    if pages:
        places = {"": pages[len(pages) // 2], FIRST: pages[0], LAST: pages[-1]}
    is_block = call.size in _BLOCKS and call.offset % call.size == 0
    if pages or (call.offset > 0 and not is_block):
        ends = _row_ends(call.content)
        if len(ends) > 1:
            middle = [end for end in ends if end in pages] or ends[:-1]
            places |= {ROW_END: middle[len(middle) // 2], LAST_ROW: (ends[-2] + ends[-1]) // 2}
    distinct = {size: kind for kind, size in reversed(places.items())}
    return {kind: size for kind, size in places.items() if distinct[size] == kind}


def _row_ends(content: bytes | None) -> list[int]:
    text = content or b""
    with suppress(UnicodeDecodeError):
        if b"\0" not in text and text.decode():
            ends = [place + 1 for place, byte in enumerate(text) if byte == _NEWLINE]
            return ends if ends and ends[-1] == len(text) else [*ends, len(text)]
    return []


def effect_of(name: str) -> str:
    """Return the name of the system call that a crash at the point `name` prevents, or lets happen only in part."""
    if not name.startswith(WITHIN):
        return name
    name = name.removeprefix(WITHIN)
    return next((name.removesuffix(kind) for kind in (FIRST, LAST, ROW_END, LAST_ROW) if name.endswith(kind)), name)


def points(effects: Sequence[Effect], *, syncs: bool = False, within: bool = False) -> list[Point]:
    """Return every crash point of a run in the order of the run; the last is the command's end.

    With `syncs`, there is also a point before each sync. With `within`, there are also points in each write that
    SIGKILL may cut short.
    """
    places: list[Point] = []
    after, line_before = "", None
    for effect in effects:
        if effect.kind is CallKind.EXIT or (effect.kind is CallKind.SYNC and not syncs):
            continue
        places.append(Point(effect.name, len(places) + 1, after, effect.line, line_before))
        for kind, size in (effect.cuts or cuts(effect.call)).items() if within else ():
            name = f"{WITHIN}{effect.name}{kind}"
            places.append(Point(name, len(places) + 1, after, effect.line, line_before, size))
        after, line_before = effect.name, effect.line
    return [*places, Point(EXIT, len(places) + 1, after, None, line_before)]


def behind_sync(effects: Sequence[Effect], name: str) -> str:
    """Return the name of the crash point that the test uses in place of the point before the sync `name`.

    labkit never kills just before a sync, because a sync does not change the files that a kill leaves. Instead it uses
    the next point that is not before a sync. The result is empty if no sync has this name.
    """
    places = iter(points(effects, syncs=True))
    kinds = {each.name: each.kind for each in effects}
    if kinds.get(name) is not CallKind.SYNC or all(point.name != name for point in places):
        return ""
    return next(point.name for point in places if kinds.get(point.name) is not CallKind.SYNC)


def choose(
    effects: Sequence[Effect],
    shown: Iterable[str],
    most: int,
    last: Container[str] = (),
    *,
    syncs: bool = False,
    alike: Mapping[str, Hashable] = {},
    with_cut: bool = False,
) -> list[Point]:
    """Return the `most` most important crash points of a run, or all, in the order in which the run reaches them.

    `effects` are the system calls of the run, and `shown` has the names of those that changed the rows that the reader
    returned. Calls whose names differ only in numbers form a family. A crash point has one of four kinds:

    0. just after a call in `shown`, or after another call of its family; also the point at the command's end;
    1. before a call that can make rows visible at once, such as a rename, and just after a call that emptied a file;
    2. before any other call, or within a write;
    3. before a sync (only with `syncs`).

    Points of the same kind and family get ranks: 0 for the last of them in the run, 1 for the first, 2 for the second,
    and 3, 4, ... in random order for the others. The most important points are those with the smallest sum of kind and
    rank. If sums are equal, points of rarer families come first.

    Some points between two different lines of Python move up: for each pair of lines of which one makes a call and the
    other the next call, the last point between such calls. Of these points, the three that come last in the run get a
    sum of at most 1, the three before them a sum of at most 2, and so on. They come before the other points with this
    sum. In the same way, but counted apart, points move up that lie between two calls of one helper function; the
    effects there have the same line, and other lines that call it.

    The argument `last` has the masked paths, such as `offsets/<n>`, of unimportant files: points before calls on these
    come after all others. Of points whose names have equal values in `alike`, only the most important one is chosen.

    With `with_cut`, one more point is chosen if none of the others cuts a write: the most important point within the
    last row of a text, which shows whether the program appends to a torn row, or else within another write. Writes to
    unimportant files do not count, and neither do those to SQLite's journals and write-ahead logs, because SQLite
    withstands a cut there.
    """
    ranking = Importance(effects, families(effects, shown), last)
    ordered = one_of_each(ranking.ordered(points(effects, syncs=syncs, within=not syncs)), alike)
    chosen = ordered[:most]
    cut = [point for point in ordered if point.cut and ranking.may_harm(point)]
    if with_cut and not any(point in chosen for point in cut):
        chosen += sorted(cut, key=lambda point: point.kind_of_cut != LAST_ROW)[:1]
    return sorted(chosen, key=lambda point: point.number)


def one_of_each(places: Iterable[Point], alike: Mapping[str, Hashable]) -> list[Point]:
    """Return the first point for each value in `alike`, and also every point that has no value there."""
    first: dict[Hashable, Point] = {}
    for each in places:
        first.setdefault(("alike", alike[each.name]) if each.name in alike else each.name, each)
    return list(first.values())


def families(effects: Iterable[Effect], shown: Iterable[str]) -> frozenset[str]:
    """Return the families of those `effects` whose names are in `shown`, such as `rename offsets/<n>`."""
    names = set(shown)
    return frozenset(each.family for each in effects if each.name in names)


class Importance:
    """Orders the crash points of one start by importance, as `choose` explains."""

    def __init__(self, effects: Iterable[Effect], showing: Container[str], last: Container[str] = ()) -> None:
        """Prepare to rank the points of `effects`.

        `showing` has the families of calls (calls whose names differ only in numbers) that change the reader's rows.
        `last` has the paths of unimportant files, with numbers masked, such as `offsets/<n>`: points before calls on
        these files rank last.
        """
        self._effects = {each.name: each for each in effects}
        self._last = last
        self._follows_change: set[str] = set()
        """The names of the crash points just before which an effect changed the reader's rows."""
        self._finds_empty: set[str] = set()
        """The names of the crash points just before which an effect emptied a file that is not written again yet."""
        changed = emptied = False
        for each in self._effects.values():
            if each.kind is not CallKind.SYNC and each.where not in last:
                if changed:
                    self._follows_change.add(each.name)
                if emptied:
                    self._finds_empty.add(each.name)
                changed, emptied = False, each.kind is CallKind.TRUNCATE
            changed = changed or each.family in showing

    def of(self, point: Point) -> int:
        """Return the kind of a point, from 0 (most important) to 3; `choose` describes the four kinds."""
        if point.name == EXIT or point.name in self._follows_change:
            return 0
        kind = self._effects[point.effect].kind
        if point.cut:
            return 2
        if kind in _DECIDING or kind is CallKind.SEND or point.name in self._finds_empty:
            return 1
        return 3 if kind is CallKind.SYNC else 2

    def ordered(self, places: Iterable[Point]) -> list[Point]:
        """Return the points with the most important one first."""
        places = list(places)
        groups: Mapping[tuple[str, int], list[Point]] = defaultdict(list)
        size: Counter[str] = Counter()
        for point in places:
            groups[self._family(point), self.of(point)].append(point)
            size[self._family(point)] += 1
        ranks: dict[Point, tuple[bool, int, int, int, int]] = {}
        for (family, importance), group in groups.items():
            for rank, point in enumerate(_by_rank(group)):
                # The first two ranks of deciding effects come before the first rank of all others.
                ranks[point] = (self._is_last(point), rank + importance, size[family], importance, point.number)
        lines, calls = self._between_lines(places)
        for between in (lines, calls):  # apart, so that the many calls of a helper do not displace other points
            # Later ones come first: at the end of a batch, the work is published and noted.
            for place, point in enumerate(sorted(between, key=lambda point: -point.number)):
                rank = 1 + place // _LINES
                ranks[point] = min(ranks[point], (self._is_last(point), rank, -point.number, 1, point.number))
        return sorted(ranks, key=ranks.__getitem__)

    def may_harm(self, cut: Point) -> bool:
        """Return whether the file whose write is cut at this point is important, and no log of a database of SQLite."""
        effect = self._effects[cut.effect]
        where, files = effect.where, {each.where for each in self._effects.values()}
        is_named_so = any(where.endswith(log) and where.removesuffix(log) in files for log in (JOURNAL, LOG))
        is_log = is_named_so and not _row_ends(effect.call.content)  # SQLite's logs are never text
        return not self._is_last(cut) and not is_log

    def _is_last(self, point: Point) -> bool:
        return point.name != EXIT and self._effects[point.effect].where in self._last

    def _between_lines(self, places: Iterable[Point]) -> tuple[set[Point], set[Point]]:
        """Return, for each pair of lines of Python that make two calls in a row, the last point between such calls.

        The second set has such points for pairs that differ only in the lines that call a helper function.
        """
        lines: dict[Hashable, Point] = {}
        calls: dict[Hashable, Point] = {}
        for each in places:
            one, other = each.line_before, each.line
            is_whole = not each.cut and each.name != EXIT and self._effects[each.effect].kind is not CallKind.SYNC
            if one is not None and other is not None and is_whole:
                if one.stack[0] != other.stack[0]:
                    lines[one.stack[0], other.stack[0]] = each
                elif one.stack != other.stack:
                    calls[one.stack, other.stack] = each
        return set(lines.values()), set(calls.values())

    def _family(self, point: Point) -> str:
        if point.name == EXIT:
            return EXIT
        return (WITHIN if point.cut else "") + self._effects[point.effect].family


def _by_rank(group: Sequence[Point]) -> list[Point]:
    *others, last = group
    rest = others[2:]
    random.Random(SEED).shuffle(rest)
    return [last, *others[:2], *rest]


class Pair(NamedTuple):
    """Two crash points for one run: one for the first crash, and one for a second crash during the recovery."""

    first: Point
    second: Point

    @property
    def name(self) -> str:
        """The id of the run with the two crashes."""
        return name_of(self)


Crashes = tuple[Point, ...]
"""The crash points of one run in order: the first is in the first start, each other one in the next restart."""


def name_of(crashes: Crashes) -> str:
    """Return the id of the run with these crashes, such as `write a #1 then rename b #1`."""
    return THEN.join(point.name for point in crashes)


class Pairs(NamedTuple):
    """The pairs of crashes that a test tries, and the names of all possible pairs."""

    chosen: tuple[Pair, ...]
    """The directed pairs, the most informative first, then a random sample of the others."""
    every: frozenset[str]
    """The names of all pairs that the recoveries make possible."""
    directed: frozenset[str]
    """The names of all directed pairs, including those that were not chosen."""


class States(NamedTuple):
    """The states of a pipeline's files before each system call of its restarts.

    A hashable value represents each state. Two of these values are equal if the files were in the same state.
    """

    before: Mapping[Crashes, Mapping[str, Hashable]]
    """The states before each effect of a restart, by the crashes before it and the name of the effect."""
    known: frozenset[Hashable]
    """The states from which runs with one crash recover."""
    is_whole: bool
    """Whether the pipeline keeps nothing but files, so that equal states need one run only."""
    orders: Mapping[Crashes, Mapping[str, Hashable]] = {}
    """The orders in which the files of `before` were last written."""
    written: frozenset[tuple[Hashable, Hashable]] = frozenset()
    """The states of `known`, each with the order in which its files were last written."""
    parts: Mapping[Hashable, frozenset[Hashable]] = {}
    """The parts of a state, one for each changed file; a state that is missing here is a single part."""
    tried: frozenset[Hashable] = frozenset()
    """The states from which a run restarted. If a reader changed files after a crash, both states count."""
    shapes: Mapping[Hashable, Hashable] = {}
    """What is left of a state without its numbers; a state that is missing here is its own shape."""
    restarted: int = 0
    """The number of states from which a run restarted, each counted as the restart found it."""

    def after(self, crashes: Crashes) -> Hashable | None:
        """Return the state of the files at the last of the given two or more crashes; None if it is not known."""
        return self.before.get(crashes[:-1], {}).get(crashes[-1].name)

    def shape_of(self, state: Hashable) -> Hashable:
        return self.shapes.get(state, state)

    def parts_of(self, state: Hashable) -> frozenset[Hashable]:
        return self.parts.get(state, frozenset([state]))

    def parts_seen(self, tried: Iterable[Crashes]) -> frozenset[Hashable]:
        """Return the parts of all states from which runs recover: the runs with one crash and the runs in `tried`."""
        return frozenset().union(*map(self.parts_of, [*self.known, *map(self.after, tried)]))


NO_STATES = States({}, frozenset(), is_whole=False)


def _write(effect: Effect) -> tuple[str, int, int]:
    return effect.family, effect.call.size, effect.call.offset


class Recoveries:
    """Decides where a further crash is worthwhile, from the restarts that a test has seen.

    A pair of crash points is *directed* if there is a reason why it may do harm: for example, the second crash is at a
    call that only restarts make, or at the same point as the first crash. `directed` lists the reasons. Of all other
    pairs, a random sample is tried.
    """

    def __init__(
        self,
        recoveries: Mapping[Crashes, Sequence[Effect]],
        healthy: Sequence[Effect],
        showing: Container[str] = (),
        states: States = NO_STATES,
    ) -> None:
        """Store the effects of the restarts that the test has seen.

        `recoveries` maps the crash points of each run to the effects of the restart after its last crash. `healthy` are
        the effects of the run without a crash. `showing` has the families (names without numbers) of the calls that
        change the reader's rows.
        """
        first = {each[0]: effects for each, effects in recoveries.items() if len(each) == 1}
        self._recoveries = dict(sorted(first.items(), key=lambda item: item[0].number))
        self._restarts = {each: effects for each, effects in recoveries.items() if len(each) > 1}
        self._healthy, self._showing = healthy, showing
        self._ranking = Importance(healthy, showing)
        self._states = states

    def pairs(self, most: int, most_directed: int | None = None) -> Pairs:
        """Return the pairs of crashes to try: at most `most_directed` directed ones, and at most `most` others.

        Without `most_directed`, all directed pairs are tried. The others are a random sample.
        """
        directed = self.directed()
        chosen = directed[:most_directed]
        ranks: dict[Pair, int] = {}
        for first, effects in self._recoveries.items():
            ranking = Importance(effects, self._showing)
            ranks |= {Pair(first, second): ranking.of(second) for second in points(effects)[:-1]}
        every = frozenset(each.name for each in [*ranks, *directed])
        sample = _sample(ranks, most, frozenset(chosen))
        return Pairs((*chosen, *sample), every, frozenset(each.name for each in directed))

    def directed(self) -> list[Pair]:
        """Return the directed pairs, in the order in which a test tries them.

        1. A few pairs whose second crash is at a call that only restarts make.
        2. One pair with a crash in each of two batches, and pairs that crash twice at the same point.
        3. The other pairs whose second crash is at a call that only restarts make.
        4. Other pairs that leave the files in a state from which no other run recovers. If the restarts after several
           first crashes make the same calls, only the last of these first crashes is used here; `new_states` returns
           the pairs with the earlier ones.
        5. Pairs whose second crash cuts a write that only restarts make.
        6. A few pairs that leave the files in a known state, but last written in another order.

        If all state of the pipeline is in files, a pair of the groups 1 to 3 is left out if another run already
        recovers from the state in which the pair leaves the files.
        """
        repairs = self.repairs()
        half = QUICK.directed // 2
        ordered = [*repairs[:half], *self.two_batches(), *self.twice(), *repairs[half:]]
        known = set(self._states.known)
        last = self._last_alike()
        chosen: dict[Pair, None] = {}
        for number, pair in enumerate([*ordered, *(pair for pair in self.by_state() if pair.first in last)]):
            state = self._states.after(pair)
            has_reason = number < len(ordered) and not (self._states.is_whole and state is not None)
            if has_reason or state not in known:
                chosen[pair] = None
                known.add(state)
        return [*chosen, *(Pair(*each) for each in self.torn(1)), *self.rewritten()]

    def new_states(self, made: Container[str] = ()) -> list[Crashes]:
        """Return runs that restart from a state of the files from which no run has restarted.

        Each one has one crash more than a run that was made. `made` has the ids of runs that were made or tried in
        vain; the result contains none of them. The order is:

        1. Runs with a third crash before a kind of call that no earlier start made, if the pipeline also keeps state
           elsewhere.
        2. Runs that leave files which differ in more than numbers from those of all earlier runs. Otherwise a counter
           that each start raises would lead to ever longer series of crashes.
        3. Runs that leave a file with contents that no earlier run found.
        4. Other runs that leave a new state.
        5. Runs that cut a write that only restarts make. Nobody knows before the run which state this leaves.

        In the groups 2 to 4, the first runs have their last crash before different calls.
        """
        seen = self._states.parts_seen(self._restarts)
        known = {None, *self._states.known, *map(self._states.after, self._restarts)}
        met = {EXIT, *(each.family for effects in (self._healthy, *self._recoveries.values()) for each in effects)}
        met |= {self._family(at) for at in self._restarts if len(at) > 2}
        shapes = {self._states.shape_of(state) for state in known}
        ranks: dict[Crashes, tuple[bool, bool, bool, int, int]] = {}
        turns: Counter[tuple[bool, bool, str]] = Counter()
        for crashes, effects in self._all_restarts().items():
            ranking = Importance(effects, self._showing)
            for point in points(effects):
                further = (*crashes, point)
                state, family = self._states.after(further), self._family(further)
                is_usual = self._states.is_whole or len(crashes) != 2 or family in met
                if name_of(further) not in made and not (is_usual and state in known):
                    met.add(family)
                    known.add(state)
                    shape = self._states.shape_of(state)
                    newness = shape in shapes, self._states.parts_of(state) <= seen
                    shapes.add(shape)
                    ranks[further] = is_usual, *newness, turns[*newness, point.name], ranking.of(point)
                    turns[*newness, point.name] += 1
        return [*sorted(ranks, key=ranks.__getitem__), *(each for each in self.torn() if name_of(each) not in made)]

    @property
    def is_whole(self) -> bool:
        """Whether the pipeline keeps nothing but files that labkit can compare."""
        return self._states.is_whole

    @property
    def restarted(self) -> int:
        """The number of different states of the files from which a run restarted."""
        return self._states.restarted

    def left(self) -> set[Hashable]:
        """Return the states in which a crash during a restart leaves the files, and from which no run has restarted."""
        return {state for each in self._states.before.values() for state in each.values()} - self._states.tried

    def new_in(self) -> list[str]:
        """Return the files that have, in the states of `left`, contents or attributes that no restart has found.

        The files that are new in the most states come first.
        """
        seen = self._states.parts_seen(self._restarts)
        files: Counter[str] = Counter()
        for state in self.left():
            files.update({part[0] for part in self._states.parts_of(state) - seen if isinstance(part, tuple)})
        return sorted(files, key=lambda file: (-files[file], file))

    def _all_restarts(self) -> dict[Crashes, Sequence[Effect]]:
        return {**{(first,): effects for first, effects in self._recoveries.items()}, **self._restarts}

    def _family(self, crashes: Crashes) -> str:
        """Return the family (the name without numbers) of the call before which the last of these crashes comes."""
        found = {each.name: each.family for each in self._all_restarts().get(crashes[:-1], ())}
        return found.get(crashes[-1].effect, EXIT)

    def ended_otherwise(self) -> list[Crashes]:
        """Return the crashes that lead to each unusual final state of the files, the most important ones first.

        The final state is the one in which the recovery from these crashes left the files. It is unusual if the
        recovery from a crash at the command's end leaves another state. Of several runs that lead to the same final
        state, the result contains only one, if possible with a single crash. It contains no crash within a write.
        """
        ends = {at: state[EXIT] for at, state in self._states.before.items() if EXIT in state}
        whole = {at: end for at, end in ends.items() if not any(point.cut for point in at)}
        known = {end for at, end in ends.items() if [point.name for point in at] == [EXIT]}
        ordered = self._ranking.ordered(at[0] for at in whole if len(at) == 1)
        chosen: list[Crashes] = []
        for at in [*((point,) for point in ordered), *(at for at in whole if len(at) > 1)]:
            if whole[at] not in known:
                known.add(whole[at])
                chosen.append(at)
        return chosen

    def by_state(self) -> list[Pair]:
        """Return the pairs of crashes for which earlier runs show the state of the files after the second crash.

        The pairs are sorted by the importance of the second point, and then by that of the first one.
        """
        ranks: dict[Pair, tuple[int, int, int, int]] = {}
        for first, effects in self._recoveries.items():
            ranking = Importance(effects, self._showing)
            for second in points(effects):
                pair = Pair(first, second)
                if self._states.after(pair) is not None:
                    ranks[pair] = (ranking.of(second), self._ranking.of(first), first.number, second.number)
        return sorted(ranks, key=ranks.__getitem__)

    def _last_alike(self) -> frozenset[Point]:
        """Return the points of first crashes; of several whose restarts make the same calls, only the last one.

        The crashes may have left different files, such as a temporary one, but this made no difference to the calls.
        When labkit compares the calls, it ignores syncs, and treats the creation and the emptying of a file as the same
        call.
        """
        same: dict[tuple[tuple[str, int], ...], Point] = {}
        for first, effects in self._recoveries.items():
            done = [each for each in effects if each.kind is not CallKind.SYNC]
            same[tuple((_CREATED.sub("create", each.name), each.call.size) for each in done)] = first
        return frozenset(same.values())

    def rewritten(self) -> list[Pair]:
        """Return up to `MOST_REWRITTEN` pairs that leave the files in a known state, but last written in another order.

        A program that takes the newest file for the right one can tell these states apart.
        """
        known = set(self._states.written)
        chosen, last = [], self._last_alike()
        for pair in sorted(self.by_state(), key=lambda pair: pair.first not in last):
            state = self._states.after(pair)
            order = self._states.orders.get((pair.first,), {}).get(pair.second.name)
            if state in self._states.known and order is not None and (state, order) not in known:
                known.add((state, order))
                chosen.append(pair)
        return chosen[:MOST_REWRITTEN]

    def torn(self, most_crashes: int | None = None) -> list[Crashes]:
        """Return the runs whose last crash cuts a write that only restarts make, one for each place of the cut.

        Only restarts make a write if the run without a crash has no write of the same size at the same offset of the
        same file. Files whose names differ only in numbers count as the same file. At most `most_crashes` crashes come
        before the restart in which the write is cut.
        """
        known = set(map(_write, self._healthy))
        chosen = []
        for crashes, effects in self._all_restarts().items():
            if most_crashes is None or len(crashes) <= most_crashes:
                for point in points(effects, within=True):
                    effect = next((each for each in effects if each.name == point.effect), None)
                    if point.cut and effect is not None and _write(effect) not in known:
                        chosen.append((*crashes, point))
                known |= set(map(_write, effects))
        return chosen

    def repairs(self) -> list[Pair]:
        """Return the pairs of crashes whose second crash is at a call that only restarts make.

        The pairs are grouped by the family of this call (calls whose names differ only in numbers). The result takes
        the groups in turn, the smallest one first: one pair of each group, then a second pair of each, and so on. If
        the restarts after several first crashes make the same calls, only the last of these first crashes is used.
        """
        usual = {each.name for each in self._healthy}
        alike: dict[tuple[str, ...], Point] = {}
        for first, effects in self._recoveries.items():
            alike[tuple(each.name for each in effects)] = first
        groups: Mapping[str, list[Pair]] = defaultdict(list)
        for first in alike.values():
            effects = self._recoveries[first]
            family = {each.name: each.family for each in effects}
            for second in points(effects)[:-1]:
                if second.name not in usual:
                    groups[family[second.name]].append(Pair(first, second))
        ranks = {
            pair: (turn, len(group), pair.first.number, pair.second.number)
            for group in groups.values()
            for turn, pair in enumerate(reversed(group))
        }
        return sorted(ranks, key=ranks.__getitem__)

    def twice(self) -> list[Pair]:
        """Return the pairs that crash at the same important point in the first start and again in the restart.

        The pair at the command's end comes last.
        """
        passed = {}
        for first, effects in self._recoveries.items():
            again = {each.name: each for each in points(effects)}
            if first.name in again and self._ranking.of(first) <= 1:
                passed[first] = again[first.name]
        ordered = sorted(self._ranking.ordered(passed), key=lambda point: point.name == EXIT)
        return [Pair(first, passed[first]) for first in ordered]

    def loops(self, most: int) -> list[Point]:
        """Return up to `most` points for crash loops, in which several starts in a row crash at the same point.

        After a crash at such a point, the restart reaches the point again. Points before calls that change rows come
        first, because a program may count its attempts at a batch before it writes the batch's rows, and skip the
        batch after several attempts.
        """
        kinds = {each.name: each.family for each in self._healthy}
        passed = [pair.first for pair in self.twice() if pair.first.name != EXIT]
        return sorted(passed, key=lambda point: kinds[point.name] not in self._showing)[:most]

    def two_batches(self) -> list[Pair]:
        """Return one pair, in a list: a crash in one batch and a second crash in a later batch; [] if there is none.

        Calls whose names differ only in numbers form a family; they count as the same call in different batches. The
        first crash is at the first important point of a family in the run without a crash. The second crash is at the
        last point of the same family in the restart. Families that change the reader's rows are preferred.
        """
        counts = Counter(each.family for each in self._healthy if each.kind is not CallKind.EXIT)
        repeated = [name for name, count in counts.items() if count > 1]
        tried = {point.name: point for point in self._recoveries}
        for family in sorted(repeated, key=lambda name: name not in self._showing):
            for place in self._at(family, self._healthy):
                first = tried.get(place.name)
                if first is None or self._ranking.of(first) > 1:
                    continue
                later = [each for each in self._at(family, self._recoveries[first]) if each.name != first.name]
                if later:
                    return [Pair(first, later[-1])]
                break
        return []

    def _at(self, family: str, effects: Sequence[Effect]) -> list[Point]:
        kinds = {each.name: each.family for each in effects}
        side = "after" if family in self._showing else "name"
        return [point for point in points(effects) if kinds.get(getattr(point, side)) == family]


def _sample(ranks: Mapping[Pair, int], most: int, done: Container[Pair]) -> list[Pair]:
    """Return a random sample, drawn with a fixed seed, of at most `most` pairs that are not in `done`.

    `ranks` maps each possible pair to the importance of its second crash point. In up to two thirds of the sample, the
    first crash is at the end of the command and the second one at an important point. The rest is spread evenly over
    the points of the first crash.
    """
    candidates = list(ranks)
    mixed = [pair for pair in random.Random(SEED).sample(candidates, len(candidates)) if pair not in done]
    telling = [pair for pair in mixed if pair.first.name == EXIT and ranks[pair] < 2]
    chosen = sorted(telling, key=lambda pair: ranks[pair])[: most - most // 3]
    by_first: dict[Point, list[Pair]] = defaultdict(list)
    for pair in mixed:
        if pair not in chosen:
            by_first[pair.first].append(pair)
    while len(chosen) < most and any(by_first.values()):
        waiting = [group for group in by_first.values() if group]
        chosen += [group.pop() for group in waiting[: most - len(chosen)]]
    return sorted(chosen, key=candidates.index)
