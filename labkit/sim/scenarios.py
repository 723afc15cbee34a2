"""Find the scenarios (named example runs) of all simulators, and the facts that a simulator computes from a run."""

from collections.abc import Mapping
from difflib import get_close_matches
from typing import NamedTuple

from labkit.core.errors import InvalidInput
from labkit.core.judge import Verdict
from labkit.core.words import nearest
from labkit.sim.blueprint import Fact
from labkit.sim.models import MODELS
from labkit.sim.trace import blueprint, parse
from labkit.sim.walk import Replay, Trace

__all__ = ["Fact", "ScenarioName", "every", "facts", "find", "meaning", "run_of", "say"]


class ScenarioName(NamedTuple):
    """The full name of a scenario (a named example run): the simulator's name, and the scenario's own name."""

    model: str
    name: str

    @property
    def watch_for(self) -> str:
        """Return the sentence that tells a learner what to watch for in this example run."""
        return MODELS[self.model].scenarios[self.name].watch_for

    @property
    def trace(self) -> Trace:
        """Return the trace of this example run, after playing it to its end."""
        return MODELS[self.model].trace_of(self.name)


def every() -> dict[str, ScenarioName]:
    """Return a dict from full name, `simulator.name`, to scenario (a named example run), in the order of the course."""
    return {
        f"{model}.{name}": ScenarioName(model, name)
        for model, exported in MODELS.items()
        for name in exported.scenarios
    }


def find(text: str, shown: str = "") -> ScenarioName:
    """Return the scenario that a text names: `simulator.name`, or `name` if only one simulator has such a scenario.

    Raises `InvalidInput` if no scenario or more than one has this name. For an unknown name, the message suggests a
    similar one, preferably from the simulator `shown`.
    """
    scenarios = every()
    wanted = "_".join(text.split())  # pages and menus show names with blanks
    matches = [name for full, name in scenarios.items() if wanted in (full, name.name)]
    if len(matches) == 1:
        return matches[0]
    if matches:
        candidates = " or ".join(f"{name.model}.{name.name}" for name in matches)
        raise InvalidInput(f"there is more than one scenario {text!r}; choose {candidates}.")
    own = [name.name for name in scenarios.values() if name.model == shown]
    others = [*scenarios, *dict.fromkeys(name.name for name in scenarios.values())]
    where_listed = "labkit replay and the menu of a player list them all."
    likely = ((own, 0.5), (others, 0.7 if own else 0.5))
    names = next((each for each, least in likely if get_close_matches(text[:40], each, 1, least)), [])
    suggestion = nearest(text[:40], names) if names else where_listed
    raise InvalidInput(f"there is no scenario {text[:40]!r}; {suggestion}")


def run_of(what: str | Trace) -> tuple[Trace, str]:
    """Return the trace of a run, and a sentence that says what a learner should watch for.

    `what` is the name of a scenario, a trace, or a trace as text. The sentence is empty if `what` is no scenario.
    Raises `InvalidInput` for an unknown scenario or invalid text.
    """
    if isinstance(what, Trace):
        return what, ""
    if "~" in what:
        return parse(what), ""
    scenario = find(what)
    return scenario.trace, scenario.watch_for


def facts(walk: Replay) -> Mapping[str, Fact]:
    """Return the results that a simulator computes from a whole run, such as waiting times, by name."""
    return blueprint(walk.model.name).facts(walk)


def meaning(fact: str) -> str:
    """Return a phrase that explains the result `fact` of a run. Raises `KeyError` for an unknown name."""
    for exported in MODELS.values():
        if fact in exported.meanings:
            return exported.meanings[fact]
    raise KeyError(fact)


def say(name: str, fact: Fact) -> str:
    """Return one result of a run (see `facts`) as text: its meaning and value, or the text of a verdict."""
    if isinstance(fact, Verdict):
        return fact.text()
    numbers = ", ".join(map(str, fact)) if isinstance(fact, list) else fact
    return f"{meaning(name)}: {'none' if fact is None else numbers}"
