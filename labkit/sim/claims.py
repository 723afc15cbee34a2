"""The properties of a model that a search has not decided yet, and the check of new states against them."""

from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from itertools import filterfalse
from typing import Generic

from labkit.sim.model import Model, Mood, Property, StateT


@dataclass
class Claims(Generic[StateT]):
    """The properties that a search still has to check, and the violations that it has found so far.

    The search checks an "always" or "eventually" property until a state violates it, and a "sometimes" property until a
    state fulfils it. `broken` pairs each violated property with the state that violates it.
    """

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
        """Return the names of the properties that the search need not check any more."""
        claims = (*self.always, *self.sometimes, *self.eventually)
        return {claim.name for claim in self.model.properties()} - {claim.name for claim in claims}

    def settle(self, names: Collection[str]) -> None:
        """Stop checking the properties with these names, because another process of the search has decided them."""
        for claims in (self.always, self.sometimes, self.eventually):
            claims[:] = [claim for claim in claims if claim.name not in names]

    def meet(self, states: list[StateT]) -> None:
        """Check new states against the "always" and "sometimes" properties.

        Once a state violates an "always" property or fulfils a "sometimes" property, the property is not checked again.
        """
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
        """Check a terminal state, which has no enabled actions, against the "eventually" properties."""
        for claim in list(self.eventually):
            if not claim.holds(state):
                self.eventually.remove(claim)
                self.broken.append((claim, state))
