"""Every named run of every simulator, and the facts that a whole run gives."""

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
    """The name of a model and of one of its scenarios, which are named runs."""

    model: str
    name: str

    @property
    def watch_for(self) -> str:
        """Return what a learner should watch for in the scenario."""
        return MODELS[self.model].scenarios[self.name].watch_for

    @property
    def trace(self) -> Trace:
        """Return the trace of the scenario, played to its end."""
        return MODELS[self.model].trace_of(self.name)


def every() -> dict[str, ScenarioName]:
    """Return all scenarios as `model.name`, in the order of the course."""
    return {
        f"{model}.{name}": ScenarioName(model, name)
        for model, exported in MODELS.items()
        for name in exported.scenarios
    }


def find(text: str) -> ScenarioName:
    """Return the scenario `model.name`, or `name` if only one model has it. Raises `InvalidInput` with the nearest
    name.
    """
    scenarios = every()
    matches = [name for full, name in scenarios.items() if text in (full, name.name)]
    if len(matches) == 1:
        return matches[0]
    if matches:
        both = " or ".join(f"{name.model}.{name.name}" for name in matches)
        raise InvalidInput(f"there is more than one scenario {text!r}; choose {both}.")
    names = [*scenarios, *dict.fromkeys(name.name for name in scenarios.values())]
    close = (
        nearest(text[:40], names) if get_close_matches(text[:40], names, 1, 0.5) else "labkit replay lists them all."
    )
    raise InvalidInput(f"there is no scenario {text[:40]!r}; {close}")


def facts(walk: Replay) -> Mapping[str, Fact]:
    """Return the facts that the model of a run derives from the whole run."""
    return blueprint(walk.model.name).facts(walk)


def meaning(fact: str) -> str:
    """Return the meaning of a fact of any model in words. Raises `KeyError` for an unknown fact."""
    for exported in MODELS.values():
        if fact in exported.meanings:
            return exported.meanings[fact]
    raise KeyError(fact)


def say(name: str, fact: Fact) -> str:
    """Return a fact as text for a person: the verdict's lines, or the meaning of the fact and its numbers."""
    if isinstance(fact, Verdict):
        return fact.text()
    numbers = ", ".join(map(str, fact)) if isinstance(fact, list) else fact
    return f"{meaning(name)}: {'none' if fact is None else numbers}"
