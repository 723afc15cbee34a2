"""A small real job: records arrive by the clock and go into an SQLite database, in one of three ways.

It is a process of its own. For each line `INTERVAL DATABASE` on standard input it writes for `ROUNDS` intervals, then
prints how many transactions it has committed. It needs the standard library alone, so that it starts soon, and must not
measure: whoever reads the rows does.
"""

import sqlite3
import sys
import time
from collections.abc import Callable, Mapping

ROUNDS = 4
"""Intervals of one run."""
STEP = 0.1
"""Seconds between two records, about: an interval has a whole number of records."""
PATIENCE = 30.0
"""Seconds to wait for another program's transaction."""

SCHEMA = """
PRAGMA journal_mode = WAL;
CREATE TABLE rows (id INTEGER PRIMARY KEY, due REAL NOT NULL);
CREATE TABLE markers (batch INTEGER PRIMARY KEY);
CREATE TABLE stock (item TEXT PRIMARY KEY, pieces INTEGER NOT NULL);
INSERT INTO stock VALUES ('pen', 100);
"""
"""The job's rows, its batch markers, and a table of somebody else."""

_INSERT = "INSERT INTO rows (due) VALUES (?)"


def records(interval: float) -> int:
    """How many records come in one interval."""
    return max(1, round(interval / STEP))


def connect(database: str, patience: float) -> sqlite3.Connection:
    """A connection whose commits are synced. `patience`: seconds to wait for a lock, once it is open."""
    connection = sqlite3.connect(database, timeout=PATIENCE, isolation_level=None, check_same_thread=False)
    # This reads the schema. Where several programs open a database at once, one of them prepares its log, and the
    # others wait for it, however little patience they have afterwards.
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute(f"PRAGMA busy_timeout = {round(1000 * patience)}")
    return connection


class Append:
    """Each record is a transaction of its own."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.connection, self.commits = connection, 0

    def take(self, due: float) -> None:
        """Writes a record that has arrived."""
        self.connection.execute("BEGIN IMMEDIATE")
        self.connection.execute(_INSERT, [due])
        self.commit()

    def end(self) -> None:
        """The interval is over."""

    def commit(self) -> None:
        """Makes visible what was written."""
        self.connection.execute("COMMIT")
        self.commits += 1


class Open(Append):
    """The first record opens a transaction, and the end of the interval commits it."""

    def take(self, due: float) -> None:
        """Writes a record into the transaction at once."""
        if not self.connection.in_transaction:
            self.connection.execute("BEGIN IMMEDIATE")
        self.connection.execute(_INSERT, [due])

    def end(self) -> None:
        """Commits what the interval has brought."""
        self.commit()


class Gathered(Append):
    """Records wait in memory; one short transaction at the end of the interval has all rows and a batch marker."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        super().__init__(connection)
        self.waiting: list[list[float]] = []

    def take(self, due: float) -> None:
        """Keeps the record."""
        self.waiting.append([due])

    def end(self) -> None:
        """Writes all at once."""
        self.connection.execute("BEGIN IMMEDIATE")
        self.connection.executemany(_INSERT, self.waiting)
        self.connection.execute("INSERT INTO markers VALUES (?)", [self.commits])
        self.waiting.clear()
        self.commit()


WAYS: Mapping[str, Callable[[sqlite3.Connection], Append]] = {"append": Append, "open": Open, "gathered": Gathered}
"""How a job may write, by the name that learners read."""


def write(database: str, way: str, interval: float) -> int:
    """Writes `ROUNDS` intervals; how many transactions that were. Each row says when its record was due."""
    count = records(interval)
    connection = connect(database, PATIENCE)
    try:
        job, begun = WAYS[way](connection), time.monotonic()
        for number in range(ROUNDS * count):
            # Half a step later than the commit: a commit leaves the lock free for a moment.
            due = begun + (number + 0.5) * interval / count
            sleep_until(due)
            job.take(due)
            if (number + 1) % count == 0:
                sleep_until(begun + (number + 1) * interval / count)
                job.end()
        return job.commits
    finally:
        connection.close()


def sleep_until(moment: float) -> None:
    """Returns when the machine's monotonic clock has reached this moment."""
    time.sleep(max(0.0, moment - time.monotonic()))


def main(way: str) -> None:
    """Does what standard input says, line by line, until it is closed."""
    print("ready", flush=True)
    for line in sys.stdin:
        interval, database = line.rstrip("\n").split(" ", 1)
        print(write(database, way, float(interval)), flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
