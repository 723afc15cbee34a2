"""The model `delivery` in the tests that all models share: rules that are left out or broken, and large jobs."""

from collections.abc import Callable

import pytest
from model_cases import Cases, Given, LeftOut, Restart, disable, replace_effect

from labkit.sim.model import crash
from labkit.sim.models.delivery import model as rules
from labkit.sim.models.delivery.model import Delivery
from labkit.sim.models.delivery.state import Process, Stage, State

GONE = "record 0 is in no durable outbox and has not come out: a crash has lost it, or can lose it."

TWICE = "record 0 came out after 0 crashes, and once more after 1."

AGAIN = "record 0 came out after 0 crashes, and once more after 0."

LOST = "record 0 has not come out, and nobody has anything left to do."

LATE = "record 0 came out late: readers saw 'hello' go from 2 to 1."

ONE = {"processes": 2, "records": 1}

BROKEN = [
    ({**ONE, "retry": False, "dedup": "none"}, {"no_loss": (2, LOST), "no_duplicate": (6, AGAIN)}),
    ({**ONE, "dedup": "none"}, {"no_duplicate": (7, AGAIN)}),
    ({**ONE, "dedup": "volatile"}, {"no_duplicate": (8, TWICE)}),
    ({**ONE, "dedup": "connection"}, {"no_duplicate": (8, TWICE)}),
    ({**ONE, "broken": "ack_early"}, {"kept": (3, GONE), "no_loss": (5, LOST)}),
    ({**ONE, "broken": "note_early"}, {"kept": (7, GONE), "no_loss": (7, LOST)}),
    ({**ONE, "broken": "note_late"}, {"no_duplicate": (8, TWICE)}),
    ({**ONE, "broken": "collect_early"}, {"no_duplicate": (8, AGAIN)}),
    ({"processes": 2, "window": 2, "broken": "highest_only"}, {"kept": (10, GONE), "no_loss": (10, LOST)}),
    ({"processes": 2, "window": 2, "crashes": 0}, {"no_regression": (9, LATE)}),
    ({"productions": "weak", "ids": "fresh", "drops": 0}, {"no_duplicate": (15, TWICE)}),
]


def never_deduplicate(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Delivery, "_is_known", lambda *given: False)


def deduplicate_after_forwarding(patch: pytest.MonkeyPatch) -> None:
    """A record goes on first; only then its id is looked up, and what was already there is not noted again."""
    discard = Delivery._discard

    def late(chain: Delivery, state: State, which: int) -> State:
        held = state.hops[which - 1].forward[0]
        working = state.processes[which]._replace(held=held, stage=Stage.WORKING)
        forwarded = chain._store(rules._with_process(state, which, working), which)
        idle = forwarded.processes[which]._replace(held=None, stage=Stage.IDLE)
        return discard(chain, rules._with_process(forwarded, which, idle), which)

    replace_effect(patch, Delivery, "discard", late)


def forget_when_sent(patch: pytest.MonkeyPatch) -> None:
    send = Delivery._send

    def once(chain: Delivery, state: State, which: int) -> State:
        sent = send(chain, state, which)
        process = sent.processes[which]
        return rules._with_process(sent, which, process._replace(outbox=process.outbox[1:]))

    replace_effect(patch, Delivery, "send", once)


def note_before_the_write(patch: pytest.MonkeyPatch) -> None:
    receive = Delivery._receive

    def early(chain: Delivery, state: State, which: int) -> State:
        taken = receive(chain, state, which)
        return rules._with_process(taken, which, chain._noted(taken.processes[which]))

    replace_effect(patch, Delivery, "receive", early)


def never_restart(patch: pytest.MonkeyPatch) -> None:
    actions = Delivery.actions
    patch.setattr(
        Delivery, "actions", lambda chain, state: [each for each in actions(chain, state) if each.name != "restart"]
    )


def collect_what_is_under_way(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(rules, "_still_to_come", lambda state, which: 0)


def lose_the_store(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(rules, "crash", lambda process: crash(process)._replace(ids=0))


def acknowledge_what_was_never_taken(patch: pytest.MonkeyPatch) -> None:
    drop = Delivery._drop

    def lie(chain: Delivery, state: State, which: int) -> State:
        return rules.acknowledge(drop(chain, state, which), which - 1, state.hops[which - 1].forward[0].name)

    replace_effect(patch, Delivery, "drop", lie)


MUTANTS: dict[Callable[[pytest.MonkeyPatch], None], set[str]] = {
    never_deduplicate: {"no_duplicate"},
    deduplicate_after_forwarding: {"no_duplicate"},
    forget_when_sent: {"kept", "no_loss"},
    note_before_the_write: {"kept", "no_loss"},
    never_restart: {"ends"},
    collect_what_is_under_way: {"no_duplicate"},
    lose_the_store: {"no_duplicate"},
    acknowledge_what_was_never_taken: {"kept", "no_loss"},
}
"""Rules that are broken, with what must then be violated."""

LARGE = [
    {"processes": 5, "records": 4, "window": 1, "drops": 3, "duplicates": 3, "delays": 3, "reorders": 3, "crashes": 3},
    {"productions": "weak", "processes": 5, "records": 4, "drops": 3, "duplicates": 3, "delays": 3, "crashes": 3},
    {"ids": "fresh", "collects": True, "records": 4, "drops": 3, "duplicates": 3, "delays": 3, "crashes": 3},
]


def never_store(patch: pytest.MonkeyPatch) -> Given:
    disable(patch, Delivery, "store")
    return ONE


KNOWN = [
    ({}, 7_204, 26),
    ({"ids": "fresh"}, 7_204, 26),
    ({"productions": "weak"}, 2_295, 26),
    ({"productions": "weak", "delays": 1, "reorders": 1, "drops": 0}, 7_754, 29),
    ({"collects": True, "productions": "weak"}, 6_885, 28),
    ({"collects": True, "processes": 2, "delays": 1, "reorders": 1}, 5_142, 20),
    ({"processes": 4, "records": 1}, 11_091, 21),
    ({"dedup": "connection", "crashes": 0, "delays": 1}, 4_215, 26),
    ({"dedup": "volatile", "crashes": 0}, 945, 24),
    ({"broken": "highest_only"}, 7_204, 26),
]
"""Also volatile tables and connections where nobody dies, and a largest id where one record is sent at a time."""

READS = {
    "delivery~1~productions.weak~ids.fresh~~send-0.receive-1.produce-1.send-1.receive-2.store-2": (
        "6 store(2): Process 2 makes its output for the record visible, together with its id. process 0 idle, to bring "
        "0 1; process 1 waiting 0 for 0#2; process 2 done 0#2, ids 2; out 0/0, 3 made; to come 1 drops, 1 duplicates, "
        "1 crashes."
    )
}

REFUSED = [
    ({"retry": False, "productions": "weak"}, "set productions=strong."),
    ({"retry": False, "broken": "ack_early"}, "set retry=true."),
    (
        {"dedup": "none", "broken": "note_late"},
        "broken=note_late leaves out a rule about the table of received ids, but dedup=none keeps no such table; set ",
    ),
    ({"dedup": "connection", "collects": True}, "table of received ids, but dedup=connection keeps no such table"),
    ({"broken": "highest_only", "ids": "fresh"}, "set ids=derived."),
]

CASES = Cases(
    small=[
        {"window": 2, "reorders": 1, "delays": 1},
        {"productions": "weak", "ids": "fresh"},
        {"dedup": "connection", "window": 3},
        {"dedup": "volatile"},
        {"broken": "note_late"},
    ],
    large=LARGE,
    walks=25,
    steps=1_000,
    left_out=[
        LeftOut(
            given,
            {claim: steps for claim, (steps, _) in said.items()},
            {claim: because for claim, (_, because) in said.items()},
        )
        for given, said in BROKEN
    ],
    names=("record",),
    mutants=MUTANTS,
    mutated={**ONE, "collects": True},
    unreached={never_store: ("recovers", "all_out")},
    max_states=20_000,
    known=KNOWN,
    refused=REFUSED,
    reads=READS,
    durable={Process: "outbox ids"},
    crashes={"crash": "processes"},
    outside="faults hops",
    restarts={"restart": Restart("processes")},
)
