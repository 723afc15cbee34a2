"""The description of a simulator (model): name, parameters, constructor, scenarios, and the facts about a run.

One line in `labkit.sim.models` registers a model, and another one its picture (scene).
"""

import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from operator import itemgetter
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
"""A result about a whole run: the judge's verdict, a count, several counts, or a text."""


class Scenario(NamedTuple, Generic[ScriptT]):
    """A named example run of a simulator: the script of its actions, and what a learner should watch for."""

    watch_for: str
    parameters: Mapping[str, object]
    script: ScriptT


def scenarios_of(package: str, script: Callable[[Any], Any] = str) -> dict[str, Scenario[Any]]:
    """Return the scenarios (example runs) of a package as a dict from name to scenario.

    They are read from the package's file `scenarios.toml`. The function `script` converts the text of a scenario's
    script into the value that the simulator's function `play` takes.
    """
    tables = tomllib.loads(files(package).joinpath("scenarios.toml").read_text(encoding="utf-8"))
    return {
        name: Scenario(**{"parameters": {}, **table, "script": script(table.get("script", ""))})
        for name, table in tables.items()
    }


def play(model: Model[Any], steps: str) -> Replay:
    """Take exactly these steps (action names separated by spaces) in a new run, and return the run.

    Raises `InvalidAction` if one of the steps is not enabled.
    """
    walk = Replay(model)
    for step in steps.split():
        walk.forward(Action.parse(step))
    return walk


def go_on(walk: Replay, model: RuleModel[Any], choose: Callable[[list[Action]], Action] = itemgetter(0)) -> Replay:
    """Continue the run `walk` of the simulator `model` until only faults can happen, and return the run.

    `choose` picks each next action. Its argument is the list that `unasked` returns: the possible actions, except those
    that only a script may choose, such as a crash.
    """
    while going_on := unasked(model, walk.state):
        walk.forward(choose(going_on))
    return walk


def unasked(model: RuleModel[Any], state: Any) -> list[Action]:
    """Return the actions that are possible in a state, except those that only a script may choose, such as a crash."""
    return [action for action in model.actions(state) if not model.rules[action.name].waits_for_cue]


def play_to_the_end(model: RuleModel[Any], steps: str) -> Replay:
    """Take these steps (action names separated by spaces), go on until only faults can happen, and return the run."""
    return go_on(play(model, steps), model)


@dataclass(frozen=True)
class Blueprint(Generic[ModelT, ScriptT]):
    """A simulator before its parameters are chosen: its class, its example runs (scenarios), and how to play them."""

    model: type[ModelT]
    sentence: str
    play: Callable[[ModelT, ScriptT], Replay]
    """The function that plays a scenario's script to its end."""
    scenarios: Mapping[str, Scenario[ScriptT]] = field(default_factory=dict)
    facts: Callable[[Replay], Mapping[str, Fact]] = lambda _walk: {}
    """The function that computes facts from a whole run."""
    meanings: Mapping[str, str] = field(default_factory=dict)
    """For the name of each fact, its meaning in words; the judge's verdict has none."""
    history: Callable[[Replay], History] | None = None
    """The function that returns what an outside reader saw in a run; None if the simulator has no such reader."""
    expected: Callable[[Replay], Sequence[Record]] | None = None
    """The function that returns the records that an outside reader should see; None if there is no such reader."""
    tells_when_written: Callable[[Replay], bool] = lambda _walk: True
    """The function that returns whether every row that readers cannot see yet is in a transaction of the store.

    If it returns False, it is unknown how long such a row has waited.
    """
    tasks: Mapping[str, Task] = field(default_factory=dict)
    """Tasks for a learner who steps through the simulator, by name, in order of difficulty."""
    build: Callable[[Values], ModelT] | None = None
    """The function that makes the simulator, if some values of its parameters need another class than `model`."""

    @property
    def name(self) -> str:
        """Return the simulator's name. A trace of the simulator, converted to text, begins with this name."""
        return self.model.name

    @property
    def version(self) -> int:
        """Return the version of the simulator's rules, which is stored in each trace."""
        return self.model.version

    @property
    def parameters(self) -> Mapping[str, Parameter]:
        """Return the simulator's parameters, as a mapping from name to `Parameter`."""
        return self.model.parameters

    def make(self, parameters: Mapping[str, object]) -> ModelT:
        """Return the simulator with these parameters, and with defaults for all others.

        Raises `InvalidInput` for an unknown parameter or a value that is not allowed.
        """
        return (self.build or self.model)(settle(self.name, self.parameters, parameters))

    def scenario(self, name: str) -> Scenario[ScriptT]:
        """Return the scenario of this name.

        Raises `InvalidInput` if there is none; the message suggests a similar name.
        """
        if name not in self.scenarios:
            suggestion = nearest(name[:40], list(self.scenarios))
            raise InvalidInput(f"there is no scenario {name[:40]!r}; {suggestion}")
        return self.scenarios[name]

    def trace_of(self, name: str) -> Trace:
        """Play the scenario `name` to its end and return its trace.

        Raises `InvalidInput` if no scenario has this name.
        """
        scenario = self.scenario(name)
        return self.play(self.make(scenario.parameters), scenario.script).trace
