"""What is said of a model in one value: name, parameters, how it is built, its named runs, and what a whole walk tells.

One line in `labkit.sim.models` registers it; nothing else has to be edited but the line of its scene. This module must
not know any model.
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
"""The judge's verdict, a count, or the counts of words that a model holds."""


class Scenario(NamedTuple, Generic[ScriptT]):
    """A run with a name: what to look at, the parameters that differ from their defaults, and what happens."""

    watch_for: str
    parameters: Mapping[str, object]
    script: ScriptT


def play(model: Model[Any], steps: str) -> Replay:
    """Takes these steps, and no other. Raises `InvalidAction` for a step that is not enabled."""
    walk = Replay(model)
    for step in steps.split():
        walk.forward(Action.parse(step))
    return walk


def first_of(enabled: list[Action]) -> Action:
    """The first action: the order in which a model gives its actions decides."""
    return enabled[0]


def go_on(walk: Replay, model: RuleModel[Any], choose: Callable[[list[Action]], Action] = first_of) -> Replay:
    """Lets everybody go on, without a fault that no scenario asks for, until nothing is left to do."""
    while going_on := unasked(model, walk.state):
        walk.forward(choose(going_on))
    return walk


def unasked(model: RuleModel[Any], state: Any) -> list[Action]:
    """The enabled actions that do not wait for a cue."""
    return [action for action in model.actions(state) if not model.rules[action.name].waits_for_cue]


def play_to_the_end(model: RuleModel[Any], steps: str) -> Replay:
    """Takes these steps, then lets everybody go on. Raises `InvalidAction` for a step that is not enabled."""
    return go_on(play(model, steps), model)


def _always(_walk: Replay) -> bool:
    return True


def _no_facts(_walk: Replay) -> Mapping[str, Fact]:
    return {}


@dataclass(frozen=True)
class Blueprint(Generic[ModelT, ScriptT]):
    """A model before its parameters are chosen. Whoever changes a default or a meaning raises `version`."""

    name: str
    version: int
    sentence: str
    parameters: Mapping[str, Parameter]
    build: Callable[[Values], ModelT]
    play: Callable[[ModelT, ScriptT], Replay]
    """Plays the script of a scenario to its end."""
    scenarios: Mapping[str, Scenario[ScriptT]] = field(default_factory=dict)
    facts: Callable[[Replay], Mapping[str, Fact]] = _no_facts
    """What there is to say of a whole walk beyond its last state."""
    meanings: Mapping[str, str] = field(default_factory=dict)
    """Each fact in words; the judge's verdict speaks for itself."""
    history: Callable[[Replay], History] | None = None
    """What an outside reader saw in a walk; None: the model has no such reader."""
    expected: Callable[[Replay], Sequence[Record]] | None = None
    """What should come out, for that reader; None: the model has none."""
    tells_when_written: Callable[[Replay], bool] = _always
    """Whether every row that waits is hidden in a transaction; else nobody knows for how long it waits."""

    def make(self, parameters: Mapping[str, object]) -> ModelT:
        """The model with these parameters, the others at their defaults. Raises `InvalidInput`."""
        return self.build(settle(self.name, self.parameters, parameters))

    def scenario(self, name: str) -> Scenario[ScriptT]:
        """The scenario of this name. Raises `InvalidInput` with the nearest one."""
        if name not in self.scenarios:
            close = nearest(name[:40], list(self.scenarios))
            raise InvalidInput(f"there is no scenario {name[:40]!r}; {close}")
        return self.scenarios[name]

    def trace_of(self, name: str) -> Trace:
        """A scenario, played to its end. Raises `InvalidInput` for an unknown name."""
        scenario = self.scenario(name)
        return self.play(self.make(scenario.parameters), scenario.script).trace
