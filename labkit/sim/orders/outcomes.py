"""Search every schedule of one design, and judge what readers saw in the schedules that ran to their end.

The guarantee is the one that holds in every schedule. The witness of a violated claim is a shortest schedule, with the
fewest crashes, that violates it.
"""

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import NamedTuple

from labkit.core.judge import Outcome, judge
from labkit.core.verdict import Guarantee, guarantee
from labkit.sim.model import Action
from labkit.sim.models.orders.claims import ENDS, MEANWHILE, expected, history_of, is_done
from labkit.sim.models.orders.model import Orders
from labkit.sim.models.orders.state import PARAMETERS, Seen, Settings, State, World, parameters_of
from labkit.sim.parameters import settle
from labkit.sim.walk import Trace
from labkit.sim.writes import Design, Output

CLAIMS = (*ENDS, *MEANWHILE)
"""The claims that are checked at every end, in the sequence in which results list them."""

ReaderSaw = tuple[tuple[int, int], ...]
"""What one reader saw: offset and value of each row in the order of visibility; (-1, 0) marks a crash."""


class OrderResult(NamedTuple):
    """The results of searching every schedule of a design in one world."""

    guarantee: Guarantee
    witnesses: Mapping[str, Trace]
    """For each claim that some complete schedule violates, a shortest one with the fewest crashes."""
    readers: frozenset[ReaderSaw]
    """Everything that readers can have seen by the end, one entry per different sequence of rows and crashes."""
    states: int

    @property
    def digest(self) -> str:
        """Return a hash of what readers can have seen.

        Designs with the same hash cannot be distinguished by readers.
        """
        return digest(self.readers)


def digest(readers: Iterable[ReaderSaw]) -> str:
    """Return a hash of what readers can have seen; unlike Python's own hash, it is the same in every process."""
    return hashlib.sha256(repr(sorted(readers)).encode()).hexdigest()[:16]


def make(design: Design, world: World = World.SAME, **more: object) -> Orders:
    """Return the simulator of a design in a world (the rows that a repeated step gets). Raises `InvalidInput`.

    `more` are the simulator's other parameters.
    """
    chosen = parameters_of(design, world) | more
    return Orders(settle(Orders.name, PARAMETERS, chosen))


def find(design: Design, world: World = World.SAME, **more: object) -> OrderResult:
    """Search every schedule of a design in a world, and return the results.

    `more` are the simulator's other parameters.
    """
    model = make(design, world, **more)
    return _Search(model).result()


class _Search:
    """One breadth-first search of a design: every state with its predecessor, and the results at the ends so far."""

    def __init__(self, model: Orders) -> None:
        self.model, self.settings = model, model.settings
        self.parents: dict[State, State | None] = {model.initial(): None}
        self.witnesses: dict[str, State] = {}
        self.readers: set[ReaderSaw] = set()

    def result(self) -> OrderResult:
        """Run the search to its end, and return the results."""
        level = list(self.parents)
        while level:
            level = list(self._next_level(level))
        traces = {name: self._trace(self.witnesses[name]) for name in CLAIMS if name in self.witnesses}
        return OrderResult(_left(traces), MappingProxyType(traces), frozenset(self.readers), len(self.parents))

    def _next_level(self, level: list[State]) -> Iterator[State]:
        """Yield every new state that one action reaches from these states, and judge those of them that are ends."""
        model, parents = self.model, self.parents
        for state in level:
            if is_done(self.settings, state):
                self._end(state)
            for action in model.actions(state):
                after = model.apply(state, action)
                if after not in parents:
                    parents[after] = state
                    yield after

    def _end(self, state: State) -> None:
        saw = read(state.seen)
        if saw in self.readers:
            return
        self.readers.add(saw)
        for name in broken(self.settings, state.seen):
            witness = self.witnesses.get(name)
            if witness is None or witness.crashes < state.crashes:
                self.witnesses[name] = state

    def _trace(self, state: State) -> Trace:
        actions: list[Action] = []
        while (before := self.parents[state]) is not None:
            steps = self.model.successors(before)
            actions.append(next(each for each, after in steps if after == state))
            state = before
        return Trace.of(self.model, actions[::-1])


def read(seen: tuple[Seen, ...]) -> ReaderSaw:
    """Return offset and value of each row, because a reader does not know which step or restart wrote the row."""
    return tuple(row[:2] for row in seen)


def broken(settings: Settings, seen: tuple[Seen, ...]) -> tuple[str, ...]:
    """Return the names of the claims that these visible rows violate."""
    keyed = settings.design.output is Output.UPSERT
    return _broken(keyed, settings.world is World.OTHER, settings.rows, read(seen))


# By position, since arguments with names would cost the cache a longer key.
@lru_cache(maxsize=200_000)
def _broken(keyed: bool, other: bool, rows: int, saw: ReaderSaw) -> tuple[str, ...]:  # noqa: FBT001  # by position, for the cache
    seen = [Seen(offset, value, 0, 1) for offset, value in saw]
    history = history_of(seen, rows=rows, keyed=keyed, bounds_change=other)
    properties = judge(expected(rows), history).properties
    return tuple(name for name in CLAIMS if properties[name] is Outcome.VIOLATED)


def _left(broken_claims: Mapping[str, object]) -> Guarantee:
    return guarantee({name: Outcome.VIOLATED if name in broken_claims else Outcome.HOLDS for name in ENDS})
