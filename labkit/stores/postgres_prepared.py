"""Transactions of a PostgreSQL store by name: open in this process, then prepared, then finished by anybody.

An open transaction has a line in `opened`, which it deletes itself when it prepares. So whoever deletes that line
first, an abort or the preparation, has decided. This module must not know what rows mean.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from psycopg import errors, sql

from labkit.errors import JobFailed, ServiceUnavailable
from labkit.records import Observation
from labkit.stores import postgres_schema as names
from labkit.stores.contract import Handle
from labkit.stores.postgres_connection import Connection, Pool, explained, redacted

CHUNK = 1_000
"""Rows of an open transaction that are sent together; the first is sent alone."""

ABORT_SECONDS = 10.0
"""How long an abort waits for a writer, or another process that finishes the same transaction."""


class OpenTransaction:
    """A transaction of this process, in a connection of its own until it is prepared."""

    def __init__(self, pool: Pool, schema: str, handle: Handle, connection: Connection, number: int) -> None:
        self._pool, self._handle, self._number = pool, handle, number
        self._gid = names.gid_of(schema, handle)
        self._connection: Connection | None = connection
        self._rows = Rows(connection, str(handle), self._note)

    def write(self, row: Observation) -> None:
        """Sends the first row at once and the others in chunks. Raises `JobFailed` if it is not open any more."""
        with self._ending_by_error(self._open()):
            self._rows.write(row)

    def prepare(self) -> None:
        """PREPARE TRANSACTION: from here on it needs neither this process nor its connection."""
        connection = self._open()
        with self._ending_by_error(connection):
            self._rows.send()
            if not forget_opened(connection, str(self._handle), self._number):
                raise self._aborted()
            connection.execute("INSERT INTO committed VALUES (%s)", [str(self._handle)])
            connection.execute(sql.SQL("PREPARE TRANSACTION {}").format(sql.Literal(self._gid)))
        self._connection = None
        self._pool.give(connection)

    def _open(self) -> Connection:
        if self._connection is None:
            raise JobFailed(f"The transaction {self._handle} is not open any more; begin another.")
        return self._connection

    def _note(self, lines: Sequence[str]) -> None:
        """Says beside the transaction what it holds: a note that is there whatever becomes of it."""
        with self._pool.using() as other:
            note = "INSERT INTO staged (handle, lines) VALUES (%s, %s)"
            other.execute(note, [str(self._handle), "\n".join(lines)])

    @contextmanager
    def _ending_by_error(self, connection: Connection) -> Iterator[None]:
        """After any error the transaction is over: its connection is closed, so the server rolls it back."""
        try:
            with explained(connection, redacted(self._pool.address)):
                yield
        except BaseException as error:
            self._connection = None
            connection.close()
            self._pool.give(connection)
            if isinstance(error, ServiceUnavailable) and self._was_aborted():
                raise self._aborted() from error
            raise

    def _was_aborted(self) -> bool:
        """Whether the connection broke because an abort ended it. False where the server is gone."""
        try:
            with self._pool.using() as other:
                mine = "SELECT FROM opened WHERE handle = %s AND number = %s"
                return other.execute(mine, [str(self._handle), self._number]).rowcount == 0
        except ServiceUnavailable:
            return False

    def _aborted(self) -> JobFailed:
        return JobFailed(f"The transaction {self._handle} was aborted while it was open; begin another.")


class Rows:
    """Rows on their way into one open transaction: the first is sent at once, so that it is really open."""

    def __init__(self, connection: Connection, name: str, tell: Callable[[Sequence[str]], object] = list) -> None:
        self._connection, self._name, self._tell = connection, name, tell
        self._buffer: list[Observation] = []
        self._size = 1

    def write(self, row: Observation) -> None:
        """Takes one row, and sends what was kept once it is enough."""
        self._buffer.append(row)
        if len(self._buffer) >= self._size:
            self.send()

    def send(self) -> None:
        """Sends what was kept, by COPY, and tells its lines."""
        lines = names.to_lines(self._buffer)
        if lines:
            with self._connection.cursor() as cursor, cursor.copy(names.COPY) as target:
                target.write("".join(f"{line}\t{self._name}\n" for line in lines))
            self._tell(lines)
        self._buffer.clear()
        self._size = CHUNK


def note_opened(connection: Connection, schema: str, handle: Handle) -> int | None:
    """Notes an open transaction, and by which server process it is; None if its name was used before.

    Raises `JobFailed` for a query that a later driver has taken over.
    """
    with connection.transaction():
        _enter(connection, handle)
        try:
            with connection.transaction():
                given = {"name": str(handle), "gid": names.gid_of(schema, handle)}
                found = connection.execute(_OPEN, given).fetchone()
        except errors.UniqueViolation:
            return None
    return None if found is None else int(found[0])


def note_atomic(connection: Connection, name: str, handle: Handle) -> int:
    """The same for a transaction of one writer, which may be begun again under its name."""
    with connection.transaction():
        _enter(connection, handle)
        found = connection.execute(_OPEN_ATOMIC, [name]).fetchone()
    assert found is not None
    return int(found[0])


def _enter(connection: Connection, handle: Handle) -> None:
    """Locks the query's row of `epochs` until the note is there: who fences finds all that was begun before."""
    found = connection.execute("SELECT incarnation FROM epochs WHERE query = %s FOR SHARE", [handle.query]).fetchone()
    if found is not None and found[0] > handle.incarnation:
        raise fenced(handle.query, handle.incarnation)


_OPEN = """
INSERT INTO opened (handle) SELECT %(name)s
WHERE NOT EXISTS (SELECT FROM opened WHERE handle = %(name)s)
AND NOT EXISTS (SELECT FROM committed WHERE handle = %(name)s)
AND NOT EXISTS (SELECT FROM pg_prepared_xacts WHERE gid = %(gid)s)
RETURNING number
"""
_OPEN_ATOMIC = """
INSERT INTO opened (handle) VALUES (%s)
ON CONFLICT (handle) DO UPDATE SET pid = excluded.pid, started = excluded.started, number = DEFAULT RETURNING number
"""


def fenced(query: str, incarnation: int) -> JobFailed:
    """The refusal of a driver that was replaced."""
    return JobFailed(
        f"Driver {incarnation} of the query {query} was replaced by a later one and may not write any more."
    )


def finish(connection: Connection, schema: str, handle: Handle) -> bool:
    """COMMIT PREPARED, with a number drawn just before. False if there is no such prepared transaction."""
    gid = names.gid_of(schema, handle)
    there = "SELECT FROM pg_prepared_xacts WHERE gid = %s AND database = current_database()"
    if connection.execute(there, [gid]).rowcount == 0:
        return False
    connection.execute(_NUMBER, [str(handle)])
    return _end(connection, "COMMIT", gid)


_NUMBER = "INSERT INTO visible (handle) VALUES (%s) ON CONFLICT (handle) DO UPDATE SET number = excluded.number"


def _end(connection: Connection, verb: str, gid: str) -> bool:
    """COMMIT or ROLLBACK PREPARED; waits where another process is just doing so. False if there is none."""
    statement = sql.SQL(f"{verb} PREPARED {{}}").format(sql.Literal(gid))
    end = time.monotonic() + ABORT_SECONDS
    while True:
        try:
            connection.execute(statement)
        except errors.UndefinedObject:
            return False
        except errors.ObjectNotInPrerequisiteState:  # busy: somebody else finishes it
            if time.monotonic() > end:
                raise
            time.sleep(0.01)
        else:
            return True


def drop(connection: Connection, schema: str, handle: Handle) -> None:
    """ROLLBACK PREPARED; or, while it is open, ends its writer's connection, which lets go of its locks."""
    end = time.monotonic() + ABORT_SECONDS
    while not (_end(connection, "ROLLBACK", names.gid_of(schema, handle)) or _end_open(connection, str(handle))):
        if time.monotonic() > end:
            raise JobFailed(f"The transaction {handle} could be neither rolled back nor ended; look at pg_locks.")
        time.sleep(0.01)
    forget_opened(connection, str(handle))
    unless = "DELETE FROM staged WHERE handle = %s AND handle NOT IN (SELECT handle FROM committed)"
    connection.execute(unless, [str(handle)])


def _end_open(connection: Connection, name: str) -> bool:
    """Takes an open transaction's line away and ends its connection. False while its writer is about to prepare."""
    try:
        with connection.transaction():
            connection.execute("SELECT FROM opened WHERE handle = %s FOR UPDATE NOWAIT", [name])
            writer = "DELETE FROM opened WHERE handle = %s RETURNING pid, started"
            found = connection.execute(writer, [name]).fetchone()
    except errors.LockNotAvailable:
        return False
    if found is not None:
        terminate(connection, found)
    return True


def terminate(connection: Connection, writer: Sequence[object]) -> None:
    """Ends the server process with this number and start, if it is still that one, and waits until it is gone."""
    connection.execute(_TERMINATE, list(writer))


_TERMINATE = """
SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity
WHERE pid = %s AND backend_start = %s AND pid <> pg_backend_pid()
"""


def forget_opened(connection: Connection, name: str, number: int | None = None) -> bool:
    """Takes the note of an open transaction away. False if there was none, or none with this number."""
    mine = "DELETE FROM opened WHERE handle = %s AND number = coalesce(%s, number)"
    return connection.execute(mine, [name, number]).rowcount > 0


def unfinished(connection: Connection, schema: str) -> Iterator[Handle]:
    """Every transaction of the store that is open or prepared."""
    mine = "SELECT gid FROM pg_prepared_xacts WHERE database = current_database() AND starts_with(gid, %s)"
    gids = [str(gid) for (gid,) in connection.execute(mine, [names.prefix_of(schema)])]
    yield from names.handles_in(schema, gids)
    opened = [f"{names.prefix_of(schema)}{name}" for (name,) in connection.execute("SELECT handle FROM opened")]
    yield from names.handles_in(schema, opened)
