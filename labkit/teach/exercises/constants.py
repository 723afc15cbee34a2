"""Judge answers that are not functions: settings, predictions, multiple choice, and texts for a person."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from labkit.core.errors import InvalidInput
from labkit.core.words import sentence
from labkit.sim.explore import Exploration, explore
from labkit.sim.trace import make
from labkit.teach.exercises.asking import Unusable, shown
from labkit.teach.exercises.contract import Answer, Finding, Plain, Variant, truth

if TYPE_CHECKING:
    from labkit.teach.results import Walk

MAX_STATES = 200_000
"""The largest number of states that a search may visit to judge settings."""
SHORTEST = 40
"""The smallest number of characters that a text for a person must have."""
Chosen = dict[str, Any]
"""A learner's settings or predictions by name, each checked against its options or its type."""


def named_values(name: str, value: Plain, options_by_key: Mapping[str, Sequence[Plain] | type]) -> Chosen:
    """Return the learner's dict if it has the keys of `options_by_key`, and an allowed value for each of them.

    `options_by_key` has the allowed values of each key, or their type. Raises `Unusable` for any other dict or value.
    """
    if type(value) is not dict or set(value) != set(options_by_key):
        raise Unusable(f"{name} must be a dict with the keys {', '.join(options_by_key)}; it is {shown(value)}.")
    chosen = {key: value[key] for key in options_by_key}
    for key, options in options_by_key.items():
        is_truth = options is bool or (not isinstance(options, type) and all(type(each) is bool for each in options))
        if is_truth and (value_as_bool := truth(chosen[key])) is not None:
            chosen[key] = value_as_bool
        entry = chosen[key]
        if isinstance(options, type):
            if type(entry) is not options:
                raise Unusable(f"{name}[{key!r}] must be of type {options.__name__}; it is {shown(entry)}.")
        elif not any(type(entry) is type(each) and entry == each for each in options):
            raise Unusable(f"{name}[{key!r}] is {shown(entry)}; choose from {', '.join(map(repr, options))}.")
    return chosen


@cache
def _searched(model: str, values: str) -> Exploration:
    return explore(make(model, json.loads(values)), max_states=MAX_STATES)


@dataclass(frozen=True)
class Settings:
    """An exercise in which a learner chooses a simulator's settings so that no schedule violates certain `claims`.

    `name` is the Python name of the learner's dict, and `chosen` maps each of its keys to the allowed values. The
    function `parameters` turns the dict into parameters of the simulator `model`. Each test configuration (variant)
    adds further parameters, such as the number of crashes.
    """

    name: str
    model: str
    chosen: Mapping[str, Sequence[Plain]]
    claims: Sequence[str]
    parameters: Callable[[Chosen], Mapping[str, object]] = dict

    def judge(self, answer: Answer, variant: Variant) -> Finding:
        """Simulate all schedules with the learner's settings; the answer fails if one violates a claim in `claims`."""
        try:
            chosen = named_values(self.name, answer.value(), self.chosen)
            model = make(self.model, {**self.parameters(chosen), **dict(variant.parameters)})
        except (Unusable, InvalidInput) as error:
            return Finding(False, str(error), general=f"{self.name} is not possible in this configuration.")
        search = _searched(self.model, json.dumps(dict(model.values)))
        broken = [each for each in search.violations if each.property in self.claims]
        if not broken:
            text = (
                f"with {settings_text(chosen)} every one of {search.unique_states:,} states was tried, "
                "and the guarantee holds"
            )
            return Finding(True, sentence(text), text)
        first = min(broken, key=lambda each: len(each.trace.actions))
        claim = next(each for each in model.properties() if each.name == first.property)
        message = f"With {settings_text(chosen)}: {first.because}"
        general = f"With {settings_text(chosen)} some schedule breaks this: {claim.sentence}"
        return Finding(
            False, message, first.because, claim.sentence, str(first.trace), len(first.trace.actions), general
        )


def settings_text(values: Mapping[str, Plain]) -> str:
    """Return settings or predictions as text for a message, such as `sink='wal', order=None`."""
    return ", ".join(f"{name}={shown(value)}" for name, value in values.items())


@dataclass(frozen=True)
class Prediction:
    """An exercise in which a learner predicts values of a simulated run. Wrong predictions pass as well.

    `name` is the Python name of the learner's dict, and `facts` maps each of its keys to a function that reads the real
    value from the run.
    """

    name: str
    run: "Callable[[], Walk]"
    facts: "Mapping[str, Callable[[Walk], Any]]"

    def judge(self, answer: Answer, _variant: Variant) -> Finding:
        """Report each predicted value next to that of the run. Raises `MissingSolution` without a prediction."""
        value, walk = answer.value(), self.run()
        came = {key: list(fact) if isinstance(fact := read(walk), tuple) else fact for key, read in self.facts.items()}
        try:
            predicted = named_values(self.name, value, {key: type(fact) for key, fact in came.items()})
        except Unusable as error:
            return Finding(False, str(error))
        agree = [key for key in came if predicted[key] == came[key]]
        comparison = "; ".join(
            f"{key}: you predicted {shown(predicted[key])}, it was {shown(came[key])}"
            + ("" if key in agree else "  <- different")
            for key in came
        )
        message = f"{comparison}. {len(agree)} of {len(came)} as you predicted."
        return Finding(True, message, settings_text(came), settings_text(predicted), str(walk.trace))


@dataclass(frozen=True)
class Statements:
    """A multiple-choice exercise. `reasons` maps the letter of each option to the reason why it is right or wrong.

    `right` is the letter of the right option.
    """

    name: str
    reasons: Mapping[str, str]
    right: str

    def judge(self, answer: Answer, _variant: Variant) -> Finding:
        """Explain the chosen option; if it is right, explain the other options as well."""
        value = answer.value()
        if type(value) is not str or value not in self.reasons:
            return Finding(False, f"{self.name} is {shown(value)}; choose from {', '.join(map(repr, self.reasons))}.")
        others = " ".join(f"{key}) {reason}" for key, reason in self.reasons.items() if key != value)
        passed = value == self.right
        head = "Yes." if passed else "No."
        more = f" And the others: {others}" if passed else ""
        return Finding(passed, f"{head} {value}) {self.reasons[value]}{more}", f"you chose {value}")


@dataclass(frozen=True)
class Text:
    """An exercise whose answer is free text, which a person grades."""

    name: str

    def judge(self, answer: Answer, _variant: Variant) -> Finding:
        """Accept every text of at least `SHORTEST` characters; a person grades it later."""
        value = answer.value()
        if type(value) is not str or len(value.strip()) < SHORTEST:
            return Finding(False, f"{self.name} must be a text of at least {SHORTEST} characters.")
        return Finding(True, f"{len(value.split())} words; a person grades them.", value)
