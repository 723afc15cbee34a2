"""The kernel's list of file locks shows the same locks while a transaction stands still, and others after it."""

import fcntl
import sqlite3
from pathlib import Path

from labkit.host.file_locks import write_locks


def test_a_transaction_of_sqlite_changes_the_locks(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "db", isolation_level=None) as db:
        db.execute("CREATE TABLE rows (id)")
        assert write_locks([tmp_path]) == frozenset()
        db.execute("BEGIN IMMEDIATE")  # readers may still read
        reserved = write_locks([tmp_path])
        db.execute("INSERT INTO rows VALUES (1)")
        assert write_locks([tmp_path]) == reserved
        db.execute("COMMIT")
        db.execute("BEGIN EXCLUSIVE")
        assert frozenset() != write_locks([tmp_path]) != reserved
        db.execute("ROLLBACK")
        assert write_locks([tmp_path]) == frozenset()


def test_only_exclusive_locks_in_these_folders_count(tmp_path: Path) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    for folder in (here, there):
        folder.mkdir()
    with (here / "shared").open("w") as shared, (there / "exclusive").open("w") as exclusive:
        fcntl.flock(shared, fcntl.LOCK_SH)
        fcntl.flock(exclusive, fcntl.LOCK_EX)
        assert write_locks([here]) == frozenset()
        assert len(write_locks([there])) == 1
