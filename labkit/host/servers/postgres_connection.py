"""Opens connections to PostgreSQL, and turns its errors into sentences that never contain a password.

A connection commits every statement unless BEGIN was sent. A statement waits for a lock at most `LOCK_SECONDS`; then
the error names the lock's holder. This module knows no table.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

import psycopg
from psycopg import errors, generators, pq, sql
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from labkit.core.errors import InvalidInput, JobFailed, LabError, ServiceUnavailable
from labkit.host.addresses import POSTGRES

LOCK_SECONDS = 10.0
"""The seconds that a statement waits for a lock; an orphaned transaction would hold the lock forever."""

CONNECT_SECONDS = 10

PREPARE_AFTER = 2
"""The number of executions of a statement after which the server keeps its plan (psycopg's `prepare_threshold`)."""

Row = tuple[Any, ...]
"""A row of a result; the statement decides which columns it has."""
Connection = psycopg.Connection[Row]


class Server(NamedTuple):
    """A PostgreSQL server's version and its limit on prepared transactions, as the server reports them."""

    version: str
    max_prepared: int
    """The server's `max_prepared_transactions`; 0 means that PREPARE TRANSACTION is disabled."""


def connect(address: str) -> Connection:
    """Connect to PostgreSQL in autocommit mode: each statement is a transaction of its own, except after BEGIN.

    Raises `ServiceUnavailable` if no server answers, and `InvalidInput` if the server refuses the connection or the
    connection string is malformed. No message contains the password.
    """
    try:
        return psycopg.connect(
            address,
            autocommit=True,
            connect_timeout=CONNECT_SECONDS,
            application_name="labkit",
            prepare_threshold=PREPARE_AFTER,
        )
    except psycopg.OperationalError as error:
        raise _refused(address, error) from None
    except psycopg.Error:
        raise _unreadable() from None


def ask(address: str) -> Server:
    """Return a PostgreSQL server's version and limit on prepared transactions. Raises the errors of `connect`."""
    with connect(address) as connection, explained(connection, redacted(address)):
        row = connection.execute(
            "SELECT current_setting('server_version'), current_setting('max_prepared_transactions')"
        ).fetchone()
    assert row is not None
    return Server(str(row[0]).split()[0], int(str(row[1])))


def address_of(socket: Path, user: str) -> str:
    """Return the connection string, without password, of a server whose Unix socket is in the folder `socket`."""
    return make_conninfo(host=str(socket), user=user, dbname="postgres")


def redacted(address: str) -> str:
    """Return a connection string as `USER@HOST:PORT/DATABASE`, without password, for messages."""
    parts = _parts(address)
    place = f"{parts.get('host') or 'the default host'}"
    port = f":{parts['port']}" if parts.get("port") else ""
    user = f"{parts['user']}@" if parts.get("user") else ""
    return f"{user}{place}{port}/{parts.get('dbname') or parts.get('user') or ''}"


def _parts(address: str) -> dict[str, str]:
    try:
        return {name: str(value) for name, value in conninfo_to_dict(address).items() if value is not None}
    except psycopg.Error:
        raise _unreadable() from None


def _unreadable() -> InvalidInput:
    # psycopg's message is left out, because it might contain the password.
    example = "postgresql://user:password@host:5432/database"
    return InvalidInput(f"{POSTGRES}: not a connection string of PostgreSQL; write it like {example}.")


def _refused(address: str, error: psycopg.Error) -> LabError:
    lines = str(error).strip().splitlines() or ["no reason was given"]
    telling = next((line for line in lines if "FATAL" in line), lines[0])
    message = telling.rpartition("failed: ")[2].strip().rstrip(".")
    if password := _parts(address).get("password"):
        message = message.replace(password, "***")
    if "starting up" in message or "shutting down" in message or "recovery mode" in message or "FATAL" not in message:
        remedy = f"start it (`labkit services up postgres`), or correct {POSTGRES}"
        return ServiceUnavailable(f"PostgreSQL at {redacted(address)} does not answer ({message}); {remedy}.")
    return InvalidInput(f"PostgreSQL at {redacted(address)} refuses the connection ({message}); correct {POSTGRES}.")


class Step(NamedTuple):
    """An SQL statement with its parameters."""

    statement: str | sql.Composed
    parameters: Sequence[object] | Mapping[str, object] = ()


BEGIN = (Step("BEGIN"), Step("SET LOCAL synchronous_commit TO DEFAULT"))
"""The statements that open a transaction whose COMMIT waits for the disk as the server's configuration demands."""


def at_once(connection: Connection, *steps: Step) -> list[list[Row]]:
    """Send several SQL statements in one message, wait once for all results, and return the rows of each statement.

    After an error, the server does not execute the remaining statements. The function does not use psycopg's pipeline
    mode, because that mode's last message (a Flush after the Sync) makes the server forget its timeouts for idle
    sessions and transactions.
    """
    with psycopg.ClientCursor(connection) as cursor:
        # A client-side cursor, because a message with several statements cannot have parameters.
        cursor.execute("; ".join(cursor.mogrify(step.statement, step.parameters) for step in steps).encode())
        answers = []
        # Every statement has its own answer, in order, also one without rows.
        for _ in steps:
            answers.append(cursor.fetchall() if cursor.description else [])
            cursor.nextset()
    return answers


@contextmanager
def meanwhile(connection: Connection, *steps: Step) -> Iterator[None]:
    """Send SQL statements, run the `with` block while the server executes them, and then wait for the results.

    The block may use other connections. If a statement fails, its error is raised after the block. If the block raises
    an exception, only this exception is raised.
    """
    query = "; ".join(psycopg.ClientCursor(connection).mogrify(step.statement, step.parameters) for step in steps)
    # The simple protocol allows several statements in one message, and the server stops at the first that fails.
    connection.pgconn.send_query(query.encode())
    connection.wait(generators.send(connection.pgconn))
    try:
        yield
    finally:
        # Also after a failed block, because otherwise the next statement would get these results.
        results = connection.wait(generators.fetch_many(connection.pgconn))
    for result in results:
        if result.status == pq.ExecStatus.FATAL_ERROR:
            raise errors.error_from_result(result, connection.info.encoding)


@contextmanager
def transaction(connection: Connection) -> Iterator[None]:
    """Run a `with` block in a transaction: BEGIN before the block, COMMIT after it, or ROLLBACK if it fails."""
    at_once(connection, *BEGIN)
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        with suppress(psycopg.Error):
            connection.execute("ROLLBACK")
        raise


@contextmanager
def explained(connection: Connection, place: str) -> Iterator[None]:
    """Turn psycopg's error in the `with` block into labkit's error with a remedy; `place` is the server's address.

    An error for which labkit knows no remedy, such as a mistake in labkit's own SQL, is raised unchanged.
    """
    try:
        yield
    except psycopg.Error as error:
        sentence = _explanation(connection, place, error)
        if sentence is None:
            raise
        raise sentence from error


RIGHTS = "name a user that may create a schema and write, or GRANT CREATE ON DATABASE to this one"
_IDLE = "raise idle_in_transaction_session_timeout above the time that a batch takes"
_LIMIT = "raise max_prepared_transactions, or finish those of pg_prepared_xacts, and run again"
_REMEDIES: tuple[tuple[type[psycopg.Error], type[LabError], str], ...] = (
    (errors.InsufficientPrivilege, InvalidInput, RIGHTS),
    (errors.ReadOnlySqlTransaction, InvalidInput, RIGHTS),
    (errors.IdleInTransactionSessionTimeout, JobFailed, f"the session was idle for too long: {_IDLE}"),
    (errors.OutOfMemory, JobFailed, _LIMIT),  # the server's error when max_prepared_transactions is reached
    (errors.DiskFull, JobFailed, "free some space on its disk and run again"),
    (errors.ProgramLimitExceeded, JobFailed, "use shorter keys, because a key must fit into an index of the table"),
    (errors.AdminShutdown, ServiceUnavailable, "start it and run again"),
    (errors.CrashShutdown, ServiceUnavailable, "start it and run again"),
    (errors.CannotConnectNow, ServiceUnavailable, "start it and run again"),
)
"""Errors of psycopg, each with the exception that labkit raises instead, and the remedy for the message."""


def _explanation(connection: Connection, place: str, error: psycopg.Error) -> LabError | None:
    message = (error.diag.message_primary or str(error)).strip().splitlines()[0]
    if isinstance(error, errors.LockNotAvailable):
        return JobFailed(f"PostgreSQL at {place}: waited {LOCK_SECONDS:g} s for a lock; {_holders(connection)}.")
    for kind, error_class, remedy in _REMEDIES:
        if isinstance(error, kind):
            return error_class(f"PostgreSQL at {place}: {message}; {remedy}.")
    if isinstance(error, psycopg.OperationalError) and connection.broken:
        return ServiceUnavailable(f"PostgreSQL at {place} ended the connection ({message}); start it and run again.")
    return None


def _holders(connection: Connection) -> str:
    """Return which transactions may hold the lock that a statement waited for in vain, and what the user can do.

    If there are prepared transactions, the text names only these, because they never end by themselves.
    """
    with suppress(psycopg.Error):
        connection.execute("ROLLBACK")
        if gids := [str(gid) for (gid,) in connection.execute(_PREPARED)]:
            remedy = f"ROLLBACK PREPARED '{gids[0]}' (or COMMIT PREPARED), or let its query recover"
            return f"transactions that are prepared but not finished: {', '.join(gids)}; {remedy}"
        if pids := [str(pid) for (pid,) in connection.execute(_IDLE_IN_TRANSACTION)]:
            return f"server processes with an open transaction: {', '.join(pids)}; end the programs that use them"
    return "pg_locks shows who holds it"


_PREPARED = "SELECT gid FROM pg_prepared_xacts WHERE database = current_database() ORDER BY prepared LIMIT 5"
_IDLE_IN_TRANSACTION = """
SELECT pid FROM pg_stat_activity WHERE state LIKE 'idle in transaction%' AND datname = current_database() LIMIT 5
"""
