"""The model `snapshot` in the tests that all models share: rules that are left out or broken, and large jobs."""

from collections.abc import Callable

import pytest
from model_cases import Cases, Given, LeftOut, Restart, disable, replace_effect

from labkit.sim.models.snapshot import model as rules
from labkit.sim.models.snapshot.model import Bank
from labkit.sim.models.snapshot.state import Account, Process, State

NAIVE, STOP, MARKERS = "naive", "stop_the_world", "chandy_lamport"

BROKEN = [
    ({"algorithm": NAIVE}, {"conserved": 4, "reachable": 4, "money": 6}),
    ({"broken": "forget_channels", "processes": 2}, {"conserved": 5, "reachable": 5, "money": 7}),
    ({"broken": "late_markers", "processes": 2}, {"conserved": 7, "reachable": 7, "money": 9}),
    ({"algorithm": STOP, "broken": "forget_pause"}, {"conserved": 8, "reachable": 8, "money": 10}),
    ({"algorithm": STOP, "broken": "forget_drain"}, {"conserved": 7, "reachable": 7, "money": 9}),
    ({"broken": "restore_alone", "processes": 2}, {"money": 3, "conserved": 6, "reachable": 6}),
    ({"reorderings": 1, "processes": 2}, {"conserved": 5, "reachable": 5, "money": 7}),
]


def skip_channel_state(patch: pytest.MonkeyPatch) -> None:
    awaiting = Bank._awaiting
    patch.setattr(Bank, "_awaiting", lambda *given: awaiting(*given[:-1], given[-1]._replace(in_flight=0)))


def mark_before_recording(patch: pytest.MonkeyPatch) -> None:
    """Whoever reads a marker goes on with the money that comes after it, and records at the last one, as if aligned."""
    patch.setattr(Bank, "_recorded", record_last)


def record_last(bank: Bank, state: State, which: int, awaited: int) -> State:
    state = bank._marked(state, which)
    return bank._awaiting(state, which, state.processes[which]._replace(copy=Account(200), awaited=awaited))


def forget_a_marker(patch: pytest.MonkeyPatch) -> None:
    marked = Bank._marked
    patch.setattr(Bank, "_marked", lambda bank, state, which: marked(bank, state, which) if which else state)


def record_twice(patch: pytest.MonkeyPatch) -> None:
    read = Bank._read_marker

    def again(bank: Bank, state: State, sender: int, receiver: int) -> State:
        process = state.processes[receiver]
        if process.copy is None:
            return read(bank, state, sender, receiver)
        return read(
            bank, rules._with_process(state, receiver, process._replace(copy=process.account)), sender, receiver
        )

    patch.setattr(Bank, "_read_marker", again)


def leave_the_channels_at_a_restore(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Bank, "_filled", lambda bank, within: ((),) * len(bank.ends))


def keep_what_is_under_way(patch: pytest.MonkeyPatch) -> None:
    restore = Bank._restore
    replace_effect(
        patch, Bank, "restore", lambda bank, state, which: restore(bank, state, which)._replace(channels=state.channels)
    )


MUTANTS: dict[Callable[[pytest.MonkeyPatch], None], set[str]] = {
    skip_channel_state: {"conserved", "reachable", "money"},
    mark_before_recording: {"conserved", "reachable", "money"},
    forget_a_marker: {"ends"},
    record_twice: {"conserved", "reachable", "money"},
    leave_the_channels_at_a_restore: {"money", "conserved"},
    keep_what_is_under_way: {"money", "conserved"},
}
"""Rules of Chandy and Lamport, or of the restore, that are broken, with what must then be violated."""

LARGE = [
    {"algorithm": MARKERS, "processes": 5, "transfers": 6, "snapshots": 3, "crashes": 3},
    {"algorithm": STOP, "processes": 4, "transfers": 6, "snapshots": 3, "crashes": 3, "reorderings": 3},
]


def never_record(patch: pytest.MonkeyPatch) -> Given:
    disable(patch, Bank, "record", "restore")
    return {"processes": 2}


KNOWN = [
    ({"algorithm": MARKERS}, 9_338, 11),
    ({"algorithm": MARKERS, "processes": 2, "transfers": 3, "snapshots": 2}, 11_603, 18),
    ({"algorithm": STOP}, 1_037, 12),
    ({"algorithm": STOP, "transfers": 2}, 7_078, 14),
    ({"algorithm": STOP, "transfers": 2, "reorderings": 1, "crashes": 0}, 1_972, 14),
]
"""Stopping the world does not even need channels that are first in, first out."""

REFUSED = [
    ({"broken": broken, "algorithm": algorithm}, f"; set algorithm={owner}")
    for broken, algorithm, owner in (
        ("forget_drain", MARKERS, STOP),
        ("forget_channels", NAIVE, MARKERS),
        ("late_markers", STOP, MARKERS),
    )
]

READS = {
    "snapshot~1~~transfer-21.record-1.receive-21.receive-12": (
        "4 receive(12): Process 2 reads the next message of process 1. process 1 300 (received 21.1), recorded 200, "
        "saved 21.1, awaits 2, 3; process 2 100 (sent 21.1), recorded 100 (sent 21.1), awaits 3; process 3 200; "
        "under way 13: marker, 21: marker, 23: marker; a snapshot runs; to come 1 crashes."
    )
}

CASES = Cases(
    small=[
        {"processes": 2, "transfers": 2, **given}
        for given in ({"crashes": 1, "reorderings": 1}, {"algorithm": STOP}, {"broken": "late_markers"})
    ],
    large=LARGE,
    walks=60,
    steps=400,
    left_out=[LeftOut(*each) for each in BROKEN],
    names=("process 1",),
    mutants=MUTANTS,
    mutated={"processes": 2, "transfers": 2, "snapshots": 2},
    unreached={never_record: ("completes", "in_flight", "recovers")},
    max_states=60_000,
    known=KNOWN,
    refused=REFUSED,
    reads=READS,
    durable={Process: "part"},
    crashes={"crash": "processes"},
    outside="crashes",
    restarts={"restore": Restart("processes", "completed", "channels running")},
    first=1,
)
