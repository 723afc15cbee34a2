"""The model `barriers` in the tests that all models share: rules that are left out or broken, and large jobs."""

from typing import Any

import pytest
from model_cases import Cases, Given, LeftOut, Restart

from labkit.sim.models.barriers import model as rules
from labkit.sim.models.barriers import operators, schedule
from labkit.sim.models.barriers.state import BARRIER, ENDED, Coordinator, Operator, Settings, Source, State

JOIN = {"words": "hello-hello", "counts": 1}
"""Two sources with a hello each, and one task that counts them."""

LINE = {"words": "hello-world", "sources": 1}
"""One source, and a count for each of its words."""

NOWHERE = (
    "in checkpoint 1, offset 0 of source 0 (hello), which source 0 has sent to count 0, is neither received nor in "
    "flight."
)

BROKEN = [
    (
        {**JOIN, "broken": "forget_to_block"},
        {"aligned": 5, "sent_first": 10, "conserved": 10, "exact": 10, "counted_once": 27, "no_duplicate": 27},
        "count 0 has taken offset 0 of source 0 (hello), which follows barrier 1, before it has copied its state.",
    ),
    ({**JOIN, "broken": "first_barrier"}, {"conserved": 9, "exact": 9, "counted_once": 19, "no_loss": 19}, NOWHERE),
    (
        {**JOIN, "broken": "skip_channel_state", "mode": "unaligned"},
        {"conserved": 8, "exact": 8, "counted_once": 16, "no_loss": 16},
        NOWHERE,
    ),
    (
        {**JOIN, "broken": "sink_offset"},
        {"sent_first": 3, "conserved": 3, "exact": 3, "counted_once": 18},
        "in checkpoint 1 count 0 has received offset 0 of source 0 (hello), which source 0 has not sent by then.",
    ),
    (
        {**LINE, "broken": "sink_offset"},
        {"sent_first": 3, "conserved": 3, "exact": 3, "counted_once": 12, "no_loss": 12},
        "in checkpoint 1 count 0 has received offset 0 of source 0 (hello), which source 0 has not sent by then.",
    ),
    (
        {**LINE, "broken": "sink_ack", "copying": "background"},
        {"complete": 8, "sent_first": 11, "conserved": 11, "exact": 12, "counted_once": 22, "no_duplicate": 29},
        "checkpoint 1 is complete although source 0 has not acknowledged it, so its part is missing.",
    ),
    (
        {**LINE, "broken": "announce_first"},
        {"decided_first": 10, "no_duplicate": 26},
        "the row of offset 0 of source 0 (hello) is visible, but the latest complete checkpoint does not contain it.",
    ),
    (
        {**LINE, "broken": "abort_expired", "expiries": 1},
        {"no_loss": 14},
        "the row of offset 0 of source 0 (hello) is lost.",
    ),
    (
        {**LINE, "broken": "older_checkpoint", "checkpoints": 2},
        {"latest": 16, "decided_first": 35, "no_duplicate": 35},
        "checkpoint 2 is complete, but the job was restarted from checkpoint 1.",
    ),
]

TWICE = {"sent_first", "conserved", "exact", "counted_once"}

LOST = {"conserved", "exact", "counted_once", "no_loss"}

LARGE = {
    "words": "to-be-or-not-to-be-that-is",
    "sources": 3,
    "counts": 3,
    "checkpoints": 4,
    "crashes": 3,
    "expiries": 2,
}


def drop_the_alignment(patch: pytest.MonkeyPatch) -> dict:
    patch.setattr(schedule, "is_blocked", lambda *given: False)
    return JOIN


def copy_at_the_first_barrier(patch: pytest.MonkeyPatch) -> dict:
    patch.setattr(operators, "_due", lambda chosen, at, came: 0 if came == ENDED else came)
    return JOIN


def take_an_end_for_no_barrier(patch: pytest.MonkeyPatch) -> dict:
    patch.setattr(operators, "live", lambda at: bytes(0 if came == ENDED else came for came in at))
    return JOIN


def hold_on_to_an_old_alignment(patch: pytest.MonkeyPatch) -> dict:
    patch.setattr(schedule, "is_blocked", lambda chosen, operator, into: operator.done < operator.at[into] < ENDED)
    return {**JOIN, "expiries": 1, "checkpoints": 2, "crashes": 0}


def skip_what_comes_before_the_barrier(patch: pytest.MonkeyPatch) -> dict:
    taken = operators.take
    patch.setattr(rules, "take", lambda *given, **more: taken(*given, **more)._replace(logged=0))
    return {**JOIN, "mode": "unaligned", "crashes": 0}


def skip_what_is_overtaken(patch: pytest.MonkeyPatch) -> dict:
    overtaken = operators.overtake
    patch.setattr(rules, "overtake", lambda *given: (overtaken(*given)[0], b""))
    return {**JOIN, "mode": "unaligned", "crashes": 0}


def overtake_barriers_too(patch: pytest.MonkeyPatch) -> dict:
    def first(operator: Operator, into: int, item: bytes) -> tuple[Operator, bytes]:
        inputs = (*operator.inputs[:into], item + operator.inputs[into], *operator.inputs[into + 1 :])
        return operator._replace(inputs=inputs), bytes(each for each in operator.inputs[into] if each < BARRIER)

    patch.setattr(rules, "overtake", first)
    return {**LINE, "counts": 1, "mode": "unaligned", "expiries": 1, "checkpoints": 2, "crashes": 0}


def note_the_last_offset_instead_of_the_next(patch: pytest.MonkeyPatch) -> dict:
    noted = rules.noted
    patch.setattr(
        rules,
        "noted",
        lambda coordinator, number, task, held: noted(
            coordinator, number, task, max(held - 1, 0) if task < 1 else held
        ),
    )
    return LINE


def commit_what_was_not_decided(patch: pytest.MonkeyPatch) -> dict:
    committed = rules.committed
    patch.setattr(rules, "committed", lambda visible, prepared, number: committed(visible, prepared, number + 1))
    return LINE


def abort_what_was_decided(patch: pytest.MonkeyPatch) -> dict:
    committed = rules.committed
    patch.setattr(rules, "committed", lambda visible, prepared, number: committed(visible, prepared, number - 1))
    return LINE


def forget_to_rewind(patch: pytest.MonkeyPatch) -> dict:
    restored = rules.restored

    def read_on(chosen: Settings, *given: Any) -> State:
        state = restored(chosen, *given)
        ahead = tuple(source._replace(position=min(source.position + 1, 1)) for source in state.sources)
        return state if state.coordinator.triggered == 0 else state._replace(sources=ahead)

    patch.setattr(rules, "restored", read_on)
    return LINE


def forget_the_state(patch: pytest.MonkeyPatch) -> dict:
    restored = rules.restored

    def empty(*given: Any) -> State:
        state = restored(*given)
        return state._replace(operators=tuple(operator._replace(state=0, sealed=0) for operator in state.operators))

    patch.setattr(rules, "restored", empty)
    return LINE


def number_checkpoints_from_one_again(patch: pytest.MonkeyPatch) -> dict:
    restored = rules.restored

    def anew(*given: Any) -> State:
        state = restored(*given)
        return state._replace(coordinator=state.coordinator._replace(triggered=0))

    patch.setattr(rules, "restored", anew)
    return {**LINE, "retained": 2}


MUTANTS = {
    drop_the_alignment: {"aligned", *TWICE, "no_duplicate"},
    copy_at_the_first_barrier: LOST,
    take_an_end_for_no_barrier: {"ends"},
    hold_on_to_an_old_alignment: {"ends"},
    skip_what_comes_before_the_barrier: {"conserved", "exact"},
    skip_what_is_overtaken: {"conserved", "exact"},
    overtake_barriers_too: {"in_order"},
    note_the_last_offset_instead_of_the_next: {*TWICE, "no_duplicate"},
    commit_what_was_not_decided: {"decided_first", "no_duplicate"},
    abort_what_was_decided: {"no_loss"},
    forget_to_rewind: {"counted_once", "no_loss"},
    forget_the_state: {"counted_once"},
    number_checkpoints_from_one_again: {"ends"},
}
"""Rules that are broken, with the properties that only then are violated."""


def never_complete(patch: pytest.MonkeyPatch) -> Given:
    patch.setattr(schedule.Schedule, "_is_complete", lambda *given: False)
    return LINE


KNOWN = [
    ({"crashes": 0}, 19_485, 31),
    ({**JOIN, "crashes": 2}, 5_711, 35),
    ({**JOIN, "checkpoints": 2}, 11_035, 35),
    ({**JOIN, "mode": "unaligned"}, 13_350, 27),
    ({**JOIN, "mode": "unaligned", "expiries": 1, "crashes": 0}, 9_376, 25),
    ({**JOIN, "checkpoints": 2, "expiries": 1, "crashes": 0}, 17_678, 32),
    ({**JOIN, "checkpoints": 2, "concurrent": 2, "crashes": 0}, 9_693, 29),
    ({**JOIN, "checkpoints": 2, "min_pause": 3, "crashes": 0}, 5_149, 29),
    ({**JOIN, "copying": "background", "crashes": 0}, 6_314, 27),
    ({**JOIN, "copying": "standing", "crashes": 0}, 2_482, 27),
    ({**LINE, "counts": 1, "mode": "at_least_once"}, 557, 23),
    ({**LINE, "cancels": 1, "retention": "keep"}, 3_881, 34),
    ({**LINE, "cancels": 1}, 4_683, 40, {"no_duplicate": 28}),
    ({**LINE, "sink": "append"}, 2_991, 26, {"no_duplicate": 16}),
    ({**LINE, "sink": "append", "mode": "unaligned", "crashes": 0}, 1_886, 18),
    (
        {**JOIN, "mode": "at_least_once"},
        5_810,
        30,
        {"sent_first": 10, "conserved": 10, "exact": 10, "counted_once": 27, "no_duplicate": 27},
    ),
]

REFUSED = [
    ({"mode": "unaligned", "concurrent": "2"}, "set concurrent=1"),
    ({"min_pause": "2", "concurrent": "2"}, "concurrent=2: with a minimum pause"),
    ({"broken": "forget_to_block", "mode": "unaligned"}, "exists only with mode=aligned, but mode=unaligned is set"),
    ({"broken": "skip_channel_state"}, "set mode=unaligned"),
    ({"broken": "abort_expired", "sink": "append"}, "exists only with sink=two_phase, but sink=append is set"),
    ({"mode": "exactly_once"}, "mode=exactly_once: unknown; did you mean 'at_least_once'?"),
    ({"checkpoints": "9"}, "checkpoints=9: choose a whole number from 0 to 4"),
]

BLOCKED = "read-0.trigger.inject-0.read-0.read-1.process-0.take_barrier-0"
READS = {
    f"barriers~1~words.hello-hello-hello-world~counts.1~crashes.0~~{BLOCKED}": (
        "7 take_barrier(0): Count 0 takes a barrier from source 0. 1 triggered; pending 1 (offset 0:1, offset 1:?, "
        "count 0 ?, the sink ?, parts of source 0, acknowledged by source 0); source 0 at offset 2 after barrier 1; "
        "source 1 at offset 1 after barrier 0; count 0 hello=1 [0], copied for 0, from source 0 barrier 1 then 2, "
        "from source 1 barrier 0 then 1; the sink - [-], copied for 0, from count 0 barrier 0 then 0, sealed - [-]; "
        "visible - [-]; to come -."
    )
}

CASES = Cases(
    small=[
        {"words": "hello-hello", "mode": mode, "copying": "background", "expiries": 1, "cancels": 1}
        for mode in ("aligned", "unaligned")
    ],
    large=[
        {**LARGE, **given}
        for given in (
            {"copying": "background", "concurrent": 3},
            {"copying": "standing", "min_pause": 5},
            {"mode": "unaligned", "copying": "background"},
            {"mode": "unaligned", "retained": 3},
        )
    ],
    walks=10,
    steps=1_000,
    left_out=[LeftOut(given, lengths, {next(iter(lengths)): because}) for given, lengths, because in BROKEN],
    names=("offset", "checkpoint"),
    mutants=MUTANTS,
    unreached={never_complete: ("completes", "recovers")},
    max_states=30_000,
    known=KNOWN,
    refused=REFUSED,
    reads=READS,
    durable={Coordinator: "triggered completed", Source: "", Operator: ""},
    crashes={"crash": "coordinator sources operators"},
    outside="faults",
    restarts={"restore": Restart("coordinator sources operators", "visible prepared", "visible prepared")},
)
