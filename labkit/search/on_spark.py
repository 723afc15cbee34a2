"""A search for states that exceed one machine's memory: files hold the states in partitions, and Spark runs the tasks.

A level, the states at the same distance from the start, takes two jobs. Each task of the first job expands the states
of one partition, and writes all successors to one file, grouped by the partitions that own them. Each task of the
second job collects the successors of its partition, sorts them, and compares them with the sorted file of the known
states; the new ones form its partition of the next level. So each task has one partition in memory and, if there are
few levels and many states, the cost of a state does not depend on how many are known. The driver processes levels that
are too small for several tasks, with the same functions.

A file has the same contents however often its task runs, so the death of an executor costs only time. All executors
must see the folder under one path. Each value in a state has a code (`Packer`), which the driver assigns after each
level; a state with a new value waits in a separate file until the value has a code. Counts equal those of one core, and
each trace is a shortest one, though not necessarily the same one. A limit ends a search between two levels.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from labkit.host import durable
from labkit.search import rows, without_collector
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
"""The prefix of the name of a search's folder, which the searching process locks as long as it lives."""
STATES_A_PART = 500_000
"""About the largest number of states in a partition, a few megabytes in its task, unless 512 partitions are too few."""
STATES_A_TASK = 4_000
"""The least average number of states per task: a task costs as much time as expanding a few hundred states."""
ADMITTED_AS_ONE = 8
"""How many states a task can compare with the known ones in the time that it takes to expand one state."""
_AT_ONCE = 4_096
"""The number of states that are expanded together; duplicates among their successors are then removed."""
_JVM = Profile(("-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"), {})
"""The settings of the driver's JVM.

It can be small, because it only distributes tasks and collects counts, never states.
"""


class _Search(NamedTuple):
    """The parameters that stay the same during a search; every Spark task receives them.

    With `symmetry`, states that differ only in the order of processes count as one. `parts` is the number of partitions
    of the states.
    """

    files: Files
    model: str
    values: tuple[tuple[str, Any], ...]
    symmetry: bool
    parts: int


class _Step(NamedTuple):
    """The parameters of one level of a search (the states at one distance from the start), sent to every Spark task.

    `width` is the number of bytes of an encoded state. `settled` has the names of the properties that a state has
    violated, and `unreached` the names of the "sometimes" properties that no state has fulfilled so far. With
    `is_last`, a task only checks the states and does not expand them.
    """

    level: int
    width: int
    settled: frozenset[str]
    unreached: frozenset[str]
    is_last: bool


class _Expanded(NamedTuple):
    """The report of a Spark task that has computed the successors of one partition (`part`) of a level's states.

    `broken` has pairs of a violated property and the state that violates it. `unknown` has the values without a code,
    each with the index of its field. `waiting` is the number of successors that contain such values, so that the task
    could not encode them.
    """

    part: int
    generated: int
    broken: list[tuple[str, Any]]
    unreached: list[str]
    unknown: list[tuple[int, Any]]
    waiting: int


def explore_on_spark(
    model: Model[Any], master: str, *, max_states: int = MAX_STATES, keep_going: Callable[[Progress], bool] = go_on
) -> Exploration:
    """Visit every state of a simulator in Spark jobs, and return the result as `labkit.sim.explore.explore` does.

    `master` is a Spark master URL. Raises `InvalidInput` for a bad URL, `ServiceUnavailable` if Spark cannot start with
    this URL, and `JobFailed` if Spark fails later.
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
    """The part of a search on Spark that runs in the driver process: it processes one level after the other."""

    def __init__(self, model: Model[Any], search: _Search, context: Any) -> None:
        self.model, self.search, self.context = model, search, context
        self._packer = Packer(model)
        self._published = [0] * self._packer.width
        self._violations: list[tuple[str, Any, int]] = []
        self._unreached = {claim.name for claim in model.properties() if claim.mood is Mood.SOMETIMES}

    def explore(self, max_states: int, keep_going: Callable[[Progress], bool]) -> Exploration:
        """Search one level after the other until a level has no new states. Raises `JobFailed` if Spark fails."""
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
        number = self._packer.pack(self.model.initial())
        self._tell_codes(0)
        first = rows.keys([number], self._width)
        (owner,) = rows.owners(first, self.search.parts)
        sizes = [int(part == owner) for part in range(self.search.parts)]
        for part, size in enumerate(sizes):
            portion = first[:size]
            self.search.files.save(portion, "known", 0, part)
            self.search.files.save(rows.pairs(portion, portion), "level", 0, part)
        return sizes

    def _tell_codes(self, level: int) -> None:
        self._width = rows.width_of(self._packer.bits)
        self._published, news = self._packer.news(self._published)
        self.search.files.dump(news, "codes", level)

    def _expand(self, level: int, sizes: Sequence[int], *, is_last: bool) -> tuple[int, dict[int, int]]:
        """Check the states of a level and, unless it is the last one, compute their successors.

        `sizes` has the number of states in each partition of the level. Returns the number of successors, and a dict
        from the index of a partition to how many of its successors contain a value that has no code yet.
        """
        step = _Step(
            level, self._width, frozenset(name for name, _, _ in self._violations), frozenset(self._unreached), is_last
        )
        parts = [part for part, size in enumerate(sizes) if size]
        results = self._run(partial(_expanded, self.search, step), parts, sum(sizes))
        self._note(results, level)
        for field, value in (each for one in results for each in one.unknown):
            self._packer.learn(field, value)
        self._tell_codes(level + 1)
        waiting = {one.part: one.waiting for one in results if one.waiting}
        return sum(one.generated for one in results), waiting

    def _admit(self, level: int, sizes: Sequence[int], waiting: dict[int, int]) -> list[int]:
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
        """Return the results of `work` for `parts`, in the same order.

        Spark tasks do the work. If there are only few `states`, this process does it alone.
        """
        tasks = min(states // STATES_A_TASK, len(parts))
        if tasks < 2:
            return [*map(work, parts)]
        with failures_in_one_sentence("Spark gave the search up"):
            results: list[T] = self.context.parallelize(parts, tasks).map(work).collect()
        return results

    def _note(self, results: Iterable[_Expanded], level: int) -> None:
        """Record the properties that states of a level violated, and the "sometimes" properties that they fulfilled.

        `results` are the reports of the level's tasks. Only the first state that violates a property is kept.
        """
        for one in results:
            names = {name for name, _, _ in self._violations}
            self._violations += [(name, state, level) for name, state in one.broken if name not in names]
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
                for name, state, level in self._violations
            ),
            tuple(name for name in claims if name in self._unreached),
        )

    def _trace_to(self, state: Any, level: int) -> Trace:
        """Return a shortest trace to a state that is `level` steps from the start."""
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


# The functions and classes of the tasks that Spark runs.


class _Tools:
    """The simulator and the codes of its states, shared by all tasks of a search that run in one process."""

    def __init__(self, search: _Search) -> None:
        self.search = search
        whole = make(search.model, dict(search.values))
        self.model = Quotient(whole) if search.symmetry else whole
        self.packer = Packer(self.model)
        self._read = 0

    def at(self, level: int) -> "_Tools":
        """Load the codes that the driver assigned up to this level of the search, and return this object.

        A code is a number that stands for a value of a part of a state.
        """
        for each in range(self._read, level + 1):
            self.packer.read_on(self.search.files.undump("codes", each))
            self._read = each + 1
        return self


_tools = lru_cache(1)(_Tools)


class _Expansion:
    """The successors that one Spark task computes from one partition of the states at one distance from the start."""

    def __init__(self, tools: _Tools, step: _Step) -> None:
        self.model, self.packer, self.step = tools.model, tools.packer, step
        self.claims = Claims(tools.model)
        self.claims.settle(step.settled)
        self.claims.sometimes[:] = [claim for claim in self.claims.sometimes if claim.name in step.unreached]
        self.generated = 0
        self.reached: list[rows.Pairs] = []
        self.waiting: dict[Any, int] = {}

    def expand(self, numbers: Sequence[int]) -> None:
        """Check the states that these numbers encode; unless the search ends here, also compute their successors."""
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
                except KeyError:  # one of its values has no code yet
                    self.waiting.setdefault(successor, number)
        width = self.step.width
        self.reached.append(rows.first_of_each(rows.pairs(rows.keys(new, width), rows.keys(parents, width))))


@without_collector()
def _expanded(search: _Search, step: _Step, part: int) -> _Expanded:
    """Compute the successors of partition `part` of a level, and return a report about them.

    One file gets the encoded successors, grouped by the partitions that own them. A second file gets the successors
    with values that have no code (number) yet, so that they cannot be encoded.
    """
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
    """Encode the successors of partition `part` that waited for codes of new values, and store them."""
    pack = _tools(search).at(level + 1).packer.pack
    waiting: dict[Any, int] = search.files.undump("waiting", level, part)
    states, parents = map(pack, waiting), waiting.values()
    sent = rows.pairs(rows.keys(states, width), rows.keys(parents, width))
    search.files.send(sent, "late", level, part, search.parts)


def _admitted(search: _Search, level: int, width: int, senders: Sequence[tuple[str, int]], part: int) -> int:
    """Store the states of the next level that belong to partition `part` and are new; return their number.

    They are successors of states at `level`, which tasks have sent in files. Each pair in `senders` stands for a file:
    its kind, and the partition of the task that wrote it. Files of the kind `late` have the states with a value that
    first needed a code, and files of the kind `sent` all others. `width` is the length of an encoded state in bytes.
    """
    files = search.files
    # In the order of `senders`, so that the order of the new states does not depend on which task ended first.
    sent = [files.received(kind, level, sender, part, search.parts) for kind, sender in senders]
    known = rows.widened(files.load("known", level, part), width)
    known, fresh = rows.admitted(known, rows.joined(sent, width))
    files.save(known, "known", level + 1, part)
    files.save(fresh, "level", level + 1, part)
    return len(fresh)
