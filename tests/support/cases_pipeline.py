"""The model `pipeline` in the tests that all models share: rules that are left out or broken, and large jobs."""

import pytest
from model_cases import Cases, Restart, disable

from labkit.core.strategies import Op
from labkit.sim.models.pipeline import effects, programs
from labkit.sim.models.pipeline import model as rules
from labkit.sim.models.pipeline.model import Pipeline
from labkit.sim.models.pipeline.state import Handle, Query


def do_nothing(patch: pytest.MonkeyPatch, op: Op) -> None:
    nothing = effects.TASKS[op]._replace(effect=effects._nothing)
    patch.setitem(effects.TASKS, op, nothing)


def commit_before_the_decision(patch: pytest.MonkeyPatch) -> dict:
    def swapped(*given):
        *rest, store, log = tasks = programs.batch_tasks(*given)
        return (
            (*rest, *programs.commit_tasks(given[0], store.batch, (), store.handles), log)
            if store.op is Op.STORE_HANDLES
            else tasks
        )

    patch.setattr(rules, "batch_tasks", swapped)
    return {"crashes": 1}


def reuse_an_epoch(patch: pytest.MonkeyPatch) -> dict:
    patch.setattr(
        programs.Writer, "handle", lambda writer, batch, partition: Handle(writer.generation, batch, partition, 1)
    )
    programs.batch_tasks.cache_clear()
    return {"crashes": 1}


def drop_the_confirmation(patch: pytest.MonkeyPatch) -> dict:
    do_nothing(patch, Op.CONFIRM)
    return {"strategy": "wal", "order": "engine", "crashes": 1}


def abort_what_was_decided(patch: pytest.MonkeyPatch) -> dict:
    patch.setattr(programs, "due", lambda query: [])
    return {"crashes": 1}


def forget_orphans(patch: pytest.MonkeyPatch) -> dict:
    patch.setattr(programs, "unfinished", lambda query, store: [])
    return {"crashes": 1}


def forget_the_handles(patch: pytest.MonkeyPatch) -> dict:
    do_nothing(patch, Op.STORE_HANDLES)
    return {"crashes": 0}


def forget_the_commit_log(patch: pytest.MonkeyPatch) -> dict:
    do_nothing(patch, Op.LOG_COMMIT)
    return {"strategy": "append", "crashes": 1}


def mark_beside_the_transaction(patch: pytest.MonkeyPatch) -> dict:
    patch.setattr(effects.Outside, "marker", lambda outside, driver, batch: (driver.incarnation, batch))
    return {"strategy": "batch_marker", "crashes": 1}


MUTANTS = {
    commit_before_the_decision: {"decided_first", "no_duplicate", "no_regression"},
    reuse_an_epoch: {"ends"},
    drop_the_confirmation: set(),
    abort_what_was_decided: {"no_loss"},
    forget_orphans: {"no_orphan"},
    forget_the_handles: {"no_orphan"},
    forget_the_commit_log: set(),
    mark_beside_the_transaction: {"no_duplicate"},
}
"""Rules that are broken, with the properties that only then are violated."""

FAULTS = {
    "no_loss": {"expiries": 1, "dropped": "ignore"},
    "no_duplicate": {"rollbacks": 1, "records_per_batch": 2},
    "no_regression": {"strategy": "idempotent", "store": "sqlite"},
    "no_aborted_read": {"store": "sqlite", "reader": "table"},
    "no_precommitted_read": {"store": "sqlite", "reader": "table"},
    "no_fractured_read": {},
    "no_orphan": {"sweeps": False},
    "ends": {"expiries": 1},
}


def never_end(patch: pytest.MonkeyPatch) -> None:
    disable(patch, Pipeline, "end")


KNOWN = [
    ({"crashes": 2}, 681, 35, {"no_fractured_read": 19}),
    ({"strategy": "append", "crashes": 2}, 273, 24, {"no_duplicate": 15, "no_fractured_read": 15, "no_regression": 17}),
    ({"strategy": "wal", "crashes": 2}, 362, 29, {"no_duplicate": 22, "no_fractured_read": 22, "no_regression": 24}),
    ({"strategy": "batch_marker", "crashes": 2}, 87, 18),
    ({"records_per_batch": 1, "lost_notices": 1}, 856, 34),
]

REFUSED = [
    ({"strategy": "two_fase"}, "strategy=two_fase: unknown; did you mean 'two_phase'"),
    ({"records_per_batch": "0"}, "records_per_batch=0: choose a whole number from 1 to 8"),
    ({"words": "Hello"}, "words=Hello: write 1 to 8 words of small letters"),
    (
        {"unconfirmed_log": "delete"},
        "unconfirmed_log=delete: the strategy two_phase has no write-ahead log to delete; set strategy=wal",
    ),
    ({"reader": "table"}, "reader=table: the store files keeps no uncommitted rows"),
    ({"strategy": "idempotent"}, "store=files: idempotent needs a store with upserts by key; set store=sqlite"),
    ({"store": "oracle"}, "store=oracle: unknown; choose one of files, sqlite, postgres, kafka"),
    ({"crashs": "1"}, "pipeline has no parameter 'crashs'; did you mean 'crashes'"),
    ({"crashes": ""}, "crashes: choose a whole number from 0 to 4."),
    ({"strategy": "append", "order": "engine"}, "order=engine: the strategy append cannot commit in this order"),
]

STEPS = "pipeline~1~~start-1.resolved-0.plan-0.insert-1.prepare-1.insert-0.insert-2"
LEFT = "transactions q0-b0-p1-i1 prepared 1 q0-b0-p2-i1 open 0 2"
READS = {
    STEPS: (
        "7 insert(2): The row of offset 2 (hello) goes into its task's open transaction. driver 1 running, batch 0, "
        "to do prepare(2) store_handles(0) log_commit(0); q0 after 1 drivers, planned 3, decided -1; seen -; "
        f"{LEFT}; to come 1 crashes."
    ),
    f"{STEPS}.crash": (
        "8 crash: SIGKILL: the memory of the driver is gone. driver dead; q0 after 1 drivers, planned 3, decided -1; "
        f"seen crash-1; {LEFT}; to come -."
    ),
}

CASES = Cases(
    small=[{"crashes": 1, "expiries": 1, "lost_notices": 1, "zombies": 1}],
    large=[
        {"words": "hello-world-hello-again-world-hello", "records_per_batch": 2, "lost_notices": 2, "crashes": 0},
        {"strategy": "batch_marker", "crashes": 3, "records_per_batch": 1},
        {"strategy": "two_phase", "crashes": 3, "records_per_batch": 1, "lost_notices": 2},
    ],
    walks=25,
    steps=400,
    mutants={mutant: violated for mutant, violated in MUTANTS.items() if violated},
    unreached={never_end: ("recovers", "all_out")},
    max_states=5_000,
    faults=FAULTS,
    tidy=programs.batch_tasks.cache_clear,
    claimed={"crashes": 1, "order": "decision"},
    known=KNOWN,
    refused=REFUSED,
    reads=READS,
    durable={Query: "ends decided handles logs confirmed incarnation generation first"},
    crashes={"crash": "query"},
    outside="faults seen",
    restarts={"start": Restart("query", "transactions")},
)
