"""What a drill has beside a model: which of its actions a learner decides, and what is asked before they are decided.

This module must not know any drill, and must not ask anybody.
"""

from collections.abc import Sequence
from typing import Any, Protocol

from labkit.sim.model import Action, Model

Question = tuple[Any, ...]
"""The arguments of a learner's function: plain values, fresh for every question."""


class Choosing(Protocol):
    """A drill in which each open action is one answer: who comes back, which channel is read."""

    steps: Sequence[str]
    """The names of the actions that a learner decides."""

    def question(self, state: Any, action: Action) -> Question | None:
        """What is asked before an open action may be taken; None for all others."""
        ...


class Programmed(Protocol):
    """A drill in which an answer is a list of open actions, which a crash may cut short."""

    steps: Sequence[str]
    """The names of the actions that a learner decides."""

    def asks(self, before: Any, action: Action, after: Any) -> Question | None:
        """What is asked once an action has been taken; None where nothing is."""
        ...

    def program(self, after: Any, answer: Sequence[Any]) -> Sequence[Action]:
        """The open actions that an answer names. Raises `ValueError` with a sentence for one that names none."""
        ...

    def forgets(self, action: Action, after: Any) -> bool:
        """Whether an action cuts a program short: whoever carries it out has died."""
        ...


AnyModel = Model[Any]
