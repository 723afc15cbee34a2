"""Search every schedule of one design, and judge what readers saw in each schedule that ran to its end.

The guarantee of a design holds in every schedule. The witness of a violated claim is a schedule that violates it with
the fewest crashes and, among those, with the fewest actions.
"""

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import NamedTuple

from labkit.core.judge import Outcome, judge
from labkit.core.verdict import Guarantee, guarantee
from labkit.sim.explore import step_between
from labkit.sim.model import Action
from labkit.sim.models.orders.claims import ENDS, MEANWHILE, expected, history_of, is_done
from labkit.sim.models.orders.model import Orders
from labkit.sim.models.orders.state import PARAMETERS, Seen, Settings, State, World, parameters_of
from labkit.sim.parameters import settle
from labkit.sim.walk import Trace
from labkit.sim.writes import Design, Output

CLAIMS = (*ENDS, *MEANWHILE)
"""The names of the properties (claims) that are checked at the end of every schedule, in the order of the results."""

ReaderSaw = tuple[tuple[int, int], ...]
"""The rows that one reader saw: offset and value of each, in the order of visibility. (-1, 0) marks a crash, and
(-2, 0) the removal of the newest row that is left.
"""


class OrderResult(NamedTuple):
    """The result of a search through all runs of a job that makes its durable writes in a certain order."""

    guarantee: Guarantee
    witnesses: Mapping[str, Trace]
    """For each violated property (claim), a schedule that violates it with the fewest crashes, and among those with the
    fewest actions.
    """
    readers: frozenset[ReaderSaw]
    """Every sequence of rows and crashes that a reader can have seen by the end."""
    states: int
    """The number of states that the search visited."""

    @property
    def digest(self) -> str:
        """Return a hash of all that readers can have seen; orders with the same hash look the same to every reader."""
        return digest(self.readers)


def digest(readers: Iterable[ReaderSaw]) -> str:
    """Return a hash of everything that readers can have seen; every Python process computes the same hash."""
    return hashlib.sha256(repr(sorted(readers)).encode()).hexdigest()[:16]


def make(design: Design, world: World = World.SAME, **more: object) -> Orders:
    """Return the simulator of a job with this design; `more` are further parameters of the simulator.

    Raises `InvalidInput` if a parameter has a value that is not allowed.
    """
    chosen = parameters_of(design, world) | more
    return Orders(settle(Orders.name, PARAMETERS, chosen))


def find(design: Design, world: World = World.SAME, **more: object) -> OrderResult:
    """Search all runs of a job with this design in the simulator `orders`, and return the result.

    `more` are further parameters of the simulator.
    """
    model = make(design, world, **more)
    return _Search(model).result()


class _Search:
    """A breadth-first search that collects what readers have seen at the end of each run."""

    def __init__(self, model: Orders) -> None:
        self.model, self.settings = model, model.settings
        self.parents: dict[State, State | None] = {model.initial(): None}
        self.witnesses: dict[str, State] = {}
        self.readers: set[ReaderSaw] = set()

    def result(self) -> OrderResult:
        level = list(self.parents)
        while level:
            level = list(self._next_level(level))
        traces = {name: self._trace(self.witnesses[name]) for name in CLAIMS if name in self.witnesses}
        left = guarantee({name: Outcome.VIOLATED if name in traces else Outcome.HOLDS for name in ENDS})
        return OrderResult(left, MappingProxyType(traces), frozenset(self.readers), len(self.parents))

    def _next_level(self, level: list[State]) -> Iterator[State]:
        """Judge the states in which the run is finished, and yield every new state that one action leads to."""
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
            actions.append(step_between(self.model, before, state))
            state = before
        return Trace.of(self.model, actions[::-1])


def read(seen: tuple[Seen, ...]) -> ReaderSaw:
    """Return offset and value of each entry in `seen`, because a reader sees nothing else."""
    return tuple(row[:2] for row in seen)


def broken(settings: Settings, seen: tuple[Seen, ...]) -> tuple[str, ...]:
    """Return the names of the properties, such as no_loss, that these visible rows violate."""
    keyed = settings.design.output is Output.UPSERT
    return _broken(keyed, settings.world is World.OTHER, settings.rows, read(seen))


# By position, because keyword arguments would make the cache's keys longer.
@lru_cache(maxsize=200_000)
def _broken(keyed: bool, other: bool, rows: int, saw: ReaderSaw) -> tuple[str, ...]:  # noqa: FBT001  # by position, for the cache
    seen = [Seen(offset, value, 0, 1) for offset, value in saw]
    history = history_of(seen, rows=rows, keyed=keyed, bounds_change=other)
    properties = judge(expected(rows), history).properties
    return tuple(name for name in CLAIMS if properties[name] is Outcome.VIOLATED)
