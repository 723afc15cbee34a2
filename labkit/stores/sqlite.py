"""An SQLite database as a store: rows, totals by key, and a change log that triggers fill in the same transaction.

SQLite has no prepared state, so two-phase commit is SIMULATED: the rows of an open transaction are in the table `rows`
from the start, each with the transaction's handle. A transaction is committed when its handle is in the table
`committed`, and readers must use the view `visible`. A reader of the table `rows` sees rows that were never committed,
which shows that two-phase commit needs a store that hides them.

The table `changes` logs what an outside reader could have seen, in order: SQLite has one writer at a time, so the order
of the log is the order of visibility. Whatever another process needs is in the database, not in memory.
"""

import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from importlib.resources import files
from itertools import starmap
from pathlib import Path
from typing import Any

from labkit.core.errors import InvalidInput, JobFailed, LabError
from labkit.core.exposure import Span
from labkit.core.records import Observation
from labkit.host import durable
from labkit.stores.contract import Handle, Shown, Tell, Transaction, already_committed, exists_already, not_prepared

APPLICATION_ID = 0x1AB_0001
"""The number in a database file (application_id) by which the lab recognises its own stores of this layout."""

CHUNK = 1_000
"""The number of rows of an open transaction that are inserted together; until the commit nobody may see them anyway."""

PATIENCE = 30.0
"""Seconds for which a statement waits for another process's transaction."""

_SCHEMA = files("labkit.stores").joinpath("sqlite.sql").read_text(encoding="utf-8")

_CLOCK = """
CREATE TABLE IF NOT EXISTS moments (last INTEGER PRIMARY KEY, at REAL, ready REAL);
CREATE TABLE IF NOT EXISTS votes (handle TEXT PRIMARY KEY NOT NULL, at REAL NOT NULL);
"""
"""The tables of times. `moments` says when the changes up to the id `last` became visible, and `votes` when a
transaction was prepared. Databases of earlier versions lack these tables, but can still be read and extended."""
_UNKNOWN = "INSERT OR IGNORE INTO moments SELECT max(id), NULL, NULL FROM changes HAVING max(id) IS NOT NULL"
"""Marks the times of all rows from an earlier version as unknown."""
_MOMENT = """
INSERT OR IGNORE INTO moments (last, at, ready)
SELECT max(id), ?, (SELECT at FROM votes WHERE handle = ?) FROM changes HAVING max(id) IS NOT NULL
"""
_MOMENTS = "SELECT last, at, ready FROM moments ORDER BY last"
_HAS_MOMENTS = "SELECT 1 FROM sqlite_master WHERE name = 'moments'"
_WAITING = """
SELECT offset, key, value, batch, attempt, votes.at FROM rows JOIN prepared USING (handle) JOIN votes USING (handle)
ORDER BY id
"""

_INSERT = "INSERT INTO rows (offset, key, value, batch, attempt, handle) VALUES (?, ?, ?, ?, ?, ?)"
_UPSERT = """
INSERT INTO totals (offset, key, value, batch, attempt) VALUES (?, ?, ?, ?, ?)
ON CONFLICT (key) DO UPDATE
SET offset = excluded.offset, value = excluded.value, batch = excluded.batch, attempt = excluded.attempt
"""
_HISTORY = "SELECT offset, key, value, batch, attempt, id FROM changes ORDER BY id"
_VISIBLE = "SELECT offset, key, value, batch, attempt FROM visible ORDER BY id"
_HIDDEN = """
SELECT offset, key, value, batch, attempt FROM rows
WHERE handle IS NOT NULL AND handle NOT IN (SELECT handle FROM committed) ORDER BY id
"""
_UNFINISHED = "SELECT handle FROM opened UNION SELECT handle FROM prepared"
_IS_COMMITTED = "SELECT EXISTS (SELECT 1 FROM committed WHERE handle = ?)"
_IS_KNOWN = """
SELECT EXISTS (SELECT 1 FROM opened WHERE handle = ?1) OR EXISTS (SELECT 1 FROM prepared WHERE handle = ?1)
OR EXISTS (SELECT 1 FROM committed WHERE handle = ?1)
"""
_ABORT = (
    "DELETE FROM opened WHERE handle = ?",
    "DELETE FROM prepared WHERE handle = ?",
    "DELETE FROM rows WHERE handle = ? AND handle NOT IN (SELECT handle FROM committed)",
)

Writing = Callable[[], AbstractContextManager[sqlite3.Connection]]
"""A function that opens one short transaction of the database: leaving the block commits, an exception rolls back."""


class SimulatedTransaction:
    """One simulated transaction for two-phase commit, which SQLite itself does not support.

    Before the commit, the transaction's rows are in the table `rows`, but the view `visible` omits them.
    """

    def __init__(self, writing: Writing, handle: Handle, number: int) -> None:
        self._writing = writing
        self._name, self._number = str(handle), number
        self._buffer: list[Observation] = []
        self._is_open = True

    def write(self, row: Observation) -> None:
        """Write one row into a buffer, and insert the buffered rows when there are `CHUNK` of them.

        Raises `JobFailed` if the transaction is closed or aborted.
        """
        self._refuse_closed()
        self._buffer.append(row)
        if len(self._buffer) >= CHUNK:
            with self._writing() as connection:
                self._insert(connection)
            self._buffer.clear()

    def prepare(self) -> None:
        """Insert the remaining rows and record the transaction as prepared. Raises `JobFailed` if it was aborted."""
        self._refuse_closed()
        with self._writing() as connection:
            self._insert(connection)
            # One transaction for the remaining rows and the vote, which promises that no row is missing.
            connection.execute("DELETE FROM opened WHERE handle = ?", [self._name])
            connection.execute("INSERT INTO prepared VALUES (?)", [self._name])
            connection.execute("INSERT OR REPLACE INTO votes VALUES (?, ?)", [self._name, time.time()])
        self._is_open = False

    def _insert(self, connection: sqlite3.Connection) -> None:
        query = "SELECT 1 FROM opened WHERE number = ? AND handle = ?"
        # After an abort the name may be used again, with another number.
        if connection.execute(query, [self._number, self._name]).fetchone() is None:
            raise JobFailed(
                f"The transaction {self._name} cannot continue, because a recovery or another writer has aborted it; "
                "begin another."
            )
        connection.executemany(_INSERT, [(*row[:5], self._name) for row in self._buffer])

    def _refuse_closed(self) -> None:
        if not self._is_open:
            raise JobFailed(f"The transaction {self._name} is not open any more; begin another.")


class SQLiteStore:
    """An SQLite database as a store, with a simulated two-phase commit. The first write creates the database.

    It supports appending, upserts by key, batches with a marker and two-phase commit (`Appendable`, `Keyed`, `Atomic`,
    `Transactional`).
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._connection: sqlite3.Connection | None = None
        self._lock = threading.Lock()

    def history(self) -> Iterator[Observation]:
        return self.clocked_history(lambda _: None)

    def clocked_history(self, tell: Tell) -> Iterator[Observation]:
        """Yield the rows of `history`, and call `tell` with their times.

        A transaction reads the clock right before its commit; this is when its rows became visible.
        """
        moments = [*self._read(_MOMENTS)] if any(self._read(_HAS_MOMENTS)) else []
        waiting, last = iter(moments), -1
        for *row, number in self._read(_HISTORY):
            while number > last:
                last, at, ready = next(waiting, (number, None, None))
                tell(Shown.noted(at, ready))
            yield Observation(*row)

    def waiting(self) -> Iterator[tuple[Observation, Span]]:
        """Yield each row of a prepared transaction with the time at which the transaction was prepared."""
        if any(self._read(_HAS_MOMENTS)):
            for *row, at in self._read(_WAITING):
                yield Observation(*row), Span.exactly(at)

    def visible(self) -> Iterator[Observation]:
        """Yield the rows in the view `visible`, which omits the rows of uncommitted simulated transactions."""
        return starmap(Observation, self._read(_VISIBLE))

    def hidden(self) -> Iterator[Observation]:
        """Yield the rows of open and prepared transactions, except rows that are only in a writer's buffer."""
        return starmap(Observation, self._read(_HIDDEN))

    def close(self) -> None:
        """Close the connection. A simulated transaction that is still open is not aborted."""
        with self._lock, self._explained():
            connection, self._connection = self._connection, None
            if connection is not None:
                connection.close()

    def append(self, *rows: Observation) -> None:
        with self._writing() as connection:
            connection.executemany(_INSERT, [(*row[:5], None) for row in rows])

    def upsert(self, *rows: Observation) -> None:
        with self._writing() as connection:
            connection.executemany(_UPSERT, [row[:5] for row in rows])

    def has_marker(self, query: str, batch: int) -> bool:
        return any(self._read("SELECT 1 FROM markers WHERE query = ? AND batch = ?", query, batch))

    @contextmanager
    def transaction(self, handle: Handle) -> Iterator[Callable[[Observation], None]]:
        """Open a transaction of the database for a batch. Until the end of the block, all other writers wait."""
        with self._explained():
            connection = self._connect_to_write()
        # SQLite rolls back the open transaction when the connection is closed.
        with closing(connection):
            with self._explained():
                connection.execute("BEGIN IMMEDIATE")
                try:
                    connection.execute("INSERT INTO markers VALUES (?, ?)", [handle.query, handle.batch])
                except sqlite3.IntegrityError:
                    raise already_committed(handle) from None

            def write(row: Observation) -> None:
                with self._explained():
                    connection.execute(_INSERT, (*row[:5], None))

            yield write
            with self._explained():
                _note_moment(connection)
                connection.execute("COMMIT")

    def begin(self, handle: Handle) -> Transaction:
        with self._writing() as connection:
            if _holds(connection, _IS_KNOWN, handle):
                raise exists_already(self.path, handle)
            number = connection.execute("INSERT INTO opened (handle) VALUES (?)", [str(handle)]).lastrowid
        assert number is not None
        return SimulatedTransaction(self._writing, handle, number)

    def commit(self, handle: Handle) -> None:
        if not self._is_there():
            raise not_prepared(self.path, handle)
        with self._writing() as connection:
            if connection.execute("DELETE FROM prepared WHERE handle = ?", [str(handle)]).rowcount:
                connection.execute("INSERT INTO committed VALUES (?)", [str(handle)])
                _note_moment(connection, handle)
            elif not _holds(connection, _IS_COMMITTED, handle):
                raise not_prepared(self.path, handle)

    def abort(self, handle: Handle) -> None:
        if not self._is_there():
            return
        with self._writing() as connection:
            # One transaction for all three, so that nobody sees a half-deleted transaction.
            for statement in _ABORT:
                connection.execute(statement, [str(handle)])

    def prepared(self, query: str) -> list[Handle]:
        handles = [Handle.parse(name) for (name,) in self._read(_UNFINISHED)]
        return sorted(handle for handle in handles if handle.query == query)

    def _read(self, sql: str, *parameters: str | int) -> Iterator[tuple[Any, ...]]:
        # Each query has its own connection, so it sees only committed data.
        if self._is_there():
            with self._explained(), closing(self._connect()) as connection:
                yield from connection.execute(sql, parameters)

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        with self._lock, self._explained():
            if self._connection is None:
                self._connection = self._connect_to_write()
            # IMMEDIATE takes the write lock now. A transaction that begins by reading fails at its first write if
            # another connection has written meanwhile.
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield self._connection
                # Under the write lock, so that moments increase in the order of visibility.
                _note_moment(self._connection)
                self._connection.execute("COMMIT")
            finally:
                # SQLite may have rolled back by itself; another ROLLBACK would fail and hide the first error.
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")

    def _is_there(self) -> bool:
        with durable.explained(self.path):
            try:
                self.path.stat()
            except FileNotFoundError:
                return False
            return True

    def _connect_to_write(self) -> sqlite3.Connection:
        if not self._is_there():
            self._create()
        connection = self._connect()
        if connection.execute(_HAS_MOMENTS).fetchone() is None:
            connection.executescript(f"{_CLOCK}{_UNKNOWN};")
        return connection

    def _connect(self) -> sqlite3.Connection:
        # `mode=rw` keeps SQLite from creating a missing database.
        address = f"{self.path.absolute().as_uri()}?mode=rw"
        connection = sqlite3.connect(
            address,
            uri=True,
            timeout=PATIENCE,
            # Transactions begin and end only by statements in this file, and not where the sqlite3 module would guess.
            isolation_level=None,
            # Threads of a process share the connection, one at a time, under `_lock`.
            check_same_thread=False,
        )
        try:
            # Set explicitly, because builds of SQLite have different defaults. With NORMAL, SQLite does not sync a
            # commit in WAL mode, so after a power cut the engine's decision could be there and the rows lost.
            connection.execute("PRAGMA synchronous = FULL")
            if connection.execute("PRAGMA application_id").fetchone() != (APPLICATION_ID,):
                raise InvalidInput(
                    f"{self.path}: this database is not a store of the lab; move it away, or choose another path."
                )
        except BaseException:
            connection.close()
            raise
        return connection

    def _create(self) -> None:
        # The database gets its name when it is complete, so no other process sees an incomplete one.
        durable.make_folder(self.path.parent)
        # SQLite would apply a write-ahead log that an old database has left to the new one.
        log = self.path.with_name(f"{self.path.name}-wal")
        if log.exists() and not self.path.exists():
            raise InvalidInput(
                f"{log}: this file belongs to a database that no longer exists; delete it and run again."
            )
        draft = durable.temporary(self.path)
        try:
            with closing(sqlite3.connect(draft)) as connection:
                connection.executescript(_SCHEMA + _CLOCK)
                connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            with suppress(FileExistsError):  # another process was first
                # A link fails if the name exists; a rename would replace another process's rows.
                os.link(draft, self.path)
        finally:
            draft.unlink(missing_ok=True)
        durable.sync_folder(self.path.parent)

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            with durable.explained(self.path):
                yield
        except sqlite3.DatabaseError as error:
            if isinstance(error, sqlite3.ProgrammingError | sqlite3.IntegrityError):
                raise  # a bug in labkit, not a damaged file
            raise _explanation(self.path, error) from error


def _note_moment(connection: sqlite3.Connection, handle: Handle | None = None) -> None:
    connection.execute(_MOMENT, [time.time(), None if handle is None else str(handle)])


def _holds(connection: sqlite3.Connection, question: str, handle: Handle) -> bool:
    return bool(connection.execute(question, [str(handle)]).fetchone()[0])


def _explanation(path: Path, error: sqlite3.Error) -> LabError:
    # The lowest byte is the primary code; the other bytes only give details.
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT) & 0xFF
    if code == sqlite3.SQLITE_FULL:
        return JobFailed(f"{path}: the disk is full; free some space and run again.")
    if code in {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}:
        return JobFailed(f"{path}: another process has locked the database for {PATIENCE:.0f} s; end it and run again.")
    if path.is_dir():
        return InvalidInput(f"{path}: there is a folder where the database file should be; move it away.")
    if code in {sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM, sqlite3.SQLITE_AUTH}:
        return InvalidInput(f"{path}: cannot be opened or written ({error}); choose a place that you may write to.")
    if code == sqlite3.SQLITE_IOERR:
        return JobFailed(f"{path}: the system refused access to the file ({error}); check the disk and run again.")
    return InvalidInput(
        f"{path}: damaged, or not an SQLite database ({error}); restore it, or delete it and run again."
    )
