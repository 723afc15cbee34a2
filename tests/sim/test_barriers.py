"""Barriers: known counts, a second interpreter, rules that are missed when they are broken, and the scenarios."""

from typing import Any

import pytest
from cases_barriers import JOIN, LOST, TWICE
from choosing import spread
from plain_barriers import Job
from plain_search import freeze

from labkit.core.errors import InvalidAction
from labkit.core.judge import Guarantee
from labkit.sim.explore import explore, reachable
from labkit.sim.model import Action, Mood
from labkit.sim.models.barriers import BLUEPRINT, play
from labkit.sim.models.barriers.claims import Cost, Ends, cost
from labkit.sim.models.barriers.model import Barriers
from labkit.sim.models.barriers.schedule import is_over
from labkit.sim.models.barriers.state import (
    BARRIER,
    ENDED,
    MISSING,
    Checkpoint,
    Operator,
    Settings,
    Source,
    State,
    once,
    records_in,
)
from labkit.sim.trace import Replay, make, replay

trace_of = BLUEPRINT.trace_of


def build(**given: object) -> Barriers:
    return make("barriers", given)


@pytest.mark.slow
def test_the_states_of_the_default_job_are_known():
    found = explore(build())
    assert (found.unique_states, found.depth, found.exhausted, found.violations) == (42_044, 38, True, ())


def test_a_count_that_runs_ahead_of_the_sink_counts_twice():
    """Why the last sink's output offset is no offset for a checkpoint, not even if all copy at the same moment."""
    found = explore(build(**JOIN, broken="sink_offset"))
    told = {violation.property: violation for violation in found.violations}
    assert [str(action) for action in told["exact"].trace.actions] == ["read(0)", "process(0)", "copy"]
    assert told["exact"].because == (
        "after checkpoint 1, source 0 reads on at offset 0, but offset 0 of source 0 (hello) is already counted in "
        "count 0."
    )
    assert told["counted_once"].because == "offset 0 of source 1 (hello) has been counted 2 times: in the end hello=3."


TINY = {"words": "hello", "counts": 1}

CHAIN = {"words": "hello-world", "sources": 1}

SMALL = [
    ("aligned", {**TINY}),
    ("aligned", {**TINY, "sources": 1, "checkpoints": 2, "concurrent": 2, "crashes": 0}),
    ("aligned", {**TINY, "expiries": 1, "crashes": 0}),
    ("aligned", {**TINY, "sink": "append"}),
    ("aligned", {**CHAIN, "crashes": 0}),
    ("aligned", {**TINY, "sources": 1, "copying": "background"}),
    ("at_least_once", {**TINY, "crashes": 0}),
    ("unaligned", {**TINY, "crashes": 0}),
    ("unaligned", {**TINY, "sources": 1, "copying": "background"}),
]

LARGER = [
    *(
        ("aligned", {**TINY, "checkpoints": 2, "expiries": 1, "crashes": 0, "words": words})
        for words in ("hello", "hello-hello")
    ),
    ("aligned", {"words": "hello-hello", "counts": 1}),
    ("aligned", {"words": "hello", "crashes": 0}),
    ("aligned", {**CHAIN, "copying": "background"}),
    ("at_least_once", {**TINY, "checkpoints": 2, "concurrent": 2, "expiries": 1, "crashes": 0}),
    ("at_least_once", {"words": "hello-hello", "counts": 1}),
    ("unaligned", {**TINY, "checkpoints": 2, "expiries": 1, "crashes": 0}),
    ("unaligned", {"words": "hello-hello", "counts": 1}),
    ("unaligned", {**CHAIN}),
    ("aligned", {**TINY, "checkpoints": 2, "concurrent": 2, "crashes": 0}),
]


@pytest.mark.parametrize(("mode", "given"), SMALL, ids=str)
def test_a_second_interpreter_reaches_the_same(mode: str, given: dict):
    model = build(mode=mode, **given)
    mine = {freeze(told(model.settings, state)) for state in reachable(model)}
    words, sources, counts = (given["words"].split("-"), given.get("sources", 2), given.get("counts", 2))
    more = {name: value for name, value in given.items() if name not in ("words", "sources", "counts")}
    assert mine == set(Job(words, sources, counts, mode, **more).states())


@pytest.mark.slow
@pytest.mark.parametrize(("mode", "given"), spread(LARGER, 3), ids=str)
def test_a_second_interpreter_reaches_the_same_in_larger_jobs(mode: str, given: dict):
    test_a_second_interpreter_reaches_the_same(mode, given)


def told(settings: Settings, state: State) -> dict:
    coordinator, sources, operators, visible, prepared, faults = state
    [kept] = coordinator.completed or [None]
    plain = {
        "triggered": coordinator.triggered,
        "kept": told_checkpoint(settings, kept) if kept else None,
        "seen": told_records(settings, visible),
        "prepared": [[number, told_records(settings, rows)] for number, rows in prepared],
        "crashes": faults.crashes,
        "expiries": faults.expiries,
        "up": coordinator.running,
    }
    if not coordinator.running:
        return plain
    return plain | {
        "pending": [told_checkpoint(settings, checkpoint) for checkpoint in coordinator.pending],
        "sources": [{"next": position, "epoch": epoch, "ended": ended} for position, epoch, ended in sources],
        "tasks": [told_task(settings, operator) for operator in operators],
    }


def told_task(settings: Settings, operator: Operator) -> dict:
    return {
        "queues": [[told_item(settings, item) for item in queue] for queue in operator.inputs],
        "came": ["end" if came == ENDED else came for came in operator.at],
        "done": operator.done,
        "have": told_records(settings, operator.state),
        "sealed": told_records(settings, operator.sealed),
    }


def told_item(settings: Settings, item: int) -> Any:
    if item >= BARRIER:
        return "end" if item == ENDED else item - BARRIER
    return (item % settings.sources, item // settings.sources)


def told_records(settings: Settings, held: int) -> list:
    return sorted(told_item(settings, record) for record in records_in(held))


def told_checkpoint(settings: Settings, checkpoint: Checkpoint) -> dict:
    names = [f"s{which}" for which in range(settings.sources)] + [f"t{which}" for which in range(settings.counts + 1)]
    held = [
        *checkpoint.offsets,
        *(told_records(settings, state) if state != MISSING else MISSING for state in checkpoint.states),
    ]
    flight = zip(settings.channels, checkpoint.flight, strict=False)
    return {
        "id": checkpoint.id,
        "parts": {name: part for name, part in zip(names, held, strict=True) if part != MISSING},
        "flight": {str(at): [told_item(settings, item) for item in queue] for at, queue in flight if queue},
        "taken": {name for bit, name in enumerate(names) if checkpoint.taken >> bit & 1},
        "acked": {name for bit, name in enumerate(names) if checkpoint.acked >> bit & 1},
    }


# Scenarios.


EXACT = (Guarantee.EXACTLY_ONCE, set())

NAMED = {
    "three_records": ("hello=2 world=1", *EXACT),
    "crash_at_the_third": ("hello=2 world=1", *EXACT),
    "before_the_first_checkpoint": ("hello=2 world=1", *EXACT),
    "alignment": ("hello=3 world=1", *EXACT),
    "no_alignment": ("hello=4 world=1", Guarantee.AT_LEAST_ONCE, {*TWICE, "no_duplicate"}),
    "no_alignment_one_input": ("hello=2 world=1", *EXACT),
    "overtaking": ("hello=3 world=1", *EXACT),
    "channel_state_skipped": ("world=1", Guarantee.AT_MOST_ONCE, LOST),
    "sink_offset_a": ("hello=3 world=1", Guarantee.EXACTLY_ONCE, TWICE),
    "sink_offset_b": ("hello=1 world=1", Guarantee.AT_MOST_ONCE, LOST),
    "source_reads_on": ("hello=2 world=1", *EXACT),
    "complete_not_announced": ("hello=2 world=1", *EXACT),
    "announced_first": ("hello=2 world=1", Guarantee.AT_LEAST_ONCE, {"decided_first", "no_duplicate"}),
    "expired": ("hello=2 world=1", *EXACT),
    "expired_and_aborted": ("hello=2 world=1", Guarantee.AT_MOST_ONCE, {"no_loss"}),
    "newer_barrier": ("hello=3 world=1", *EXACT),
    "two_in_flight": ("hello=2 world=1", *EXACT),
    "minimum_pause": ("hello=2 world=1", *EXACT),
    "finished_source": ("hello=3 world=1", *EXACT),
    "copied_in_the_background": ("hello=2 world=1", *EXACT),
    "copied_standing": ("hello=2 world=1", *EXACT),
    "sink_acknowledged": ("hello=1 world=1", Guarantee.EXACTLY_ONCE, {"complete", *TWICE}),
    "older_checkpoint": ("hello=2 world=1", Guarantee.AT_LEAST_ONCE, {"latest", "decided_first", "no_duplicate"}),
    "appended": ("hello=2 world=1", Guarantee.AT_LEAST_ONCE, {"no_duplicate"}),
    "cancelled": ("hello=2 world=1", Guarantee.AT_LEAST_ONCE, {"no_duplicate"}),
    "retained": ("hello=2 world=1", *EXACT),
}


@pytest.mark.parametrize("name", {**BLUEPRINT.scenarios, **NAMED})
def test_a_scenario_shows_what_it_promises(name: str):
    counts, guarantee, broken = NAMED[name]
    walked = replay(trace_of(name))
    model, state = walked.model, walked.state
    assert is_over(model.settings, state)
    assert model.settings.totals(sum(operator.state for operator in state.operators[:-1])) == counts
    assert Ends(model.settings).verdict(state).guarantee is guarantee
    assert {claim.name for claim in model.properties() if is_violated(claim, walked)} == broken


def is_violated(claim, walked: Replay) -> bool:
    states = {Mood.ALWAYS: walked.states, Mood.EVENTUALLY: walked.states[-1:], Mood.SOMETIMES: []}[claim.mood]
    return not all(map(claim.is_kept, states))


def after(name: str, action: str) -> State:
    """The state of a scenario after an action was first taken."""
    walked = replay(trace_of(name))
    return walked.states[walked.actions.index(Action.parse(action)) + 1]


def counted(given: dict, held: int) -> str:
    return build(**given).settings.totals(held)


def test_after_hello_hello_world_the_checkpoint_holds_offset_three_and_both_counts():
    [checkpoint] = after("three_records", "complete(1)").coordinator.completed
    given = BLUEPRINT.scenarios["three_records"].parameters
    assert checkpoint.offsets == (3,)
    assert [counted(given, state) for state in checkpoint.states[:-1]] == ["hello=2", "world=1"]


def test_a_crash_at_the_third_record_goes_back_to_the_second():
    given = BLUEPRINT.scenarios["crash_at_the_third"].parameters
    restored = after("crash_at_the_third", "restore")
    assert restored.sources == (Source(2, 1),)
    assert [counted(given, operator.state) for operator in restored.operators] == [
        "hello=1",
        "world=1",
        "hello=1 world=1",
    ]
    assert counted(given, replay(trace_of("crash_at_the_third")).state.visible) == "hello=2 world=1"


def test_a_blocked_channel_holds_its_records_back():
    held = after("alignment", "take_barrier(0)")
    [operator, _] = held.operators
    assert (operator.at, operator.done, operator.inputs[0]) == (b"\1\0", 0, bytes((2,)))
    model = build(**BLUEPRINT.scenarios["alignment"].parameters)
    assert Action("process", 0) not in model.actions(held)
    assert Action("process", 0) in build(
        **{**BLUEPRINT.scenarios["alignment"].parameters, "mode": "at_least_once"}
    ).actions(held)


def test_what_is_overtaken_is_in_the_checkpoint_and_comes_first_after_a_restart():
    [checkpoint] = after("overtaking", "complete(1)").coordinator.completed
    flight = checkpoint.flight
    assert flight == (bytes((0, 2)), b"\1", b""), "two were overtaken in a channel, one came before the other barrier"
    restored = after("overtaking", "restore")
    assert b"".join(queue for operator in restored.operators for queue in operator.inputs) == b"".join(flight)


def test_a_row_belongs_to_the_transaction_of_its_epoch():
    """Two-phase commit holds what came before the barrier, and what came after it, each in a transaction of its own."""
    committed = after("source_reads_on", "announce")
    assert (committed.visible, committed.prepared) == (once(0), ())
    [sink] = committed.operators[-1:]
    assert sink.sealed == once(0)
    sealed = after("complete_not_announced", "complete(1)")
    assert (sealed.visible, sealed.prepared) == (0, ((1, once(0)),))
    assert after("complete_not_announced", "restore").visible == once(0)


def test_an_expired_checkpoint_leaves_its_transaction_to_the_next():
    gone = after("expired", "expire(1)")
    assert (gone.coordinator.pending, gone.prepared) == ((), ((1, once(0)),))
    assert after("expired", "announce").visible == once(0) + once(1)
    assert after("expired_and_aborted", "expire(1)").prepared == ()


def test_a_newer_barrier_ends_the_alignment_for_an_older_one():
    blocked = after("newer_barrier", "expire(1)")
    [count, _] = blocked.operators
    assert (count.at, count.done) == (b"\1\0", 0)
    model = build(**BLUEPRINT.scenarios["newer_barrier"].parameters)
    assert Action("process", 0) not in model.actions(blocked)
    [count, _] = (released := after("newer_barrier", "take_barrier(1)")).operators
    assert (count.at, count.done) == (b"\1\2", 0)
    assert Action("process", 0) in model.actions(released)


def test_a_newer_checkpoint_subsumes_an_older_one():
    walked = replay(trace_of("two_in_flight"))
    both = walked.states[walked.actions.index(Action("complete", 2))]
    assert {Action("complete", 1), Action("complete", 2)} <= set(walked.model.actions(both))
    newer = after("two_in_flight", "complete(2)")
    assert [checkpoint.id for checkpoint in newer.coordinator.completed] == [2]
    assert newer.coordinator.pending == ()


def test_the_minimum_pause_counts_from_the_completion():
    walked = replay(trace_of("minimum_pause"))
    first = walked.actions.index(Action("complete", 1))
    pauses = [state.coordinator.pause for state in walked.states[first:]]
    assert pauses[:7] == [0, 4, 4, 3, 2, 1, 0], "the announcement is no step of a task"
    may = [Action("trigger") in walked.model.actions(state) for state in walked.states[first + 1 :][:6]]
    assert may == [False, False, False, False, False, True]


def test_the_end_of_an_input_counts_as_its_barrier():
    [checkpoint] = after("finished_source", "complete(1)").coordinator.completed
    assert checkpoint.offsets == (1, 2), "source 1 has ended, and its last offset is in the checkpoint"
    last = replay(trace_of("finished_source")).state
    assert [each.id for each in last.coordinator.completed] == [2], "one more checkpoint after the end commits the rest"


COSTS = {
    "alignment": Cost(held=1, waited=7, stored=0, stood=0),
    "overtaking": Cost(held=0, waited=0, stored=3, stood=0),
    "no_alignment": Cost(held=0, waited=0, stored=0, stood=0),
    "copied_in_the_background": Cost(held=0, waited=0, stored=0, stood=0),
    "copied_standing": Cost(held=0, waited=0, stored=0, stood=4),
}


@pytest.mark.parametrize("name", COSTS)
def test_a_checkpoint_has_its_price(name: str):
    walked = replay(trace_of(name))
    assert cost(walked.model.settings, walked.states) == COSTS[name]


def test_a_task_that_stands_still_does_nothing_until_its_copy_is_stored():
    standing = after("copied_standing", "take_barrier(0)")
    assert Action("process", 0) not in build(**BLUEPRINT.scenarios["copied_standing"].parameters).actions(standing)
    goes_on = build(**{**BLUEPRINT.scenarios["copied_standing"].parameters, "copying": "background"})
    assert Action("process", 0) in goes_on.actions(standing)


def test_a_script_that_cannot_be_played_names_its_step():
    with pytest.raises(InvalidAction, match=r"take_barrier\(0\) is not enabled in this state: 0 triggered"):
        play(build(), "read(0) take_barrier(0)")
