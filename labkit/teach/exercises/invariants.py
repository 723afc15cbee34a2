"""Judge a property that a learner writes, by states of a simulator whose own claim tells bad states from good ones.

The states come from three sources. The property must accept every state of a correct system. In a system with one rule
removed, it must accept the good states and reject the bad ones. Assembled states, which no run reached, cover
combinations that runs of small systems rarely show.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from operator import attrgetter
from typing import Any, NamedTuple

from labkit.core.errors import GradingError
from labkit.sim.explore import explore, reachable
from labkit.sim.model import Model, Mood, Property
from labkit.sim.overlay import Overlay
from labkit.sim.trace import Trace, make
from labkit.teach.exercises.asking import Asker, Unusable
from labkit.teach.exercises.contract import Answer, Finding, Plain, Variant
from labkit.teach.exercises.searching import MAX_STATES, steady, unusable

View = Callable[[Model[Any], Any], tuple[Any, ...]]
"""A function that returns the part of a state that a property sees: the arguments of the learner's function."""
Arrange = Callable[[tuple[Any, ...], bool], Iterable[tuple[Any, ...]]]
"""A function that returns several versions of the arguments that must get the same answer, such as reordered rows.

It gets the arguments, and whether True is the right answer.
"""
Assemble = Callable[[Model[Any], Mapping[str, Any]], Iterable[Any]]
"""A function that builds states from a model and a dict, whether or not a run reaches these states.

The dict is part of a variant, and each exercise has keys of its own for it, such as `rows`.
"""


class ObservedModel(Overlay[Any]):
    """A simulator whose own properties are replaced by the single property `claim`."""

    def __init__(self, model: Model[Any], claim: Property[Any]) -> None:
        super().__init__(model)
        self._claim = claim

    def properties(self) -> Sequence[Property[Any]]:
        return (self._claim,)


class Case(NamedTuple):
    """A test of a learner's function: the arguments, and in `is_kept` whether the right answer is True.

    `state` is the first state of the simulator that gives these arguments.
    """

    question: tuple[Any, ...]
    is_kept: bool
    state: Any


@cache
def _cases(watch: "Watch", parameters: str, assembled: str) -> tuple[Case, ...]:
    """Return the test cases of the exercise `watch` on the states of one simulator.

    `parameters` is the simulator's configuration as JSON text. If `assembled` is empty, the states are those that the
    simulator reaches. Otherwise `assembled` is a JSON object from which `watch.assemble` builds the states.
    """
    model = make(watch.model, json.loads(parameters))
    parts = json.loads(assembled) if assembled else {}
    if "input" in parts:
        # No search visits these states, so their input may be longer than a search could handle.
        model = type(model)({**model.values, "words": parts["input"]})
    claim = watch.claimed(model)
    states = watch.assemble(model, parts) if assembled else _reached(watch, model, claim, parameters)
    cases: dict[str, Case] = {}
    for state in states:
        is_kept = claim.holds(state)
        for question in watch.arrange(watch.view(model, state), is_kept):
            case = Case(question, is_kept, state)
            cases.setdefault(json.dumps(case[:2]), case)
    return tuple(cases.values())


def _reached(watch: "Watch", model: Model[Any], claim: Property[Any], parameters: str) -> Iterator[Any]:
    states = reachable(model, max_states=MAX_STATES)
    for count, state in enumerate(states, start=1):
        if count >= MAX_STATES:
            raise GradingError(
                f"the simulator {watch.model} with {parameters} has {MAX_STATES} states or more; use smaller "
                "parameters."
            )
        if claim.where is None or claim.where(state):
            yield state


class System(NamedTuple):
    """A configured simulator, whose states test a learner's property.

    The states are those that the simulator reaches or, if `assembled` is not None, those that `Watch.assemble` builds.
    """

    name: str
    parameters: Mapping[str, object]
    is_good: bool = False
    """Whether the system keeps all rules, so that the claim holds in every one of its states."""
    assembled: Mapping[str, object] | None = None
    """The dict from which states are built; None to use the states that the system reaches."""

    def cases(self, watch: "Watch") -> tuple[Case, ...]:
        """Return the tests of a learner's property on the states of this simulator."""
        assembled = "" if self.assembled is None else json.dumps(self.assembled)
        return _cases(watch, json.dumps(self.parameters), assembled)


@dataclass(frozen=True)
class Watch:
    """An exercise in which a learner writes the property `claim` of the simulator `model` as a function of a state.

    `view` turns a state into the function's arguments, `assemble` builds states without a run, and `arrange` returns
    several arrangements of the arguments; the function is called with each of them.
    """

    function: str
    model: str
    claim: str
    view: View
    assemble: Assemble = lambda _model, _parts: ()
    arrange: Arrange = lambda question, _is_kept: (question,)

    def claimed(self, model: Model[Any]) -> Property[Any]:
        """Return the simulator's own property, with which the learner's function should agree."""
        return next(each for each in model.properties() if each.name == self.claim)

    def judge(self, answer: Answer, variant: Variant) -> Finding:
        """Check a learner's property on states of each simulator in `variant`; report the first disagreement.

        The right answer for a state is what the simulator's own property, named `claim`, says about it. The variant's
        parameters `good` (correct simulators) and `bad` (faulty ones) list pairs of a name and a configuration. All
        states that these simulators reach are tested. A third parameter, `assembled`, lists triples of a name, a
        configuration, and a dict from which `assemble` builds the states to test.
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
        for case in ask.announced(system.cases(self), attrgetter("question")):
            answer = ask.truth(*case.question)
            if answer and not case.is_kept:
                return self._too_lax(ask, system, case)
            if case.is_kept and not answer:
                return self._too_strict(ask, system, case)
        return None

    def _too_strict(self, ask: Asker, system: System, case: Case) -> Finding:
        sentence = self.claimed(make(self.model, system.parameters)).sentence
        call = ask.call(*case.question)
        if system.is_good:
            message = f"{call} answered False, but this is a state of a good system ({system.name}): {sentence}"
            general = f"{self.function} rejects a state of a good system."
            observed = f"a good system is rejected: {system.name}"
        else:
            message = f"{call} answered False, but nothing is wrong with this state ({system.name}): {sentence}"
            general = f"{self.function} rejects a state with which nothing is wrong."
            observed = f"a good state is rejected: {system.name}"
        finding = Finding(False, message, observed, "True", general=general)
        return self._with_run(system, case, finding)

    def _too_lax(self, ask: Asker, system: System, case: Case) -> Finding:
        claim = self.claimed(make(self.model, system.parameters))
        # The reason describes a run, and no run led to an assembled state.
        reason = claim.because(case.state) if system.assembled is None else ""
        message = (
            f"{ask.call(*case.question)} answered True, but this does not hold there ({system.name}): "
            f"{claim.sentence} {reason[:1].upper()}{reason[1:]}"
        ).rstrip()
        general = f"{self.function} accepts a state where this does not hold: {claim.sentence}"
        observed = f"a bad state is accepted: {system.name}"
        finding = Finding(False, message, observed, "False", general=general)
        return self._with_run(system, case, finding)

    def _with_run(self, system: System, case: Case, finding: Finding) -> Finding:
        if system.assembled is not None:
            return finding
        trace = trace_to(self.model, json.dumps(system.parameters), case.state)
        return replace(finding, trace=str(trace), at=len(trace.actions))


class Told(NamedTuple):
    """A test of a learner's property with a state that belongs to no simulator.

    `question` has the arguments of the learner's function, and `is_kept` tells whether the right answer is True.
    """

    question: tuple[Plain, ...]
    is_kept: bool
    why: str
    """The reason, for a message."""
    simpler: Iterable["Told"] = ()
    """Simpler tests to try if the function fails this one, because their messages are easier to understand."""
    of_many: str | None = None
    """The words in a message in place of arguments that are too long for it, such as ` for 2,100 rows`."""


def wrong_told(ask: Asker, case: Told, general: Mapping[bool, str]) -> Finding | None:
    """Check a learner's property in one test; `general` maps a wrong answer to the message without details."""
    answer = ask.truth(*case.question)
    if answer is case.is_kept:
        return None
    for simpler in case.simpler:
        if finding := wrong_told(ask, simpler, general):
            return finding
    statement = f"{ask.call(*case.question)} answered {answer}"
    if case.of_many is not None:
        statement = f"{ask.name} answered {answer}{case.of_many}"
    message = f"{statement}, but {case.why}."
    return Finding(False, message, statement, str(case.is_kept), general=general[answer])


def systems_of(variant: Variant) -> list[System]:
    """Return the simulators that `variant` names in its parameters `good`, `bad` and `assembled`, in this order.

    Those in `good` are correct, and those in `bad` are faulty. For `assembled`, the states are built without a run.
    """
    chosen = dict(variant.parameters)
    return [
        *(System(name, parameters, is_good=True) for name, parameters in chosen.get("good", ())),
        *(System(name, parameters) for name, parameters in chosen.get("bad", ())),
        *(System(name, parameters, assembled=parts) for name, parameters, parts in chosen.get("assembled", ())),
    ]


@cache
def trace_to(model_name: str, parameters: str, wanted: Any) -> Trace:
    """Return a shortest run of the simulator `model_name` that ends in the state `wanted`; the result is cached.

    `parameters` is the simulator's configuration as JSON text.
    """
    claim: Property[Any] = Property("reached", Mood.ALWAYS, "", lambda state: state != wanted, lambda _state: "")
    model = ObservedModel(make(model_name, json.loads(parameters)), claim)
    return explore(model, max_states=MAX_STATES).violations[0].trace
