"""Which claims of a model a search has not settled yet, and how it looks at states with them."""

from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from itertools import filterfalse
from typing import Generic

from labkit.sim.model import Model, Mood, Property, StateT


@dataclass
class Claims(Generic[StateT]):
    """The properties that are still open: not yet violated, or not yet reached."""

    model: Model[StateT]
    always: list[Property[StateT]] = field(default_factory=list)
    sometimes: list[Property[StateT]] = field(default_factory=list)
    eventually: list[Property[StateT]] = field(default_factory=list)
    broken: list[tuple[Property[StateT], StateT]] = field(default_factory=list)

    def __post_init__(self) -> None:
        for claim in self.model.properties():
            {Mood.ALWAYS: self.always, Mood.SOMETIMES: self.sometimes, Mood.EVENTUALLY: self.eventually}[
                claim.mood
            ].append(claim)

    @property
    def settled(self) -> set[str]:
        """The names of those that are not open any more."""
        claims = (*self.always, *self.sometimes, *self.eventually)
        return {claim.name for claim in self.model.properties()} - {claim.name for claim in claims}

    def settle(self, names: Collection[str]) -> None:
        """Drops claims about which others have found out."""
        for claims in (self.always, self.sometimes, self.eventually):
            claims[:] = [claim for claim in claims if claim.name not in names]

    def meet(self, states: list[StateT]) -> None:
        """Looks at states that were never seen before; those that several claims speak of are picked once."""
        picked: dict[Callable[[StateT], bool] | None, list[StateT]] = {None: states}
        for claim in [*self.always, *self.sometimes]:
            if claim.where not in picked:
                picked[claim.where] = list(filter(claim.where, states))
        for claim in list(self.always):
            for state in filterfalse(claim.holds, picked[claim.where]):
                self.always.remove(claim)
                self.broken.append((claim, state))
                break
        for claim in list(self.sometimes):
            if any(map(claim.holds, picked[claim.where])):
                self.sometimes.remove(claim)

    def end(self, state: StateT) -> None:
        """Looks at a terminal state."""
        for claim in list(self.eventually):
            if not claim.holds(state):
                self.eventually.remove(claim)
                self.broken.append((claim, state))
