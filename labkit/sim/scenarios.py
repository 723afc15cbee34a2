"""Find the scenarios, which are named runs, of all simulators, and the facts that a simulator computes from a run."""

from collections.abc import Mapping
from difflib import get_close_matches
from typing import NamedTuple

from labkit.core.errors import InvalidInput
from labkit.core.judge import Verdict
from labkit.core.words import nearest
from labkit.sim.blueprint import Fact
from labkit.sim.models import MODELS
from labkit.sim.trace import blueprint
from labkit.sim.walk import Replay, Trace

__all__ = ["Fact", "ScenarioName", "every", "facts", "find", "meaning", "say"]


class ScenarioName(NamedTuple):
    """The full name of a scenario, which is a named run: the name of its model, and its own."""

    model: str
    name: str

    @property
    def watch_for(self) -> str:
        """Return the sentence that tells a learner what to watch for in the scenario."""
        return MODELS[self.model].scenarios[self.name].watch_for

    @property
    def trace(self) -> Trace:
        """Return the trace of the scenario, played to its end."""
        return MODELS[self.model].trace_of(self.name)


def every() -> dict[str, ScenarioName]:
    """Return all scenarios by `model.name`, in the order of the course."""
    return {
        f"{model}.{name}": ScenarioName(model, name)
        for model, exported in MODELS.items()
        for name in exported.scenarios
    }


def find(text: str) -> ScenarioName:
    """Return the scenario that a text names: `model.name`, or `name` if only one model has it.

    Raises `InvalidInput`, which suggests the nearest name, if there is none or more than one.
    """
    scenarios = every()
    wanted = "_".join(text.split())  # pages and menus show names with blanks
    matches = [name for full, name in scenarios.items() if wanted in (full, name.name)]
    if len(matches) == 1:
        return matches[0]
    if matches:
        both = " or ".join(f"{name.model}.{name.name}" for name in matches)
        raise InvalidInput(f"there is more than one scenario {text!r}; choose {both}.")
    names = [*scenarios, *dict.fromkeys(name.name for name in scenarios.values())]
    listed = "labkit replay and the menu of a player list them all."
    close = nearest(text[:40], names) if get_close_matches(text[:40], names, 1, 0.5) else listed
    raise InvalidInput(f"there is no scenario {text[:40]!r}; {close}")


def facts(walk: Replay) -> Mapping[str, Fact]:
    """Return the facts that a run's model computes from the whole run, by name."""
    return blueprint(walk.model.name).facts(walk)


def meaning(fact: str) -> str:
    """Return the meaning of a fact of any model in words. Raises `KeyError` for an unknown fact."""
    for exported in MODELS.values():
        if fact in exported.meanings:
            return exported.meanings[fact]
    raise KeyError(fact)


def say(name: str, fact: Fact) -> str:
    """Return a fact as text for the user: the lines of a verdict, or the fact's meaning and its value."""
    if isinstance(fact, Verdict):
        return fact.text()
    numbers = ", ".join(map(str, fact)) if isinstance(fact, list) else fact
    return f"{meaning(name)}: {'none' if fact is None else numbers}"
