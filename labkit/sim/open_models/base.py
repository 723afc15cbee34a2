"""The interface of an open model: which actions a learner decides, and the arguments of the learner's function."""

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

from labkit.sim.model import Action, Model

Question = tuple[Any, ...]
"""The arguments of a learner's function: plain values, fresh for every call."""


class OpenModel(Model[Any]):
    """A simulator in which a learner's function decides some actions.

    Its `actions` include every choice that the function could make, right or wrong.
    """

    steps: tuple[str, ...]
    """The names of the actions that a learner decides."""


class ChoiceModel(OpenModel):
    """A simulator in which the learner's function chooses one action at a time, for example which channel to read."""

    @abstractmethod
    def question(self, state: Any, action: Action) -> Question | None:
        """Return the arguments of the learner's function if it decides this action; None if the simulator does so."""


class ProgramModel(OpenModel):
    """A simulator in which the learner's function returns a list of actions, which a crash may interrupt."""

    @abstractmethod
    def asks(self, before: Any, action: Action, after: Any, /) -> Question | None:
        """Return the arguments of the learner's function if it is called after this action, otherwise None."""

    @abstractmethod
    def program(self, after: Any, answer: Sequence[Any], /) -> Sequence[Action]:
        """Convert the learner's answer into actions.

        `after` is the state in which the learner's function was called. Raises `ValueError`, with a sentence for the
        learner, if the answer is invalid.
        """

    @abstractmethod
    def forgets(self, action: Action, after: Any, /) -> bool:
        """Return whether the process that runs the learner's actions died, so that the rest of them is dropped."""
