"""A small real job: records arrive at equal intervals and go into an SQLite database, in one of three ways.

It is a separate process. For each line `INTERVAL DATABASE` on standard input, such as `0.5 /tmp/a.db`, it writes for
`ROUNDS` intervals, then prints the number of its transactions. It uses only the standard library, so that it starts
quickly. The reader of the rows measures the times.
"""

import sqlite3
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import closing

ROUNDS = 4
"""The number of commit intervals in one run."""
STEP = 0.1
"""The approximate number of seconds between two records; a commit interval has a whole number of records."""
PATIENCE = 30.0
"""The number of seconds to wait for another program's transaction."""

SCHEMA = """
PRAGMA journal_mode = WAL;
CREATE TABLE rows (id INTEGER PRIMARY KEY, due REAL NOT NULL);
CREATE TABLE markers (batch INTEGER PRIMARY KEY);
CREATE TABLE stock (item TEXT PRIMARY KEY, pieces INTEGER NOT NULL);
INSERT INTO stock VALUES ('pen', 100);
"""
"""SQL that creates the tables for the job's rows, for its batch markers, and for another program."""

_INSERT = "INSERT INTO rows (due) VALUES (?)"


def records(interval: float) -> int:
    """Return the number of records that arrive in a commit interval of this many seconds."""
    return max(1, round(interval / STEP))


def connect(database: str, patience: float) -> sqlite3.Connection:
    """Return an SQLite connection that syncs the disk at each commit, and waits up to `patience` seconds for a lock.

    This function itself may wait longer for a lock while it opens the database: up to `PATIENCE` seconds.
    """
    connection = sqlite3.connect(database, timeout=PATIENCE, isolation_level=None, check_same_thread=False)
    # This reads the schema. If several programs open a database at once, one prepares the log and the others wait for
    # it, so this first statement needs the long timeout.
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute(f"PRAGMA busy_timeout = {round(1000 * patience)}")
    return connection


class Append:
    """A way of writing: each record is written in a transaction of its own, as soon as it arrives."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.connection, self.commits = connection, 0

    def take(self, due: float) -> None:
        """Write and commit a record; `due` is its arrival time in seconds of the monotonic clock."""
        self.connection.execute("BEGIN IMMEDIATE")
        self.connection.execute(_INSERT, [due])
        self.commit()

    def end(self) -> None:
        """Do nothing at the end of a commit interval, because every record is committed already."""

    def commit(self) -> None:
        """Commit the open transaction, and count it."""
        self.connection.execute("COMMIT")
        self.commits += 1


class Open(Append):
    """A way of writing: a transaction stays open for a whole commit interval."""

    def take(self, due: float) -> None:
        """Write a record into the open transaction; `due` is its arrival time in seconds of the monotonic clock."""
        if not self.connection.in_transaction:
            self.connection.execute("BEGIN IMMEDIATE")
        self.connection.execute(_INSERT, [due])

    def end(self) -> None:
        """Commit the transaction at the end of a commit interval."""
        self.commit()


class Gathered(Append):
    """A way of writing: records wait in memory; one short transaction per interval writes them and a batch marker."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        super().__init__(connection)
        self.waiting: list[list[float]] = []

    def take(self, due: float) -> None:
        """Keep a record in memory; `due` is its arrival time in seconds of the monotonic clock."""
        self.waiting.append([due])

    def end(self) -> None:
        """Write and commit all waiting records at the end of a commit interval."""
        self.connection.execute("BEGIN IMMEDIATE")
        self.connection.executemany(_INSERT, self.waiting)
        self.connection.execute("INSERT INTO markers VALUES (?)", [self.commits])
        self.waiting.clear()
        self.commit()


WAYS: Mapping[str, Callable[[sqlite3.Connection], Append]] = {"append": Append, "open": Open, "gathered": Gathered}
"""The ways of writing, by the name that learners see."""


def write(database: str, way: str, interval: float) -> int:
    """Run a job for `ROUNDS` commit intervals of `interval` seconds, and return the number of its transactions."""
    count = records(interval)
    with closing(connect(database, PATIENCE)) as connection:
        job, begun = WAYS[way](connection), time.monotonic()
        for number in range(ROUNDS * count):
            # A record is due half a step after a commit, so that the lock is free for a moment after each commit.
            due = begun + (number + 0.5) * interval / count
            sleep_until(due)
            job.take(due)
            if (number + 1) % count == 0:
                sleep_until(begun + (number + 1) * interval / count)
                job.end()
        return job.commits


def sleep_until(moment: float) -> None:
    """Sleep until the machine's monotonic clock reaches the time `moment`."""
    time.sleep(max(0.0, moment - time.monotonic()))


def main(way: str) -> None:
    """Run a job for each line `interval database` on standard input, and print its number of transactions."""
    print("ready", flush=True)
    for line in sys.stdin:
        interval, database = line.rstrip("\n").split(" ", 1)
        print(write(database, way, float(interval)), flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
