"""Every schedule of a model, breadth first, so that the first state which breaks a property is a nearest one.

Time, memory and a progress bar are handed in as `keep_going`; chance is handed in as `choose`. A search that is stopped
says so (`exhausted` is false) and claims only what it saw. Only states, packed into numbers, and their parents are
kept: the action between two states is found again when a trace is asked for.
"""

from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, repeat
from typing import Any, Generic, NamedTuple

from labkit.sim.claims import Claims
from labkit.sim.model import Action, Model, Mood, Property, StateT
from labkit.sim.packing import Packer
from labkit.sim.walk import Replay, Trace

MAX_STATES = 1_000_000
"""States after which a search stops unless it is told otherwise."""

_ASK_EVERY = 1_024
"""States expanded between two questions whether to go on."""

_AT_ONCE = 512
"""States of a level that are at hand as states at one time."""


class Progress(NamedTuple):
    """How far a search has come."""

    unique: int
    generated: int
    depth: int


class Expansion(NamedTuple):
    """What another process reached from some states of a level, in their order, and the claims that they break.

    A claim that a state breaks stands with the state's place.
    """

    met: list[tuple[str, int]]
    ended: list[tuple[str, int]]
    unreached: list[str]
    """Claims of which no state that was looked at is an example yet."""
    enabled: "array[int]"
    """How many actions each state has."""
    counts: "array[int]"
    """How many of the states that were reached come from each state."""
    reached: Sequence[int]
    """Their numbers; 0 stands for a state with a part that has no code yet."""
    unencoded: list[tuple[int, Any]]
    """Those states, each with its place among all that were reached: the leader gives their parts codes."""


class Violation(NamedTuple):
    """A property that does not hold, why, and a shortest way to see it."""

    property: str
    because: str
    trace: Trace

    def to_json(self) -> dict[str, Any]:
        """Plain data, the trace as its text."""
        return {"property": self.property, "because": self.because, "trace": str(self.trace)}


@dataclass(frozen=True)
class Exploration:
    """What a search found. `stopped` says why it ended early, and is empty when every state was seen."""

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
        """Whether every reachable state was seen."""
        return not self.stopped

    def to_json(self) -> dict[str, Any]:
        """Plain data for `--json`."""
        plain = {name: part for name, part in vars(self).items() if name not in ("violations", "never_reached")}
        return plain | {
            "parameters": dict(self.parameters),
            "exhausted": self.exhausted,
            "violations": [violation.to_json() for violation in self.violations],
            "never_reached": list(self.never_reached),
        }


def go_on(_progress: Progress) -> bool:
    """A `keep_going` that never stops a search."""
    return True


def explore(
    model: Model[StateT], *, max_states: int = MAX_STATES, keep_going: Callable[[Progress], bool] = go_on
) -> Exploration:
    """Visits every state that any schedule reaches, until none is new or a limit is reached."""
    return Search(model, max_states, keep_going).run().result()


def reachable(model: Model[StateT], *, max_states: int = MAX_STATES) -> Iterable[StateT]:
    """Every reachable state, in the order in which the search meets them."""
    search = Search(model, max_states).run()
    return map(search.packer.unpack, search.parents)


class Search(Generic[StateT]):
    """One search: every state that is known with the state from which it was first reached, both as numbers.

    The states of a level are numbers, too, in the order in which they were reached, and only `_AT_ONCE` of them at a
    time are unpacked.
    """

    def __init__(
        self, model: Model[StateT], max_states: int = MAX_STATES, keep_going: Callable[[Progress], bool] = go_on
    ) -> None:
        self.model, self.max_states, self.keep_going = model, max_states, keep_going
        self.claims = Claims(model)
        self.packer = Packer(model)
        self.level = [self.packer.pack(model.initial())]
        self.parents: dict[int, int | None] = {self.level[0]: None}
        self.found: list[tuple[Property[StateT], StateT]] = []
        self.generated = self.depth = self.asked = 0
        self.stopped = ""

    @property
    def progress(self) -> Progress:
        """How far it has come."""
        return Progress(len(self.parents), self.generated, self.depth)

    @property
    def are_often_met(self) -> bool:
        """Whether most states are reached often: then to remember the last ones costs less than to pack each again."""
        return self.generated > 2 * len(self.parents)

    def run(self) -> "Search[StateT]":
        """Level by level, until a level is empty."""
        while self.level:
            self.advance()
        return self

    def advance(self) -> None:
        """Looks at every state of the level and takes every action in it; the level is then the next one.

        A search that has to stop looks at all states that it has reached and takes no more actions.
        """
        level, self.level = self.level, []
        for numbers in at_once(level, _AT_ONCE):
            self.look(numbers)
        self.finish_level()

    def look(self, numbers: Sequence[int]) -> None:
        """Looks at these states of the level and, unless it has to stop, takes every action in them."""
        states = list(map(self.packer.unpack, numbers))
        self.claims.meet(states)
        if not self.stopped:
            self._expand(numbers, states)

    def _expand(self, numbers: Sequence[int], states: list[StateT]) -> None:
        """Adds every new state that one action leads to from these to the next level."""
        parents, level, pack = self.parents, self.level, self.packer.pack
        expanded = expand(self.model, self.claims, states, each_once=self.are_often_met)
        for number, (enabled, successors) in zip(numbers, expanded, strict=False):
            for reached in map(pack, successors):
                if reached not in parents:
                    parents[reached] = number
                    level.append(reached)
            self.generated += enabled
            if self._is_over():
                break

    def admit(self, numbers: Sequence[int], found: Expansion) -> None:
        """Adds what another process has reached from these states (`labkit.sim.expansion`), as `advance` would do."""
        packer, parents, level = self.packer, self.parents, self.level
        self._take_over(numbers, found)
        if self.stopped:
            return
        reached = list(found.reached)
        for place, state in found.unencoded:
            reached[place] = packer.pack(state)
        last = len(numbers) - 1
        if len(parents) + len(reached) < self.max_states:
            before = chain.from_iterable(map(repeat, numbers, found.counts))
            for each, number in zip(reached, before, strict=True):
                if each not in parents:
                    parents[each] = number
                    level.append(each)
            self.generated += sum(found.enabled)
            asked = self.asked
            self.asked += len(numbers)
            if asked // _ASK_EVERY < self.asked // _ASK_EVERY:
                self.must_stop()
        else:
            last = self._admit_to_the_limit(numbers, found, reached)
        ended = [(name, place) for name, place in found.ended if place <= last]
        self._take_broken(self.claims.eventually, numbers, ended)

    def _admit_to_the_limit(self, numbers: Sequence[int], found: Expansion, reached: Sequence[int]) -> int:
        """Adds state by state what was reached, until there are enough; the place of the last state that counts."""
        end = 0
        for place, (number, enabled, count) in enumerate(zip(numbers, found.enabled, found.counts, strict=True)):
            begin, end = end, end + count
            for each in reached[begin:end]:
                if each not in self.parents:
                    self.parents[each] = number
                    self.level.append(each)
            self.generated += enabled
            if self._is_over():
                return place
        return len(numbers) - 1

    def _take_over(self, numbers: Sequence[int], found: Expansion) -> None:
        """Notes which claims these states break, and of which they are an example."""
        self._take_broken(self.claims.always, numbers, found.met)
        self.claims.sometimes[:] = [claim for claim in self.claims.sometimes if claim.name in found.unreached]

    def _take_broken(
        self, claims: list[Property[StateT]], numbers: Sequence[int], broken: Sequence[tuple[str, int]]
    ) -> None:
        """Moves claims that are still open to what is broken."""
        for name, place in broken:
            for claim in [claim for claim in claims if claim.name == name]:
                claims.remove(claim)
                state = self.packer.unpack(numbers[place])
                self.claims.broken.append((claim, state))

    def _is_over(self) -> bool:
        """Whether the search has to stop behind a state that was expanded."""
        self.asked += 1
        return (len(self.parents) >= self.max_states or not self.asked % _ASK_EVERY) and self.must_stop()

    def finish_level(self) -> None:
        """Keeps what the level broke, when all of it was looked at."""
        self._note_broken()
        self.depth += bool(self.level)

    def _note_broken(self) -> None:
        """Keeps what a level broke: what every state must keep in the order of the claims, then ends as they
        were met.
        """
        claims = self.model.properties()
        places = {
            claim.name: len(claims) if claim.mood is Mood.EVENTUALLY else place for place, claim in enumerate(claims)
        }
        found, self.claims.broken = self.claims.broken, []
        self.found += sorted(found, key=lambda each: places[each[0].name])

    def must_stop(self) -> bool:
        """Whether a limit is reached; notes which."""
        if len(self.parents) >= self.max_states:
            self.stopped = f"{self.max_states} states were reached"
        elif not self.keep_going(self.progress):
            self.stopped = "it was told to stop"
        return bool(self.stopped)

    def result(self) -> Exploration:
        """What was found, with a shortest trace to everything that is wrong."""
        return Exploration(
            self.model.name,
            self.model.values,
            *self.progress,
            self.stopped,
            tuple(Violation(claim.name, claim.because(state), self.trace_to(state)) for claim, state in self.found),
            tuple(claim.name for claim in self.claims.sometimes),
        )

    def trace_to(self, state: StateT) -> Trace:
        """A shortest way from the initial state."""
        steps: list[Action] = []
        key = self.packer.pack(state)
        while (before := self.parents[key]) is not None:
            parent, reached = map(self.packer.unpack, (before, key))
            steps.append(step_between(self.model, parent, reached))
            key = before
        return Trace.of(self.model, steps[::-1])


def expand(
    model: Model[StateT], claims: Claims[StateT], states: Iterable[StateT], *, each_once: bool
) -> Iterator[tuple[int, list[StateT]]]:
    """Takes every action in these states: yields of each state how many it has, and the states that they lead to.

    A state without an action meets the claims about ends. With `each_once` a successor is named only where these
    states reach it first.
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
    """The states of a level, at most so many at a time."""
    for first in range(0, len(level), most):
        yield level[first : first + most]


def step_between(model: Model[StateT], parent: StateT, reached: StateT) -> Action:
    """The first action that leads from one state to the other."""
    return next(action for action, state in model.successors(parent) if state == reached)


def walk(model: Model[StateT], choose: Callable[[int], int], steps: int) -> tuple[Trace, tuple[Violation, ...]]:
    """One schedule of a model that is too large to be explored, and what it violates.

    `choose(n)` gives a number from 0 to n - 1, from a seeded generator. Ends after `steps` or in a terminal state.
    """
    claims, state, taken = Claims(model), model.initial(), list[Action]()
    claims.meet([state])
    broken = _new_violations(model, claims, taken)
    while (enabled := model.actions(state)) and len(taken) < steps:
        action = enabled[choose(len(enabled))]
        state = model.apply(state, action)
        taken.append(action)
        claims.meet([state])
        broken += _new_violations(model, claims, taken)
    if not enabled:
        claims.end(state)
        broken += _new_violations(model, claims, taken)
    return Trace.of(model, taken), broken


def _new_violations(model: Model[StateT], claims: Claims[StateT], taken: list[Action]) -> tuple[Violation, ...]:
    broken, claims.broken = claims.broken, []
    return tuple(Violation(claim.name, claim.because(state), Trace.of(model, taken)) for claim, state in broken)


def violations(walked: Replay) -> list[Violation]:
    """What the states of a walk violate, each with the first prefix that shows it."""
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
