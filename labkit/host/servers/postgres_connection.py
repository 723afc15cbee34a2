"""Connections to PostgreSQL, and its errors as sentences of the lab in which no password occurs.

A connection commits every statement by itself unless BEGIN was sent. Waiting for a lock ends after `LOCK_SECONDS`
with the name of who holds it. This module must not know any table.
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
"""How long a statement waits for a lock; an orphan would hold it for ever."""

CONNECT_SECONDS = 10

PREPARE_AFTER = 2
"""Executions after which a connection keeps the plan of a statement."""

Row = tuple[Any, ...]
"""One row of an answer; only its statement says what is in it."""
Connection = psycopg.Connection[Row]


class Server(NamedTuple):
    """What a server says of itself."""

    version: str
    max_prepared: int
    """`max_prepared_transactions`: 0 means that PREPARE TRANSACTION is switched off."""


def connect(address: str) -> Connection:
    """A connection in which every statement commits by itself. Raises a sentence without the password."""
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
    """What the server at this address says of itself: the proof that it answers. Raises as `connect`."""
    with connect(address) as connection, explained(connection, redacted(address)):
        row = connection.execute(
            "SELECT current_setting('server_version'), current_setting('max_prepared_transactions')"
        ).fetchone()
    assert row is not None
    return Server(str(row[0]).split()[0], int(str(row[1])))


def address_of(socket: Path, user: str) -> str:
    """The connection string of a server that listens in this folder and trusts whoever may enter it."""
    return make_conninfo(host=str(socket), user=user, dbname="postgres")


def redacted(address: str) -> str:
    """Who, where and which database, without password or other options."""
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
    """The complaint of the library itself may quote the password."""
    example = "postgresql://user:password@host:5432/database"
    return InvalidInput(f"{POSTGRES}: not a connection string of PostgreSQL; write it like {example}.")


def _refused(address: str, error: psycopg.Error) -> LabError:
    lines = str(error).strip().splitlines() or ["no reason was given"]
    telling = next((line for line in lines if "FATAL" in line), lines[0])
    message = _without_password(address, telling.rpartition("failed: ")[2].strip().rstrip("."))
    if "starting up" in message or "shutting down" in message or "recovery mode" in message or "FATAL" not in message:
        remedy = f"start it (labkit services up postgres), or correct {POSTGRES}"
        return ServiceUnavailable(f"PostgreSQL at {redacted(address)} does not answer ({message}); {remedy}.")
    return InvalidInput(f"PostgreSQL at {redacted(address)} refuses the connection ({message}); correct {POSTGRES}.")


def _without_password(address: str, text: str) -> str:
    password = _parts(address).get("password")
    return text.replace(password, "***") if password else text


class Step(NamedTuple):
    """A statement, and what to put into it."""

    statement: str | sql.Composed
    parameters: Sequence[object] | Mapping[str, object] = ()


BEGIN = (Step("BEGIN"), Step("SET LOCAL synchronous_commit TO DEFAULT"))
"""Opens a transaction whose COMMIT waits for the disk as the server's configuration says."""


def at_once(connection: Connection, *steps: Step) -> list[list[Row]]:
    """Sends statements in one message and waits once; gives the rows of each. None is done after one that fails.

    Not a pipeline: psycopg ends one with a Flush behind the last Sync, and a server that has got this forgets its
    timeouts for idle sessions and transactions.
    """
    with psycopg.ClientCursor(connection) as cursor:
        # A client-side cursor puts the values into the text, because a message with
        # several statements can have no parameters of its own.
        cursor.execute("; ".join(cursor.mogrify(step.statement, step.parameters) for step in steps).encode())
        answers = []
        # Every statement has an answer of its own, in order; one without rows counts as
        # well.
        for _ in steps:
            answers.append(cursor.fetchall() if cursor.description else [])
            cursor.nextset()
    return answers


@contextmanager
def meanwhile(connection: Connection, *steps: Step) -> Iterator[None]:
    """Sends statements, lets the block wait for another connection, and then waits for these.

    What a statement fails with is raised behind the block, unless the block has failed.
    """
    query = "; ".join(psycopg.ClientCursor(connection).mogrify(step.statement, step.parameters) for step in steps)
    # The simple protocol: it takes several statements in one message, and the server
    # stops at the first that fails.
    connection.pgconn.send_query(query.encode())
    connection.wait(generators.send(connection.pgconn))
    try:
        yield
    finally:
        # Also when the block has failed: answers that nobody has fetched would be taken
        # for those of the next statement.
        results = connection.wait(generators.fetch_many(connection.pgconn))
    for result in results:
        if result.status == pq.ExecStatus.FATAL_ERROR:
            raise errors.error_from_result(result, connection.info.encoding)


@contextmanager
def transaction(connection: Connection) -> Iterator[None]:
    """One durable transaction for a block: COMMIT at its end, ROLLBACK by an exception."""
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
    """Turns what a server can complain of into one sentence; a mistake in our own statements passes as it is."""
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
_KNOWN: tuple[tuple[type[psycopg.Error], type[LabError], str], ...] = (
    (errors.InsufficientPrivilege, InvalidInput, RIGHTS),
    (errors.ReadOnlySqlTransaction, InvalidInput, RIGHTS),
    (errors.IdleInTransactionSessionTimeout, JobFailed, f"nobody had written to it for a while: {_IDLE}"),
    (errors.OutOfMemory, JobFailed, _LIMIT),  # what it says when max_prepared_transactions is reached
    (errors.DiskFull, JobFailed, "free some space on its disk and run again"),
    (errors.ProgramLimitExceeded, JobFailed, "a key is too long for the index of a table by key"),
    (errors.AdminShutdown, ServiceUnavailable, "start it and run again"),
    (errors.CrashShutdown, ServiceUnavailable, "start it and run again"),
    (errors.CannotConnectNow, ServiceUnavailable, "start it and run again"),
)
"""What a server can complain of, whose mistake it is, and the remedy."""


def _explanation(connection: Connection, place: str, error: psycopg.Error) -> LabError | None:
    message = (error.diag.message_primary or str(error)).strip().splitlines()[0]
    if isinstance(error, errors.LockNotAvailable):
        return JobFailed(f"PostgreSQL at {place}: waited {LOCK_SECONDS:g} s for a lock; {_holders(connection)}.")
    for kind, whose, remedy in _KNOWN:
        if isinstance(error, kind):
            return whose(f"PostgreSQL at {place}: {message}; {remedy}.")
    if isinstance(error, psycopg.OperationalError) and connection.broken:
        return ServiceUnavailable(f"PostgreSQL at {place} ended the connection ({message}); start it and run again.")
    return None


def _holders(connection: Connection) -> str:
    """Names whoever could hold the lock: prepared transactions first, since nobody else will ever end them."""
    with suppress(psycopg.Error):
        connection.execute("ROLLBACK")
        if gids := [str(gid) for (gid,) in connection.execute(_PREPARED)]:
            remedy = f"ROLLBACK PREPARED '{gids[0]}' (or COMMIT PREPARED), or let its query recover"
            return f"prepared and not finished: {', '.join(gids)}; {remedy}"
        if pids := [str(pid) for (pid,) in connection.execute(_IDLE_IN_TRANSACTION)]:
            return f"server processes with an open transaction: {', '.join(pids)}; end their programs"
    return "pg_locks says who holds it"


_PREPARED = "SELECT gid FROM pg_prepared_xacts WHERE database = current_database() ORDER BY prepared LIMIT 5"
_IDLE_IN_TRANSACTION = """
SELECT pid FROM pg_stat_activity WHERE state LIKE 'idle in transaction%' AND datname = current_database() LIMIT 5
"""
