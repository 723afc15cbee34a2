"""Search every schedule of one design, and judge what readers saw in each schedule that ran to its end.

The guarantee of a design holds in every schedule. The witness of a violated claim is a schedule that violates it with
the fewest crashes and, among those, with the fewest actions.
"""

import hashlib
from collections.abc import Iterable, Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import NamedTuple

from labkit.core.judge import Outcome, judge
from labkit.core.verdict import Guarantee, guarantee
from labkit.sim.explore import Search
from labkit.sim.models.orders.claims import ENDS, MEANWHILE, expected, history_of, is_done
from labkit.sim.models.orders.model import Orders
from labkit.sim.models.orders.state import PARAMETERS, Seen, Settings, State, World, parameters_of
from labkit.sim.parameters import settle
from labkit.sim.walk import Trace
from labkit.sim.writes import Design, Output

CLAIMS = (*ENDS, *MEANWHILE)
"""The names of the properties (claims) that are checked at the end of every schedule, in the order of the results."""

_ALL_STATES = 1 << 62
"""A limit on the states of a search that no search reaches."""

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
    search = Search(model, _ALL_STATES)
    search.claims.settle([claim.name for claim in model.properties()])  # here the judge looks at the ends of runs only
    readers, last = set[ReaderSaw](), dict[str, State]()
    for state in map(search.packer.unpack, search.run().parents):
        if is_done(model.settings, state) and (saw := read(state.seen)) not in readers:
            readers.add(saw)
            for name in broken(model.settings, state.seen):
                if name not in last or last[name].crashes < state.crashes:
                    last[name] = state
    witnesses = {name: search.trace_to(last[name]) for name in CLAIMS if name in last}
    left = guarantee({name: Outcome.VIOLATED if name in witnesses else Outcome.HOLDS for name in ENDS})
    return OrderResult(left, MappingProxyType(witnesses), frozenset(readers), len(search.parents))


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
