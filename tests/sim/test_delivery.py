"""Delivery: known counts, guarantees as settings, rules that are missed when they are left out, and its scenarios."""

import pytest
from cases_delivery import ONE
from model_cases import replace_effect

from labkit.core.judge import Guarantee, Verdict
from labkit.core.records import Observation, Reading
from labkit.sim.explore import explore, reachable
from labkit.sim.models.delivery import BLUEPRINT
from labkit.sim.models.delivery.claims import Judge, executions, is_over, waited
from labkit.sim.models.delivery.model import Delivery
from labkit.sim.models.delivery.state import Hop, State
from labkit.sim.trace import Replay, make, replay

trace_of = BLUEPRINT.trace_of


def verdict(walk: Replay) -> Verdict:
    return Judge(walk.model.settings.records).verdict(walk.state)


def build(**chosen: object) -> Delivery:
    return make("delivery", chosen)


NO_FAULTS = {"drops": 0, "duplicates": 0, "crashes": 0, "processes": 2}

SETTINGS = [
    ({"retry": False, "dedup": "none"}, {}, Guarantee.EXACTLY_ONCE),
    ({"retry": False, "dedup": "none"}, {"drops": 1}, Guarantee.AT_MOST_ONCE),
    ({"retry": False, "dedup": "none"}, {"crashes": 1}, Guarantee.AT_MOST_ONCE),
    ({"retry": False, "dedup": "none"}, {"drops": 1, "duplicates": 1}, Guarantee.NONE),
    ({"retry": False}, {"drops": 1, "duplicates": 1, "crashes": 1}, Guarantee.AT_MOST_ONCE),
    ({"dedup": "none"}, {"drops": 1}, Guarantee.AT_LEAST_ONCE),
    ({"dedup": "none"}, {"delays": 1}, Guarantee.AT_LEAST_ONCE),
    ({"dedup": "none"}, {"crashes": 1}, Guarantee.AT_LEAST_ONCE),
    ({"dedup": "volatile"}, {"drops": 1, "duplicates": 1, "delays": 1}, Guarantee.EXACTLY_ONCE),
    ({"dedup": "volatile"}, {"crashes": 1}, Guarantee.AT_LEAST_ONCE),
    ({"dedup": "connection"}, {"drops": 1, "duplicates": 1, "delays": 1}, Guarantee.EXACTLY_ONCE),
    ({"dedup": "connection"}, {"crashes": 1}, Guarantee.AT_LEAST_ONCE),
    ({"dedup": "durable"}, {"drops": 1, "duplicates": 1, "delays": 1, "crashes": 1}, Guarantee.EXACTLY_ONCE),
]


def held(chosen: dict) -> Guarantee:
    """What holds in every run: the judge's words for which of the two went wrong in any."""
    found = explore(build(**chosen))
    violated = {violation.property for violation in found.violations}
    assert found.exhausted
    if "no_loss" in violated:
        return Guarantee.NONE if "no_duplicate" in violated else Guarantee.AT_MOST_ONCE
    return Guarantee.AT_LEAST_ONCE if "no_duplicate" in violated else Guarantee.EXACTLY_ONCE


@pytest.mark.parametrize(("chosen", "faults", "guarantee"), SETTINGS, ids=str)
def test_the_guarantees_are_settings_of_retry_and_deduplication(chosen: dict, faults: dict, guarantee: Guarantee):
    assert held({**NO_FAULTS, **chosen, **faults}) is guarantee


PRODUCTIONS = [
    ({"productions": "strong", "ids": "derived"}, Guarantee.EXACTLY_ONCE),
    ({"productions": "strong", "ids": "fresh"}, Guarantee.EXACTLY_ONCE),
    ({"productions": "weak", "ids": "derived"}, Guarantee.EXACTLY_ONCE),
    ({"productions": "weak", "ids": "fresh"}, Guarantee.AT_LEAST_ONCE),
    ({"productions": "weak", "dedup": "none"}, Guarantee.AT_LEAST_ONCE),
    ({"productions": "strong", "dedup": "none"}, Guarantee.AT_LEAST_ONCE),
]


@pytest.mark.parametrize(("chosen", "guarantee"), PRODUCTIONS, ids=str)
def test_weak_productions_need_ids_that_come_out_the_same_again(chosen: dict, guarantee: Guarantee):
    assert held({"drops": 0, "duplicates": 0, "crashes": 2, "records": 1, **chosen}) is guarantee


ONCE, MORE, LESS = (Guarantee.EXACTLY_ONCE, Guarantee.AT_LEAST_ONCE, Guarantee.AT_MOST_ONCE)

NAMED: dict[str, tuple[Guarantee, tuple[tuple[int, ...], ...]]] = {
    "lost_without_retry": (LESS, ((0,),)),
    "lost_and_repeated": (ONCE, ((1,),)),
    "lost_acknowledgement": (MORE, ((2,),)),
    "known_again": (ONCE, ((1,),)),
    "late_acknowledgement": (MORE, ((2,),)),
    "doubled_by_the_network": (MORE, ((2,),)),
    "overtaken": (ONCE, ((1, 1),)),
    "retry_reorders": (ONCE, ((1, 1),)),
    "table_in_memory": (MORE, ((2,),)),
    "table_in_the_store": (ONCE, ((1,),)),
    "collected_too_early": (MORE, ((2,),)),
    "collected_in_time": (ONCE, ((1,),)),
    "living_connection": (ONCE, ((1,),)),
    "broken_connection": (MORE, ((2,),)),
    "worked_on_twice": (ONCE, ((2,),)),
    "strong_production": (ONCE, ((1,), (1,))),
    "weak_production": (ONCE, ((2,), (1,))),
    "weak_production_with_a_fresh_id": (MORE, ((2,), (2,))),
    "waiting_for_all": (MORE, ((2,), (2,))),
    "cascade": (ONCE, ((2,), (2,), (2,))),
    "cascade_is_stopped": (ONCE, ((1,), (1,), (2,))),
    "second_of_four": (ONCE, ((1,), (2,), (1,))),
    "acknowledged_too_early": (LESS, ((1,),)),
    "noted_too_early": (LESS, ((1,),)),
    "noted_too_late": (MORE, ((2,),)),
    "only_the_largest_id": (LESS, ((0, 1),)),
}
"""The judge's verdict, and how often each process after the source worked on each record."""


@pytest.mark.parametrize("name", {**BLUEPRINT.scenarios, **NAMED})
def test_a_scenario_shows_what_it_promises(name: str):
    walked = replay(trace_of(name))
    assert is_over(walked.state)
    assert (verdict(walked).guarantee, executions(walked.states)) == NAMED[name]
    assert bool(verdict(walked).regression) is (name in ("overtaken", "retry_reorders"))


def test_with_strong_productions_nobody_waits_for_the_end_of_the_chain():
    """The source may forget its record once process 1 has it, and the same three crashes cost fewer steps."""
    weak, strong = (waited(replay(trace_of(name)).states) for name in ("cascade", "cascade_is_stopped"))
    assert weak == (29, 20, 10, 0)
    assert strong == (15, 16, 19, 0)


@pytest.mark.parametrize("chosen", [{}, {"productions": "weak"}, {"dedup": "connection"}], ids=str)
def test_a_crash_closes_the_connections_of_its_process_and_touches_no_other_hop(chosen: dict):
    model = build(records=1, **chosen)
    for state in reachable(model):
        for action, after in model.successors(state):
            if action.name == "crash":
                cut = (action.which - 1, action.which) if "dedup" in chosen else ()
                hops = (Hop() if number in cut else hop for number, hop in enumerate(state.hops))
                assert after.hops == tuple(hops)


def hopeless(model: Delivery) -> int:
    """How many states there are from which the end cannot be reached any more: an endless cycle, not an end."""
    before: dict[State, list[State]] = {}
    good, states = [], list(reachable(model))
    for state in states:
        for _, after in model.successors(state):
            before.setdefault(after, []).append(state)
        if is_over(state):
            good.append(state)
    seen = set(good)
    while good:
        new = [state for state in before.get(good.pop(), ()) if state not in seen]
        seen.update(new)
        good += new
    return len(states) - len(seen)


@pytest.mark.parametrize("chosen", [{}, {"productions": "weak"}, {"dedup": "connection"}, {"window": 2}], ids=str)
def test_from_everywhere_the_end_can_be_reached(chosen: dict):
    assert (
        hopeless(build(records=2 if "window" in chosen else 1, processes=2 + ("window" not in chosen), **chosen)) == 0
    )


def test_who_does_not_acknowledge_a_duplicate_makes_its_sender_send_for_ever(monkeypatch: pytest.MonkeyPatch):
    replace_effect(monkeypatch, Delivery, "discard", lambda chain, state, which: chain._taken(state, which)[0])
    assert hopeless(build(**ONE)) > 0


def test_the_history_tells_in_which_life_a_record_came_out():
    walked = replay(trace_of("table_in_memory"))
    first, again, end = Judge(1).history(walked.state).events
    assert (first, again) == (Observation(0, "hello", 1, 0, 1), Observation(0, "hello", 1, 0, 2))
    assert end == Reading("end")
