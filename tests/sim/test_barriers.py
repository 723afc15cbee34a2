"""Barriers: known counts, a second interpreter, rules that are missed when they are broken, and the scenarios."""

from typing import Any

import pytest
from plain_barriers import Job
from plain_two_phase import freeze

from labkit.sim.barriers.model import Barriers
from labkit.sim.barriers.parts import BARRIER, ENDED, MISSING, Checkpoint, Operator, State, records_in
from labkit.sim.barriers.settings import Settings
from labkit.sim.explore import explore, reachable
from labkit.sim.trace import make


def build(**given: object) -> Barriers:
    return make("barriers", given)


TINY = {"words": "hello", "counts": 1}
CHAIN = {"words": "hello-world", "sources": 1}
SMALL = [
    ("aligned", {**TINY}),
    ("aligned", {**TINY, "checkpoints": 2, "concurrent": 2, "crashes": 0}),
    ("aligned", {**TINY, "expiries": 1, "crashes": 0}),
    ("aligned", {**TINY, "sink": "append"}),
    ("aligned", {**CHAIN, "crashes": 0}),
    ("aligned", {**TINY, "sources": 1, "copying": "background"}),
    ("at_least_once", {**TINY}),
    ("at_least_once", {**CHAIN, "crashes": 0}),
    ("unaligned", {**TINY}),
    ("unaligned", {**CHAIN, "crashes": 0}),
    ("unaligned", {**TINY, "sources": 1, "copying": "background"}),
]
LARGER = [
    *(("aligned", {**TINY, "checkpoints": 2, "expiries": 1, "crashes": 0, "words": words}) for words in ("hello", "hello-hello")),
    ("aligned", {"words": "hello-hello", "counts": 1}),
    ("aligned", {"words": "hello", "crashes": 0}),
    ("aligned", {**CHAIN, "copying": "background"}),
    ("at_least_once", {**TINY, "checkpoints": 2, "concurrent": 2, "expiries": 1, "crashes": 0}),
    ("at_least_once", {"words": "hello-hello", "counts": 1}),
    ("unaligned", {**TINY, "checkpoints": 2, "expiries": 1, "crashes": 0}),
    ("unaligned", {"words": "hello-hello", "counts": 1}),
    ("unaligned", {**CHAIN}),
]


@pytest.mark.parametrize(("mode", "given"), SMALL, ids=str)
def test_a_second_interpreter_reaches_the_same(mode: str, given: dict):
    model = build(mode=mode, **given)
    mine = {freeze(told(model.settings, state)) for state in reachable(model)}
    words, sources, counts = given["words"].split("-"), given.get("sources", 2), given.get("counts", 2)
    more = {name: value for name, value in given.items() if name not in ("words", "sources", "counts")}
    assert mine == set(Job(words, sources, counts, mode, **more).states())


@pytest.mark.slow
@pytest.mark.parametrize(("mode", "given"), LARGER, ids=str)
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
    held = [*checkpoint.offsets, *(told_records(settings, state) if state != MISSING else MISSING for state in checkpoint.states)]
    flight = zip(settings.channels, checkpoint.flight, strict=False)
    return {
        "id": checkpoint.id,
        "parts": {name: part for name, part in zip(names, held, strict=True) if part != MISSING},
        "flight": {str(at): [told_item(settings, item) for item in queue] for at, queue in flight if queue},
        "taken": {name for bit, name in enumerate(names) if checkpoint.taken >> bit & 1},
        "acked": {name for bit, name in enumerate(names) if checkpoint.acked >> bit & 1},
    }
