"""Judges a property that a learner writes: it must accept every state of good systems and reject what broken ones do.

The systems are the simulators with and without their rules, and whether a state is bad is the simulator's own claim.
This module must not know any exercise.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

from labkit.core.errors import GradingError
from labkit.sim.explore import explore, reachable
from labkit.sim.model import Model, Mood, Property
from labkit.sim.overlay import Overlay
from labkit.sim.trace import Trace, make
from labkit.teach.exercises.asking import Asker, Unusable, shown
from labkit.teach.exercises.contract import Answer, Finding, Variant
from labkit.teach.exercises.searching import MAX_STATES, steady, unusable

View = Callable[[Model[Any], Any], tuple[Any, ...]]
"""What of a state a property is shown: the arguments of the learner's function."""


class ObservedModel(Overlay[Any]):
    """A simulator about which only one thing is claimed."""

    def __init__(self, model: Model[Any], claim: Property[Any]) -> None:
        super().__init__(model)
        self._claim = claim

    def properties(self) -> Sequence[Property[Any]]:
        """The one claim."""
        return (self._claim,)


class Case(NamedTuple):
    """A question about a state, whether the state keeps the claim, and the first such state."""

    question: tuple[Any, ...]
    is_kept: bool
    state: Any


@cache
def _cases(watch: "Watch", given: str) -> tuple[Case, ...]:
    """Every different question about the states of a system, in the order of the search, which is made once."""
    model = make(watch.model, json.loads(given))
    claim = watch.claimed(model)
    cases: dict[str, Case] = {}
    states = reachable(model, max_states=MAX_STATES)
    for count, state in enumerate(states, start=1):
        if count >= MAX_STATES:
            raise GradingError(
                f"{watch.model} has {MAX_STATES} states or more with {given}."
            )
        if claim.where is None or claim.where(state):
            case = Case(watch.view(model, state), claim.holds(state), state)
            cases.setdefault(json.dumps(case[:2]), case)
    return tuple(cases.values())


@dataclass(frozen=True)
class Watch:
    """A property to be written: the function's name, the model, its claim that says what is bad, and what is shown."""

    function: str
    model: str
    claim: str
    view: View

    def claimed(self, model: Model[Any]) -> Property[Any]:
        """The simulator's own claim."""
        return next(each for each in model.properties() if each.name == self.claim)

    def judge(self, answer: Answer, variant: Variant) -> Finding:
        """By one variant: `good` and `bad` are systems, each a name and its parameters."""
        ask = Asker(answer, self.function)
        systems = [(True, *each) for each in variant["good"]] + [
            (False, *each) for each in variant["bad"]
        ]
        try:
            for is_good, name, given in systems:
                if found := self._look(ask, name, given, is_good=is_good):
                    return found
        except Unusable as error:
            return unusable(self.function, error)
        good, bad = len(variant["good"]), len(variant["bad"])
        return steady(
            ask,
            f"It accepts every state of what is good ({good}) and rejects what is broken ({bad})",
        )

    def _look(
        self, ask: Asker, name: str, given: dict[str, object], *, is_good: bool
    ) -> Finding | None:
        for case in _cases(self, json.dumps(given)):
            said = ask(*case.question)
            if type(said) is not bool:
                raise Unusable(
                    f"{ask.call(*case.question)} returned {shown(said)}; return True or False."
                )
            if (is_good and not said) or (said and not case.is_kept):
                return self._wrong(ask, name, given, case, is_good=is_good)
        return None

    def _wrong(
        self,
        ask: Asker,
        name: str,
        given: dict[str, object],
        case: Case,
        *,
        is_good: bool,
    ) -> Finding:
        model = make(self.model, given)
        claim = self.claimed(model)
        trace = _trace_to(model, case.state)
        asked, at = ask.call(*case.question), len(trace.actions)
        if is_good:
            message = f"{asked} answered False, and this is a state of a good system ({name}): {claim.sentence}"
            general = f"{self.function} rejects a state of a good system."
            return Finding(
                False,
                message,
                f"a good system is rejected: {name}",
                "True",
                str(trace),
                at,
                general,
            )
        said = claim.because(case.state)
        message = f"{asked} answered True, and this does not hold there ({name}): {claim.sentence} {_start(said)}"
        general = f"{self.function} accepts a state of a broken system, where this does not hold: {claim.sentence}"
        return Finding(
            False,
            message,
            f"a broken system is accepted: {name}",
            "False",
            str(trace),
            at,
            general,
        )


def _start(sentence: str) -> str:
    return f"{sentence[0].upper()}{sentence[1:]}"


def _trace_to(model: Model[Any], wanted: Any) -> Trace:
    """A shortest run to a state."""
    claim: Property[Any] = Property(
        "reached", Mood.ALWAYS, "", lambda state: state != wanted, lambda _state: ""
    )
    return (
        explore(ObservedModel(model, claim), max_states=MAX_STATES).violations[0].trace
    )
