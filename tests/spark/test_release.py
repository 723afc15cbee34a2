"""What a judged run leaves in a server: nothing, unless it is to be kept; and what is known of it stays readable."""

from contextlib import closing
from pathlib import Path

import psycopg
import pytest

from labkit.core.records import Observation
from labkit.runs.layout import RunFolder
from labkit.runs.run import (
    Run,
    conclude,
    hidden,
    history,
    observations,
    release,
    result,
)
from labkit.runs.scenario import plan
from labkit.stores.contract import Handle
from labkit.stores.postgres.store import PostgresStore

ROWS = [Observation(0, "hello", 1, 0, 1), Observation(1, "world", 1, 0, 1)]
HIDDEN = Observation(2, "hello", 2, 0, 1)


@pytest.fixture
def run(tmp_path: Path, postgres: str) -> Run:
    """A run that has ended with two rows visible and one in a transaction that nobody finished."""
    folder = RunFolder(tmp_path)
    with closing(PostgresStore(folder.store("postgres"))) as store:
        store.append(*ROWS)
        transaction = store.begin(Handle("q", 0, 0, 1, 1))
        transaction.write(HIDDEN)
        transaction.prepare()
    return Run(
        plan(sink="two_phase", store="postgres"),
        folder,
        readings=[("crash 1", 1)],
        ended=True,
    )


def schemas(postgres: str, run: Run) -> int:
    with psycopg.connect(postgres) as connection:
        name = PostgresStore(run.folder.store("postgres")).schema
        return connection.execute(
            "SELECT FROM pg_namespace WHERE nspname = %s", [name]
        ).rowcount


def test_a_released_run_reads_as_before(run: Run, postgres: str) -> None:
    conclude(run)
    before = (
        list(history(run).events),
        list(observations(run)),
        hidden(run),
        result(run),
    )
    assert before[1:3] == (ROWS, [HIDDEN])
    release(run)
    assert schemas(postgres, run) == 0
    assert (
        list(history(run).events),
        list(observations(run)),
        hidden(run),
        result(run),
    ) == before
    with psycopg.connect(postgres) as connection:
        left = "SELECT FROM pg_prepared_xacts WHERE gid LIKE %s"
        name = PostgresStore(run.folder.store("postgres")).schema
        assert connection.execute(left, [f"%{name}%"]).rowcount == 0


def test_a_run_that_is_kept_leaves_its_rows(run: Run, postgres: str) -> None:
    run.keep_store = True
    conclude(run)
    release(run)
    assert schemas(postgres, run) == 1
    with closing(PostgresStore(run.folder.store("postgres"))) as store:
        assert list(store.history()) == ROWS
        store.destroy()


def test_a_run_in_files_keeps_them(tmp_path: Path) -> None:
    run = Run(plan(sink="append", store="files"), RunFolder(tmp_path), ended=True)
    conclude(run)
    release(run)
    assert not run.released
