"""A search that outgrows a machine's memory: its states in files, in so many parts, and Spark runs what is to do.

A level is two jobs. Tasks of the first one each expand the states of a part, and leave in one file what they reach,
sorted by the parts that own it. Tasks of the second one each gather what was left for their part, sort it, and hold it
against the sorted file of all states of their part that are known; what is new is the part of the next level. So a
state costs the same however many are known, as long as levels are few beside states, and in memory is one part at a
time for each task. A level too small to be worth a task's start is worked off by this process, by the same functions.

A file has the same contents however often its task is run, so an executor that dies costs time and nothing else. The
folder must be seen by all executors under one path. Parts of states have numbers (`Packer`), which this process gives
out after each level; a state with a part that is new waits for that, as itself. Counts are those of one core, and each
trace is a shortest one; which one of several is reported may be another one. A limit ends a search between two levels.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from labkit.host import durable
from labkit.search import rows
from labkit.search.collector import without_collector
from labkit.search.files import Files
from labkit.sim.claims import Claims
from labkit.sim.explore import MAX_STATES, Exploration, Progress, Violation, expand, go_on, step_between
from labkit.sim.model import Model, Mood
from labkit.sim.packing import Packer
from labkit.sim.symmetry import Quotient
from labkit.sim.trace import make
from labkit.sim.walk import Trace
from labkit.spark.cluster import await_slots
from labkit.spark.jvm import Profile
from labkit.spark.master import check_scheduler, is_local
from labkit.spark.session import failures_in_one_sentence, session_for_a_block

T = TypeVar("T")

PREFIX = ".labkit-search-"
"""How the name of a search's folder begins. Whoever holds the folder's lock is alive."""
STATES_A_PART = 500_000
"""States of the largest part: some megabytes in the task that holds them."""
STATES_A_TASK = 4_000
"""States of a level for which it is worth to start one more task, which takes as long as to expand some hundred."""
ADMITTED_AS_ONE = 8
"""States that are compared with those that are known while one is expanded."""
_AT_ONCE = 4_096
"""States that are expanded together: among what these reach, duplicates are dropped before they have numbers."""
_JVM = Profile(("-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"), {})
"""States never pass through the JVM: it hands out tasks and hears counts."""


class _Search(NamedTuple):
    """What a task has to know: where the files are, which model, and into how many parts its states are cut."""

    files: Files
    model: str
    values: tuple[tuple[str, Any], ...]
    symmetry: bool
    parts: int


class _Step(NamedTuple):
    """What the tasks of one level have to know: bytes of a number, open claims, and whether to look at states only."""

    level: int
    width: int
    settled: frozenset[str]
    unreached: frozenset[str]
    is_last: bool


class _Expanded(NamedTuple):
    """What a task tells of a part that it has expanded; `waiting` are states that have no numbers yet."""

    part: int
    generated: int
    broken: list[tuple[str, Any]]
    unreached: list[str]
    unknown: list[tuple[int, Any]]
    waiting: int


def explore_on_spark(
    model: Model[Any], master: str, *, max_states: int = MAX_STATES, keep_going: Callable[[Progress], bool] = go_on
) -> Exploration:
    """Visits every state of a registered model, or all its classes of states.

    Raises `InvalidInput`, `JobFailed`, `ServiceUnavailable`.
    """
    check_scheduler(master)
    with (
        durable.own_folder(Path.cwd(), PREFIX) as folder,
        (folder / "driver.log").open("wb") as log,
        session_for_a_block(master, folder, 1, log, _JVM) as spark,
    ):
        if not is_local(master):
            await_slots(spark, 1)
        context = spark.sparkContext
        parts = max(2 * context.defaultParallelism, max_states // STATES_A_PART)
        search = _Search(
            Files(str(folder)), model.name, tuple(model.values.items()), isinstance(model, Quotient), min(parts, 512)
        )
        return Levels(model, search, context).explore(max_states, keep_going)


class Levels:
    """The driver's side of a search: one level after the other."""

    def __init__(self, model: Model[Any], search: _Search, context: Any) -> None:
        self.model, self.search, self.context = model, search, context
        self._packer = Packer(model)
        self._published = [0] * self._packer.width
        self._found: list[tuple[str, Any, int]] = []
        self._unreached = {claim.name for claim in model.properties() if claim.mood is Mood.SOMETIMES}

    def explore(self, max_states: int, keep_going: Callable[[Progress], bool]) -> Exploration:
        """All levels, until one is empty or a limit is reached. Raises `JobFailed`."""
        progress, stopped = Progress(1, 0, 0), ""
        sizes = self._begin()
        while any(sizes):
            generated, waiting = self._expand(progress.depth, sizes, is_last=bool(stopped))
            if stopped:
                break
            sizes = self._admit(progress.depth, sizes, waiting)
            progress = Progress(
                progress.unique + sum(sizes), progress.generated + generated, progress.depth + any(sizes)
            )
            if not any(sizes):
                break
            if progress.unique >= max_states:
                stopped = f"{max_states} states were reached"
            elif not keep_going(progress):
                stopped = "it was told to stop"
        return self._result(progress, stopped)

    def _begin(self) -> list[int]:
        """Level 0 is the initial state; how many states of it each part has."""
        number = self._packer.pack(self.model.initial())
        self._tell_codes(0)
        first = rows.keys([number], self._width)
        (owner,) = rows.owners(first, self.search.parts)
        sizes = [int(part == owner) for part in range(self.search.parts)]
        for part, size in enumerate(sizes):
            mine = first[:size]
            self.search.files.save(mine, "known", 0, part)
            self.search.files.save(rows.pairs(mine, mine), "level", 0, part)
        return sizes

    def _tell_codes(self, level: int) -> None:
        self._width = rows.width_of(self._packer.bits)
        self._published, news = self._packer.news(self._published)
        self.search.files.dump(news, "codes", level)

    def _expand(self, level: int, sizes: Sequence[int], *, is_last: bool) -> tuple[int, dict[int, int]]:
        """The states of a level are looked at and, if it is not the last one, expanded.

        How many were generated, and how many of each part's have no numbers yet.
        """
        step = _Step(
            level, self._width, frozenset(name for name, _, _ in self._found), frozenset(self._unreached), is_last
        )
        parts = [part for part, size in enumerate(sizes) if size]
        told = self._run(partial(_expanded, self.search, step), parts, sum(sizes))
        self._note(told, level)
        for field, value in (each for one in told for each in one.unknown):
            self._packer.learn(field, value)
        self._tell_codes(level + 1)
        waiting = {one.part: one.waiting for one in told if one.waiting}
        return sum(one.generated for one in told), waiting

    def _admit(self, level: int, sizes: Sequence[int], waiting: dict[int, int]) -> list[int]:
        """What the states of a level reached is compared with what is known; how many new ones each part has."""
        senders = [("sent", part) for part, size in enumerate(sizes) if size]
        senders += [("late", part) for part in waiting]
        self._run(
            partial(_numbered, self.search, level, self._width), list(waiting), sum(waiting.values()) // ADMITTED_AS_ONE
        )
        work = partial(_admitted, self.search, level, self._width, senders)
        parts = range(self.search.parts)
        fresh = self._run(work, parts, sum(sizes) // ADMITTED_AS_ONE)
        done = [*senders, *(("waiting", part) for part in waiting)]
        for kind, part in [*done, *(("known", part) for part in parts)]:
            self.search.files.remove(kind, level, part)
        return fresh

    def _run(self, work: Callable[[int], T], parts: Sequence[int], states: int) -> list[T]:
        """Does some work of so many states for these parts: as tasks, or here if it is not worth that."""
        tasks = min(states // STATES_A_TASK, len(parts))
        if tasks < 2:
            return [*map(work, parts)]
        with failures_in_one_sentence("Spark gave the search up"):
            told: list[T] = self.context.parallelize(parts, tasks).map(work).collect()
        return told

    def _note(self, told: Iterable[_Expanded], level: int) -> None:
        """Keeps of each claim one state that breaks it, and forgets which states were to be reached and are."""
        for one in told:
            known = {name for name, _, _ in self._found}
            self._found += [(name, state, level) for name, state in one.broken if name not in known]
            self._unreached.intersection_update(one.unreached)

    def _result(self, progress: Progress, stopped: str) -> Exploration:
        claims = {claim.name: claim for claim in self.model.properties()}
        return Exploration(
            self.model.name,
            self.model.values,
            *progress,
            stopped,
            tuple(
                Violation(name, claims[name].because(state), self._trace_to(state, level))
                for name, state, level in self._found
            ),
            tuple(name for name in claims if name in self._unreached),
        )

    def _trace_to(self, state: Any, level: int) -> Trace:
        """A shortest way, found from level to level in the files of the parts that own its states."""
        steps = []
        while level:
            number = self._packer.pack(state)
            key = rows.keys([number], self._width)
            (part,) = rows.owners(key, self.search.parts)
            there = self.search.files.load("level", level, part)
            parent = self._packer.unpack(rows.parent(there, number))
            steps.append(step_between(self.model, parent, state))
            state, level = parent, level - 1
        return Trace.of(self.model, steps[::-1])


# What tasks do.


class _Tools:
    """What one process needs for all its tasks of one search: the model, and codes as far as it has read them."""

    def __init__(self, search: _Search) -> None:
        self.search = search
        whole = make(search.model, dict(search.values))
        self.model = Quotient(whole) if search.symmetry else whole
        self.packer = Packer(self.model)
        self._read = 0

    def at(self, level: int) -> "_Tools":
        """These tools, when they know all codes that were given up to this level."""
        for each in range(self._read, level + 1):
            self.packer.read_on(self.search.files.undump("codes", each))
            self._read = each + 1
        return self


_tools = lru_cache(1)(_Tools)


class _Expansion:
    """What one task reaches from the states of one part."""

    def __init__(self, tools: _Tools, step: _Step) -> None:
        self.model, self.packer, self.step = tools.model, tools.packer, step
        self.claims = Claims(tools.model)
        self.claims.settle(step.settled)
        self.claims.sometimes[:] = [claim for claim in self.claims.sometimes if claim.name in step.unreached]
        self.generated = 0
        self.reached: list[rows.Pairs] = []
        self.waiting: dict[Any, int] = {}

    def expand(self, numbers: Sequence[int]) -> None:
        """Looks at the states of these numbers and, if this is not the last level, takes every action in each."""
        states = [*map(self.packer.unpack, numbers)]
        self.claims.meet(states)
        if self.step.is_last:
            return
        pack, new, parents = self.packer.pack, list[int](), list[int]()
        expanded = expand(self.model, self.claims, states, each_once=True)
        for number, (enabled, successors) in zip(numbers, expanded, strict=True):
            self.generated += enabled
            for successor in successors:
                try:
                    new.append(pack(successor))
                    parents.append(number)
                except KeyError:  # a part of it has no number yet
                    self.waiting.setdefault(successor, number)
        width = self.step.width
        self.reached.append(rows.first_of_each(rows.pairs(rows.keys(new, width), rows.keys(parents, width))))


@without_collector()
def _expanded(search: _Search, step: _Step, part: int) -> _Expanded:
    """Expands the states of a part, and leaves what they reached for the parts that own it."""
    expansion = _Expansion(_tools(search).at(step.level), step)
    level = search.files.load("level", step.level, part)
    numbers = rows.numbers(level["state"])
    for at in range(0, len(numbers), _AT_ONCE):
        expansion.expand(numbers[at : at + _AT_ONCE])
    claims, waiting = expansion.claims, expansion.waiting
    if not step.is_last:
        reached = rows.joined(expansion.reached, step.width)
        search.files.send(rows.first_of_each(reached), "sent", step.level, part, search.parts)
    if waiting:
        search.files.dump(waiting, "waiting", step.level, part)
    unknown = dict.fromkeys(each for state in waiting for each in expansion.packer.unknown(state))
    return _Expanded(
        part,
        expansion.generated,
        [(claim.name, state) for claim, state in claims.broken],
        [claim.name for claim in claims.sometimes],
        list(unknown),
        len(waiting),
    )


def _numbered(search: _Search, level: int, width: int, part: int) -> None:
    """Sends states that have waited until all their parts had numbers."""
    pack = _tools(search).at(level + 1).packer.pack
    waiting: dict[Any, int] = search.files.undump("waiting", level, part)
    states, parents = map(pack, waiting), waiting.values()
    sent = rows.pairs(rows.keys(states, width), rows.keys(parents, width))
    search.files.send(sent, "late", level, part, search.parts)


def _admitted(search: _Search, level: int, width: int, senders: Sequence[tuple[str, int]], part: int) -> int:
    """Writes the states of a part that are new, in an order that does not depend on who sent first; how many
    they are.
    """
    files = search.files
    sent = [files.received(kind, level, sender, part, search.parts) for kind, sender in senders]
    known = rows.widened(files.load("known", level, part), width)
    known, fresh = rows.admitted(known, rows.joined(sent, width))
    files.save(known, "known", level + 1, part)
    files.save(fresh, "level", level + 1, part)
    return len(fresh)
