"""Two-phase commit: known state counts, a second interpreter, and rules that are missed when they are left out."""

import pytest
from plain_search import freeze
from plain_two_phase import textbook, two_phase

from labkit.sim.explore import explore, reachable
from labkit.sim.model import Action
from labkit.sim.models.two_phase_commit.state import Entry, State, blocked
from labkit.sim.models.two_phase_commit.textbook import Position
from labkit.sim.trace import Replay, make


def build(**given: object):
    return make("two_phase_commit", given)


def test_who_decides_alone_loses_money():
    found = explore(build(broken="heuristic"))
    [torn] = [violation for violation in found.violations if violation.property == "atomic"]
    assert torn.because == (
        "participant 1 has committed and participant 0 has aborted alone: "
        "half of the transfer happened, and its money is lost."
    )


@pytest.mark.parametrize("count", [1, 2, 3])
def test_a_second_interpreter_of_the_textbook_reaches_the_same(count: int):
    assert {freeze(told_textbook(state)) for state in reachable(build(textbook=True, participants=count))} == set(
        textbook(count)
    )


def told_textbook(state) -> dict:
    decision = state.decision
    sent, heard = bits(state.sent), bits(state.heard)
    announced = {Position.WORKING: set(), Position.COMMITTED: {"commit"}, Position.ABORTED: {"abort"}}[decision]
    return {
        "coordinator": "init" if decision is Position.WORKING else decision.value,
        "participants": list(state.participants),
        "prepared": heard,
        "messages": {("prepared", which) for which in sent} | announced,
    }


@pytest.mark.parametrize(("count", "crashes", "losses"), [(1, 2, 1), (2, 0, 0), (2, 1, 0), (2, 0, 1)])
def test_a_second_interpreter_of_the_protocol_reaches_the_same(count: int, crashes: int, losses: int):
    mine = reachable(build(participants=count, crashes=crashes, losses=losses))
    assert {freeze(told(state)) for state in mine} == set(two_phase(count, crashes, losses))


def told(state: State) -> dict:
    return {
        "log": list(state.coordinator.log),
        "phase": state.coordinator.phase,
        "votes": bits(state.coordinator.votes),
        "acks": bits(state.coordinator.acks),
        "participants": [{"log": list(one.log), "phase": one.phase} for one in state.participants],
        "outward": [list(queue) for queue in state.outward],
        "inward": [list(queue) for queue in state.inward],
        "promised": bits(state.promised),
        "announced": state.announced,
        "crashes": state.crashes,
        "losses": state.losses,
    }


def bits(number: int) -> set[int]:
    return {which for which in range(number.bit_length()) if number >> which & 1}


def walked(*names: str, **given: object) -> Replay:
    walk = Replay(build(**given))
    for name in names:
        walk.forward(Action.parse(name))
    return walk


def test_a_participant_in_doubt_holds_its_locks_until_the_coordinator_is_back():
    walk = walked("start", "read(0)", "crash_coordinator", "read(1)", "restart_coordinator", participants=2)
    assert blocked(walk.states) == (4, 2)
    for name in ("hear(0)", "inquire(0)", "hear(0)", "read(0)"):
        walk.forward(Action.parse(name))
    assert walk.state.participants[0].log == (Entry.PREPARED, Entry.ABORT), "no record means abort"
    assert blocked(walk.states) == (7, 6)
