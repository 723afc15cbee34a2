"""What an open model has beside a model: which of its actions a learner decides, and what is asked before they are
decided.
"""

from collections.abc import Sequence
from typing import Any, Protocol

from labkit.sim.model import Action
from labkit.sim.overlay import Below

Question = tuple[Any, ...]
"""The arguments of a learner's function: plain values, fresh for every question."""


class OpenModel(Below[Any], Protocol):
    """A simulator some of whose actions a learner decides; `actions` gives all of them, as if anything were right."""

    steps: tuple[str, ...]
    """The names of the actions that a learner decides."""


class ChoiceModel(OpenModel, Protocol):
    """An open model in which each open action is one answer: who comes back, which channel is read."""

    def question(self, state: Any, action: Action) -> Question | None:
        """What is asked before an open action may be taken; None for all others."""
        ...


class ProgramModel(OpenModel, Protocol):
    """An open model in which an answer is a list of open actions, which a crash may cut short."""

    def asks(self, before: Any, action: Action, after: Any, /) -> Question | None:
        """What is asked once an action has been taken; None where nothing is."""
        ...

    def program(self, after: Any, answer: Sequence[Any], /) -> Sequence[Action]:
        """The open actions that an answer names. Raises `ValueError` with a sentence for one that names none."""
        ...

    def forgets(self, action: Action, after: Any, /) -> bool:
        """Whether an action cuts a program short: whoever carries it out has died."""
        ...
