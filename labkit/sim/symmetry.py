"""A smaller model, in which states that differ only in the order of interchangeable processes are one state.

If two participants of a protocol follow the same rules and start alike, whatever can happen to one can happen to the
other, and a property that names neither of them holds for both or for none. So a search needs only one state of each
such class (Ip and Dill, "Better Verification Through Symmetry", 1993). A shortest trace in the smaller model is as long
as one in the model itself, and `in_full` translates it.
"""

from collections.abc import Sequence
from dataclasses import replace

from labkit.core.errors import InvalidInput
from labkit.sim.explore import Exploration, Violation
from labkit.sim.model import Action, Model, StateT
from labkit.sim.overlay import Overlay
from labkit.sim.walk import Replay


class Quotient(Overlay[StateT]):
    """Wraps a simulator and treats states as equal if they differ only in the order of interchangeable processes.

    So a search has fewer states to visit. Raises `InvalidInput` for a simulator without interchangeable processes.
    """

    def __init__(self, model: Model[StateT]) -> None:
        super().__init__(model)
        self.model = model
        if not model.seats(model.initial()):
            raise InvalidInput(
                f"{model.name} with --symmetry: this simulator has no interchangeable processes; leave --symmetry out."
            )

    def shown(self, state: StateT) -> StateT:
        """Return the state with its interchangeable processes sorted.

        The result represents all states that differ from it only in the order of these processes.
        """
        seats = self.model.seats(state)
        order = sorted(range(len(seats)), key=seats.__getitem__)
        if all(map(int.__le__, order, order[1:])):
            return state
        return self.model.seated(state, order)

    def initial(self) -> StateT:
        return self.shown(self.model.initial())

    def actions(self, state: StateT) -> Sequence[Action]:
        """Return the enabled actions, except those of a process that is in the same state as an earlier process.

        The actions left out would only lead to states that are equivalent to others.
        """
        seats = self.model.seats(state)
        return [
            action
            for action in self.model.actions(state)
            if action.which < 1 or seats[action.which] != seats[action.which - 1]
        ]

    def apply(self, state: StateT, action: Action) -> StateT:
        return self.shown(self.model.apply(state, action))

    def in_full(self, exploration: Exploration) -> Exploration:
        """Translate the result of a search of this wrapper into a result of the wrapped simulator.

        Only the traces and reasons of violations change, because they contain the numbers of processes.
        """
        return replace(exploration, violations=tuple(map(self._in_full, exploration.violations)))

    def _in_full(self, violation: Violation) -> Violation:
        walk = self.walk(violation.trace.actions)
        claim = next(claim for claim in self.properties() if claim.name == violation.property)
        return Violation(claim.name, claim.because(walk.state), walk.trace)

    def walk(self, actions: Sequence[Action]) -> Replay:
        """Return the run of the wrapped simulator that corresponds to a run of this wrapper with these actions.

        After each step, the states of the two runs differ only in the order of interchangeable processes.
        """
        walk, here = Replay(self.model), self.initial()
        for action in actions:
            here = self.apply(here, action)
            steps = self.model.successors(walk.state)
            walk.forward(next(step for step, after in steps if self.shown(after) == here))
        return walk
