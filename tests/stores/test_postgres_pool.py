"""Connections that outlive their store: kept, reused, noticed when they are over, and never shared with a child."""

import os
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path

import psycopg
import pytest
from store_rows import HANDLE, prepare, row
from waiting import until

from labkit.core.errors import ServiceUnavailable
from labkit.stores.postgres import pool as postgres_pool
from labkit.stores.postgres.pool import FRESH_SECONDS, IDLE_SECONDS, KEPT, Pool
from labkit.stores.postgres.store import PostgresStore


@pytest.fixture
def pool(postgres: str) -> Iterator[Pool]:
    with closing(Pool(postgres, "pg_catalog")) as opened:
        yield opened
    postgres_pool._keeper.close()


def pid_of(pool: Pool) -> int:
    with pool.using() as connection:
        return connection.info.backend_pid


def test_the_next_store_of_a_schema_gets_the_connection_and_one_of_another_does_not(pool: Pool) -> None:
    first = pid_of(pool)
    pool.close()
    with closing(Pool(pool.address, "pg_catalog")) as same, closing(Pool(pool.address, "public")) as other:
        assert (pid_of(same), pid_of(other) == first) == (first, False)


@pytest.mark.parametrize("is_closed", [False, True])
def test_a_connection_that_the_server_has_ended_between_uses_is_replaced(pool: Pool, is_closed: bool) -> None:
    """Whether it lies in the store's pool, or its store was closed and it waits for the next one."""
    first = pid_of(pool)
    if is_closed:
        pool.close()
    with psycopg.connect(pool.address, autocommit=True) as by_hand:
        by_hand.execute("SELECT pg_terminate_backend(%s, 5000)", [first])
    assert pid_of(pool) != first
    with pool.using() as connection:
        assert connection.execute("SELECT 1").fetchone() == (1,)


class HandClock:
    """A clock that is moved by hand."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.mark.parametrize("is_closed", [False, True])
def test_a_connection_that_was_idle_for_seconds_is_closed_and_replaced(pool: Pool, is_closed: bool) -> None:
    assert FRESH_SECONDS <= IDLE_SECONDS / 2
    clock = HandClock()
    with closing(Pool(pool.address, "pg_catalog", clock)) as aging:
        connection = aging.take()
        clock.now += 60  # in use all the while
        aging.give(connection)
        clock.now += FRESH_SECONDS
        assert aging.take() is connection
        aging.give(connection)
        if is_closed:
            aging.close()
        clock.now += FRESH_SECONDS + 0.001
        with aging.using() as other:
            assert other is not connection
        assert connection.closed


def test_a_statement_that_was_sent_is_never_sent_again(pool: Pool) -> None:
    """A sequence counts how often the statement was begun, since no rollback takes its number back."""
    with psycopg.connect(pool.address, autocommit=True) as by_hand:
        by_hand.execute("DROP SEQUENCE IF EXISTS public.sent")
        by_hand.execute("CREATE SEQUENCE public.sent")
        try:
            used = pid_of(pool)
            statement = "SELECT nextval('public.sent'), pg_terminate_backend(pg_backend_pid())"
            with pytest.raises(ServiceUnavailable), pool.using() as connection:
                connection.execute(statement)
            assert connection.closed
            count = by_hand.execute("SELECT last_value, is_called FROM public.sent")
            assert count.fetchone() == (1, True)
            assert pid_of(pool) != used
        finally:
            by_hand.execute("DROP SEQUENCE public.sent")


def test_no_more_than_a_few_are_kept_and_none_that_is_in_the_middle_of_something(pool: Pool) -> None:
    taken = [pool.take() for _ in range(KEPT + 2)]
    taken[0].execute("BEGIN")
    for connection in taken:
        pool.give(connection)
    pool.close()
    assert [connection.closed for connection in taken] == [True, True, *[False] * KEPT]


def test_the_server_ends_what_nobody_uses(pool: Pool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also behind a prepared transaction, a marker and a commit: the last thing sent must be a Sync."""
    monkeypatch.setattr(postgres_pool, "IDLE_SECONDS", 0.3)
    place = Path("/nowhere/in/particular")
    with closing(PostgresStore(place)) as store:
        prepare(store, HANDLE, 0)
        store.commit(HANDLE)
        with store.transaction(HANDLE._replace(batch=1)) as write:
            write(row(1))
        store.append(row(1))
    kept = [idle.connection.info.backend_pid for _, idle in postgres_pool._keeper._kept]
    assert kept
    with psycopg.connect(pool.address, autocommit=True) as by_hand:
        alive = "SELECT FROM pg_stat_activity WHERE pid = ANY(%s)"
        until(lambda: not by_hand.execute(alive, [kept]).rowcount, "the end of the idle connections", 30)
    with closing(PostgresStore(place)) as store:
        assert len(list(store.history())) == 3
        store.destroy()


def test_a_forked_child_neither_uses_nor_ends_its_parents_connections(pool: Pool) -> None:
    first = pid_of(pool)
    pool.close()
    child = os.fork()
    if child == 0:
        with suppress(BaseException):
            postgres_pool._keeper.close()
            os._exit(0 if pid_of(Pool(pool.address, "pg_catalog")) != first else 1)
        os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert pid_of(pool) == first
