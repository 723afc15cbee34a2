"""The interface of an open model: which actions a learner decides, and the arguments of the learner's function."""

from collections.abc import Sequence
from typing import Any, Protocol

from labkit.sim.model import Action
from labkit.sim.overlay import Below

Question = tuple[Any, ...]
"""The arguments of a learner's function: plain values, fresh for every call."""


class OpenModel(Below[Any], Protocol):
    """A simulator in which a learner decides some actions; `actions` returns all of them, whether right or wrong."""

    steps: tuple[str, ...]
    """The names of the actions that a learner decides."""


class ChoiceModel(OpenModel, Protocol):
    """An open model in which one answer is one open action, for example which channel a task reads."""

    def question(self, state: Any, action: Action) -> Question | None:
        """Return the arguments of the learner's function before an open action; None for all other actions."""
        ...


class ProgramModel(OpenModel, Protocol):
    """An open model in which one answer is a list of open actions, whose execution a crash may interrupt."""

    def asks(self, before: Any, action: Action, after: Any, /) -> Question | None:
        """Return the arguments of the learner's function if it is called after this action; otherwise None."""
        ...

    def program(self, after: Any, answer: Sequence[Any], /) -> Sequence[Action]:
        """Return the open actions of the learner's answer.

        Raises `ValueError`, with a sentence, for an invalid answer.
        """
        ...

    def forgets(self, action: Action, after: Any, /) -> bool:
        """Return whether an action ends the execution of the answer, because the process that executes it has died."""
        ...
