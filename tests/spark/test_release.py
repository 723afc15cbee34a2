"""What a judged run leaves in a server: nothing, unless it is to be kept; and what is known of it stays readable."""

from contextlib import closing
from pathlib import Path

import psycopg
import pytest

from labkit.core.records import Observation, Reading
from labkit.runs.conclude import conclude
from labkit.runs.layout import RunFolder
from labkit.runs.run import Run
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
    return Run(plan(sink="two_phase", store="postgres"), folder, readings=[("crash 1", 1)], ended=True)


def schemas(postgres: str, run: Run) -> int:
    with psycopg.connect(postgres) as connection:
        name = PostgresStore(run.folder.store("postgres")).schema
        return connection.execute("SELECT FROM pg_namespace WHERE nspname = %s", [name]).rowcount


def test_a_released_run_reads_as_before(run: Run, postgres: str) -> None:
    record = conclude(run).record
    assert list(record.events) == [ROWS[0], Reading("crash 1"), ROWS[1], Reading("end")]
    assert (list(record.rows), list(record.hidden)) == (ROWS, [HIDDEN])
    assert record.to_json()["in_doubt_rows"] == 1
    assert record.released
    assert schemas(postgres, run) == 0
    with psycopg.connect(postgres) as connection:
        left = "SELECT FROM pg_prepared_xacts WHERE gid LIKE %s"
        name = PostgresStore(run.folder.store("postgres")).schema
        assert connection.execute(left, [f"%{name}%"]).rowcount == 0


def test_a_run_that_is_kept_leaves_its_rows(run: Run, postgres: str) -> None:
    run.keep_store = True
    assert not conclude(run).record.released
    assert schemas(postgres, run) == 1
    with closing(PostgresStore(run.folder.store("postgres"))) as store:
        assert list(store.history()) == ROWS
        store.destroy()


def test_a_run_in_files_keeps_them(tmp_path: Path) -> None:
    run = Run(plan(sink="append", store="files"), RunFolder(tmp_path), ended=True)
    assert not conclude(run).record.released
