"""A search that outgrows a machine's memory: its states in files, in so many parts, and Spark runs what is to do.

A level of the search is one job. Its first tasks each expand the states of one part and send what they reach to the
parts that own it; its second tasks each compare what has come with all states of their part that are known, and write
those that are new into one file. A file has the same contents however often its task is run, so an executor that dies
costs time and nothing else. In memory is one part at a time for each task. Parts of states have numbers (`Packer`),
which this process gives out after each level; a state with a part that is new travels as itself, and cannot be known.
The folder must be seen by all executors under one path. Counts are those of one core, and each trace is a shortest one;
which one of several is reported may be another one. A limit ends a search between two levels. This module must not
look into a state.
"""

import os
import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache, partial
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple
from zlib import crc32

from labkit.host import durable
from labkit.sim.explore import (
    MAX_STATES,
    Claims,
    Exploration,
    Progress,
    Violation,
    go_on,
    step_between,
)
from labkit.sim.model import Model, Mood
from labkit.sim.packing import Packer
from labkit.sim.shard import anchors
from labkit.sim.trace import make
from labkit.sim.walk import Trace
from labkit.spark.cluster import await_slots
from labkit.spark.master import check_scheduler, is_local
from labkit.spark.session import failures_in_one_sentence, session_for_a_block

PREFIX = ".labkit-search-"
"""How the name of a search's folder begins. Whoever holds the folder's lock is alive."""
STATES_A_PART = 250_000
"""States of the largest part, where states spread evenly: some 25 MB in the task that holds them."""


class _Search(NamedTuple):
    """What a task has to know: where the files are, which model, and into how many parts its states are cut."""

    folder: str
    model: str
    values: tuple[tuple[str, Any], ...]
    parts: int


class _Rows(NamedTuple):
    """States with their parents: as numbers, or as themselves where a part of them has no number yet."""

    numbers: list[int]
    parents: list[int]
    states: list[Any]
    parents_of_states: list[int]


class _Step(NamedTuple):
    """What the tasks of one level have to know: the claims that are settled, and those that nobody has reached yet."""

    level: int
    settled: frozenset[str]
    unreached: frozenset[str]


class _Sent(NamedTuple):
    """What one task of the first kind sends to one part; of its own level it tells only its own part."""

    sender: int
    rows: _Rows
    generated: int
    ended: list[tuple[str, Any]]


class _Answer(NamedTuple):
    """What one task of the second kind answers."""

    fresh: int
    generated: int
    ended: list[tuple[str, Any]]
    met: list[tuple[str, Any]]
    unreached: list[str]
    unknown: list[tuple[int, Any]]


def explore_on_spark(
    model: Model[Any],
    master: str,
    *,
    max_states: int = MAX_STATES,
    keep_going: Callable[[Progress], bool] = go_on,
) -> Exploration:
    """Visits every state of a registered model. Raises `InvalidInput`, `JobFailed`, `ServiceUnavailable`."""
    check_scheduler(master)
    with (
        durable.own_folder(Path.cwd(), PREFIX) as folder,
        (folder / "driver.log").open("wb") as log,
    ):
        profile = "bulk" if is_local(master) else "cluster"
        with session_for_a_block(master, folder, 1, log, profile) as spark:
            if not is_local(master):
                await_slots(spark, 1)
            context = spark.sparkContext
            parts = max(2 * context.defaultParallelism, max_states // STATES_A_PART)
            search = _Search(
                str(folder), model.name, tuple(model.values.items()), min(parts, 512)
            )
            return Levels(model, search, context).explore(max_states, keep_going)


class Levels:
    """The driver's side of a search: one level after the other."""

    def __init__(self, model: Model[Any], search: _Search, context: Any) -> None:
        self.model, self.search, self.context = model, search, context
        self._packer = Packer(model)
        self._published = [0] * self._packer.width
        self._found: list[tuple[str, Any, int]] = []
        self._unreached = {
            claim.name for claim in model.properties() if claim.mood is Mood.SOMETIMES
        }

    def explore(
        self, max_states: int, keep_going: Callable[[Progress], bool]
    ) -> Exploration:
        """All levels, until one is empty or a limit is reached. Raises `JobFailed`."""
        progress, stopped = Progress(self._begin(), 0, 0), ""
        while not stopped:
            answers = self._expand(progress.depth)
            unique, generated, depth = progress
            fresh = sum(each.fresh for each in answers)
            generated += sum(each.generated for each in answers)
            progress = Progress(unique + fresh, generated, depth + bool(fresh))
            self._note(answers, depth)
            if not fresh:
                break
            for field, value in (each for one in answers for each in one.unknown):
                self._packer.learn(field, value)
            self._tell_codes(progress.depth)
            if progress.unique >= max_states:
                stopped = f"{max_states} states were reached"
            elif not keep_going(progress):
                stopped = "it was told to stop"
        return self._result(progress, stopped)

    def _begin(self) -> int:
        """Level 0 is the initial state; how many states that are."""
        initial = self.model.initial()
        claims = Claims(self.model)
        claims.meet([initial])
        self._found += [(claim.name, state, 0) for claim, state in claims.broken]
        self._unreached = {claim.name for claim in claims.sometimes}
        number = self._packer.pack(initial)
        owner = _Tools(self.search).owner(initial)
        for part in range(self.search.parts):
            mine = part == owner
            rows = _Rows([number] * mine, [-1] * mine, [], [])
            _write(_file(self.search, "level", 0, part), rows)
        self._tell_codes(0)
        return 1

    def _tell_codes(self, level: int) -> None:
        self._published, news = self._packer.news(self._published)
        _write(_file(self.search, "codes", level), news)

    def _expand(self, level: int) -> list[_Answer]:
        """One job: the states of a level are expanded, and those of the next one written."""
        parts = self.search.parts
        settled = frozenset(name for name, _, _ in self._found)
        step = _Step(level, settled, frozenset(self._unreached))
        with failures_in_one_sentence("Spark gave the search up"):
            answers: list[_Answer] = (
                self.context.parallelize(range(parts), parts)
                .flatMap(partial(_expanded, self.search, step))
                .partitionBy(parts, int)
                .mapPartitionsWithIndex(partial(_admitted, self.search, step))
                .collect()
            )
        return answers

    def _note(self, answers: Sequence[_Answer], level: int) -> None:
        """Keeps of each claim one state that breaks it; an end stands one level before what was met."""
        for claim in self.model.properties():
            for depth, each in ((level, "ended"), (level + 1, "met")):
                states = (
                    state
                    for one in answers
                    for name, state in getattr(one, each)
                    if name == claim.name
                )
                if (state := next(states, None)) is not None:
                    self._found.append((claim.name, state, depth))
                    break
        for one in answers:
            self._unreached.intersection_update(one.unreached)

    def _result(self, progress: Progress, stopped: str) -> Exploration:
        claims = {claim.name: claim for claim in self.model.properties()}
        return Exploration(
            self.model.name,
            self.model.values,
            *progress,
            stopped,
            tuple(
                Violation(
                    name, claims[name].because(state), self._trace_to(state, level)
                )
                for name, state, level in self._found
            ),
            tuple(name for name in claims if name in self._unreached),
        )

    def _trace_to(self, state: Any, level: int) -> Trace:
        """A shortest way, found from level to level in the files of the parts that own its states."""
        steps = []
        tools = _Tools(self.search)
        while level:
            rows = tools.rows(level, tools.owner(state), self._packer)
            parent = self._packer.unpack(rows[self._packer.pack(state)])
            steps.append(step_between(self.model, parent, state))
            state, level = parent, level - 1
        return Trace.of(self.model, steps[::-1])


# What tasks do.


class _Tools:
    """What one process needs for all its tasks of one search: model, codes as far as it has read them, owners."""

    def __init__(self, search: _Search) -> None:
        self.search = search
        self.model = make(search.model, dict(search.values))
        self.packer = Packer(self.model)
        self._read = 0
        self._anchor: Any = itemgetter(*anchors(self.model))
        self._owners: dict[Any, int] = {}

    def at(self, level: int) -> "_Tools":
        """These tools, when they know all codes that were given up to this level."""
        for each in range(self._read, level + 1):
            self.packer.read_on(_read(_file(self.search, "codes", each)))
            self._read = each + 1
        return self

    def owner(self, state: Any) -> int:
        """The part that a state belongs to: by the text of its anchors, which is the same in each process."""
        part = self._anchor(state)
        known = self._owners.get(part)
        if known is None:
            known = crc32(repr(part).encode()) % self.search.parts
            self._owners[part] = known
        return known

    def rows(self, level: int, part: int, packer: Packer[Any]) -> dict[int, int]:
        """The states of a part in a level, with their parents."""
        rows = _Rows(*_read(_file(self.search, "level", level, part)))
        numbers = (*rows.numbers, *map(packer.pack, rows.states))
        return dict(zip(numbers, (*rows.parents, *rows.parents_of_states), strict=True))

    def known(self, level: int, part: int) -> set[int]:
        """The states of a part in all levels up to one."""
        known: set[int] = set()
        for each in range(level + 1):
            rows = _Rows(*_read(_file(self.search, "level", each, part)))
            known.update(rows.numbers, map(self.packer.pack, rows.states))
        return known


_tools = cache(_Tools)


def _expanded(search: _Search, step: _Step, part: int) -> Iterator[tuple[int, _Sent]]:
    """Expands the states of a part, and tells each part what of it was reached."""
    tools = _tools(search).at(step.level)
    model, packer, owner = tools.model, tools.packer, tools.owner
    claims = Claims(model)
    claims.settle(step.settled)
    sent = [_Rows([], [], [], []) for _ in range(search.parts)]
    reached, count, generated = set[Any](), 0, 0
    for number in tools.rows(step.level, part, packer):
        state = packer.unpack(number)
        enabled = model.actions(state)
        if not enabled:
            claims.end(state)
        generated += len(enabled)
        for action in enabled:
            successor = model.apply(state, action)
            reached.add(successor)
            if len(reached) == count:
                continue
            count += 1
            rows = sent[owner(successor)]
            try:
                rows.numbers.append(packer.pack(successor))
                rows.parents.append(number)
            except KeyError:  # a part of it has no number yet
                rows.states.append(successor)
                rows.parents_of_states.append(number)
    ended = [(claim.name, state) for claim, state in claims.broken]
    for target, rows in enumerate(sent):
        if target == part:
            yield target, _Sent(part, rows, generated, ended)
        elif rows.numbers or rows.states:
            yield target, _Sent(part, rows, 0, [])


def _admitted(
    search: _Search,
    step: _Step,
    part: int,
    sent: Iterable[tuple[int, _Sent]],
) -> Iterator[_Answer]:
    """Writes the states of a part that are new, in an order that does not depend on who sent first."""
    tools = _tools(search).at(step.level)
    received = sorted((each for _, each in sent), key=lambda each: each.sender)
    known = tools.known(step.level, part)
    numbers: dict[int, int] = {}
    states: dict[Any, int] = {}
    for _, rows, _, _ in received:
        for number, parent in zip(rows.numbers, rows.parents, strict=True):
            if number not in known:
                numbers.setdefault(number, parent)
        for state, parent in zip(rows.states, rows.parents_of_states, strict=True):
            states.setdefault(state, parent)
    fresh = _Rows(
        list(numbers), list(numbers.values()), list(states), list(states.values())
    )
    _write(_file(search, "level", step.level + 1, part), fresh)
    claims = Claims(tools.model)
    claims.settle(step.settled)
    claims.sometimes[:] = [
        claim for claim in claims.sometimes if claim.name in step.unreached
    ]
    claims.meet([*map(tools.packer.unpack, numbers), *states])
    unknown = {each: None for state in states for each in tools.packer.unknown(state)}
    yield _Answer(
        len(numbers) + len(states),
        sum(each.generated for each in received),
        [end for each in received for end in each.ended],
        [(claim.name, state) for claim, state in claims.broken],
        [claim.name for claim in claims.sometimes],
        list(unknown),
    )


def _file(search: _Search, kind: str, level: int, part: int | None = None) -> Path:
    name = f"{level:05}" if part is None else f"{level:05}-{part:05}"
    return Path(search.folder) / f"{kind}-{name}"


def _write(path: Path, said: Any) -> None:
    """Puts a whole file in place: a task that runs twice writes the same one twice."""
    own = path.with_name(f"{path.name}.{os.getpid()}")
    own.write_bytes(pickle.dumps(said, -1))
    own.replace(path)


def _read(path: Path) -> Any:
    return pickle.loads(path.read_bytes())  # noqa: S301  # a task of this search wrote it, into a folder that this search has made
