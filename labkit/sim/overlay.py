"""A model that changes another one: it removes actions, makes other claims, or adds to the state."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from labkit.sim.model import Action, Model, Property, StateT
from labkit.sim.parameters import Parameter, Values


class Below(Protocol[StateT]):
    """The methods that an overlay needs of the model below it: all that `labkit.sim.model.Model` requires."""

    name: str
    version: int
    parameters: Mapping[str, Parameter]
    values: Values
    row: str

    def initial(self) -> StateT:
        """The state before any action."""
        ...

    def actions(self, state: StateT) -> Sequence[Action]:
        """The enabled actions of a state, in a fixed order."""
        ...

    def apply(self, state: StateT, action: Action) -> StateT:
        """The state after an action."""
        ...

    def properties(self) -> Sequence[Property[StateT]]:
        """What is claimed of every state, of some state, or of every end."""
        ...

    def text(self, state: StateT) -> str:
        """A state as one line for a person."""
        ...

    def sentence(self, action: Action) -> str:
        """What an action sets out to do, in one sentence."""
        ...


class Overlay(Model[StateT]):
    """Delegates everything to the model `below`, with its name, version and parameters, so that traces fit both."""

    def __init__(self, below: Below[StateT]) -> None:
        super().__init__(below.values)
        self.name, self.version = below.name, below.version
        self.parameters, self.below = below.parameters, below
        self.row = below.row

    def initial(self) -> StateT:
        """The initial state of the model below."""
        return self.below.initial()

    def actions(self, state: StateT) -> Sequence[Action]:
        """The enabled actions of the model below."""
        return self.below.actions(state)

    def apply(self, state: StateT, action: Action) -> StateT:
        """The effect in the model below."""
        return self.below.apply(state, action)

    def properties(self) -> Sequence[Property[StateT]]:
        """The claims of the model below."""
        return self.below.properties()

    def text(self, state: StateT) -> str:
        """The line of the model below."""
        return self.below.text(state)

    def sentence(self, action: Action) -> str:
        """The sentence of the model below."""
        return self.below.sentence(action)
