"""The model `changelog` in the tests that all models share: rules that are left out or broken, and large jobs."""

import pytest
from model_cases import Cases, LeftOut, Restart, replace_effect

from labkit.sim.models.changelog import claims, model, query
from labkit.sim.models.changelog import state as states
from labkit.sim.models.changelog.model import Changelog
from labkit.sim.models.changelog.state import Consumer, Kind, Query

UPSERT = {"encoding": "upsert"}

TWO_STEPS = {**UPSERT, "writes": "delete_insert"}

QUIET = {"crashes": 0}

TWICE = {"words": "hello-hello", **QUIET}

RETRACTIONS = {**QUIET, "hits": "retractions"}

BROKEN = [
    (
        {**QUIET, "broken": "add_only"},
        {"equals_batch": 9, "one_row": 9, "total": 9, "ends_equal": 9},
        {
            "equals_batch": "after 3 records hello = 1 is in the table: it has hello = 1, hello = 2, world = 1, "
            "the batch query hello = 2, world = 1."
        },
    ),
    ({**QUIET, "broken": "retract_new"}, {"equals_batch": 11, "one_row": 11, "total": 11, "ends_equal": 11}),
    ({**QUIET, **UPSERT, "at_most": 1, "broken": "no_delete"}, {"equals_batch": 7, "ends_equal": 7}),
    (
        {**TWO_STEPS, "broken": "stored_at_delete"},
        {"equals_batch": 11, "total": 11, "ends_equal": 11},
        {
            "equals_batch": "after 3 records hello = 2 is missing: it has world = 1, the batch query hello = 2, "
            "world = 1."
        },
    ),
    (
        {**RETRACTIONS, "losses": 1},
        {"equals_batch": 10, "one_row": 10, "total": 10, "ends_equal": 10},
        {
            "one_row": "hello has more than one row: hello = 1, hello = 2.",
            "total": "the counts add up to 4 after 3 records: hello = 1, hello = 2, world = 1.",
        },
    ),
    (
        {**RETRACTIONS, "repeats": 1, "unknown": "owed"},
        {"total": 13},
        {"total": "the counts add up to 2 after 3 records: hello = 1 (-1 times), hello = 2, world = 1."},
    ),
    ({**RETRACTIONS, **TWICE, "swaps": 1}, {"equals_batch": 8, "one_row": 8, "total": 8, "ends_equal": 8}),
    ({**QUIET, **UPSERT, "losses": 1}, {"equals_batch": 2, "total": 2, "ends_equal": 8}),
    (
        {**TWICE, **UPSERT, "swaps": 1},
        {"equals_batch": 6, "total": 6, "ends_equal": 6},
        {"equals_batch": "after 2 records hello = 1 is in the table: it has hello = 1, the batch query hello = 2."},
    ),
    ({**QUIET, "query_crashes": 1}, {"equals_batch": 8, "one_row": 8, "total": 8, "ends_equal": 16}),
    ({"position": "after"}, {"equals_batch": 7, "one_row": 7, "total": 7, "ends_equal": 18}),
    ({"position": "before"}, {"equals_batch": 5, "total": 5, "one_row": 16, "ends_equal": 16}),
    ({**QUIET, "expiries": 1}, {"equals_batch": 10, "one_row": 10, "ends_equal": 10}),
]

LARGE = [
    {"words": "hello-world-hello-again-hello-world-again-hello", "crashes": 2, "at_most": 2},
    {
        **UPSERT,
        "words": "hello-world-hello-again-hello-world-again-hello",
        "crashes": 2,
        "query_crashes": 2,
        "repeats": 0,
    },
    {"words": "hello-world-hello-again-hello-world-again-hello", "swaps": 2, "unknown": "owed"},
]


def take_back_by_key(patch: pytest.MonkeyPatch) -> dict:
    patch.setattr(
        model,
        "applied",
        lambda rows, message, owes: (
            states.without(rows, message.key)
            if message.kind is Kind.RETRACT
            else states.applied(rows, message, owes=owes)
        ),
    )
    return {**TWICE, "swaps": 1, "unknown": "owed"}


def replace_without_deleting(patch: pytest.MonkeyPatch) -> dict:
    patch.setattr(states, "without", lambda rows, _key: rows)
    return {**QUIET, **UPSERT}


def restart_at_the_end(patch: pytest.MonkeyPatch) -> dict:
    replace_effect(
        patch,
        Changelog,
        "restart",
        lambda _self, state, _: state._replace(
            consumer=Consumer(state.consumer.table, len(state.topic), is_up=True, position=len(state.topic))
        ),
    )
    return {}


def restart_without_counts(patch: pytest.MonkeyPatch) -> dict:
    replace_effect(
        patch,
        Changelog,
        "restart_query",
        lambda _self, state, _: state._replace(
            query=Query(*state.query[:2], is_up=True, offset=state.query.saved, counts=())
        ),
    )
    return {**UPSERT, **QUIET, "query_crashes": 1}


def send_the_add_first(patch: pytest.MonkeyPatch) -> dict:
    patch.setattr(model, "messages", lambda *given_values: query.messages(*given_values)[::-1])
    return {**TWO_STEPS, "encoding": "retract", "position": "with_table", "at_most": 2}


def count_from_zero(patch: pytest.MonkeyPatch) -> dict:
    patch.setattr(model, "counted", lambda _counts, _key: 0)
    return {**QUIET, "encoding": "append"}


MUTANTS = {
    take_back_by_key: {"equals_batch"},
    replace_without_deleting: {"one_row"},
    restart_at_the_end: {"equals_batch"},
    restart_without_counts: {"equals_batch"},
    count_from_zero: {"equals_batch"},
}
"""Rules that are broken, with the properties that only then are violated."""


def never_settle(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(claims, "is_settled", lambda _state: False)


KNOWN = [
    ({}, 74, 13),
    ({"encoding": "append"}, 59, 11),
    (UPSERT, 59, 11),
    (TWO_STEPS, 63, 12),
    ({"at_most": 1}, 59, 11),
    ({**UPSERT, "at_most": 1}, 59, 11),
    ({**UPSERT, "position": "after"}, 99, 14),
    ({**TWO_STEPS, "position": "after", "words": "hello-hello"}, 52, 11),
    ({**UPSERT, **QUIET, "query_crashes": 1}, 372, 20),
    ({**UPSERT, **QUIET, "repeats": 1}, 76, 11),
    ({**QUIET, "repeats": 1, "hits": "retractions"}, 40, 13),
    ({**TWICE, "swaps": 1, "unknown": "owed"}, 30, 8),
    ({"words": "hello-world-hello-hello-world", "crashes": 2, "unknown": "owed", "swaps": 2}, 6_172, 25),
]
"""Nothing is violated: the continuous query is the batch query at every prefix."""

READS = {
    "changelog~1~~process-0.arrive.apply-0.process-1.arrive.process-2": (
        "6 process(2): The query counts record 2 (hello) and sends what it changes. query at 3 of 3, counts hello=2 "
        "world=1, saved 0: -; on the way -hello:1@2 +hello:2@2; log +hello:1@0 +world:1@1; consumer at 1, stored 1, "
        "table hello = 1; to come 1 crashes."
    )
}

CASES = Cases(
    small=[{"query_crashes": 1, "losses": 1, "swaps": 1, "expiries": 1}, {**TWO_STEPS, "position": "after"}],
    large=LARGE,
    walks=60,
    steps=300,
    left_out=[LeftOut(*each) for each in BROKEN],
    mutants=MUTANTS,
    unreached={send_the_add_first: ("gap",), never_settle: ("all_read",)},
    max_states=5_000,
    known=KNOWN,
    refused=[({"encoding": "append", "at_most": 1}, "at_most=1: an append-only stream cannot remove a key")],
    reads=READS,
    durable={Query: "saved saved_counts", Consumer: "table stored"},
    crashes={"crash": "consumer", "crash_query": "query"},
    outside="budget",
    restarts={"restart": Restart("consumer"), "restart_query": Restart("query")},
)
