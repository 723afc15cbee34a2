"""Close an open model with a learner's function, so that only the actions that the function chooses can happen.

An open model is a simulator that leaves some decisions to a learner. The closed model has the open model's name,
version and parameters, so its traces are traces of the open model.
"""

from collections.abc import Callable, Hashable, Sequence
from typing import Any, NamedTuple

from labkit.sim.model import Action, Property
from labkit.sim.open_models.base import ChoiceModel, ProgramModel, Question
from labkit.sim.overlay import Overlay
from labkit.teach.exercises.asking import Asker, Unusable, a_list

MAX_STEPS = 50
"""The largest number of steps in one answer of a learner's function; right answers need far fewer."""

Allows = Callable[[Asker, Any, Any, Action], bool]
"""A function that returns whether the learner's function allows an action, given a model, a state and the action."""


class ClosedModel(Overlay[Any]):
    """A simulator in which a learner's function allows or forbids the actions that `open_model` leaves open."""

    def __init__(self, open_model: ChoiceModel, ask: Asker, allows: Allows) -> None:
        super().__init__(open_model)
        self.open_model, self.ask, self._allows = open_model, ask, allows

    def actions(self, state: Any) -> Sequence[Action]:
        """Return the possible actions in a state, without those that the learner's function forbids."""
        open_model, ask, allows = self.open_model, self.ask, self._allows
        return [
            each
            for each in open_model.actions(state)
            if each.name not in open_model.steps or allows(ask, open_model, state, each)
        ]

    def refused(self, state: Any) -> list[Question]:
        """Return the arguments of the learner's calls in a state in which the function forbids all possible actions.

        The list is empty for any other state.
        """
        if self.actions(state):
            return []
        questions = (self.open_model.question(state, each) for each in self.open_model.actions(state))
        return [question for question in questions if question is not None]

    def question(self, before: Any, action: Action, _after: Any) -> Question | None:
        """Return the arguments with which the learner's function is asked about an action.

        Returns None for an action that happens without asking the function.
        """
        return self.open_model.question(before, action)


class Busy(NamedTuple):
    """A simulator's state, and the steps that the learner's function returned and that are not yet done (`todo`)."""

    state: Hashable
    todo: tuple[Action, ...] = ()


class Run(Overlay[Any]):
    """A simulator that performs the steps of the learner's list one by one, so that a crash can happen between them."""

    def __init__(self, open_model: ProgramModel, ask: Asker) -> None:
        super().__init__(open_model)
        self.open_model, self.ask = open_model, ask

    def initial(self) -> Busy:
        """Return the simulator's initial state; the learner's list of steps is empty."""
        return Busy(self.open_model.initial())

    def actions(self, state: Busy) -> Sequence[Action]:
        """Return the possible actions: the next step in `todo`, if there is one, and every action that is not a step.

        Actions that are not steps, such as a crash, are outside of the learner's control. Raises `Unusable` if the next
        step is impossible in this state.
        """
        steps = self.open_model.steps
        enabled = self.open_model.actions(state.state)
        free = [action for action in enabled if action.name not in steps]
        if not state.todo:
            return free
        if state.todo[0] not in enabled:
            raise Unusable(
                f"{self.ask.name} returned a list with the step {state.todo[0]}, but the simulated system could not "
                "perform it when its turn came; return only steps that are possible after the steps before them."
            )
        return [state.todo[0], *free]

    def apply(self, state: Busy, action: Action) -> Busy:
        """Return the state after an action.

        If the action calls the learner's function, the steps that the function returns replace the steps in `todo`.
        Raises `Unusable` if one of the returned steps is impossible.
        """
        after = self.open_model.apply(state.state, action)
        question = self.open_model.asks(state.state, action, after)
        if question is not None:
            return Busy(after, self._program(after, question))
        if self.open_model.forgets(action, after):
            return Busy(after)
        return Busy(after, state.todo[1:] if state.todo[:1] == (action,) else state.todo)

    def _program(self, after: Any, question: Question) -> tuple[Action, ...]:
        steps = a_list(self.ask, self.ask(*question), "steps")
        if len(steps) > MAX_STEPS:
            raise Unusable(
                f"{self.ask.call(*question)} returned {len(steps)} steps, more than {MAX_STEPS}; return fewer."
            )
        try:
            return tuple(self.open_model.program(after, steps))
        except ValueError as error:
            raise Unusable(f"{self.ask.with_answer(*question)}, which is impossible here: {error}") from None

    def properties(self) -> Sequence[Property[Busy]]:
        """Return the simulator's own properties, which look only at its state, not at the learner's remaining steps."""
        return [_of_state(claim) for claim in self.open_model.properties()]

    def text(self, state: Busy) -> str:
        return f"{self.open_model.text(state.state)} To do: {' '.join(map(str, state.todo)) or '-'}."

    def refused(self, _state: Busy) -> list[Question]:
        """Return an empty list, because a learner's function that returns steps cannot forbid actions."""
        return []

    def question(self, before: Busy, action: Action, after: Busy) -> Question | None:
        """Return the arguments with which this action calls the learner's function; None if it does not call it."""
        return self.open_model.asks(before.state, action, after.state)


def _of_state(claim: Property[Any]) -> Property[Busy]:
    where = claim.where
    return claim._replace(
        holds=lambda busy: claim.holds(busy.state),
        because=lambda busy: claim.because(busy.state),
        where=None if where is None else lambda busy: where(busy.state),
    )
