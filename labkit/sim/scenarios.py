"""Every run that has a name, of every simulator, and what is to be said of a whole walk beyond its last state."""

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
    """One scenario, wherever it stands."""

    model: str
    name: str

    @property
    def watch_for(self) -> str:
        """What to look at."""
        return MODELS[self.model].scenarios[self.name].watch_for

    @property
    def trace(self) -> Trace:
        """The scenario, played to its end."""
        return MODELS[self.model].trace_of(self.name)


def every() -> dict[str, ScenarioName]:
    """All scenarios as `model.name`, in the order of the course."""
    return {
        f"{model}.{name}": ScenarioName(model, name)
        for model, exported in MODELS.items()
        for name in exported.scenarios
    }


def find(text: str) -> ScenarioName:
    """The scenario `model.name`, or `name` where only one model has it. Raises `InvalidInput` with the nearest one."""
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
    """What a model has to say of a whole walk."""
    return blueprint(walk.model.name).facts(walk)


def meaning(fact: str) -> str:
    """A fact of any model in words. Raises `KeyError` for a fact that no model has."""
    for exported in MODELS.values():
        if fact in exported.meanings:
            return exported.meanings[fact]
    raise KeyError(fact)


def say(name: str, fact: Fact) -> str:
    """A fact for a person: the verdict's own lines, or the fact's meaning and its numbers."""
    if isinstance(fact, Verdict):
        return fact.text()
    numbers = ", ".join(map(str, fact)) if isinstance(fact, list) else fact
    return f"{meaning(name)}: {'none' if fact is None else numbers}"
