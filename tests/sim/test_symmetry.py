"""Equal processes: one state of each class is searched, and nothing that the whole search finds is missed."""

from collections import Counter
from itertools import permutations
from math import factorial, prod
from typing import Any

import pytest

from labkit.core.errors import InvalidInput
from labkit.search.cores import on_cores
from labkit.sim.explore import explore, reachable
from labkit.sim.models import MODELS
from labkit.sim.symmetry import Quotient
from labkit.sim.trace import make, parse, replay

TWO_PHASE = "two_phase_commit"
BROKEN = ("heuristic", "early", "forget_decision", "forget_vote")
QUICK: list[dict[str, Any]] = [
    {"textbook": True, "participants": 4},
    {"participants": 1, "crashes": 2},
    {"participants": 2, "crashes": 1},
    {"participants": 3, "crashes": 0, "losses": 0},
    *({"participants": 2, "losses": 0, "broken": rule} for rule in BROKEN),
]
LARGER: list[dict[str, Any]] = [
    {"participants": 2, "crashes": 2},
    {"participants": 3, "crashes": 1, "losses": 0},
    {"participants": 2, "crashes": 2, "losses": 2},
    *({"participants": 3, "losses": 0, "broken": rule} for rule in BROKEN),
    {"participants": 3, "losses": 0, "coordinator_returns": False},
]
LARGEST = LARGER[3:5]
CASES = [
    *QUICK,
    *(pytest.param(each, marks=[pytest.mark.slow, *[pytest.mark.variant] * (each in LARGEST)]) for each in LARGER),
]


def states_of(seats: list[Any]) -> int:
    """How many states a class has: the orders of its seats that can be told apart."""
    alike = Counter(seats).values()
    return factorial(len(seats)) // prod(map(factorial, alike))


@pytest.mark.parametrize("given", CASES, ids=str)
def test_classes_hold_every_state_once_and_show_the_same(given: dict[str, Any]):
    model = make(TWO_PHASE, given)
    quotient = Quotient(model)
    classes = list(reachable(quotient))
    whole, found = explore(model), quotient.in_full(explore(quotient))
    assert set(classes) == set(map(quotient.shown, reachable(model)))
    assert sum(states_of(list(model.seats(state))) for state in classes) == whole.unique_states
    assert (found.depth, found.never_reached) == (whole.depth, whole.never_reached)
    assert [(each.property, len(each.trace.actions)) for each in found.violations] == [
        (each.property, len(each.trace.actions)) for each in whole.violations
    ]
    assert found.unique_states == len(classes) <= whole.unique_states


@pytest.mark.parametrize("given", CASES, ids=str)
def test_who_is_who_changes_nothing_that_can_happen_or_is_claimed(given: dict[str, Any]):
    model = make(TWO_PHASE, given)
    shown, claims = Quotient(model).shown, model.properties()
    for state in list(reachable(model))[::53]:
        after = {shown(each) for _, each in model.successors(state)}
        kept = [claim.is_kept(state) for claim in claims]
        for order in permutations(range(len(model.seats(state)))):
            other = model.seated(state, order)
            assert shown(other) == shown(state)
            assert {shown(each) for _, each in model.successors(other)} == after
            assert [claim.is_kept(other) for claim in claims] == kept


def test_a_trace_is_the_models_own_and_shows_what_it_says():
    model = make(TWO_PHASE, {"participants": 2, "losses": 0, "broken": "heuristic"})
    quotient = Quotient(model)
    found = quotient.in_full(explore(quotient))
    assert [each.property for each in found.violations] == ["promise", "atomic"]
    for each in found.violations:
        walk = replay(parse(str(each.trace)))
        claims = {claim.name: claim for claim in model.properties()}
        assert not claims[each.property].is_kept(walk.state)
        assert claims[each.property].because(walk.state) == each.because


def test_several_processes_find_the_same_classes():
    model = make(TWO_PHASE, {"participants": 2, "losses": 0, "broken": "heuristic"})
    quotient = Quotient(model)
    with on_cores(quotient, 2) as shared:
        assert quotient.in_full(shared.explore()) == quotient.in_full(explore(quotient))


@pytest.mark.parametrize("name", [name for name in MODELS if name != TWO_PHASE])
def test_a_model_whose_processes_differ_is_refused(name: str):
    with pytest.raises(InvalidInput, match=f"{name} with --symmetry: "):
        Quotient(make(name, {}))


@pytest.mark.variant
@pytest.mark.slow
def test_four_participants_and_two_crashes_are_a_third_of_the_states_or_less():
    model = make(TWO_PHASE, {"participants": 4, "crashes": 2, "losses": 0})
    quotient = Quotient(model)
    classes = list(reachable(quotient))
    whole = sum(states_of(list(model.seats(state))) for state in classes)
    found = explore(quotient)
    assert (found.violations, found.never_reached, found.exhausted) == ((), (), True)
    assert 3 * found.unique_states < whole
