"""An open model whose open rule is closed by a learner's function: only what it answers may happen.

The closed model has the open model's name, version and parameters, so that its traces are traces of the open model.
"""

from collections.abc import Callable, Hashable, Sequence
from typing import Any, NamedTuple

from labkit.sim.model import Action, Property
from labkit.sim.open_models.base import ChoiceModel, ProgramModel, Question
from labkit.sim.overlay import Overlay
from labkit.teach.exercises.asking import Asker, Unusable, a_list

MAX_STEPS = 50
"""Steps of the longest answer; right ones need far fewer."""

Allows = Callable[[Asker, Any, Any, Action], bool]
"""Whether a learner's function lets an open action happen: of the function, the open model, a state and the action."""


class ClosedModel(Overlay[Any]):
    """An open model in which each open action is one answer."""

    def __init__(self, open_model: ChoiceModel, ask: Asker, allows: Allows) -> None:
        super().__init__(open_model)
        self.open_model, self.ask, self._allows = open_model, ask, allows

    def actions(self, state: Any) -> Sequence[Action]:
        """What the open model enables and the learner's function allows."""
        open_model, ask, allows = self.open_model, self.ask, self._allows
        return [
            each
            for each in open_model.actions(state)
            if each.name not in open_model.steps or allows(ask, open_model, state, each)
        ]

    def refused(self, state: Any) -> list[Question]:
        """What was asked in a state in which nothing is allowed any more."""
        if self.actions(state):
            return []
        questions = (self.open_model.question(state, each) for each in self.open_model.actions(state))
        return [question for question in questions if question is not None]

    def asked(self, before: Any, action: Action, _after: Any) -> Question | None:
        """What was asked for an action."""
        return self.open_model.question(before, action)


class Busy(NamedTuple):
    """A state of an open model, and what the learner's last answer still has to do."""

    state: Hashable
    todo: tuple[Action, ...] = ()


class Run(Overlay[Any]):
    """An open model in which an answer is a list of steps that a crash may cut short."""

    def __init__(self, open_model: ProgramModel, ask: Asker, of: str) -> None:
        super().__init__(open_model)
        self.open_model, self.ask, self._of = open_model, ask, of

    def initial(self) -> Busy:
        """The open model's, and nothing to do."""
        return Busy(self.open_model.initial())

    def actions(self, state: Busy) -> Sequence[Action]:
        """The next step of an answer, and everything that is not up to the learner. Raises `Unusable`."""
        steps = self.open_model.steps
        enabled = self.open_model.actions(state.state)
        free = [action for action in enabled if action.name not in steps]
        if not state.todo:
            return free
        if state.todo[0] not in enabled:
            raise Unusable(f"{self.ask.name} asks for {state.todo[0]}, which is not possible then.")
        return [state.todo[0], *free]

    def apply(self, state: Busy, action: Action) -> Busy:
        """One step; a new question is asked where the open model says so. Raises `Unusable`."""
        after = self.open_model.apply(state.state, action)
        question = self.open_model.asks(state.state, action, after)
        if question is not None:
            return Busy(after, self._program(after, question))
        if self.open_model.forgets(action, after):
            return Busy(after)
        return Busy(after, state.todo[1:] if state.todo[:1] == (action,) else state.todo)

    def _program(self, after: Any, question: Question) -> tuple[Action, ...]:
        steps = a_list(self.ask, self.ask(*question), self._of)
        if len(steps) > MAX_STEPS:
            raise Unusable(f"{self.ask.call(*question)} returned {len(steps)} steps, more than {MAX_STEPS}.")
        try:
            return tuple(self.open_model.program(after, steps))
        except ValueError as error:
            raise Unusable(f"{self.ask.with_answer(*question)}: {error}") from None

    def properties(self) -> Sequence[Property[Busy]]:
        """The open model's claims, of the open model's states."""
        return [_of_state(claim) for claim in self.open_model.properties()]

    def text(self, state: Busy) -> str:
        """The open model's, and what is still to be done."""
        return f"{self.open_model.text(state.state)} To do: {' '.join(map(str, state.todo)) or '-'}."

    def refused(self, _state: Busy) -> list[Question]:
        """Nothing: a list of steps does not refuse any."""
        return []

    def asked(self, before: Busy, action: Action, after: Busy) -> Question | None:
        """What was asked after an action."""
        return self.open_model.asks(before.state, action, after.state)


def _of_state(claim: Property[Any]) -> Property[Busy]:
    where = claim.where
    return claim._replace(
        holds=lambda busy: claim.holds(busy.state),
        because=lambda busy: claim.because(busy.state),
        where=None if where is None else lambda busy: where(busy.state),
    )
