"""A run of a model, and its trace, which has the model's name, version and parameters, and the actions.

In a URL a trace is a short text (`two_phase_commit~1~participants.2~~start.vote_yes-0...`), in a file JSON.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from labkit.core.errors import InvalidAction
from labkit.sim.model import Action, Model
from labkit.sim.parameters import Value, chosen


@dataclass(frozen=True)
class Trace:
    """The data with which a run can be repeated: the simulator's name, version and parameters, and the actions.

    Parameters with their default values are left out.
    """

    model: str
    version: int
    parameters: Mapping[str, Value]
    actions: tuple[Action, ...]

    def __str__(self) -> str:
        """Return the trace as text that is safe in a URL: letters, digits and `-._~` only."""
        parts = [self.model, str(self.version), *(f"{name}.{_plain(value)}" for name, value in self.parameters.items())]
        steps = (name if which < 0 else f"{name}-{which}" for name, which in self.actions)
        return f"{'~'.join(parts)}~~{'.'.join(steps)}"

    def to_json(self) -> dict[str, Any]:
        """Return the trace as a dictionary for JSON."""
        return {
            "model": self.model,
            "version": self.version,
            "parameters": dict(self.parameters),
            "actions": [str(action) for action in self.actions],
        }

    @classmethod
    def of(cls, model: Model[Any], actions: Sequence[Action]) -> "Trace":
        """Return the trace of a run that takes these actions in a simulator."""
        parameters = chosen(model.parameters, model.values)
        return cls(model.name, model.version, parameters, tuple(actions))


def _plain(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


class Replay:
    """A run of a simulator: its states and actions so far. It can take any enabled action, and undo the last one."""

    def __init__(self, model: Model[Any]) -> None:
        self.model = model
        self.states: list[Any] = [model.initial()]
        self.actions: list[Action] = []

    @property
    def state(self) -> Any:
        """Return the current state of the run."""
        return self.states[-1]

    @property
    def trace(self) -> Trace:
        """Return the trace of the run's actions so far."""
        return Trace.of(self.model, self.actions)

    def beginning(self, length: int) -> "Replay":
        """Return a copy of the run that ends after its first `length` steps."""
        walk = Replay(self.model)
        walk.states, walk.actions = self.states[: length + 1], self.actions[:length]
        return walk

    def forward(self, action: Action) -> Any:
        """Take an action in the current state and return the new state. Raises `InvalidAction` if it is not enabled."""
        self.states.append(self.model.step(self.state, action))
        self.actions.append(action)
        return self.state

    def back(self) -> Any:
        """Undo the last action and return the state before it. Raises `InvalidAction` at the beginning."""
        if not self.actions:
            raise InvalidAction("this is the initial state: there is no step to undo.")
        self.actions.pop()
        self.states.pop()
        return self.state

    def lines(self) -> Iterator[str]:
        """Yield the run as text, one line per step: number, action, a sentence about it, and the state after it."""
        yield f"0 start: {self.model.text(self.states[0])}"
        for number, (action, sentence, state) in enumerate(
            zip(self.actions, self.sentences(), self.states[1:], strict=True), start=1
        ):
            yield f"{number} {action}: {sentence} {self.model.text(state)}"

    def sentences(self) -> list[str]:
        """Return for each step of the run a sentence that says what its action does."""
        return list(map(self.model.sentence_in, self.states, self.actions))
