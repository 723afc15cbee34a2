"""Connections to PostgreSQL, and its errors as sentences of the lab in which no password occurs.

A connection commits every statement by itself unless BEGIN was sent. Waiting for a lock ends after `LOCK_SECONDS`
with the name of who holds it. This module must not know any table.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

import psycopg
from psycopg import errors, sql
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from labkit.errors import InvalidInput, JobFailed, LabError, ServiceUnavailable
from labkit.stores.servers import POSTGRES

LOCK_SECONDS = 10.0
"""How long a statement waits for a lock; an orphan would hold it for ever."""

CONNECT_SECONDS = 10

Connection = psycopg.Connection[tuple[Any, ...]]


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
            prepare_threshold=None,
        )
    except psycopg.OperationalError as error:
        raise _refused(address, error) from None
    except psycopg.Error:
        raise _unreadable() from None


def ask(address: str) -> Server:
    """What the server at this address says of itself: the proof that it answers. Raises as `connect`."""
    with connect(address) as connection, explained(connection, redacted(address)):
        found = connection.execute(
            "SELECT current_setting('server_version'), current_setting('max_prepared_transactions')"
        ).fetchone()
    assert found is not None
    return Server(str(found[0]).split()[0], int(str(found[1])))


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
    told = next((line for line in lines if "FATAL" in line), lines[0])
    said = _without_password(address, told.rpartition("failed: ")[2].strip().rstrip("."))
    if "starting up" in said or "shutting down" in said or "recovery mode" in said or "FATAL" not in said:
        remedy = f"start it (labkit services up postgres), or correct {POSTGRES}"
        return ServiceUnavailable(f"PostgreSQL at {redacted(address)} does not answer ({said}); {remedy}.")
    return InvalidInput(f"PostgreSQL at {redacted(address)} refuses the connection ({said}); correct {POSTGRES}.")


def _without_password(address: str, text: str) -> str:
    password = _parts(address).get("password")
    return text.replace(password, "***") if password else text


class Pool:
    """The connections of one store in one process. One is taken for every statement or transaction."""

    def __init__(self, address: str, schema: str) -> None:
        self.address = address
        self._schema = schema
        self._idle: list[Connection] = []
        self._taken: list[Connection] = []
        self._lock = threading.Lock()

    def take(self) -> Connection:
        """A connection of one's own until it is given back. Its statements see the store's schema."""
        with self._lock:
            while self._idle:
                connection = self._idle.pop()
                if not connection.closed:
                    self._taken.append(connection)
                    return connection
        connection = connect(self.address)
        try:
            with explained(connection, redacted(self.address)):
                connection.execute(self._setting())
        except BaseException:
            connection.close()
            raise
        with self._lock:
            self._taken.append(connection)
        return connection

    def _setting(self) -> sql.Composed:
        """Notes beside the protocol need not wait for the disk; `begin` gives a transaction the server's setting."""
        settings = "SET synchronous_commit = off; SET lock_timeout = {}; SET search_path = {}"
        schema = sql.Identifier(self._schema)
        return sql.SQL(settings).format(sql.Literal(f"{LOCK_SECONDS * 1000:.0f}ms"), schema)

    def give(self, connection: Connection) -> None:
        """Takes it back; one that is broken or in the middle of something is closed, which undoes what was open."""
        idle = not connection.closed and connection.info.transaction_status is psycopg.pq.TransactionStatus.IDLE
        if not idle:
            connection.close()
        with self._lock:
            self._taken.remove(connection)
            if idle:
                self._idle.append(connection)

    @contextmanager
    def using(self) -> Iterator[Connection]:
        """A connection for a block, with its errors explained."""
        connection = self.take()
        try:
            with explained(connection, redacted(self.address)):
                yield connection
        finally:
            self.give(connection)

    def close(self) -> None:
        """Closes every connection; what they had open, and had not prepared, the server rolls back."""
        with self._lock:
            while self._idle:
                self._idle.pop().close()
            for connection in self._taken:
                connection.close()


def begin(connection: Connection) -> None:
    """Opens a transaction whose COMMIT waits for the disk as the server's configuration says."""
    connection.execute("BEGIN; SET LOCAL synchronous_commit TO DEFAULT")


@contextmanager
def transaction(connection: Connection) -> Iterator[None]:
    """One durable transaction for a block: COMMIT at its end, ROLLBACK by an exception."""
    begin(connection)
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
    said = (error.diag.message_primary or str(error)).strip().splitlines()[0]
    if isinstance(error, errors.LockNotAvailable):
        return JobFailed(f"PostgreSQL at {place}: waited {LOCK_SECONDS:g} s for a lock; {_holders(connection)}.")
    for kind, whose, remedy in _KNOWN:
        if isinstance(error, kind):
            return whose(f"PostgreSQL at {place}: {said}; {remedy}.")
    if isinstance(error, psycopg.OperationalError) and connection.broken:
        return ServiceUnavailable(f"PostgreSQL at {place} ended the connection ({said}); start it and run again.")
    return None


def _holders(connection: Connection) -> str:
    """Who could hold it: prepared transactions first, since nobody else will ever end them."""
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
