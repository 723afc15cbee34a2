"""The model `orders` in the tests that all models share: designs that break each claim, and rules that are broken."""

import pytest
from model_cases import Cases, LeftOut, Restart, disable

from labkit.sim.models.orders import model
from labkit.sim.models.orders.model import Orders, next_job
from labkit.sim.models.orders.state import NO_JOB, Process

TOGETHER = {"order": "plan-state-visible_marker-decision", "output": "transaction", "skips": True}
TWO_PHASE = {"order": "plan-state-staged-decision-visible", "output": "transaction", "leftover": "decided"}

UNDONE = {"order": "visible-decision", "undoes": True}

BROKEN = [
    ({}, {"no_duplicate": 14, "no_regression": 9, "no_fractured_read": 4}),
    ({"output": "upsert"}, {"no_regression": 9, "no_fractured_read": 4}),
    ({"order": "plan-marker-visible-decision", "skips": True}, {"no_loss": 15, "no_fractured_read": 5}),
    ({"order": "state-visible-decision", "newest": True}, {"no_loss": 13, "no_unexpected": 13, "no_fractured_read": 4}),
    ({**TOGETHER, "order": "visible_marker-decision", "input": "other"}, {"no_loss": 10, "no_duplicate": 10}),
    ({"order": "notice-visible-decision", "input": "gone"}, {"no_loss": 8, "no_fractured_read": 4}),
    ({**TWO_PHASE, "leftover": "dropped"}, {"no_loss": 13}),
    (UNDONE, {"no_fractured_read": 3, "no_aborted_read": 5, "no_regression": 9}),
    ({**TWO_PHASE, "fault": "expiry"}, {"no_loss": 13}),
    (
        {**TOGETHER, "order": "visible_decision", "skips": False, "fault": "lost-answer"},
        {"no_regression": 3, "no_duplicate": 5},
    ),
    (
        {"order": "visible-notice", "start": "notice", "fault": "lease"},
        {"no_fractured_read": 3, "no_regression": 7, "no_duplicate": 11},
    ),
    ({**TWO_PHASE, "fault": "lag"}, {"no_regression": 14, "no_duplicate": 20}),
]


def forget_the_marker(patch: pytest.MonkeyPatch) -> dict:
    patch.setattr(Orders, "_is_marked", lambda _self, _process, _job: False)
    return TOGETHER


def finish_nothing(patch: pytest.MonkeyPatch) -> dict:
    patch.setattr(model, "to_finish", lambda _settings, _process: NO_JOB)
    return TWO_PHASE


def ignore_the_plan(patch: pytest.MonkeyPatch) -> dict:
    patch.setattr(model, "planned", lambda _process, _job: None)
    return {**TOGETHER, "input": "other"}


def start_a_step_too_far(patch: pytest.MonkeyPatch) -> dict:
    def skipped(settings, process):
        job = next_job(settings, process)
        return job._replace(start=job.start + 1, end=job.end + 1)

    patch.setattr(model, "next_job", skipped)
    return TOGETHER


def forget_the_count(patch: pytest.MonkeyPatch) -> dict:
    patch.setattr(model, "next_job", lambda settings, process: next_job(settings, process)._replace(base=0))
    return TOGETHER


def undo_nothing(patch: pytest.MonkeyPatch) -> dict:
    patch.setattr(Orders, "_undecided", lambda _self, _state: [])
    return UNDONE


def write_nothing_visible(patch: pytest.MonkeyPatch) -> dict:
    disable(patch, Orders, "show")
    return {}


MUTANTS = {
    forget_the_marker: {"no_duplicate", "no_regression"},
    finish_nothing: {"no_loss"},
    ignore_the_plan: {"no_loss"},
    start_a_step_too_far: {"no_loss"},
    forget_the_count: {"no_unexpected"},
    undo_nothing: {"no_duplicate"},
}
"""Rules that are broken, with the properties that only then are violated."""

CASES = Cases(
    small=[
        {},
        {**TOGETHER, "input": "other"},
        {**TWO_PHASE, "rows": 4},
        {"order": "plan-staged-decision-visible-clean", "leftover": "decided"},
        {"order": "state-notice-visible", "start": "notice", "input": "gone"},
        UNDONE,
        {**TWO_PHASE, "fault": "expiry"},
        {"order": "visible-notice", "output": "upsert", "start": "notice", "fault": "lease"},
        {**TOGETHER, "fault": "lost-answer", "faults": 2},
        {**TOGETHER, "fault": "lag"},
    ],
    large=[
        {**TOGETHER, "input": "other", "rows": 6, "crashes": 3},
        {**TWO_PHASE, "input": "other", "rows": 6, "crashes": 3},
    ],
    walks=40,
    steps=200,
    left_out=[LeftOut(*each) for each in BROKEN],
    mutants=MUTANTS,
    unreached={write_nothing_visible: ("all_out",)},
    max_states=20_000,
    durable={Process: "plans states staged marker decision notice"},
    crashes={"crash": "process"},
    outside="seen life crashes",
    restarts={"restart": Restart("process", changes="life", looks=UNDONE)},
)
