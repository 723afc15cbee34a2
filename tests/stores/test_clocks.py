"""When rows became visible: each store says the moments that it knows, leaves out the others, and reads older
layouts.
"""

import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from store_rows import HANDLE

from labkit.core.exposure import Span
from labkit.core.records import Observation
from labkit.stores import STORES, capabilities, open_store
from labkit.stores.contract import Clocked, Shown

COARSE = 0.05
"""Seconds by which clocks of files, servers and processes may differ."""


def row(offset: int) -> Observation:
    return Observation(offset, f"key {offset}", offset * 10, 0, 1)


def timed(call: Callable[[], object]) -> tuple[float, float]:
    """Between which moments something was done."""
    begun = time.time()
    call()
    return begun - COARSE, time.time() + COARSE


def within(span: Span | None, bounds: tuple[float, float]) -> bool:
    return span is not None and bounds[0] <= span.least and span.most <= bounds[1]


def told(store: Clocked) -> list[tuple[Observation, Shown]]:
    """Each row with the last thing that was told before it."""
    latest: list[Shown] = []
    return [(row, latest[-1]) for row in store.clocked_history(latest.append)]


def having(capability: str) -> pytest.MarkDecorator:
    kinds = [name for name in STORES if capability in capabilities(name)]
    return pytest.mark.parametrize("kind", kinds)


@having("Appendable")
def test_appended_rows_were_visible_when_they_were_written(store: Any, kind: str) -> None:
    bounds = [timed(lambda offset=offset: store.append(row(offset))) for offset in (0, 1)]
    found = told(store)
    assert [each for each, _ in found] == list(store.history()) == [row(0), row(1)]
    for (_, shown), when in zip(found, bounds, strict=True):
        assert shown.at_once
        assert shown.at is None if kind == "files" else within(shown.at, when)


@having("Keyed")
def test_upserts_were_visible_when_they_were_written(store: Any) -> None:
    bounds = [timed(lambda value=value: store.upsert(row(value))) for value in (1, 2)]
    for (_, shown), when in zip(told(store), bounds, strict=True):
        assert shown.at_once
        assert within(shown.at, when)


@having("Transactional")
def test_a_transaction_was_ready_at_its_vote_and_visible_at_its_commit(store: Any, kind: str) -> None:
    assert list(store.waiting()) == []
    begun = time.time() - COARSE
    transaction = store.begin(HANDLE)
    transaction.write(row(0))
    assert kind == "kafka" or list(store.waiting()) == []
    prepared = timed(transaction.prepare)
    (waiting,) = store.waiting()
    assert waiting[0] == row(0)
    assert within(waiting[1], (begun, prepared[1]))
    time.sleep(4 * COARSE)  # so that vote and commit can be told apart at all
    committed = timed(lambda: store.commit(HANDLE))
    ((seen, shown),) = told(store)
    assert (seen, shown.at_once) == (row(0), False)
    # PostgreSQL and Kafka know when a row was written into its transaction, which is a little before the vote.
    assert within(shown.ready, (begun, prepared[1]))
    assert shown.at is None if kind == "kafka" else within(shown.at, committed)
    assert list(store.waiting()) == []


@having("Atomic")
def test_rows_with_a_marker_were_visible_at_the_end_of_their_transaction(store: Any, kind: str) -> None:
    with store.transaction(HANDLE) as write:
        write(row(0))
        time.sleep(4 * COARSE)  # so that the row and the end can be told apart at all
        begun = time.time() - COARSE
    ((_, shown),) = told(store)
    assert shown.at is None if kind == "kafka" else within(shown.at, (begun, time.time() + COARSE))


def test_a_database_of_an_earlier_version_is_read_and_gone_on_with(place: Path) -> None:
    with closing(open_store("sqlite", place)) as store:
        store.append(row(0))
    with closing(sqlite3.connect(place)) as database:
        database.executescript("DROP TABLE moments; DROP TABLE votes")
    with closing(open_store("sqlite", place)) as store:
        assert told(store) == [(row(0), Shown())]
        assert list(store.waiting()) == []
        when = timed(lambda: store.append(row(1)))
        old, new = told(store)
        assert old == (row(0), Shown())
        assert within(new[1].at, when)


def test_a_schema_of_an_earlier_version_is_read(place: Path) -> None:
    with closing(open_store("postgres", place)) as store:
        store.append(row(0))
        with store._ready().using() as connection:
            connection.execute("ALTER TABLE visible DROP COLUMN at")
        assert told(store) == [(row(0), Shown())]
        assert list(store.waiting()) == []
