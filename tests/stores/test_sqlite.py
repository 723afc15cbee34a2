"""The SQLite store: view, change log, simulated two-phase commit, and what it says about a file that it cannot use."""

import os
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing
from pathlib import Path

import pytest
import store_refusals
from store_refusals import assert_refused
from store_rows import HANDLE, prepare, row, written

from labkit.core.errors import InvalidInput, JobFailed
from labkit.host import durable
from labkit.stores import sqlite
from labkit.stores.sqlite import SQLiteStore

Killed = Callable[[str, str, Path], list[str]]
Forbidden = Callable[[Path], AbstractContextManager[None]]
ROW = row(3)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "deep" / "a store?#%41.sqlite"


@pytest.fixture
def store(path: Path) -> Iterator[SQLiteStore]:
    with closing(SQLiteStore(path)) as opened:
        yield opened


def ask(path: Path, sql: str) -> list[tuple[object, ...]]:
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(sql).fetchall()


def test_the_view_shows_the_rows_of_the_history(store: SQLiteStore) -> None:
    store.append(row(0))
    for partition in range(3):
        prepare(store, HANDLE._replace(partition=partition), 10 * partition, 10 * partition + 1)
    store.commit(HANDLE._replace(partition=2))
    store.abort(HANDLE._replace(partition=1))
    store.append(row(1))
    with store.transaction(HANDLE._replace(batch=1)) as write:
        write(row(2))
    assert [one.offset for one in store.history()] == [0, 20, 21, 1, 2]
    assert sorted(store.visible()) == sorted(store.history())
    assert list(store.hidden()) == [row(0), row(1)]


def test_abort_takes_no_committed_row_from_the_view(store: SQLiteStore) -> None:
    prepare(store, HANDLE, 0, 1)
    store.commit(HANDLE)
    store.abort(HANDLE)
    assert list(store.visible()) == list(store.history()) == [row(0), row(1)]


def test_who_reads_the_table_sees_what_was_never_committed(store: SQLiteStore, path: Path) -> None:
    prepare(store, HANDLE, 7)
    assert ask(path, "SELECT offset, handle FROM rows") == [(7, str(HANDLE))]
    assert ask(path, "SELECT * FROM visible") == list(store.visible()) == []


def test_totals_keep_one_row_a_key_and_the_log_all(store: SQLiteStore, path: Path) -> None:
    for offset in (0, 1, 0):
        store.upsert(row(offset))
    assert ask(path, "SELECT key, offset FROM totals") == [("hello", 0)]
    assert ask(path, "SELECT offset FROM changes ORDER BY id") == [(0,), (1,), (0,)]
    assert list(store.visible()) == []


def test_an_open_transaction_inserts_in_chunks(store: SQLiteStore) -> None:
    transaction = written(store, HANDLE, *range(sqlite.CHUNK + 1))
    assert len(list(store.hidden())) == sqlite.CHUNK
    transaction.prepare()
    assert len(list(store.hidden())) == sqlite.CHUNK + 1


def test_a_writer_that_was_aborted_learns_it_with_its_next_chunk(store: SQLiteStore) -> None:
    transaction = store.begin(HANDLE)
    store.abort(HANDLE)
    for offset in range(1, sqlite.CHUNK):
        transaction.write(row(offset))
    with pytest.raises(JobFailed, match="cannot continue"):
        transaction.write(row(0))
    assert list(store.hidden()) == []


def test_the_settings_that_a_crash_depends_on(store: SQLiteStore, path: Path) -> None:
    store.append(ROW)
    settings = [store._connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("synchronous", "busy_timeout")]
    assert settings == [2, 30_000]
    assert ask(path, "PRAGMA journal_mode") == [("wal",)]


def test_a_closed_store_is_one_file(store: SQLiteStore, path: Path) -> None:
    store.append(ROW)
    with store.transaction(HANDLE):
        pass
    store.close()
    assert list(path.parent.iterdir()) == [path]


def test_four_processes_create_one_store(path: Path, together: Callable[[str, str, Path, int], None]) -> None:
    together("store.append(row(first))", "sqlite", path, 4)
    with closing(SQLiteStore(path)) as store:
        assert sorted(one.offset for one in store.history()) == [0, 1, 2, 3]
    assert list(path.parent.iterdir()) == [path]


def test_another_writer_is_waited_for_and_then_named(
    store: SQLiteStore, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite, "PATIENCE", 0.0)
    with store.transaction(HANDLE), closing(SQLiteStore(path)) as other:
        with pytest.raises(JobFailed, match="another process has locked the database"):
            other.append(ROW)
        assert list(other.history()) == []


WRITING = [*store_refusals.WRITING, lambda store: store.upsert(ROW)]
EVERY = [
    *store_refusals.READING,
    *WRITING,
    lambda store: list(store.visible()),
    lambda store: store.commit(HANDLE),
    lambda store: store.abort(HANDLE),
]


@pytest.mark.parametrize("content", [b"", b"hello\n", b"\0" * 10_000, b"SQLite format 3\0" + b"\xff" * 4080])
def test_a_file_that_is_no_store_is_refused_and_left_alone(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "store"
    path.write_bytes(content)
    words = rf"^{path}: (damaged|.*not a store).*(delete it|move it away)"
    assert_refused(lambda: SQLiteStore(path), words, *EVERY)
    assert path.read_bytes() == content


def test_a_database_of_something_else_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "store"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE rows (mine)")
    content = path.read_bytes()
    assert_refused(lambda: SQLiteStore(path), "not a store of the lab; move it away", *EVERY)
    assert path.read_bytes() == content


def test_a_damaged_database_is_refused(store: SQLiteStore, path: Path) -> None:
    prepare(store, HANDLE, *range(5_000))
    store.commit(HANDLE)
    store.close()
    with path.open("r+b") as file:
        file.seek(8192)
        file.write(b"\xff" * (path.stat().st_size - 8192))
    with pytest.raises(InvalidInput, match=r"damaged, or not an SQLite database .*restore it, or delete it"):
        list(store.history())


def test_a_truncated_database_is_refused(store: SQLiteStore, path: Path) -> None:
    prepare(store, HANDLE, *range(5_000))
    store.close()
    os.truncate(path, 4096 * 5)
    with pytest.raises(InvalidInput, match="damaged"):
        list(store.hidden())


def test_a_folder_in_place_of_the_file_is_refused(tmp_path: Path) -> None:
    words = rf"^{tmp_path}: there is a folder where .*; move it away\.$"
    assert_refused(lambda: SQLiteStore(tmp_path), words, *EVERY)


def test_a_file_in_place_of_a_folder_above_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("a file")
    assert_refused(lambda: SQLiteStore(tmp_path / "file" / "store"), rf"^{tmp_path}/file.*move it away\.$", *EVERY)


def test_a_folder_that_may_not_be_written_is_refused(public: Path, forbidden: Forbidden) -> None:
    with forbidden(public):
        words = rf"^{public}/store: cannot be opened or written .*choose a place"
        assert_refused(lambda: SQLiteStore(public / "store"), words, *WRITING)
        assert list(SQLiteStore(public / "store").history()) == []


def test_a_store_that_may_not_be_written_is_refused(public: Path, forbidden: Forbidden) -> None:
    with closing(SQLiteStore(public / "store")) as store:
        store.append(ROW)
    with forbidden(public):
        words = rf"^{public}/store: cannot be opened or written .*choose a place"
        assert_refused(lambda: SQLiteStore(public / "store"), words, *EVERY)


def test_a_log_without_its_database_is_refused(store: SQLiteStore, path: Path, killed: Killed) -> None:
    killed("store.append(row(0)); park()", "sqlite", path)
    path.unlink()
    with pytest.raises(InvalidInput, match=r"-wal: .* no longer exists; delete it"):
        store.append(ROW)
    assert not path.exists()


def test_a_kill_while_a_store_is_created_leaves_none_or_a_whole_one(path: Path, killed: Killed) -> None:
    code = """
import os
def stop(*names): park()
os.link = stop
store.append(row(0))
"""
    killed(code, "sqlite", path)
    assert not path.exists()
    assert [durable.is_temporary(left) for left in path.parent.iterdir()] == [True]
    with closing(SQLiteStore(path)) as store:
        assert list(store.history()) == []
        store.append(ROW)
        assert list(store.history()) == [ROW]


def test_a_full_disk_fails_the_job_and_leaves_whole_transactions(store: SQLiteStore) -> None:
    store.append(ROW)
    pages = store._connection.execute("PRAGMA page_count").fetchone()[0]
    store._connection.execute(f"PRAGMA max_page_count = {pages}")
    transaction = written(store, HANDLE, *range(sqlite.CHUNK - 1))
    with pytest.raises(JobFailed, match="the disk is full; free some space and run again"):
        transaction.prepare()
    assert list(store.history()) == [ROW]
    assert list(store.hidden()) == []
    assert store.prepared("q") == [HANDLE]
    store._connection.execute("PRAGMA max_page_count = 100000")
    transaction.prepare()
    store.commit(HANDLE)
    assert len(list(store.history())) == sqlite.CHUNK


def test_threads_take_turns(store: SQLiteStore) -> None:
    def run(first: int) -> None:
        for offset in range(20):
            store.append(row(first + offset))

    threads = [threading.Thread(target=run, args=[100 * number]) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(one.offset for one in store.history()) == [
        100 * first + offset for first in range(4) for offset in range(20)
    ]
