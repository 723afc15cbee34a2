"""The model `kafka_log` in the tests that all models share: rules that are left out or broken, and large jobs."""

import pytest
from model_cases import Cases, Given, LeftOut, Restart

from labkit.sim.model import Action
from labkit.sim.models.kafka_log import claims, job, model
from labkit.sim.models.kafka_log import coordinator as kafka
from labkit.sim.models.kafka_log import state as states
from labkit.sim.models.kafka_log.state import Coordinator, Entry, Job, Phase, Reader, Stage
from labkit.sim.models.kafka_log.timeouts import longest_open

COMMITTED = {"isolation": "read_committed"}

UNCOMMITTED = {"isolation": "read_uncommitted"}

BROKEN = [
    (
        {**COMMITTED, "broken": "last_stable_offset"},
        {"no_precommitted_read": 13, "no_aborted_read": 20},
        {
            "no_precommitted_read": "exactly-once, because every one of the 2 records came out once; meanwhile "
            "a reader saw offset 0 ('p0' = 1) "
            "before its transaction was decided."
        },
    ),
    (
        {**COMMITTED, "broken": "early_commit"},
        {"decided_first": 6, "no_duplicate": 21},
        {"decided_first": "record 0 is committed, but it belongs to checkpoint 0, and none is complete."},
    ),
    (
        {**COMMITTED, "broken": "init_first"},
        {"no_loss": 16},
        {
            "no_loss": "not exactly-once, because 2 of 2 records got lost, first offset 0 ('p0' = 1): no effect "
            "of it is left; "
            "at-most-once still holds."
        },
    ),
    (
        {**COMMITTED, "broken": "forget_lingering"},
        {"nothing_open": 20},
        {
            "nothing_open": "the transaction t1/e0 is open for ever: the last stable offset of partition 1 "
            "stays at 0, before record 1."
        },
    ),
    (
        {**COMMITTED, "broken": "forget_decision"},
        {"nothing_open": 10},
        {
            "nothing_open": "the transaction t0/e0 is open for ever: the last stable offset of partition 0 "
            "stays at 0, before record 0."
        },
    ),
    ({**COMMITTED, "broken": "no_fencing", "zombies": 1, "crashes": 0}, {"no_duplicate": 18, "nothing_open": 18}),
    (
        {**COMMITTED, "naming": "one"},
        {"decided_first": 13, "no_duplicate": 24},
        {"decided_first": "record 1 is committed, but it belongs to checkpoint 1, and the last complete one is 0."},
    ),
    ({**COMMITTED, "rollbacks": 1}, {"no_duplicate": 23}),
    ({**COMMITTED, "positions": "after_rows"}, {"no_duplicate": 15}),
    ({**COMMITTED, "ticks": 1, "crashes": 0}, {"no_loss": 14}),
    ({**COMMITTED, "ticks": 1, "crashes": 0, "refused": "raise"}, {"ends": 13}),
    (UNCOMMITTED, {"no_precommitted_read": 13, "no_aborted_read": 19}),
]

LARGE = [
    {"records": 5, "partitions": 3, "crashes": 3, "retries": 2, "lapses": 2, "zombies": 1, "others": 2},
    {"records": 4, "crashes": 3, "retries": 2, "naming": "one", "protocol": "v2", "zombies": 1},
    {
        "records": 4,
        "crashes": 2,
        "lapses": 1,
        "interval": 2,
        "checkpoint_timeout": 2,
        "downtime": 1,
        "ticks": 20,
        "timeout": longest_open(2, 2, 1, downtime=2),
    },
]
"""The last one may be down twice."""


def pass_an_open_transaction(patch: pytest.MonkeyPatch) -> dict:
    patch.setattr(kafka, "last_stable_offset", len)
    return {**COMMITTED, "partitions": 1, "records": 1}


def read_what_was_aborted(patch: pytest.MonkeyPatch) -> dict:
    patch.setattr(kafka, "READ_COMMITTED", "nobody")
    patch.setattr(kafka, "end_of", lambda _rules, _which, partition: states.last_stable_offset(partition))
    return COMMITTED


def trust_any_epoch(patch: pytest.MonkeyPatch) -> dict:
    end, add = kafka.end, kafka.add_partition
    patch.setattr(kafka, "end", lambda rules, *rest: end(rules._replace(fences=False), *rest))
    patch.setattr(kafka, "add_partition", lambda rules, *rest: add(rules._replace(fences=False), *rest))
    return {**COMMITTED, "zombies": 1, "crashes": 0}


def write_one_marker_only(patch: pytest.MonkeyPatch) -> dict:
    note = kafka.note_marker
    patch.setattr(kafka, "note_marker", lambda at, name, where: note(kafka.put(at, name, only(at, name)), name, where))
    return COMMITTED


def only(coordinator: Coordinator, name: int) -> Entry:
    return coordinator.log[name]._replace(partitions=1)


def expire_what_is_decided(patch: pytest.MonkeyPatch) -> dict:
    job_actions = model._job_actions

    def more(rules, state, found):
        job_actions(rules, state, found)
        for name, entry in enumerate(state.coordinator.log):
            if entry.stage is Stage.PREPARE_COMMIT and state.coordinator.is_up:
                found.append(Action("expire", name))

    patch.setattr(model, "_job_actions", more)
    return {**COMMITTED, "crashes": 0}


def leave_behind_what_rode_along(patch: pytest.MonkeyPatch) -> dict:
    pre_commit = job.pre_commit

    def own_only(rules, before):
        return pre_commit(rules, before._replace(pending=()))

    patch.setattr(model.work, "pre_commit", own_only)
    return {**COMMITTED, "lapses": 1, "crashes": 0}


def rewind_to_the_beginning(patch: pytest.MonkeyPatch) -> dict:
    restart = job.restart
    patch.setattr(model.work, "restart", lambda *given_values: restart(*given_values)._replace(offset=0))
    return COMMITTED


def forget_the_handles(patch: pytest.MonkeyPatch) -> dict:
    restart = job.restart
    patch.setattr(model.work, "restart", lambda *given_values: job.recovered(restart(*given_values)._replace(due=())))
    return COMMITTED


def end_before_the_commit(patch: pytest.MonkeyPatch) -> dict:
    patch.setattr(job, "is_finished", lambda rules, one: one.phase is Phase.RUNNING and one.offset == rules.records)
    return {**COMMITTED, "crashes": 0}


MUTANTS = {
    pass_an_open_transaction: {"no_precommitted_read", "no_aborted_read"},
    read_what_was_aborted: {"no_aborted_read"},
    trust_any_epoch: {"no_duplicate"},
    write_one_marker_only: {"nothing_open"},
    expire_what_is_decided: {"no_loss"},
    leave_behind_what_rode_along: {"nothing_open"},
    rewind_to_the_beginning: {"no_duplicate"},
    forget_the_handles: {"nothing_open"},
    end_before_the_commit: {"nothing_open"},
}
"""Rules that are broken, with the properties that only then are violated."""


def never_read(patch: pytest.MonkeyPatch) -> Given:
    patch.setattr(kafka, "end_of", lambda *_: 0)
    patch.setattr(kafka, "polled", lambda *_: None)
    return {"crashes": 0}


def nothing_waits(patch: pytest.MonkeyPatch) -> Given:
    """The end of every transaction is known at once, so that no record of anybody else is behind an open one."""
    patch.setattr(claims, "last_stable_offset", len)
    return {**COMMITTED, "others": 1, "partitions": 1, "records": 1, "crashes": 0}


KNOWN = [
    ({"crashes": 0}, 1_346, 21),
    (COMMITTED, 2_728, 30),
    ({**COMMITTED, "retries": 1}, 8_977, 32),
    ({**COMMITTED, "lapses": 1}, 12_785, 34),
    ({**COMMITTED, "zombies": 1, "crashes": 0}, 2_243, 30),
    ({**COMMITTED, "others": 1, "crashes": 0}, 492, 18),
    ({**COMMITTED, "naming": "one", "retries": 1, "protocol": "v2"}, 2_551, 27),
    ({**COMMITTED, "ticks": 4, "timeout": 3, "interval": 1, "crashes": 0}, 418, 20),
]
"""Nothing is lost or comes twice, whatever dies."""

READS = {
    "kafka_log~1~~begin-0.write-0.poll_uncommitted-0.write-1.pre_commit-0.complete-0": (
        "6 complete(0): Checkpoint 0 is complete: the decision. job 1 running, number 0, offset 2, producer -, "
        "due t0/e0, checkpoints 0@2 t0/e0; coordinator up: t0 ongoing/e0 in p0+p1; p0 | 0(t0/e0/c0/i1); "
        "p1 | 1(t0/e0/c0/i1); read_committed at 0 0, has -; read_uncommitted at 1 0, has p0:0=0!; to come 1 crashes."
    )
}

CASES = Cases(
    small=[{"crashes": 1, "zombies": 1, "lapses": 1, "ticks": 1, "retries": 1, "others": 1}],
    large=LARGE,
    walks=60,
    steps=400,
    left_out=[LeftOut(*each) for each in BROKEN],
    mutants=MUTANTS,
    unreached={never_read: ("all_out", "half_visible", "early_seen"), nothing_waits: ("waits",)},
    max_states=8_000,
    faults={"no_regression": {**COMMITTED, "partitions": 1, "rollbacks": 1}},
    claimed={"others": 1},
    known=KNOWN,
    reads=READS,
    durable={Job: "checkpoints incarnation", Coordinator: "log", Reader: "stored"},
    crashes={"crash": "job", "crash_coordinator": "coordinator", "crash_reader": "readers"},
    outside="budget since",
    restarts={
        "restart": Restart("job", "coordinator", "since"),
        "restart_coordinator": Restart("coordinator"),
        "restart_reader": Restart("readers"),
    },
)
