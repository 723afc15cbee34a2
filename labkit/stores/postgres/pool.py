"""Connections to PostgreSQL, prepared for one schema, reused within a process, and kept after a store is closed.

Opening a connection costs the server more than a small batch, and a store is opened anew for every batch, so a process
keeps the last few idle connections. An idle connection holds no transaction and no lock, ends with its process, and is
closed by the server itself after a timeout.

The server may close a connection at any time, so `take` replaces one that is closed, or about to be, by a new one. That
is safe because nothing has been sent yet. A statement that was sent may have been executed, so its failure goes to the
caller: neither the pool nor the stores send a statement twice. The pool does not depend on the tables of a store.
"""

import atexit
import os
import select
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

import psycopg
from psycopg import sql

from labkit.host.servers import postgres_connection
from labkit.host.servers.postgres_connection import Connection, connect, explained, redacted

KEPT = 4
"""The number of idle connections that a process keeps; a writer uses two, one of them for notes outside its
transaction.
"""

IDLE_SECONDS = 10.0
"""The server closes a connection after this idle time (`idle_session_timeout`, from PostgreSQL 14)."""

FRESH_SECONDS = 4.0
"""A connection that was idle for longer than this is not reused.

The server closes it at `IDLE_SECONDS`, and a busy machine may take seconds between the check of the socket and
the statement.
"""

_IDLE_TIMEOUT_SINCE = 14_00_00

Clock = Callable[[], float]


class Idle(NamedTuple):
    """A connection that is not in use."""

    connection: Connection
    since: float
    """When the connection was returned, in seconds of its pool's clock."""


class Pool:
    """The connections of one store in one process. Each statement or transaction takes one and gives it back."""

    def __init__(self, address: str, schema: str, clock: Clock = time.monotonic) -> None:
        self.address = address
        self.place = redacted(address)
        self._schema = schema
        self._clock = clock
        self._idle: list[Idle] = []
        self._taken: list[Connection] = []
        self._lock = threading.Lock()

    def take(self) -> Connection:
        """Return a connection for exclusive use until it is given back by `give`.

        Its statements see the store's schema.
        """
        # The lock is not held while connecting, because other threads of the task must not wait for the round trip or
        # the timeout.
        connection = self._find() or self._new()
        with self._lock:
            self._taken.append(connection)
        return connection

    def _find(self) -> Connection | None:
        with self._lock:
            while self._idle:
                idle = self._idle.pop()
                if is_usable(idle, self._clock()):
                    return idle.connection
        return _keeper.take(self._key(), self._clock())

    def _new(self) -> Connection:
        connection = connect(self.address)
        try:
            with explained(connection, self.place):
                connection.execute(self._settings())
                # A suspended or forgotten process must not hold one of the server's few connections for ever.
                if connection.info.server_version >= _IDLE_TIMEOUT_SINCE:
                    connection.execute(f"SET idle_session_timeout = '{IDLE_SECONDS * 1000:.0f}ms'".encode())
        except BaseException:
            connection.close()
            raise
        return connection

    def _key(self) -> str:
        return f"{self.address}\n{self._settings().as_string()}"

    def _settings(self) -> sql.Composed:
        """Return the SQL that prepares a new session. Notes outside a transaction need not wait for the disk.

        `begin` restores the server's setting for transactions.
        """
        settings = "SET synchronous_commit = off; SET lock_timeout = {}; SET search_path = {}"
        schema, patience = (sql.Identifier(self._schema), f"{postgres_connection.LOCK_SECONDS * 1000:.0f}ms")
        return sql.SQL(settings).format(sql.Literal(patience), schema)

    def give(self, connection: Connection) -> None:
        """Receive a connection back. One that is broken or has an open transaction is closed, which rolls that back."""
        idle = not connection.closed and connection.info.transaction_status is psycopg.pq.TransactionStatus.IDLE
        # The server rolls back the open transaction of a closed connection in any state of the protocol, while
        # statements for cleaning up could fail again.
        if not idle:
            connection.close()
        with self._lock:
            self._taken.remove(connection)
            if idle:
                self._idle.append(Idle(connection, self._clock()))

    @contextmanager
    def using(self) -> Iterator[Connection]:
        """Lend a connection to a block, and turn its errors into sentences."""
        connection = self.take()
        try:
            with explained(connection, self.place):
                yield connection
        finally:
            self.give(connection)

    def close(self) -> None:
        """Close the connections in use, so that the server rolls back their open transactions, and keep the idle
        ones.
        """
        with self._lock:
            for connection in self._taken:
                connection.close()
            while self._idle:
                # The oldest goes first, so that the keeper closes the freshest one last when it has too many.
                _keeper.keep(self._key(), self._idle.pop(0))


class Keeper:
    """The idle connections of stores that this process has closed, for the next store of the same schema."""

    def __init__(self) -> None:
        self._kept: list[tuple[str, Idle]] = []
        self._inherited: list[tuple[str, Idle]] = []
        self._lock = threading.Lock()

    def take(self, key: str, now: float) -> Connection | None:
        """Return an idle connection with the settings `key` that still works, or None. It is no longer kept."""
        with self._lock:
            # The freshest is tried first, because the server is least likely to end it.
            for number in reversed(range(len(self._kept))):
                if self._kept[number][0] != key:
                    continue
                _, idle = self._kept.pop(number)
                if is_usable(idle, now):
                    return idle.connection
        return None

    def keep(self, key: str, idle: Idle) -> None:
        """Keep a connection, and close the oldest one if there are too many."""
        with self._lock:
            self._kept.append((key, idle))
            while len(self._kept) > KEPT:
                self._kept.pop(0)[1].connection.close()

    def close(self) -> None:
        """Close all idle connections."""
        with self._lock:
            while self._kept:
                self._kept.pop()[1].connection.close()

    def forget(self) -> None:
        """Forget the parent's connections in a forked child, because using or closing them would break the parent's."""
        self._inherited, self._kept = self._kept, []
        self._lock = threading.Lock()


def is_usable(idle: Idle, now: float) -> bool:
    """Return whether a connection may be reused, and close it if not.

    It may not if it was idle for more than `FRESH_SECONDS`, or if the server has sent something unasked, as it does
    when it ends a connection. The check looks at the socket only, so it costs no round trip.
    """
    connection = idle.connection
    if connection.closed:
        return False
    # `select` fails for descriptors above 1023, which a driver with many open files may reach.
    poll = select.poll()
    poll.register(connection.fileno(), select.POLLIN)
    if now - idle.since <= FRESH_SECONDS and not poll.poll(0):
        return True
    connection.close()
    return False


_keeper = Keeper()
atexit.register(_keeper.close)
os.register_at_fork(after_in_child=_keeper.forget)
