"""A model on top of another one, which may remove actions, replace properties, or extend the state."""

from collections.abc import Sequence

from labkit.sim.model import Action, Model, Property, StateT


class Overlay(Model[StateT]):
    """A simulator that wraps another one, `below`, and delegates all calls to it; subclasses override some of them.

    The two simulators have the same name, version and parameters, so each can replay traces of the other.
    """

    def __init__(self, below: Model[StateT]) -> None:
        super().__init__(below.values)
        self.name, self.version = below.name, below.version
        self.parameters, self.below = below.parameters, below
        self.row = below.row

    def initial(self) -> StateT:
        return self.below.initial()

    def actions(self, state: StateT) -> Sequence[Action]:
        return self.below.actions(state)

    def apply(self, state: StateT, action: Action) -> StateT:
        return self.below.apply(state, action)

    def properties(self) -> Sequence[Property[StateT]]:
        return self.below.properties()

    def text(self, state: StateT) -> str:
        return self.below.text(state)

    def sentence(self, action: Action) -> str:
        return self.below.sentence(action)
