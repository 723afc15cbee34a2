"""The model `pipeline` in the tests that all models share: rules that are left out or broken, and large jobs."""

import pytest
from model_cases import Cases, disable

from labkit.core.strategies import Op
from labkit.sim.models.pipeline import effects, programs
from labkit.sim.models.pipeline import model as rules
from labkit.sim.models.pipeline.model import Pipeline
from labkit.sim.models.pipeline.state import Handle


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


CASES = Cases(
    small=[{"crashes": 1, "expiries": 1, "lost_notices": 1, "zombies": 1}],
    large=[
        {"words": "hello-world-hello-again-world-hello", "records_per_batch": 2, "lost_notices": 2, "crashes": 0},
        {"strategy": "batch_marker", "crashes": 3, "records_per_batch": 1},
    ],
    walks=25,
    steps=400,
    mutants={mutant: violated for mutant, violated in MUTANTS.items() if violated},
    unreached={never_end: ("recovers", "all_out")},
    max_states=5_000,
    faults=FAULTS,
    tidy=programs.batch_tasks.cache_clear,
    claimed={"crashes": 1, "order": "decision"},
)
