"""The work of a helper process in a search on several cores: compute the states that actions lead to.

Only the leading process knows which states are new. It sends each helper some states of a level, and adds the states
that the helper returns (`labkit.sim.explore.Search.admit`). Both processes encode states as the same numbers. A state
with a value that has no code yet has no number, so the helper sends the state itself.
"""

from array import array
from collections.abc import Sequence
from typing import Generic

from labkit.sim.claims import Claims
from labkit.sim.explore import Expansion, Search, expand
from labkit.sim.model import StateT
from labkit.sim.packing import News, compact


class Expander(Generic[StateT]):
    """Computes the successors of states in a helper process, for a search that another process leads.

    `begun` is a copy of the leading process's search, made when the helper started. The copy contains the codes by
    which states are encoded.
    """

    def __init__(self, begun: Search[StateT]) -> None:
        self._model, self._packer = begun.model, begun.packer
        self._claims = Claims(begun.model)
        self._claims.settle(begun.claims.settled)

    def learn(self, news: Sequence[News]) -> None:
        """Add the codes in `news`, which the leading process has given to field values since the last call."""
        self._packer.read_on(news)

    def expand(self, numbers: Sequence[int], *, is_last: bool, are_often_met: bool) -> Expansion:
        """Check the properties in the states that these numbers encode, and compute the states' successors.

        `is_last` says that this is the last level of the search, so that no successors are computed. `are_often_met`
        says that the search reaches most states several times. In this case, a common successor of several of these
        states is reported only once.
        """
        claims, pack = self._claims, self._packer.pack
        states = list(map(self._packer.unpack, numbers))
        claims.meet(states)
        met = [(name, states.index(state)) for name, state in self._broken()]
        ended: list[tuple[str, int]] = []
        enabled_by_state, counts = array("H"), array("H")
        reached: list[int] = []
        unencoded: list[tuple[int, StateT]] = []
        sent = set[int]()
        expanded = expand(self._model, claims, [] if is_last else states, each_once=are_often_met)
        for place, (enabled, successors) in enumerate(expanded):
            before = len(reached)
            ended += [(name, place) for name, _ in self._broken()]
            for successor in successors:
                try:
                    number = pack(successor)
                except KeyError:
                    unencoded.append((len(reached), successor))
                    reached.append(0)
                    continue
                if number not in sent:
                    sent.add(number)
                    reached.append(number)
            enabled_by_state.append(enabled)
            counts.append(len(reached) - before)
        unreached = [claim.name for claim in claims.sometimes]
        return Expansion(met, ended, unreached, enabled_by_state, counts, compact(reached), unencoded)

    def _broken(self) -> list[tuple[str, StateT]]:
        broken, self._claims.broken = self._claims.broken, []
        return [(claim.name, state) for claim, state in broken]
