"""The interface of an open model: which actions a learner decides, and the arguments of the learner's function."""

from collections.abc import Sequence
from typing import Any, Protocol

from labkit.sim.model import Action
from labkit.sim.overlay import Below

Question = tuple[Any, ...]
"""The arguments of a learner's function: plain values, fresh for every call."""


class OpenModel(Below[Any], Protocol):
    """A simulator in which a learner decides some actions; `actions` returns all possible ones, right or wrong."""

    steps: tuple[str, ...]
    """The names of the actions that a learner decides."""


class ChoiceModel(OpenModel, Protocol):
    """An open model in which each answer of the learner is one action, for example which channel a task reads."""

    def question(self, state: Any, action: Action) -> Question | None:
        """Return the arguments of the learner's function that decides this action; None if the model decides it."""
        ...


class ProgramModel(OpenModel, Protocol):
    """An open model in which each answer of the learner is a list of actions; a crash may interrupt their execution."""

    def asks(self, before: Any, action: Action, after: Any, /) -> Question | None:
        """Return the arguments of the learner's function if it is to be called after this action; otherwise None.

        `before` and `after` are the states before and after the action.
        """
        ...

    def program(self, after: Any, answer: Sequence[Any], /) -> Sequence[Action]:
        """Return the actions that the learner's answer stands for, in the state `after`.

        Raises `ValueError`, with a sentence for the learner, if the answer is invalid.
        """
        ...

    def forgets(self, action: Action, after: Any, /) -> bool:
        """Return whether the process that executes the answer has died, so that the rest of the answer is dropped."""
        ...
