"""Attempts at one task in one driver: a later one resolves the earlier ones; whoever has no vote leaves nothing."""

from pathlib import Path

import pytest

from labkit.core.failpoints import Order
from labkit.core.records import Observation
from labkit.core.strategies import Strategy
from labkit.sinks import SINKS, Sink, Vote, coordinate
from labkit.stores import STORES, capabilities
from labkit.stores.contract import Handle

pytestmark = pytest.mark.usefixtures("postgres", "kafka_address")

TRANSACTIONAL = [name for name in STORES if "Transactional" in capabilities(name)]
MINE = Handle("q", 3, 1, 2, 7)
OTHERS = {
    "another partition": MINE._replace(partition=0, attempt=5),
    "another batch": MINE._replace(batch=2, attempt=5),
    "another driver": MINE._replace(incarnation=1, attempt=5),
    "a later attempt": MINE._replace(attempt=9),
    "another query": MINE._replace(query="r", attempt=5),
}


@pytest.fixture(params=TRANSACTIONAL)
def sink(request: pytest.FixtureRequest, tmp_path: Path):
    location = tmp_path / ("store.sqlite" if request.param == "sqlite" else request.param)
    place = {"store": request.param, "location": location, "query": "q", "incarnation": 2, "log": tmp_path / "log"}
    sink = coordinate(Strategy.TWO_PHASE, Order.ENGINE, **place).sink
    yield sink
    sink.store.close()


def prepare(sink: Sink, handle: Handle) -> None:
    transaction = sink.store.begin(handle)
    transaction.write(Observation(handle.attempt, "hello", 1, handle.batch, handle.incarnation))
    transaction.prepare()


def unfinished(sink: Sink) -> set[Handle]:
    return {*sink.store.prepared("q"), *sink.store.prepared("r")}


def test_a_retried_task_drops_what_its_earlier_attempts_left_and_nothing_else(sink: Sink):
    earlier, still_open = MINE._replace(attempt=4), MINE._replace(attempt=6)
    for handle in (earlier, *OTHERS.values()):
        prepare(sink, handle)
    zombie = sink.store.begin(still_open)
    zombie.write(Observation(6, "hello", 1, 3, 2))
    assert {earlier, still_open} < unfinished(sink)
    sink.drop_earlier(MINE)
    assert unfinished(sink) == set(OTHERS.values())


def test_attempts_without_a_vote_are_dropped_when_their_batch_is_done(sink: Sink):
    winner, loser, straggler = MINE, MINE._replace(attempt=8), MINE._replace(batch=2)
    later, other = MINE._replace(batch=4), OTHERS["another query"]
    for handle in (winner, loser, straggler, later, other):
        prepare(sink, handle)
    sink.drop_losers(3, [Vote(winner)])
    assert unfinished(sink) == {winner, later, other}
    sink.store.commit(winner)
    assert [row.offset for row in sink.store.history()] == [7]


def test_only_sinks_whose_attempts_cannot_be_mixed_bear_speculation():
    bearing = {strategy for strategy, kind in SINKS.items() if kind.bears_speculation}
    assert bearing == {Strategy.BATCH_MARKER, Strategy.TWO_PHASE}
