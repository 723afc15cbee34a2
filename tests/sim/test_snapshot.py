"""Snapshots of a bank: known counts, a second interpreter, a search for what is recorded, rules that are left out."""

import pytest
from cases_snapshot import MARKERS, NAIVE, STOP
from plain_search import freeze
from plain_snapshot import Bank as PlainBank
from plain_snapshot import first_snapshots, fresh, recorded, snapshot

from labkit.core.errors import InvalidInput
from labkit.sim.explore import explore, reachable
from labkit.sim.model import Mood
from labkit.sim.models.snapshot import BLUEPRINT, claims
from labkit.sim.models.snapshot import model as rules
from labkit.sim.models.snapshot.claims import moment, paused, stood_still
from labkit.sim.models.snapshot.model import Bank
from labkit.sim.models.snapshot.state import (
    MARKER,
    PER_CHANNEL,
    Account,
    Part,
    Process,
    State,
    beginning,
    money,
    orphans_and_missing,
)
from labkit.sim.trace import make, replay
from labkit.sim.wording import members

trace_of = BLUEPRINT.trace_of


def build(**chosen: object) -> Bank:
    return make("snapshot", chosen)


VANISHED = "the snapshot holds 300 of 400, so 100 vanished: transfer 12.1 is sent in the copy of process 1, "

LOST = VANISHED + "not received in the copy of process 2, and in no channel."

EARLY = "transfer 12.1 is received in the copy of process 2 and not sent in the copy of process 1."

SAID = [
    ({"algorithm": NAIVE, "processes": 2}, "conserved", LOST),
    ({"broken": "forget_channels", "processes": 2}, "conserved", LOST),
    ({"reorderings": 1, "processes": 2}, "conserved", LOST),
    (
        {"broken": "late_markers", "processes": 2},
        "conserved",
        f"the snapshot holds 500 of 400, so 100 appeared: {EARLY}",
    ),
    ({"algorithm": STOP, "broken": "forget_pause", "processes": 2}, "reachable", EARLY),
    (
        {"broken": "restore_alone", "processes": 2},
        "money",
        "there is 500 of 400 after a restore: process 1 has 200, process 2 has 200.",
    ),
]


@pytest.mark.parametrize(("chosen", "name", "because"), SAID, ids=str)
def test_a_counterexample_says_which_transfer_and_which_processes(chosen: dict, name: str, because: str):
    said = {violation.property: violation.because for violation in explore(build(**chosen)).violations}
    assert said[name] == because


def told(state: State, ends: tuple) -> dict:
    left = dict(zip(("transfers", "snapshots", "reorderings", "crashes"), state[4:], strict=True))
    return {
        "branches": {number: told_process(process, ends) for number, process in enumerate(state.processes, start=1)},
        "wires": {
            pair_of(ends[number]): ["marker" if each == MARKER else transfer(each, ends) for each in queue]
            for number, queue in enumerate(state.channels)
        },
        "running": state.running,
        "completed": told_snapshot(state.completed, ends) if state.completed else None,
        "left": left,
    }


def told_process(process: Process, ends: tuple) -> dict:
    return {
        "account": told_account(process.account, ends),
        "recorded": told_account(process.copy, ends),
        "waits_for": {which + 1 for which in members(process.awaited)},
        "saved": transfers(process.in_flight, ends),
        "part": process.part and told_part(process.part, ends),
        "paused": process.paused,
    }


def told_account(account: Account | None, ends: tuple) -> dict | None:
    if account is None:
        return None
    sent, received = transfers(account.sent, ends), transfers(account.received, ends)
    return {"balance": account.balance, "sent": sent, "received": received}


def told_part(part: Part, ends: tuple) -> dict:
    return {"account": told_account(part.account, ends), "channels": transfers(part.channels, ends)}


def told_snapshot(completed: tuple[Part, ...], ends: tuple) -> dict:
    return {number: told_part(part, ends) for number, part in enumerate(completed, start=1)}


def pair_of(ends) -> tuple[int, int]:
    return ends.sender + 1, ends.receiver + 1


def transfer(number: int, ends: tuple) -> tuple:
    channel, nth = divmod(number, PER_CHANNEL)
    return pair_of(ends[channel]), nth + 1


def transfers(bits: int, ends: tuple) -> set:
    return {transfer(number, ends) for number in members(bits)}


SMALL = [
    (MARKERS, 2, {"transfers": 2, "snapshots": 1, "crashes": 1}),
    (MARKERS, 2, {"transfers": 1, "snapshots": 2, "reorderings": 1, "crashes": 1}),
    pytest.param(MARKERS, 3, {"transfers": 1, "snapshots": 1, "crashes": 0}, marks=pytest.mark.slow),
    (STOP, 2, {"transfers": 2, "snapshots": 2, "crashes": 1}),
    (STOP, 3, {"transfers": 1, "snapshots": 1, "crashes": 0}),
    (NAIVE, 2, {"transfers": 2, "snapshots": 1, "reorderings": 1, "crashes": 1}),
    (NAIVE, 3, {"transfers": 1, "snapshots": 1, "crashes": 0}),
]


@pytest.mark.parametrize(("algorithm", "count", "budgets"), SMALL, ids=str)
def test_a_second_interpreter_reaches_the_same(algorithm: str, count: int, budgets: dict[str, int]):
    model = build(algorithm=algorithm, processes=count, **budgets)
    mine = {freeze(told(state, model.ends)) for state in reachable(model)}
    assert mine == set(snapshot(algorithm, count, **budgets))


SEARCHED = [
    ({"algorithm": NAIVE, "processes": 2, "transfers": 2}, 2),
    ({"algorithm": NAIVE, "processes": 3, "transfers": 1}, 1),
    ({"algorithm": MARKERS, "processes": 2, "transfers": 3}, 3),
    ({"algorithm": MARKERS, "processes": 3, "transfers": 1}, 1),
    ({"algorithm": MARKERS, "processes": 2, "transfers": 2, "reorderings": 1}, 2),
    ({"broken": "forget_channels", "processes": 2, "transfers": 2}, 2),
    ({"broken": "late_markers", "processes": 2, "transfers": 2}, 2),
    ({"algorithm": STOP, "broken": "forget_pause", "processes": 2, "transfers": 2}, 2),
]


@pytest.mark.parametrize(("chosen", "sent"), SEARCHED, ids=str)
def test_the_criterion_of_the_cut_says_what_a_search_finds(chosen: dict, sent: int):
    """A snapshot is a consistent cut with its channels exactly if the plain bank can come to its state."""
    model = build(crashes=0, **chosen)
    bank = PlainBank(sent, fifo="reorderings" not in chosen)
    accounts = {number: fresh() for number in range(1, model.count + 1)}
    can_be = bank.after({"accounts": accounts, "under_way": set()})
    held = {state.completed for state in reachable(model) if state.completed}
    for completed in held:
        state = recorded(told_snapshot(completed, model.ends))
        assert (orphans_and_missing(completed) == (0, 0)) == (freeze(state) in can_be)
    assert held


CUTS = [
    (MARKERS, 2, {"transfers": 2}),
    pytest.param(MARKERS, 3, {"transfers": 1}, marks=pytest.mark.slow),
    (STOP, 2, {"transfers": 2}),
]


@pytest.mark.parametrize(("algorithm", "count", "budgets"), CUTS, ids=str)
def test_the_recorded_state_lies_between_the_beginning_and_the_end_of_its_snapshot(
    algorithm: str, count: int, budgets: dict[str, int]
):
    """Chandy and Lamport's theorem: it can be reached from the former, and the latter from it. Found by search."""
    bank, cuts = PlainBank(budgets["transfers"]), 0
    for began, held, ended in first_snapshots(algorithm, count, **budgets):
        assert freeze(held) in bank.after(began)
        assert freeze(ended) in bank.after(held)
        cuts += 1
    assert cuts > 20


def test_money_can_be_conserved_and_the_state_yet_be_unreachable():
    chosen = {"algorithm": NAIVE, "processes": 2, "transfers": 2, "crashes": 0}
    held = {state.completed for state in reachable(build(**chosen)) if state.completed}
    assert any(money(completed) == 400 and orphans_and_missing(completed) != (0, 0) for completed in held)
    assert all(orphans_and_missing(completed) != (0, 0) for completed in held if money(completed) != 400)


def test_only_stopping_the_world_ever_stops_it():
    for algorithm, stops in ((NAIVE, False), (MARKERS, False), (STOP, True)):
        assert any(stood_still([state]) for state in reachable(build(algorithm=algorithm))) is stops


NAMED: dict[str, tuple[set[str], int, int | None]] = {
    "copied_on_the_way": ({"conserved", "reachable"}, 0, None),
    "copied_before_and_after": ({"conserved", "reachable"}, 0, None),
    "two_transfers": ({"reachable"}, 0, None),
    "power_failure": ({"conserved", "reachable", "money"}, 0, 5),
    "stopped_world": (set(), 5, 5),
    "markers_flow": (set(), 0, 1),
    "crossing_transfers": (set(), 0, None),
    "restored_together": (set(), 0, 1),
    "died_in_a_snapshot": (set(), 0, 0),
    "marker_overtakes": ({"conserved", "reachable"}, 0, None),
    "transfer_overtakes": ({"conserved", "reachable"}, 0, None),
    "forgotten_channels": ({"conserved", "reachable"}, 0, None),
    "late_markers": ({"conserved", "reachable"}, 0, None),
    "forgotten_drain": ({"conserved", "reachable"}, 3, None),
    "forgotten_pause": ({"conserved", "reachable"}, 5, None),
    "restored_alone": ({"money"}, 0, None),
}
"""What is violated, for how many steps all were paused, and after which step things were as the snapshot says."""


@pytest.mark.parametrize("name", {**BLUEPRINT.scenarios, **NAMED})
def test_a_scenario_shows_what_it_promises(name: str):
    walked = replay(trace_of(name))
    violated = {
        claim.name
        for claim in walked.model.properties()
        if claim.mood is Mood.ALWAYS and not all(map(claim.is_kept, walked.states))
    }
    assert (violated, stood_still(walked.states), moment(walked.states)) == NAMED[name]
    assert name == "restored_alone" or walked.state.completed, "the snapshot of which it speaks is there"


def test_a_process_that_stands_still_is_counted_by_itself():
    assert paused(replay(trace_of("stopped_world")).states) == (7, 7, 7)


def test_what_was_in_a_channel_is_back_in_it_after_a_restore():
    walked = replay(trace_of("restored_together"))
    *_, before, restored, end = walked.states
    assert (before.channels, restored.channels) == (((), ()), ((), (PER_CHANNEL,)))
    assert [process.account.balance for process in end.processes] == [300, 100]


@pytest.mark.parametrize("algorithm", [NAIVE, STOP, MARKERS])
def test_states_that_differ_in_memory_only_are_the_same_once_all_went_back(algorithm: str):
    model, back = build(algorithm=algorithm, processes=2), {}
    for state in reachable(model):
        for action, after in model.successors(state):
            if action.name == "restore":
                durable = (state.completed, state[4:])
                assert back.setdefault(durable, after) == after


def test_numbers_of_transfers_do_not_collide():
    """No channel carries as many transfers as it has numbers for, whatever may be chosen."""
    with pytest.raises(InvalidInput):
        rules.PARAMETERS["transfers"].check("transfers", PER_CHANNEL)
    assert claims.orphans_and_missing(beginning(5)) == (0, 0)
