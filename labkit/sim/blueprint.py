"""A model's description: its name, parameters, constructor, scenarios, and the facts that a whole walk reveals.

One line in `labkit.sim.models` registers a model; otherwise only its scene needs a line.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, NamedTuple, TypeVar

from labkit.core.errors import InvalidInput
from labkit.core.judge import Verdict
from labkit.core.records import History, Record
from labkit.core.words import nearest
from labkit.sim.model import Action, Model
from labkit.sim.parameters import Parameter, Values, settle
from labkit.sim.rules import RuleModel
from labkit.sim.walk import Replay, Trace

ModelT = TypeVar("ModelT", bound=Model[Any])
ScriptT = TypeVar("ScriptT")

Fact = Verdict | int | str | list[int] | None
"""The judge's verdict, a count, a text, or several counts."""


class Scenario(NamedTuple, Generic[ScriptT]):
    """A named run: what to watch for, the parameters that differ from their defaults, and the script to play."""

    watch_for: str
    parameters: Mapping[str, object]
    script: ScriptT


def play(model: Model[Any], steps: str) -> Replay:
    """Take exactly these steps. Raises `InvalidAction` for a step that is not enabled."""
    walk = Replay(model)
    for step in steps.split():
        walk.forward(Action.parse(step))
    return walk


def first_of(enabled: list[Action]) -> Action:
    """Return the first action in the order in which the model lists them."""
    return enabled[0]


def go_on(walk: Replay, model: RuleModel[Any], choose: Callable[[list[Action]], Action] = first_of) -> Replay:
    """Take steps until no more are left, without any fault that only a scenario may cause."""
    while going_on := unasked(model, walk.state):
        walk.forward(choose(going_on))
    return walk


def unasked(model: RuleModel[Any], state: Any) -> list[Action]:
    """Return the enabled actions that do not wait for a scenario to name them."""
    return [action for action in model.actions(state) if not model.rules[action.name].waits_for_cue]


def play_to_the_end(model: RuleModel[Any], steps: str) -> Replay:
    """Take these steps, then go on until no more are left. Raises `InvalidAction` for a step that is not enabled."""
    return go_on(play(model, steps), model)


def _always(_walk: Replay) -> bool:
    return True


def _no_facts(_walk: Replay) -> Mapping[str, Fact]:
    return {}


@dataclass(frozen=True)
class Blueprint(Generic[ModelT, ScriptT]):
    """A model before its parameters are chosen. Increase `version` with every change of a default or a meaning."""

    name: str
    version: int
    sentence: str
    parameters: Mapping[str, Parameter]
    build: Callable[[Values], ModelT]
    play: Callable[[ModelT, ScriptT], Replay]
    """Plays the script of a scenario to its end."""
    scenarios: Mapping[str, Scenario[ScriptT]] = field(default_factory=dict)
    facts: Callable[[Replay], Mapping[str, Fact]] = _no_facts
    """Returns the facts of a whole walk that its last state does not contain."""
    meanings: Mapping[str, str] = field(default_factory=dict)
    """The meaning of each fact in words; the judge's verdict needs none."""
    history: Callable[[Replay], History] | None = None
    """Returns what an outside reader saw in a walk; None if the model has no such reader."""
    expected: Callable[[Replay], Sequence[Record]] | None = None
    """Returns the records that should come out for that reader; None if the model has none."""
    tells_when_written: Callable[[Replay], bool] = _always
    """Returns whether every unread row is hidden in a transaction; otherwise its waiting time is unknown."""

    def make(self, parameters: Mapping[str, object]) -> ModelT:
        """Return the model with these parameters and defaults for the others. Raises `InvalidInput`."""
        return self.build(settle(self.name, self.parameters, parameters))

    def scenario(self, name: str) -> Scenario[ScriptT]:
        """Return the scenario of this name. Raises `InvalidInput` with the nearest name."""
        if name not in self.scenarios:
            close = nearest(name[:40], list(self.scenarios))
            raise InvalidInput(f"there is no scenario {name[:40]!r}; {close}")
        return self.scenarios[name]

    def trace_of(self, name: str) -> Trace:
        """Return the trace of a scenario, played to its end. Raises `InvalidInput` for an unknown name."""
        scenario = self.scenario(name)
        return self.play(self.make(scenario.parameters), scenario.script).trace
