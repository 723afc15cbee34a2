"""Compute for each possible next step how many of the schedules after it violate a property: none, some, or all.

A search visits the states that can follow, up to a limit. A second pass goes backwards from the states that violate a
property. If the limit was reached, a step is called right only if the search visited every state after the step.
"""

from collections import deque
from collections.abc import Collection, Sequence
from enum import StrEnum
from typing import Generic, NamedTuple

from labkit.sim.explore import Search
from labkit.sim.model import Action, Model, Mood, Property, StateT

MAX_STATES = 20_000
"""The default limit on the states that the search visits. Such a search takes about a second on an idle core."""

_UNSEEN = -1
"""The position of a state that the search did not visit."""

_SWEEPS = 1_000
_CLOSE = 1e-9
"""Probabilities are computed until a sweep over all states changes none by more than this."""


class Fate(StrEnum):
    """Whether none, some or all of the schedules (sequences of actions) after a given step violate a property."""

    RIGHT = "right"
    """No schedule violates a property, and the search saw all of them."""
    MIXED = "mixed"
    """At least one schedule violates a property, and others may not."""
    WRONG = "wrong"
    """Every schedule violates a property, and none can go on for ever without doing so."""
    UNKNOWN = "unknown"
    """The search saw no violated property, but did not see every schedule."""


class Prospect(NamedTuple):
    """Whether no, some or all schedules (sequences of actions) that begin with `action` violate a property."""

    action: Action
    fate: Fate
    share: float | None
    """The share of schedules that violate a property, from 0 to 1; None if it is unknown.

    With cycles there are infinitely many schedules; the share is then the probability if each next step is equally
    likely.
    """
    counted: tuple[int, int] | None
    """How many schedules violate a property, and how many there are; None if that is unknown or infinite."""
    nearest: tuple[Action, ...]
    """The steps of a shortest schedule to a violation, this step first; empty if the search saw no violation."""
    broken: str
    """The name of the property that the schedule `nearest` violates; empty if the search saw no violation."""
    because: str
    """A sentence that says how the schedule `nearest` violates that property."""


class Futures(Generic[StateT]):
    """Computes for each possible next step in a simulator's state whether a property can be violated after it.

    The result of the last search is kept, because it often contains later states of the same run as well.
    """

    def __init__(self, model: Model[StateT], max_states: int = MAX_STATES) -> None:
        self.model, self.max_states = model, max_states
        self._graph: _Graph[StateT] | None = None
        self._root: StateT | None = None

    def of(self, state: StateT) -> list[Prospect]:
        """Return one `Prospect` for each enabled action; the list is empty in a final state."""
        graph = self._around(state)
        return [graph.prospect(action, after) for action, after in self.model.successors(state)]

    def is_whole(self, state: StateT) -> bool:
        """Return whether the limit of states is high enough for a search of all states that can follow `state`."""
        return self._around(state).is_whole

    def _around(self, state: StateT) -> "_Graph[StateT]":
        graph = self._graph
        if graph is None or not (self._root == state or (graph.is_whole and graph.knows(state))):
            graph = self._graph = _Graph(self.model, state, self.max_states)
            self._root = state
        return graph


class _Graph(Generic[StateT]):
    """The states that can follow the state `root`, and the steps between them.

    Private methods represent a state by its index in the order of a breadth-first search.
    """

    def __init__(self, model: Model[StateT], root: StateT, max_states: int) -> None:
        search = Search(model, max_states, start=root).run()
        self.model, self.is_whole = model, not search.stopped
        self._pack = search.packer.pack
        self._numbers = {number: place for place, number in enumerate(search.parents)}
        states = [search.packer.unpack(number) for number in search.parents]
        self._after: list[list[int]] = []
        self._broken: dict[int, Property[StateT]] = {}
        claims = [claim for claim in model.properties() if claim.mood is not Mood.SOMETIMES]
        for place, state in enumerate(states):
            successors = [self._numbers.get(self._pack(after), _UNSEEN) for _, after in model.successors(state)]
            self._after.append(successors)
            moods = (Mood.ALWAYS,) if successors else (Mood.ALWAYS, Mood.EVENTUALLY)
            broken = next((claim for claim in claims if claim.mood in moods and not claim.is_kept(state)), None)
            if broken is not None:
                self._broken[place] = broken
        self._before = _reversed(self._after)
        self._distance, self._next = self._towards(self._broken)
        self._open, _ = self._towards([place for place, after in enumerate(self._after) if _UNSEEN in after])
        self._doomed = self._inevitable()
        order = self._ends_first()
        at = {place: position for position, place in enumerate(order)}
        self._circling, _ = self._towards(
            [place for place in order if any(at[each] >= at[place] for each in self._seen(place))]
        )
        self._counts = self._schedules(order)
        self._shares = self._chances(order) if self._circling else []

    def knows(self, state: StateT) -> bool:
        return self._pack(state) in self._numbers

    def prospect(self, action: Action, after: StateT) -> Prospect:
        place = self._number(after)
        if place not in self._distance:
            fate = Fate.UNKNOWN if place == _UNSEEN or place in self._open else Fate.RIGHT
            return Prospect(action, fate, *self._share(place, fate), nearest=(), broken="", because="")
        fate = Fate.WRONG if place in self._doomed else Fate.MIXED
        share = self._share(place, fate)
        steps, state = [action], after
        while self._distance[place]:
            place = self._next[place]
            taken, state = next(pair for pair in self.model.successors(state) if self._number(pair[1]) == place)
            steps.append(taken)
        claim = self._broken[place]
        return Prospect(action, fate, *share, tuple(steps), claim.name, claim.because(state))

    def _share(self, place: int, fate: Fate) -> tuple[float | None, tuple[int, int] | None]:
        certain = {Fate.RIGHT: 0.0, Fate.WRONG: 1.0}.get(fate)
        if place == _UNSEEN or place in self._open:
            return certain, None
        if place in self._circling:
            return self._shares[place] if certain is None else certain, None
        wrong, total = self._counts[place]
        return wrong / total, (wrong, total)

    def _number(self, state: StateT) -> int:
        return self._numbers.get(self._pack(state), _UNSEEN)

    def _towards(self, goals: Collection[int]) -> tuple[dict[int, int], dict[int, int]]:
        """Return two dicts for the states in `goals` and all states that can lead to one of them.

        The first maps each of these states to the number of steps to the nearest goal. The second maps it to the next
        state on the way there, and has no entry for a goal.
        """
        distance = dict.fromkeys(goals, 0)
        towards: dict[int, int] = {}
        waiting = deque(goals)
        while waiting:
            place = waiting.popleft()
            for before in self._before[place]:
                if before not in distance:
                    distance[before], towards[before] = distance[place] + 1, place
                    waiting.append(before)
        return distance, towards

    def _inevitable(self) -> set[int]:
        """Return the states from which every schedule (sequence of actions) violates a property.

        A state is left out if a schedule from it goes on forever or leaves the visited states, without a violation.
        """
        left = [len(after) for after in self._after]
        doomed, waiting = set(self._broken), deque(self._broken)
        while waiting:
            for before in self._before[waiting.popleft()]:
                left[before] -= 1
                if not left[before] and before not in doomed:
                    doomed.add(before)
                    waiting.append(before)
        return doomed

    def _seen(self, place: int) -> list[int]:
        return [each for each in self._after[place] if each != _UNSEEN]

    def _schedules(self, order: Sequence[int]) -> dict[int, tuple[int, int]]:
        """Return for each state how many schedules from it violate a property, and how many schedules there are.

        A schedule is a sequence of actions. States that can lead into a cycle are left out, because infinitely many
        schedules begin there. `order` has each state after its successors.
        """
        counts: dict[int, tuple[int, int]] = {}
        for place in order:
            if place not in self._circling:
                after = [counts[each] for each in self._seen(place)]
                total = sum(each for _, each in after) if after else 1
                counts[place] = total if place in self._broken else sum(wrong for wrong, _ in after), total
        return counts

    def _chances(self, order: Sequence[int]) -> list[float]:
        chances = [1.0 if place in self._broken else 0.0 for place in range(len(self._after))]
        order = [place for place in order if place not in self._broken and self._after[place]]
        for _ in range(_SWEEPS):
            change = 0.0
            for place in order:
                chance = sum(chances[each] for each in self._seen(place)) / len(self._after[place])
                change = max(change, chance - chances[place])
                chances[place] = chance
            if change <= _CLOSE:
                break
        return chances

    def _ends_first(self) -> list[int]:
        """Return all states in an order in which each state comes after all its successors.

        If states form a cycle, this is impossible; then some of them come before a successor.
        """
        order: list[int] = []
        met = {0}
        path = [(0, iter(self._after[0]))]
        while path:
            place, after = path[-1]
            new = next((each for each in after if each not in met and each != _UNSEEN), None)
            if new is None:
                order.append(place)
                path.pop()
            else:
                met.add(new)
                path.append((new, iter(self._after[new])))
        return order


def _reversed(after: Sequence[Sequence[int]]) -> list[list[int]]:
    """Return a list of predecessors for each state. `after` has a list of successors for each state.

    If several steps lead from one state to another, the predecessor is listed once for each of these steps.
    """
    before: list[list[int]] = [[] for _ in after]
    for place, successors in enumerate(after):
        for each in successors:
            if each != _UNSEEN:
                before[each].append(place)
    return before
