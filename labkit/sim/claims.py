"""The properties of a model that a search has not decided yet, and the rules by which new states decide them."""

from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from itertools import filterfalse
from typing import Generic

from labkit.sim.model import Model, Mood, Property, StateT


@dataclass
class Claims(Generic[StateT]):
    """The undecided properties of a search: not violated so far, and for "sometimes" not reached so far."""

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
        """Return the names of the properties that are violated or reached by now."""
        claims = (*self.always, *self.sometimes, *self.eventually)
        return {claim.name for claim in self.model.properties()} - {claim.name for claim in claims}

    def settle(self, names: Collection[str]) -> None:
        """Remove the properties that other processes of the search have decided."""
        for claims in (self.always, self.sometimes, self.eventually):
            claims[:] = [claim for claim in claims if claim.name not in names]

    def meet(self, states: list[StateT]) -> None:
        """Check new states, and move the properties that they decide.

        If several properties apply to the same states (`where`), these states are selected once.
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
        """Check a terminal state, one without enabled actions, against the properties that concern the end."""
        for claim in list(self.eventually):
            if not claim.holds(state):
                self.eventually.remove(claim)
                self.broken.append((claim, state))
