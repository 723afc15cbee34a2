"""A walk through a model, and the trace that is left of it: name, version, parameters and actions, nothing else.

A trace goes into an address as short text (`two_phase_commit~1~participants.2~~start.vote_yes-0...`) and into a file as
plain data.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from labkit.core.errors import InvalidAction
from labkit.sim.model import Action, Model
from labkit.sim.parameters import Value, chosen


@dataclass(frozen=True)
class Trace:
    """What happened, in order. `parameters` are those that differ from their defaults."""

    model: str
    version: int
    parameters: Mapping[str, Value]
    actions: tuple[Action, ...]

    def __str__(self) -> str:
        """Text that may stand in an address: letters, digits and `-._~` only."""
        parts = [self.model, str(self.version), *(f"{name}.{_plain(value)}" for name, value in self.parameters.items())]
        return f"{'~'.join(parts)}~~{'.'.join(_short(action) for action in self.actions)}"

    def to_json(self) -> dict[str, Any]:
        """The trace as plain data."""
        return {
            "model": self.model,
            "version": self.version,
            "parameters": dict(self.parameters),
            "actions": [str(action) for action in self.actions],
        }

    @classmethod
    def of(cls, model: Model[Any], actions: Sequence[Action]) -> "Trace":
        """The trace of these actions in a model."""
        parameters = chosen(model.parameters, model.values)
        return cls(model.name, model.version, parameters, tuple(actions))


def _plain(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _short(action: Action) -> str:
    return action.name if action.which < 0 else f"{action.name}-{action.which}"


class Replay:
    """A model on its way: forward by any enabled action, back, and down any other branch from there."""

    def __init__(self, model: Model[Any]) -> None:
        self.model = model
        self.states: list[Any] = [model.initial()]
        self.actions: list[Action] = []

    @property
    def state(self) -> Any:
        """The state that the walk has come to."""
        return self.states[-1]

    @property
    def trace(self) -> Trace:
        """How it came there."""
        return Trace.of(self.model, self.actions)

    def beginning(self, length: int) -> "Replay":
        """The walk as it was after so many steps."""
        walk = Replay(self.model)
        walk.states, walk.actions = self.states[: length + 1], self.actions[:length]
        return walk

    def forward(self, action: Action) -> Any:
        """Takes one action and returns the new state. Raises `InvalidAction`."""
        self.states.append(self.model.step(self.state, action))
        self.actions.append(action)
        return self.state

    def back(self) -> Any:
        """Takes the last action back and returns the state before it. Raises `InvalidAction` at the beginning."""
        if not self.actions:
            raise InvalidAction("this is the initial state: there is no step to take back.")
        self.actions.pop()
        self.states.pop()
        return self.state

    def lines(self) -> Iterator[str]:
        """Every step as a person reads it: what happened, and the state after it."""
        yield f"0 start: {self.model.text(self.states[0])}"
        for number, (action, sentence, state) in enumerate(
            zip(self.actions, self.sentences(), self.states[1:], strict=True), start=1
        ):
            yield f"{number} {action}: {sentence} {self.model.text(state)}"

    def sentences(self) -> list[str]:
        """What happened in every step."""
        return list(map(self.model.sentence_in, self.states, self.actions))
