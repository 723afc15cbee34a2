"""A batch without rows: no task has anything to vote on, and the batch counts all the same."""

from pathlib import Path

import pytest

from labkit.core.failpoints import Order
from labkit.core.strategies import POINTS, Strategy
from labkit.sinks import coordinate


@pytest.mark.parametrize(("strategy", "order"), POINTS, ids=str)
def test_a_batch_without_rows_is_committed_and_recovered(strategy: Strategy, order: Order, tmp_path: Path):
    place = tmp_path / "store.sqlite"
    coordinator = coordinate(
        strategy, order, store="sqlite", location=place, query="q", incarnation=1, log=tmp_path / "log"
    )
    coordinator.commit(0, [])
    coordinator.commit_log_durable(0)
    coordinator.commit(1, [])
    assert all("0" in step or "1" in step for step in coordinator.recover(1))
    assert list(coordinator.sink.store.history()) == []
    coordinator.sink.store.close()
