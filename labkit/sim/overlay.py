"""A model that changes another one: it takes actions away, makes other claims, or adds to the state."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from labkit.sim.model import Action, Model, Property, StateT
from labkit.sim.parameters import Parameter, Values


class Below(Protocol[StateT]):
    """What an overlay needs of the model below it: all that a `labkit.sim.model.Model` must define."""

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
    """Hands everything on to the model `below`, whose name, version and parameters it takes, so that traces are its
    own.
    """

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
