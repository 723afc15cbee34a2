"""What holds of every model: words, traces, determinism, and claims that fail when a rule is broken or left out.

A new model is tested by its line in the registry and a file `tests/support/cases_x.py`.
"""

import json
import os
import random
import subprocess
import sys
from collections.abc import Sequence
from functools import cache
from importlib import import_module
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from model_cases import Cases, Given, LeftOut, Patch, taken

from labkit.core.errors import InvalidAction, InvalidInput
from labkit.sim.explore import explore, reachable, walk
from labkit.sim.model import Mood, crash, declared
from labkit.sim.models import MODELS
from labkit.sim.rules import Event, RuleModel
from labkit.sim.trace import make, parse, replay, trace_from_json

CASES: dict[str, Cases] = {name: import_module(f"cases_{name}").CASES for name in MODELS}


def each(part: str) -> list[Any]:
    """One test case for each element of a part of the cases, as `model` and the element."""
    return [
        pytest.param(name, found, id=f"{name}-{getattr(found, '__name__', found)}"[:90])
        for name, cases in CASES.items()
        for found in vars(cases)[part]
    ]


def violated(model: str, given: Given, max_states: int = 200_000) -> set[str]:
    found = explore(make(model, given), max_states=max_states)
    return {violation.property for violation in found.violations}


@cache
def violated_soundly(model: str, given: str, max_states: int) -> set[str]:
    """What a search finds with no rule broken, made once for all mutants of these parameters."""
    return violated(model, json.loads(given), max_states)


@pytest.mark.parametrize(("name", "given"), each("small"))
def test_states_have_distinct_lines_and_actions_have_sentences(name: str, given: Given):
    model = make(name, given)
    states = list(reachable(model, max_states=5_000))
    assert len({model.text(state) for state in states}) == len(states)
    enabled = {action for state in states for action in model.actions(state)}
    said = [model.sentence(action) for action in enabled]
    assert all(sentence.endswith(".") and "{" not in sentence for sentence in said)


@pytest.mark.parametrize(("name", "known"), each("known"))
def test_states_and_shortest_counterexamples_are_known(name: str, known: tuple[Any, ...]):
    given, states, depth, lengths = (*known, {})[:4]
    found = explore(make(name, given))
    assert {violation.property: len(violation.trace.actions) for violation in found.violations} == lengths
    assert (found.unique_states, found.depth, found.never_reached, found.exhausted) == (states, depth, (), True)


@pytest.mark.parametrize(("name", "refused"), each("refused"))
def test_parameters_that_do_not_go_together_are_refused(name: str, refused: tuple[Given, str]):
    with pytest.raises(InvalidInput) as error:
        make(name, refused[0])
    assert refused[1] in str(error.value)


@pytest.mark.parametrize(("name", "trace"), each("reads"))
def test_a_step_and_its_state_read_like_this(name: str, trace: str):
    *_, last = replay(parse(trace)).lines()
    assert last == CASES[name].reads[trace]


@pytest.mark.parametrize("name", MODELS)
def test_a_crash_drops_what_is_declared_volatile_of_its_process_and_nothing_else(name: str):
    cases, met = CASES[name], set()
    for process, kept in cases.durable.items():
        assert " ".join(field for field, mark in declared(process).items() if mark == "durable") == kept
    for configuration in cases.small:
        model = make(name, configuration)
        for state in reachable(model, max_states=5_000):
            for action, after in model.successors(state):
                if action.name in cases.crashes:
                    met.add(action.name)
                    died = died_in(state, cases.crashes[action.name].split(), action.which - cases.first)
                    assert after == after._replace(**died), action
                    rest = set(state._fields) - {*died, *cases.outside.split()}
                    assert [field for field in rest if getattr(after, field) != getattr(state, field)] == []
    assert met == set(cases.crashes)


def died_in(state: Any, fields: Sequence[str], which: int) -> dict[str, Any]:
    """These fields of a state after the crash of the process of this number; -1 or -2: of all of them."""
    died = {}
    for field in fields:
        before = getattr(state, field)
        several = (crash(each) if which < 0 or which == number else each for number, each in enumerate(before))
        died[field] = crash(before) if hasattr(before, "_fields") else tuple(several)
    return died


@pytest.mark.parametrize("name", MODELS)
def test_a_restart_depends_on_what_is_durable_only_and_changes_nothing_else(name: str):
    cases, alike = CASES[name], set()
    whole = [given for given, states, *_ in cases.known if states <= 6_000]
    for configuration in [*cases.small, *whole]:
        model, started = make(name, configuration), dict[Any, Any]()
        for state in reachable(model, max_states=6_000):
            for action, after in model.successors(state):
                if action.name not in cases.restarts:
                    continue
                starts, reads, changes, looks = cases.restarts[action.name]
                read = [getattr(state, field) for field in f"{reads} {'seen' * (configuration is looks)}".split()]
                before, others = halves(state, starts.split(), action.which - cases.first)
                again, others_after = halves(after, starts.split(), action.which - cases.first)
                assert others_after == others, action
                rest = set(state._fields) - {*starts.split(), *changes.split()}
                assert [field for field in rest if getattr(after, field) != getattr(state, field)] == [], action
                durable = (action, durable_part((*before, *read), cases))
                end = (again, [getattr(after, field) for field in changes.split()])
                if durable in started:
                    alike.add(action.name)
                assert started.setdefault(durable, end) == end, action
    rules = make(name, {}).rules
    assert alike == set(cases.restarts) == {each for each in rules if rules[each].event is Event.RESTART}


def halves(state: Any, fields: Sequence[str], which: int) -> tuple[list[Any], list[Any]]:
    """The processes in these fields of a state: the one of this number (all, if it is -1 or -2), and the others."""
    own, others = [], []
    for field in fields:
        found = getattr(state, field)
        for number, each in enumerate(found) if type(found) is tuple else [(which, found)]:
            (own if which < 0 or which == number else others).append(each)
    return own, others


def durable_part(value: Any, cases: Cases) -> Any:
    """The value without what is volatile in the processes that it is or has."""
    if type(value) is tuple:
        return tuple(durable_part(each, cases) for each in value)
    return crash(value) if type(value) in cases.durable else value


@pytest.mark.parametrize("name", MODELS)
def test_every_rule_has_a_sentence_and_an_effect_of_the_model(name: str):
    model = make(name, {})
    assert isinstance(model, RuleModel)
    for rule in model.rules.values():
        assert rule.sentence.endswith(".")
        assert any(rule.effect in vars(kind).values() for kind in type(model).__mro__)


@pytest.mark.parametrize("name", MODELS)
def test_a_search_and_a_replay_do_not_depend_on_hash_order(name: str):
    """Not even the counterexamples, where parameters alone violate a claim."""
    cases = CASES[name]
    violating = [*(each.given for each in cases.left_out), *cases.faults.values()]
    configuration = [*violating, *cases.small][0]
    code = (
        "import json, sys; from labkit.sim.explore import explore; from labkit.sim.trace import make, parse, replay;"
        "found = explore(make(sys.argv[1], json.loads(sys.argv[2])), max_states=8_000);"
        "lines = list(replay(parse(sys.argv[3])).lines());"
        "print(json.dumps({**found.to_json(), 'lines': lines}))"
    )
    choose = random.Random(4)
    trace = str(taken(name, [*cases.large, *cases.small][0], [choose.randrange(1_000) for _ in range(80)]).trace)
    printed = {
        subprocess.run(
            [sys.executable, "-c", code, name, json.dumps(configuration), trace],
            env=os.environ | {"PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
            text=True,
        ).stdout
        for seed in ("0", "1")
    }
    assert len(printed) == 1
    assert json.loads(printed.pop())["violations"] or not violating


@pytest.mark.parametrize(("name", "given"), each("large"))
def test_what_is_too_large_to_be_searched_is_walked(name: str, given: Given):
    model, cases = make(name, given), CASES[name]
    ends = [each for each in model.properties() if each.mood is Mood.EVENTUALLY]
    ended = 0
    for seed in range(cases.walks):
        trace, violations = walk(model, random.Random(seed).randrange, cases.steps)
        assert violations == (), str(trace)
        last = replay(trace).state
        ended += all(claim.holds(last) for claim in ends)
    assert ended > 0.8 * cases.walks


@pytest.mark.parametrize(("name", "configuration"), [*each("large"), *each("small")])
def test_a_trace_replays_to_the_same_states(name: str, configuration: Given):
    @settings(max_examples=12)
    @given(st.lists(st.integers(0, 1_000), max_size=120), st.integers(0, 120))
    def check(chosen: list[int], steps: int) -> None:
        walked = taken(name, configuration, chosen)
        again = replay(parse(str(walked.trace)))
        assert (again.states, again.trace) == (walked.states, walked.trace)
        assert list(again.lines()) == list(walked.lines())
        assert trace_from_json(**json.loads(json.dumps(walked.trace.to_json()))) == walked.trace
        back = min(steps, len(walked.actions))
        for _ in range(back):
            again.back()
        assert again.states == walked.states[: len(walked.states) - back]
        for action in walked.actions[len(walked.actions) - back :]:
            again.forward(action)
        assert (again.states, again.actions) == (walked.states, walked.actions)

    check()


@pytest.mark.parametrize("name", MODELS)
def test_an_unknown_scenario_and_a_step_that_is_not_enabled_are_refused(name: str):
    known = next(iter(MODELS[name].scenarios))
    with pytest.raises(InvalidInput, match=f"no scenario '{known[:-1]}'; .*{known}"):
        MODELS[name].trace_of(known[:-1])
    if isinstance(MODELS[name].scenarios[known].script, str):
        with pytest.raises(InvalidAction, match=r"crash_everybody is not enabled"):
            MODELS[name].play(make(name, {}), "crash_everybody")


# Claims that fail: by a parameter, by a rule that is left out, by a rule that the test breaks.


@pytest.mark.parametrize(("name", "left_out"), each("left_out"))
def test_a_rule_that_is_left_out_is_missed(name: str, left_out: LeftOut):
    found = explore(make(name, left_out.given))
    steps = {each.property: len(each.trace.actions) for each in found.violations}
    assert steps == left_out.lengths
    because = {each.property: each.because for each in found.violations}
    assert because == {**because, **left_out.because}
    for violation in found.violations:
        walked = replay(violation.trace)
        [claim] = [claim for claim in walked.model.properties() if claim.name == violation.property]
        assert not claim.is_kept(walked.state)
        assert claim.because(walked.state) == violation.because
        assert any(word in violation.because for word in CASES[name].names)


@pytest.mark.parametrize(("name", "mutant"), each("mutants"))
def test_a_broken_rule_is_missed(name: str, mutant: Patch, monkeypatch: pytest.MonkeyPatch):
    cases = CASES[name]
    configuration = {**cases.mutated, **(mutant(monkeypatch) or {})}
    broken = violated(name, configuration, cases.max_states)
    monkeypatch.undo()
    cases.tidy()
    sound = violated_soundly(name, json.dumps(configuration, sort_keys=True), max(cases.max_states, 60_000))
    assert broken - sound >= cases.mutants[mutant]


@pytest.mark.parametrize(("name", "claim"), each("faults"))
def test_a_fault_is_enough_to_violate_a_claim(name: str, claim: str):
    assert claim in violated(name, CASES[name].faults[claim])


@pytest.mark.parametrize(("name", "patch"), each("unreached"))
def test_what_should_be_possible_is_missed_where_it_is_not(name: str, patch: Patch, monkeypatch: pytest.MonkeyPatch):
    found = explore(make(name, patch(monkeypatch) or {}))
    assert found.never_reached == CASES[name].unreached[patch]


@pytest.mark.parametrize("name", MODELS)
def test_every_claim_is_shown_to_fail_somewhere(name: str):
    """By one of the four tests above."""
    cases = CASES[name]
    shown = set(cases.faults)
    shown |= {claim for each in cases.left_out for claim in each.lengths}
    shown = shown.union(*cases.mutants.values(), *cases.unreached.values())
    claimed = {claim.name for claim in make(name, cases.claimed).properties()}
    assert claimed <= shown
