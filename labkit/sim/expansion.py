"""What comes of some states of a level, worked out by a process that does not know which states are known already.

Another process knows all states, hands out those of a level, some at a time, and admits what was reached
(`labkit.sim.explore.Search.admit`). Numbers mean the same to both. A state with a value that has no code yet has no
number, so it is told as the choice that leads to it, and the other process reaches it once more. This module must not
know how numbers travel, and must not know any model.
"""

from array import array
from collections.abc import Sequence
from typing import Generic

from labkit.sim.claims import Claims
from labkit.sim.explore import Expansion, Search, Strange
from labkit.sim.model import StateT
from labkit.sim.packing import News, compact


class Expander(Generic[StateT]):
    """Expands states of a search that another process leads, whose numbers it knows as far as it was told."""

    def __init__(self, begun: Search[StateT]) -> None:
        self._model, self._packer = begun.model, begun.packer
        self._claims = Claims(begun.model)
        self._claims.settle(begun.claims.settled)

    def learn(self, news: Sequence[News]) -> None:
        """Takes over the codes that the other process has given since."""
        self._packer.read_on(news)

    def expand(self, numbers: Sequence[int], *, is_last: bool, are_often_met: bool) -> Expansion:
        """Looks at states, and takes every action in them unless they are of the last level.

        `are_often_met`: whether most states are reached often (`Search.are_often_met`).
        """
        claims, pack = self._claims, self._packer.pack
        actions, apply = self._model.actions, self._model.apply
        states = list(map(self._packer.unpack, numbers))
        claims.meet(states)
        met = [(name, states.index(state)) for name, state in self._broken()]
        ended: list[tuple[str, int]] = []
        enabled_by_state, counts = array("H"), array("H")
        reached: list[int] = []
        strange: list[Strange] = []
        seen, count, told = set[StateT](), 0, set[int]()
        for place, state in enumerate([] if is_last else states):
            enabled, before = actions(state), len(reached)
            if not enabled:
                claims.end(state)
                ended += [(name, place) for name, _ in self._broken()]
            for choice, action in enumerate(enabled):
                successor = apply(state, action)
                if are_often_met:
                    seen.add(successor)
                    if len(seen) == count:  # asking first would hash the state twice
                        continue
                    count += 1
                try:
                    number = pack(successor)
                except KeyError:
                    strange.append(Strange(len(reached), place, choice))
                    reached.append(0)
                    continue
                if number not in told:
                    told.add(number)
                    reached.append(number)
            enabled_by_state.append(len(enabled))
            counts.append(len(reached) - before)
        unreached = [claim.name for claim in claims.sometimes]
        return Expansion(met, ended, unreached, enabled_by_state, counts, compact(reached), strange)

    def _broken(self) -> list[tuple[str, StateT]]:
        broken, self._claims.broken = self._claims.broken, []
        return [(claim.name, state) for claim, state in broken]
