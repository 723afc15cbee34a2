"""A model in which states that differ only in which of its equal processes is which are one state.

Two participants of a protocol that follow the same rules and start alike may change places: what can happen to the one
can happen to the other, and a claim that names neither holds of both or of none. So one state of each such class is
enough (Ip and Dill, "Better Verification Through Symmetry", 1993). A shortest way in the smaller model is as long as
one in the model itself, and is turned into it (`in_full`).
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from labkit.core.errors import InvalidInput
from labkit.sim.explore import Exploration, Violation
from labkit.sim.model import Action, Model, Property, StateT
from labkit.sim.walk import Replay


class Quotient(Model[StateT]):
    """A model's classes of states, each shown by the state in which its processes sit in order of what they are.

    Raises `InvalidInput` for a model whose processes all differ.
    """

    def __init__(self, model: Model[StateT]) -> None:
        super().__init__(model.values)
        self.model = model
        self.name, self.version = model.name, model.version
        self.parameters, self.row = model.parameters, model.row
        if not model.seats(model.initial()):
            raise InvalidInput(
                f"{model.name} with --symmetry: no two of its processes may change places; leave --symmetry out."
            )

    def shown(self, state: StateT) -> StateT:
        """The state that stands for the class of this one."""
        seats = self.model.seats(state)
        order = sorted(range(len(seats)), key=seats.__getitem__)
        if all(map(int.__le__, order, order[1:])):
            return state
        return self.model.seated(state, order)

    def initial(self) -> StateT:
        """The class in which everything starts."""
        return self.shown(self.model.initial())

    def actions(self, state: StateT) -> Sequence[Action]:
        """What may happen; of processes that are equal now, to the first one only."""
        seats = self.model.seats(state)
        return [
            action
            for action in self.model.actions(state)
            if action.which < 1 or seats[action.which] != seats[action.which - 1]
        ]

    def apply(self, state: StateT, action: Action) -> StateT:
        """The class of the state after an action."""
        return self.shown(self.model.apply(state, action))

    def properties(self) -> Sequence[Property[StateT]]:
        """The model's own claims, which may name no process."""
        return self.model.properties()

    def text(self, state: StateT) -> str:
        """The state that stands for a class."""
        return self.model.text(state)

    def sentence(self, action: Action) -> str:
        """What an action sets out to do."""
        return self.model.sentence(action)

    def in_full(self, found: Exploration) -> Exploration:
        """What a search of this one found, with traces and reasons that are the model's own."""
        return replace(found, violations=tuple(map(self._in_full, found.violations)))

    def _in_full(self, violation: Violation) -> Violation:
        walk = self.walk(violation.trace.actions)
        claim = next(claim for claim in self.properties() if claim.name == violation.property)
        return Violation(claim.name, claim.because(walk.state), walk.trace)

    def walk(self, actions: Sequence[Action]) -> Replay:
        """A walk through the model whose states belong, one by one, to the classes on this way."""
        walk, here = Replay(self.model), self.initial()
        for action in actions:
            here = self.apply(here, action)
            walk.forward(self._step_into(walk.state, here))
        return walk

    def _step_into(self, state: Any, wanted: StateT) -> Action:
        return next(action for action, after in self.model.successors(state) if self.shown(after) == wanted)
