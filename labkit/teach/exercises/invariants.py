"""Judges a property that a learner writes, by states of the simulators: which are bad is the simulator's own claim.

The states come from three places: systems that keep all rules, of which the property must accept every state; systems
with a rule left out, of which it must accept the good states and reject the bad ones; and states that nobody has
reached, put together to hold what runs of small systems show too rarely.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
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
Assemble = Callable[[Model[Any], Mapping[str, Any]], Iterable[Any]]
"""States of a model that are put together instead of reached, of the model and of what a variant says of them."""


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
def _cases(watch: "Watch", given: str, assembled: str) -> tuple[Case, ...]:
    """Every different question about the states of a system, or about states that are put together for it.

    They come in the order of the search, which is made once.
    """
    model = make(watch.model, json.loads(given))
    claim = watch.claimed(model)
    states = watch.assemble(model, json.loads(assembled)) if assembled else _reached(watch, model, claim, given)
    cases: dict[str, Case] = {}
    for state in states:
        case = Case(watch.view(model, state), claim.holds(state), state)
        cases.setdefault(json.dumps(case[:2]), case)
    return tuple(cases.values())


def _reached(watch: "Watch", model: Model[Any], claim: Property[Any], given: str) -> Iterator[Any]:
    """The states of a system of which the claim speaks. Raises `GradingError` where there are too many."""
    states = reachable(model, max_states=MAX_STATES)
    for count, state in enumerate(states, start=1):
        if count >= MAX_STATES:
            raise GradingError(f"{watch.model} has {MAX_STATES} states or more with {given}.")
        if claim.where is None or claim.where(state):
            yield state


def _nothing(_model: Model[Any], _said: Mapping[str, Any]) -> Iterable[Any]:
    return ()


class System(NamedTuple):
    """Where questions come from: a simulator's configuration, or states that are put together for one."""

    name: str
    parameters: Mapping[str, object]
    is_good: bool = False
    """Whether it keeps all rules, so that every one of its states keeps the claim."""
    assembled: Mapping[str, object] | None = None
    """What the states are put together from; None: they are those that the system reaches."""

    def cases(self, watch: "Watch") -> tuple[Case, ...]:
        """Its questions."""
        assembled = "" if self.assembled is None else json.dumps(self.assembled)
        return _cases(watch, json.dumps(self.parameters), assembled)


@dataclass(frozen=True)
class Watch:
    """A property to be written: the function's name, the model, its claim that says what is bad, and what is shown."""

    function: str
    model: str
    claim: str
    view: View
    assemble: Assemble = _nothing

    def claimed(self, model: Model[Any]) -> Property[Any]:
        """The simulator's own claim."""
        return next(each for each in model.properties() if each.name == self.claim)

    def judge(self, answer: Answer, variant: Variant) -> Finding:
        """By one variant, which has any of `good`, `bad` and `assembled`.

        `good` and `bad` are systems, each a name and its parameters; `assembled` has a name, parameters, and what the
        states are put together from.
        """
        ask = Asker(answer, self.function)
        systems = systems_of(variant)
        try:
            for system in systems:
                if finding := self._look(ask, system):
                    return finding
        except Unusable as error:
            return unusable(self.function, error)
        return steady(ask, f"It is right about every state, good or bad, of {len(systems)} systems")

    def _look(self, ask: Asker, system: System) -> Finding | None:
        for case in system.cases(self):
            said = ask(*case.question)
            if type(said) is not bool:
                raise Unusable(f"{ask.call(*case.question)} returned {shown(said)}; return True or False.")
            if said and not case.is_kept:
                return self._too_lax(ask, system, case)
            if case.is_kept and not said:
                return self._too_strict(ask, system, case)
        return None

    def _too_strict(self, ask: Asker, system: System, case: Case) -> Finding:
        sentence = self.claimed(make(self.model, system.parameters)).sentence
        asked = ask.call(*case.question)
        if system.is_good:
            message = f"{asked} answered False, and this is a state of a good system ({system.name}): {sentence}"
            general = f"{self.function} rejects a state of a good system."
            observed = f"a good system is rejected: {system.name}"
        else:
            message = f"{asked} answered False, and nothing is wrong with this state ({system.name}): {sentence}"
            general = f"{self.function} rejects a state with which nothing is wrong."
            observed = f"a good state is rejected: {system.name}"
        finding = Finding(False, message, observed, "True", general=general)
        return self._with_run(system, case, finding)

    def _too_lax(self, ask: Asker, system: System, case: Case) -> Finding:
        claim = self.claimed(make(self.model, system.parameters))
        # The reason tells a whole run, which a state that was put together does not have.
        reason = _start(claim.because(case.state)) if system.assembled is None else ""
        message = (
            f"{ask.call(*case.question)} answered True, and this does not hold there ({system.name}): "
            f"{claim.sentence} {reason}"
        ).rstrip()
        general = f"{self.function} accepts a state where this does not hold: {claim.sentence}"
        observed = f"a bad state is accepted: {system.name}"
        finding = Finding(False, message, observed, "False", general=general)
        return self._with_run(system, case, finding)

    def _with_run(self, system: System, case: Case, finding: Finding) -> Finding:
        """The finding, with a shortest run to the state where there is one."""
        if system.assembled is not None:
            return finding
        trace = trace_to(self.model, json.dumps(system.parameters), case.state)
        return replace(finding, trace=str(trace), at=len(trace.actions))


def systems_of(variant: Variant) -> list[System]:
    """What a variant asks about, in order."""
    chosen = dict(variant.parameters)
    return [
        *(System(name, given, is_good=True) for name, given in chosen.get("good", ())),
        *(System(name, given) for name, given in chosen.get("bad", ())),
        *(System(name, given, assembled=parts) for name, given, parts in chosen.get("assembled", ())),
    ]


def _start(sentence: str) -> str:
    return f"{sentence[0].upper()}{sentence[1:]}"


@cache
def trace_to(model_name: str, given: str, wanted: Any) -> Trace:
    """A shortest run of a system to a state; searched once, however many answers are wrong about that state."""
    claim: Property[Any] = Property("reached", Mood.ALWAYS, "", lambda state: state != wanted, lambda _state: "")
    model = ObservedModel(make(model_name, json.loads(given)), claim)
    return explore(model, max_states=MAX_STATES).violations[0].trace
