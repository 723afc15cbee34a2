"""The rules of the exercise about demands, held against the simulators: each demand that is broken is seen to break."""

import pytest

from labkit.teach.exercises.demands import really_broken
from labkit.teach.study import explore

GOOD = {"shows": "committed", "open": None, "sealed": None, "ends": "anybody", "again": "nothing"}
JOB = {"interval": 2, "checkpoint": 1, "downtime": 2}
KAFKA = {
    "partitions": 1,
    "records": 1,
    "isolation": "read_committed",
    "interval": JOB["interval"],
    "checkpoint_timeout": JOB["checkpoint"],
    "ticks": 8,
}


@pytest.mark.parametrize(
    ("differs", "demand", "claim", "model", "parameters"),
    [
        (
            {"shows": "everything"},
            1,
            "no_aborted_read",
            "pipeline",
            {"store": "sqlite", "reader": "table", "words": "hello-world"},
        ),
        ({"again": "error"}, 5, "ends", "pipeline", {"committed_again": "raise", "words": "hello-world"}),
        ({"again": "next"}, 5, "no_duplicate", "kafka_log", {"naming": "one", "retries": 1, "partitions": 1}),
        ({"ends": "its session"}, 4, "no_loss", "kafka_log", {"broken": "init_first", "partitions": 1}),
    ],
)
def test_a_broken_demand_breaks_a_claim(differs, demand, claim, model, parameters):
    assert really_broken(GOOD | differs, JOB) == [demand]
    assert claim in explore(model, **parameters).violated


def test_a_store_that_keeps_all_demands_breaks_no_claim_about_rows():
    assert really_broken(GOOD, JOB) == []
    found = explore("pipeline", words="hello-world", crashes=2)
    assert found.exhausted
    assert not {"no_loss", "no_duplicate", "no_aborted_read", "ends"} & set(found.violated)


def test_a_limit_must_be_longer_than_the_wait():
    """A sealed transaction waits for interval, checkpoint and restart, counted from its first record."""
    needed = sum(JOB.values())
    for limit in (needed, needed + 1):
        sealed = limit - JOB["interval"]  # the simulated clock starts with the interval
        is_broken = really_broken(GOOD | {"sealed": sealed}, JOB) == [3]
        found = explore("kafka_log", **KAFKA, crashes=1, downtime=2, timeout=limit)
        assert ("no_loss" in found.violated) is is_broken


@pytest.mark.parametrize(("limit", "broken"), [(1, [2]), (2, [2]), (3, [])])
def test_an_open_transaction_needs_more_than_the_interval(limit, broken):
    assert really_broken(GOOD | {"open": limit}, JOB) == broken
