"""The kernel's list of file locks shows the same locks while a transaction stands still, and others after it."""

import fcntl
import sqlite3
import struct
import subprocess
import sys
from pathlib import Path

from waiting import until

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


def test_a_lock_without_a_process_counts(tmp_path: Path) -> None:
    """One of an open file description, and one of a process that has ended and left the file to a child."""
    with (tmp_path / "described").open("w") as file:
        fcntl.fcntl(file, fcntl.F_OFD_SETLK, struct.pack("hhqqi4x", fcntl.F_WRLCK, 0, 0, 0, 0))
        assert [each.split()[3] for each in write_locks([tmp_path])] == ["-1"]
    program = """if 1:
        import fcntl, os, sys
        file = open(sys.argv[1], "w")
        fcntl.flock(file, fcntl.LOCK_EX)
        if os.fork() == 0:
            sys.stdin.read()
    """
    with subprocess.Popen([sys.executable, "-c", program, tmp_path / "left"], stdin=subprocess.PIPE) as process:
        process.wait()
        assert len(write_locks([tmp_path])) == 1
    until(lambda: not write_locks([tmp_path]), "the child closes the file")
