"""Search every schedule of a model, breadth first, so that the first violation found is one of the shortest.

The caller limits time and memory and shows progress by `keep_going`, and supplies random choices by `choose`. The
result of a stopped search (`exhausted` is false) holds only for the states that it has visited. The search stores only
states, encoded as numbers, and their predecessors; a trace recomputes the action between two states.
"""

from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple

from labkit.sim.claims import Claims
from labkit.sim.model import Action, Model, Mood, Property, StateT
from labkit.sim.packing import Packer
from labkit.sim.walk import Replay, Trace

MAX_STATES = 1_000_000
"""The default number of states after which a search stops."""

_ASK_EVERY = 1_024
"""The number of states that are expanded between two calls of `keep_going`."""

_AT_ONCE = 512
"""The number of states of a level that are decoded at one time."""


class Progress(NamedTuple):
    """How far a search has got: the number of distinct states visited, the number of steps taken, and the depth.

    The number of steps (`generated`) includes the steps that led to a known state. The depth is the distance from the
    start to the current states, in steps.
    """

    unique: int
    generated: int
    depth: int


class Expansion(NamedTuple):
    """The result of a helper process's work on some states: their successors, and the properties that they violate.

    A violated property is given by its name and the index of the state that violates it.
    """

    met: list[tuple[str, int]]
    """The violated "always" properties."""
    ended: list[tuple[str, int]]
    """The violated "eventually" properties."""
    unreached: list[str]
    """The names of the "sometimes" properties that no checked state fulfils."""
    enabled: "array[int]"
    """The number of enabled actions of each expanded state."""
    counts: "array[int]"
    """How many of the entries in `reached` come from each expanded state."""
    reached: Sequence[int]
    """The reached states, encoded as numbers; 0 for a state that the helper cannot encode."""
    unencoded: list[tuple[int, Any]]
    """The states that the helper cannot encode, each with its index in `reached`; the leader encodes them."""


class Violation(NamedTuple):
    """A property that a run of the simulator violates, the reason in words, and a shortest trace to the violation."""

    property: str
    because: str
    trace: Trace

    def to_json(self) -> dict[str, Any]:
        """Return the violation as a dictionary for JSON, with its trace as text."""
        return {"property": self.property, "because": self.because, "trace": str(self.trace)}


@dataclass(frozen=True)
class Exploration:
    """The result of a search through a simulator's states.

    `stopped` says why the search ended early; it is empty if the search visited every state. `never_reached` names the
    "sometimes" properties that no visited state fulfils.
    """

    model: str
    parameters: Mapping[str, object]
    unique_states: int
    generated_states: int
    depth: int
    stopped: str
    violations: tuple[Violation, ...]
    never_reached: tuple[str, ...]

    @property
    def exhausted(self) -> bool:
        """Return whether the search visited every reachable state."""
        return not self.stopped

    def to_json(self) -> dict[str, Any]:
        """Return the result of the search as a dictionary for JSON, with traces as text."""
        plain = {name: part for name, part in vars(self).items() if name not in ("violations", "never_reached")}
        return plain | {
            "parameters": dict(self.parameters),
            "exhausted": self.exhausted,
            "violations": [violation.to_json() for violation in self.violations],
            "never_reached": list(self.never_reached),
        }


def go_on(_progress: Progress) -> bool:
    """Return True: this is the default `keep_going`, which never stops a search."""
    return True


def explore(
    model: Model[StateT], *, max_states: int = MAX_STATES, keep_going: Callable[[Progress], bool] = go_on
) -> Exploration:
    """Visit every state that the simulator can reach, breadth first, and return the result.

    The search ends early after `max_states` states, or when `keep_going`, called at intervals, returns False.
    """
    return Search(model, max_states, keep_going).run().result()


def reachable(model: Model[StateT], *, max_states: int = MAX_STATES) -> Iterable[StateT]:
    """Return the states that the simulator can reach, in breadth-first order, but at most `max_states` of them."""
    search = Search(model, max_states).run()
    return map(search.packer.unpack, search.parents)


class Search(Generic[StateT]):
    """A breadth-first search through a simulator's states, which are encoded as numbers.

    `parents` maps each visited state to the state from which the search first reached it. `level` has the states to
    expand next, which are all equally many steps from the start.
    """

    def __init__(
        self,
        model: Model[StateT],
        max_states: int = MAX_STATES,
        keep_going: Callable[[Progress], bool] = go_on,
        start: StateT | None = None,
    ) -> None:
        """Prepare a search from the state `start`, by default from the initial state of the simulator."""
        self.model, self.max_states, self.keep_going = model, max_states, keep_going
        self.claims = Claims(model)
        self.packer = Packer(model)
        self.level = [self.packer.pack(model.initial() if start is None else start)]
        self.parents: dict[int, int | None] = {self.level[0]: None}
        self.violated: list[tuple[Property[StateT], StateT]] = []
        self.generated = self.depth = self.expansions = 0
        self.stopped = ""

    @property
    def progress(self) -> Progress:
        """Return the number of states visited, the number of steps taken to find them, and the search's depth."""
        return Progress(len(self.parents), self.generated, self.depth)

    @property
    def are_often_met(self) -> bool:
        """Return whether the search has reached each state more than twice, on average.

        If so, `expand` keeps a set of recent states, because looking up a state is faster than encoding it again.
        """
        return self.generated > 2 * len(self.parents)

    def run(self) -> "Search[StateT]":
        """Search level by level until no new state is found or the search must stop, and return this object.

        A level contains the states at one distance from the start.
        """
        while self.level:
            self.advance()
        return self

    def advance(self) -> None:
        """Check each state of the current level and take every enabled action in it; new states become the next level.

        If the search has to stop, it still checks the remaining states of the level but takes no more actions.
        """
        level, self.level = self.level, []
        for numbers in at_once(level, _AT_ONCE):
            self.look(numbers)
        self.finish_level()

    def look(self, numbers: Sequence[int]) -> None:
        """Check the properties in the states that `numbers` encode.

        Unless the search must stop, also take every enabled action in these states.
        """
        states = list(map(self.packer.unpack, numbers))
        self.claims.meet(states)
        if not self.stopped:
            self._expand(numbers, states)

    def _expand(self, numbers: Sequence[int], states: list[StateT]) -> None:
        pack = self.packer.pack
        expanded = expand(self.model, self.claims, states, each_once=self.are_often_met)
        for number, (enabled, successors) in zip(numbers, expanded, strict=False):
            if self._add(number, enabled, map(pack, successors)):
                break

    def _add(self, number: int, enabled: int, reached: Iterable[int]) -> bool:
        """Add the successors of the state `number`, count it as expanded, and return whether the search must stop."""
        parents, level = self.parents, self.level
        for each in reached:
            if each not in parents:
                parents[each] = number
                level.append(each)
        self.generated += enabled
        self.expansions += 1
        return (len(parents) >= self.max_states or not self.expansions % _ASK_EVERY) and self.must_stop()

    def admit(self, numbers: Sequence[int], expansion: Expansion) -> None:
        """Add a helper process's result for the states `numbers`, as if this process had checked and expanded them."""
        self._take_broken(self.claims.always, numbers, expansion.met)
        self.claims.sometimes[:] = [claim for claim in self.claims.sometimes if claim.name in expansion.unreached]
        if self.stopped:
            return
        reached = list(expansion.reached)
        for place, state in expansion.unencoded:
            reached[place] = self.packer.pack(state)
        admitted = end = 0
        for number, enabled, count in zip(numbers, expansion.enabled, expansion.counts, strict=True):
            begin, end = end, end + count
            admitted += 1
            if self._add(number, enabled, reached[begin:end]):
                break
        ended = [(name, place) for name, place in expansion.ended if place < admitted]
        self._take_broken(self.claims.eventually, numbers, ended)

    def _take_broken(
        self, claims: list[Property[StateT]], numbers: Sequence[int], broken: Sequence[tuple[str, int]]
    ) -> None:
        for name, place in broken:
            for claim in [claim for claim in claims if claim.name == name]:
                claims.remove(claim)
                state = self.packer.unpack(numbers[place])
                self.claims.broken.append((claim, state))

    def finish_level(self) -> None:
        """Record the violations that a level of the search has found; increase the depth if there is a next level."""
        self.depth += bool(self.level)
        claims = self.model.properties()
        places = {
            claim.name: len(claims) if claim.mood is Mood.EVENTUALLY else place for place, claim in enumerate(claims)
        }
        broken, self.claims.broken = self.claims.broken, []
        self.violated += sorted(broken, key=lambda each: places[each[0].name])

    def must_stop(self) -> bool:
        """Return whether the search must stop, because it reached the limit of states or `keep_going` returned False.

        In both cases, the reason is stored in `stopped`.
        """
        if len(self.parents) >= self.max_states:
            self.stopped = f"{self.max_states} states were reached"
        elif not self.keep_going(self.progress):
            self.stopped = "it was told to stop"
        return bool(self.stopped)

    def result(self) -> Exploration:
        """Return the result of the search, with a shortest trace to each violation."""
        return Exploration(
            self.model.name,
            self.model.values,
            *self.progress,
            self.stopped,
            tuple(Violation(claim.name, claim.because(state), self.trace_to(state)) for claim, state in self.violated),
            tuple(claim.name for claim in self.claims.sometimes),
        )

    def trace_to(self, state: StateT) -> Trace:
        """Return a shortest trace from the initial state to `state`."""
        steps: list[Action] = []
        key = self.packer.pack(state)
        while (before := self.parents[key]) is not None:
            parent, reached = map(self.packer.unpack, (before, key))
            steps.append(step_between(self.model, parent, reached))
            key = before
        return Trace.of(self.model, steps[::-1])


def nearest_to(model: Model[StateT], name: str, max_states: int = MAX_STATES) -> Trace | None:
    """Return a trace to a state that may show why no state fulfils a certain "sometimes" property.

    `name` is the name of the property. The trace leads to the first state that the property's filter `where` selects.
    If the property has no filter, or the filter selects no state, the trace leads to the first terminal state. Returns
    None if the search finds no such state among the first `max_states` states.
    """
    claim = next(each for each in model.properties() if each.name == name)

    def is_end(state: StateT) -> bool:
        return not model.actions(state)

    for is_near in (is_end,) if claim.where is None else (claim.where, is_end):
        search = Search(model, max_states)
        while search.level:
            for state in map(search.packer.unpack, search.level):
                if is_near(state):
                    return search.trace_to(state)
            search.advance()
    return None


def expand(
    model: Model[StateT], claims: Claims[StateT], states: Iterable[StateT], *, each_once: bool
) -> Iterator[tuple[int, list[StateT]]]:
    """Take every enabled action in `states`; yield for each state the number of its actions, and a list of successors.

    A state without actions is checked as a terminal state (`Claims.end`). With `each_once`, a common successor of
    several states is yielded only with the first of these states.
    """
    actions, apply = model.actions, model.apply
    met, count = set[StateT](), 0
    for state in states:
        enabled = actions(state)
        if not enabled:
            claims.end(state)
        successors = []
        for action in enabled:
            successor = apply(state, action)
            if each_once:
                met.add(successor)
                if len(met) == count:  # asking first would hash the state twice
                    continue
                count += 1
            successors.append(successor)
        yield len(enabled), successors


def at_once(level: Sequence[int], most: int) -> Iterator[Sequence[int]]:
    """Yield the states of a level in slices of at most `most` states."""
    for first in range(0, len(level), most):
        yield level[first : first + most]


def step_between(model: Model[StateT], parent: StateT, reached: StateT) -> Action:
    """Return the first action that leads from `parent` to `reached`."""
    return next(action for action, state in model.successors(parent) if state == reached)


def walk(model: Model[StateT], choose: Callable[[int], int], steps: int) -> tuple[Trace, tuple[Violation, ...]]:
    """Take random steps in a simulator that is too large for a search; return the trace and the violated properties.

    `choose(n)` returns a random number from 0 to n - 1. The run ends after `steps` steps or in a terminal state.
    """
    walked, at_the_end = Replay(model), {each.name for each in model.properties() if each.mood is Mood.EVENTUALLY}
    while (enabled := model.actions(walked.state)) and len(walked.actions) < steps:
        walked.actions.append(enabled[choose(len(enabled))])
        walked.states.append(model.apply(walked.state, walked.actions[-1]))
    broken = violations(walked)
    broken.sort(key=lambda each: (len(each.trace.actions), each.property in at_the_end))
    return walked.trace, tuple(broken)


def violations(walked: Replay) -> list[Violation]:
    """Return the properties that this run violates, each with the trace up to the first state that violates it."""
    broken = []
    for claim in walked.model.properties():
        states: list[Any] = walked.states if claim.mood is Mood.ALWAYS else []
        if claim.mood is Mood.EVENTUALLY and not walked.model.actions(walked.state):
            states = walked.states[-1:]
        for state in states:
            if not claim.is_kept(state):
                steps = walked.states.index(state)
                prefix = Trace.of(walked.model, walked.actions[:steps])
                broken.append(Violation(claim.name, claim.because(state), prefix))
                break
    return broken
