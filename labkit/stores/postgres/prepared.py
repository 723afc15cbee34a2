"""The named transactions of a PostgreSQL store: open in this process, then prepared, then finished by any process.

An open transaction has a row in the table `opened`. Both prepare and abort delete that row, so only the first of them
succeeds.
"""

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from psycopg import errors, sql

from labkit.core.errors import JobFailed, ServiceUnavailable
from labkit.core.records import Observation
from labkit.host.servers.postgres_connection import BEGIN, Connection, Step, at_once, explained, meanwhile
from labkit.stores.contract import Handle, already_committed, fenced
from labkit.stores.postgres import schema as names
from labkit.stores.postgres.pool import Pool

CHUNK = 1_000
"""The number of rows of an open transaction that are sent together; only the first row is sent alone."""

ABORT_SECONDS = 10.0
"""Seconds for which an abort or commit waits for another process that is changing the same transaction."""


class OpenTransaction:
    """One open two-phase transaction of this process. Until it is prepared, it has a connection of its own."""

    def __init__(self, pool: Pool, schema: str, handle: Handle, connection: Connection, number: int) -> None:
        self._pool, self._handle, self._number = pool, handle, number
        self._gid = names.gid_of(schema, handle)
        self._connection: Connection | None = connection
        self._rows = Rows(str(handle))

    def write(self, row: Observation) -> None:
        """Write one row: send it at once if it is the first, otherwise in a chunk with later rows.

        Raises `JobFailed` if the transaction is not open.
        """
        if self._rows.keep(row) or self._connection is None:
            connection = self._open()
            with self._ending_by_error(connection):
                self._send(connection)

    def prepare(self) -> None:
        """Send the remaining rows, and pre-commit. Raises `JobFailed` if the transaction was aborted."""
        connection = self._open()
        with self._ending_by_error(connection):
            self._send(connection)
            decide = Step(_DECIDE, {"name": str(self._handle), "number": self._number})
            prepare = Step(sql.SQL("PREPARE TRANSACTION {}").format(sql.Literal(self._gid)))
            try:
                # Both statements run inside the transaction, which from here on locks its row in `opened` until it
                # ends. So an abort cannot delete the row, and finds a prepared transaction instead.
                at_once(connection, decide, prepare)
            except errors.NotNullViolation:
                raise self._aborted() from None
        self._connection = None
        self._pool.give(connection)

    def _open(self) -> Connection:
        if self._connection is None:
            raise JobFailed(f"The transaction {self._handle} is not open any more; begin another.")
        return self._connection

    def _send(self, connection: Connection) -> None:
        """Send the buffered rows in the transaction, and commit a copy of the rows on another connection.

        The copy goes to the table `staged`, where the store's method `hidden` can read it. The uncommitted rows
        themselves are invisible to every other connection.
        """
        if self._rows:
            arrays = self._rows.take()
            with self._pool.using() as other, meanwhile(other, Step(names.NOTE, arrays)):
                at_once(connection, Step(names.INSERT, arrays))

    @contextmanager
    def _ending_by_error(self, connection: Connection) -> Iterator[None]:
        try:
            with explained(connection, self._pool.place):
                yield
        except BaseException as error:
            self._connection = None
            connection.close()
            self._pool.give(connection)
            # An abort ends the connection, as if the server were gone. Only after an abort is the row in `opened` gone.
            if isinstance(error, ServiceUnavailable) and self._was_aborted():
                raise self._aborted() from error
            raise

    def _was_aborted(self) -> bool:
        try:
            with self._pool.using() as other:
                query = "SELECT FROM opened WHERE handle = %s AND number = %s"
                return other.execute(query, [str(self._handle), self._number]).rowcount == 0
        except ServiceUnavailable:
            return False

    def _aborted(self) -> JobFailed:
        return JobFailed(f"The transaction {self._handle} was aborted while it was open; begin another.")


_DECIDE = """
WITH gone AS (DELETE FROM opened WHERE handle = %(name)s AND number = %(number)s RETURNING handle)
INSERT INTO committed VALUES ((SELECT handle FROM gone))
"""
"""Deletes the transaction's row in `opened`. If an abort has deleted the row, the statement inserts null and so fails.

After a failure the server skips the next statement, PREPARE TRANSACTION.
"""


class Rows:
    """The buffer for the rows of the open transaction `name`.

    The first row should be sent at once, because PostgreSQL assigns a transaction id only at the first write. Later
    rows are sent in chunks.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._kept: list[Observation] = []
        self._size = 1

    def keep(self, row: Observation) -> bool:
        """Add a row to the buffer, and return whether the buffer should be sent now."""
        self._kept.append(row)
        return len(self._kept) >= self._size

    def __bool__(self) -> bool:
        return bool(self._kept)

    def take(self) -> list[str]:
        """Empty the buffer; return the parameters of the statements `INSERT` and `NOTE`: transaction name and rows."""
        rows, self._kept, self._size = self._kept, [], CHUNK
        return [self._name, *names.to_arrays(rows)]

    def steps(self) -> list[Step]:
        """Empty the buffer, and return a list with the statement that sends its rows; [] if the buffer was empty."""
        return [Step(names.INSERT, self.take())] if self else []


def open_noted(connection: Connection, schema: str, handle: Handle) -> int | None:
    """Begin a two-phase transaction, after committing a row about it to the table `opened`.

    The row names the writer's server process. Returns the row's number. Returns None, without a transaction, if the
    handle was used before or the server cannot prepare transactions. Raises `JobFailed` if a later driver of the query
    has called `fence`.
    """
    return _open(connection, _OPEN, {"name": str(handle), "gid": names.gid_of(schema, handle)}, handle)


def open_atomic(connection: Connection, name: str, handle: Handle) -> int:
    """Commit a row to the table `opened`, then begin the transaction of a batch and insert the batch's marker.

    Returns the number of the row in `opened`. Raises `JobFailed` if the batch is already committed, or if
    a later driver of the query has called `fence`.
    """
    marker = Step("INSERT INTO markers VALUES (%s, %s)", [handle.query, handle.batch])
    number = _open(connection, _OPEN_ATOMIC, {"name": name}, handle, marker)
    if number is None:
        connection.execute("DELETE FROM opened WHERE handle = %s AND pid = pg_backend_pid()", [name])
        raise already_committed(handle)
    return number


def _open(
    connection: Connection, note: str, parameters: Mapping[str, object], handle: Handle, *more: Step
) -> int | None:
    """Commit a row in `opened`, begin a transaction, and return the row's number.

    The statement `note` writes the row, and the statements `more` run first in the transaction. Returns None, after a
    ROLLBACK, if `note` writes no row or a statement violates a unique constraint. Raises `JobFailed` if a later driver
    of the query has called `fence`.
    """
    noting = Step(note, {**parameters, "query": handle.query, "incarnation": handle.incarnation})
    try:
        noted = at_once(connection, Step("BEGIN"), noting, Step("COMMIT"), *BEGIN, *more)[1]
    except errors.UniqueViolation:
        noted = []
    if noted:
        return int(noted[0][0])
    # Needed in both cases: after an error, and if the server has opened the transaction without a row in `opened`.
    connection.execute("ROLLBACK")
    later = "SELECT FROM epochs WHERE query = %s AND incarnation > %s"
    if connection.execute(later, [handle.query, handle.incarnation]).rowcount:
        raise fenced(handle.query, handle.incarnation)
    return None


_OPEN = """
WITH epoch AS MATERIALIZED (SELECT incarnation FROM epochs WHERE query = %(query)s FOR SHARE)
INSERT INTO opened (handle) SELECT %(name)s
WHERE NOT EXISTS (SELECT FROM epoch WHERE incarnation > %(incarnation)s)
AND NOT EXISTS (SELECT FROM opened WHERE handle = %(name)s)
AND NOT EXISTS (SELECT FROM committed WHERE handle = %(name)s)
AND NOT EXISTS (SELECT FROM pg_prepared_xact() WHERE gid = %(gid)s)
AND current_setting('max_prepared_transactions') <> '0'
RETURNING number
"""
_OPEN_ATOMIC = """
WITH epoch AS MATERIALIZED (SELECT incarnation FROM epochs WHERE query = %(query)s FOR SHARE)
INSERT INTO opened (handle) SELECT %(name)s
WHERE NOT EXISTS (SELECT FROM epoch WHERE incarnation > %(incarnation)s)
ON CONFLICT (handle) DO UPDATE SET pid = excluded.pid, started = excluded.started, number = DEFAULT RETURNING number
"""
"""`_OPEN` and `_OPEN_ATOMIC` lock the query's row of `epochs` until the row in `opened` is committed.

So `fence`, which changes the row of `epochs`, finds in `opened` everything that was begun before it.
"""

SEAL = """
WITH gone AS (DELETE FROM opened WHERE handle = %(name)s AND number = %(number)s RETURNING handle)
INSERT INTO visible (handle) VALUES ((SELECT handle FROM gone))
"""
"""The last statement of a single writer's transaction (`Atomic`).

Like `_DECIDE` it fails if its row in `opened` is gone, which means that a later driver has fenced the writer.
"""


def finish(connection: Connection, schema: str, handle: Handle) -> bool:
    """Commit a prepared transaction, and record its place in the order of commits, a number in the table `visible`.

    The function takes an advisory lock, so that other processes draw no number before the commit. The caller must
    release this lock with `let_go`. Returns False if no prepared transaction has this handle.
    """
    gid = names.gid_of(schema, handle)
    lock = Step("SELECT pg_advisory_lock(%s)", [names.lock_of(schema)])
    number = Step(_NUMBER, {"name": str(handle), "gid": gid})
    return bool(at_once(connection, lock, number)[1]) and _end(connection, "COMMIT", gid)


def let_go(connection: Connection, schema: str, handle: Handle) -> None:
    """Release the advisory lock of `finish`, and delete the copies of a committed transaction's rows in `staged`."""
    if not connection.closed:
        connection.execute(_LET_GO, [str(handle), names.lock_of(schema)])


_LET_GO = """
WITH gone AS (DELETE FROM staged USING committed WHERE staged.handle = %s AND committed.handle = staged.handle)
SELECT pg_advisory_unlock(%s)
"""
_NUMBER = """
INSERT INTO visible (handle) SELECT %(name)s
WHERE EXISTS (
  SELECT FROM pg_prepared_xact()
  WHERE gid = %(gid)s AND dbid = (SELECT oid FROM pg_database WHERE datname = current_database())
)
ON CONFLICT (handle) DO UPDATE SET number = excluded.number RETURNING number
"""
"""Gives a transaction, if it is prepared, its number in the table `visible`.

Queries the function pg_prepared_xact() and not its view: planning the view's joins would take most of the time.
"""


def _end(connection: Connection, verb: str, gid: str) -> bool:
    """Run COMMIT PREPARED or ROLLBACK PREPARED (`verb`); return False if the prepared transaction does not exist.

    If another process is finishing the transaction at this moment, wait for up to `ABORT_SECONDS`.
    """
    statement = sql.SQL(f"{verb} PREPARED {{}}").format(sql.Literal(gid))
    end = time.monotonic() + ABORT_SECONDS
    while True:
        try:
            connection.execute(statement)
        except errors.UndefinedObject:
            return False
        except errors.ObjectNotInPrerequisiteState:  # busy: another process finishes it
            if time.monotonic() > end:
                raise
            time.sleep(0.01)
        else:
            return True


def drop(connection: Connection, schema: str, handle: Handle) -> None:
    """Abort a transaction, prepared or open. Raises `JobFailed` if that takes more than `ABORT_SECONDS`."""
    end = time.monotonic() + ABORT_SECONDS
    while not (_end(connection, "ROLLBACK", names.gid_of(schema, handle)) or _end_open(connection, str(handle))):
        if time.monotonic() > end:
            raise JobFailed(
                f"PostgreSQL could not abort the transaction {handle} within {ABORT_SECONDS:.0f} s; see pg_locks for "
                "the process that holds it."
            )
        time.sleep(0.01)
    forget_opened(connection, str(handle))
    # If the transaction is committed, the process that committed it deletes these rows.
    unless = "DELETE FROM staged WHERE handle = %s AND handle NOT IN (SELECT handle FROM committed)"
    connection.execute(unless, [str(handle)])


def _end_open(connection: Connection, name: str) -> bool:
    """Delete the row of an open transaction in the table `opened`, and close the connection of its writer.

    Return False if the transaction is prepared, or is just being prepared, because it then has a lock on this row.
    """
    try:
        with connection.transaction():
            connection.execute(
                # NOWAIT, because from `_DECIDE` on the transaction holds this row's lock, even while it is prepared;
                # the caller tries ROLLBACK PREPARED again instead.
                "SELECT FROM opened WHERE handle = %s FOR UPDATE NOWAIT",
                [name],
            )
            writer = "DELETE FROM opened WHERE handle = %s RETURNING pid, started"
            process = connection.execute(writer, [name]).fetchone()
    except errors.LockNotAvailable:
        return False
    if process is not None:
        terminate(connection, process)
    return True


def terminate(connection: Connection, writer: Sequence[object]) -> None:
    """End a server process, and wait up to 5 s for its end.

    `writer` is (pid, start time), because the pid alone may belong to a newer process by now.
    """
    connection.execute(_TERMINATE, list(writer))


_TERMINATE = """
SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity
WHERE pid = %s AND backend_start = %s AND pid <> pg_backend_pid()
"""


def forget_opened(connection: Connection, name: str, number: int | None = None) -> bool:
    """Delete the row of the transaction `name` in the table `opened`; return whether there was such a row.

    Every opening of a transaction gives its row a new number. If `number` is given, the row is deleted only if it has
    this number, because another process may have opened a transaction of the same name in the meantime.
    """
    statement = "DELETE FROM opened WHERE handle = %s AND number = coalesce(%s, number)"
    return connection.execute(statement, [name, number]).rowcount > 0


def unfinished(connection: Connection, schema: str) -> Iterator[Handle]:
    """Yield the handles of all open and prepared transactions of this schema's store. A handle may occur twice."""
    # The view lists the transactions of all databases of the server, but a connection can finish only its own.
    query = "SELECT gid FROM pg_prepared_xacts WHERE database = current_database() AND starts_with(gid, %s)"
    gids = [str(gid) for (gid,) in connection.execute(query, [names.prefix_of(schema)])]
    yield from names.handles_in(schema, gids)
    opened = [f"{names.prefix_of(schema)}{name}" for (name,) in connection.execute("SELECT handle FROM opened")]
    yield from names.handles_in(schema, opened)
