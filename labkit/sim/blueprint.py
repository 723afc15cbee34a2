"""A model's description: its name, parameters, constructor and scenarios, and the facts that a whole run of it gives.

One line in `labkit.sim.models` registers a model; apart from that only its picture (scene) needs a line.
"""

import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from typing import Any, Generic, NamedTuple, TypeVar

from labkit.core.errors import InvalidInput
from labkit.core.judge import Verdict
from labkit.core.records import History, Record
from labkit.core.words import nearest
from labkit.sim.model import Action, Model
from labkit.sim.parameters import Parameter, Values, settle
from labkit.sim.rules import RuleModel
from labkit.sim.tasks import Task
from labkit.sim.walk import Replay, Trace

ModelT = TypeVar("ModelT", bound=Model[Any])
ScriptT = TypeVar("ScriptT")

Fact = Verdict | int | str | list[int] | None
"""A result about a whole run: the judge's verdict, a count, a text, or several counts."""


class Scenario(NamedTuple, Generic[ScriptT]):
    """A named run of a model: what to watch for, the parameters that differ from their defaults, and the script."""

    watch_for: str
    parameters: Mapping[str, object]
    script: ScriptT


def scenarios_of(package: str, script: Callable[[Any], Any] = str) -> dict[str, Scenario[Any]]:
    """Return the scenarios in the file `scenarios.toml` of a model's package, in its order.

    `script` makes the script that the model plays out of what the file holds; the default takes it as it is.
    """
    tables = tomllib.loads(files(package).joinpath("scenarios.toml").read_text(encoding="utf-8"))
    return {
        name: Scenario(**{"parameters": {}, **table, "script": script(table.get("script", ""))})
        for name, table in tables.items()
    }


def play(model: Model[Any], steps: str) -> Replay:
    """Take exactly these steps, from a text of action names. Raises `InvalidAction` for a step that is not enabled."""
    walk = Replay(model)
    for step in steps.split():
        walk.forward(Action.parse(step))
    return walk


def first_of(enabled: list[Action]) -> Action:
    """Return the first action in the order in which the model lists them; a `choose` for `go_on`."""
    return enabled[0]


def go_on(walk: Replay, model: RuleModel[Any], choose: Callable[[list[Action]], Action] = first_of) -> Replay:
    """Take further steps until no more are left, without the faults that only a scenario may cause."""
    while going_on := unasked(model, walk.state):
        walk.forward(choose(going_on))
    return walk


def unasked(model: RuleModel[Any], state: Any) -> list[Action]:
    """Return the enabled actions that may happen without being named by a scenario."""
    return [action for action in model.actions(state) if not model.rules[action.name].waits_for_cue]


def play_to_the_end(model: RuleModel[Any], steps: str) -> Replay:
    """Take these steps, then further ones until no more are left.

    Raises `InvalidAction` for one of these steps that is not enabled.
    """
    return go_on(play(model, steps), model)


def _always(_walk: Replay) -> bool:
    return True


def _no_facts(_walk: Replay) -> Mapping[str, Fact]:
    return {}


@dataclass(frozen=True)
class Blueprint(Generic[ModelT, ScriptT]):
    """The description of a model before its parameters are chosen.

    Increase `version` with every change of a default or of the meaning of a parameter or action.
    """

    name: str
    version: int
    sentence: str
    parameters: Mapping[str, Parameter]
    build: Callable[[Values], ModelT]
    play: Callable[[ModelT, ScriptT], Replay]
    """The function that plays a scenario's script to its end."""
    scenarios: Mapping[str, Scenario[ScriptT]] = field(default_factory=dict)
    facts: Callable[[Replay], Mapping[str, Fact]] = _no_facts
    """The function that derives facts from a whole run that its last state does not contain."""
    meanings: Mapping[str, str] = field(default_factory=dict)
    """The meaning of each fact in words. The judge's verdict needs none."""
    history: Callable[[Replay], History] | None = None
    """The function that returns what an outside reader saw in a run; None if the model has no such reader."""
    expected: Callable[[Replay], Sequence[Record]] | None = None
    """The function that returns the records that should come out for that reader; None if the model has none."""
    tells_when_written: Callable[[Replay], bool] = _always
    """The function that returns whether every row that readers cannot see yet is in a transaction of the store.

    If not, nobody can tell how long such a row has waited.
    """
    tasks: Mapping[str, Task] = field(default_factory=dict)
    """Small tasks that a player offers a reader, in order of difficulty."""

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
