"""Connections of PostgreSQL stores, each for one schema; idle connections outlive the store that used them.

Opening a connection costs the server more than a small batch, and a store is opened anew for every batch, so a process
keeps the last few idle connections. An idle connection holds no transaction and no lock, ends with its process, and is
closed by the server itself after a timeout.

The server may close a connection at any time, so `take` replaces one that is closed, or soon will be, by a new one.
That is safe because nothing has been sent yet. A statement that was sent may have been executed, so its failure goes to
the caller: neither the pool nor the stores send a statement twice.
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
"""The number of idle connections that a process keeps. A writer uses two: one for its transaction, and one for the rows
of `opened` and `staged`, with which other processes can see the transaction."""

IDLE_SECONDS = 10.0
"""Seconds after which the server closes an idle connection (`idle_session_timeout`, from PostgreSQL 14)."""

FRESH_SECONDS = 4.0
"""Seconds after which the pool does not reuse an idle connection.

The server closes it at `IDLE_SECONDS`, and a busy machine may take seconds between the check and the statement.
"""

_IDLE_TIMEOUT_SINCE = 14_00_00

Clock = Callable[[], float]


class Idle(NamedTuple):
    """An open connection that no caller uses at present."""

    connection: Connection
    since: float
    """When the connection was returned, in seconds of its pool's clock."""


class Pool:
    """The PostgreSQL connections of one store in this process, taken for one statement or transaction at a time."""

    def __init__(self, address: str, schema: str, clock: Clock = time.monotonic) -> None:
        self.address = address
        self.place = redacted(address)
        self._schema = schema
        self._clock = clock
        self._taken: list[Connection] = []
        self._lock = threading.Lock()

    def take(self) -> Connection:
        """Take an idle connection, or open a new one. No other caller gets this connection before `give` is called."""
        # Connecting happens outside the lock, so that no other thread waits for the round trip or the timeout.
        connection = _keeper.take(self._key(), self._clock()) or self._new()
        with self._lock:
            self._taken.append(connection)
        return connection

    def _new(self) -> Connection:
        connection = connect(self.address)
        try:
            with explained(connection, self.place):
                connection.execute(self._settings())
                # A suspended or forgotten process must not occupy one of the server's few connections for ever.
                if connection.info.server_version >= _IDLE_TIMEOUT_SINCE:
                    connection.execute(f"SET idle_session_timeout = '{IDLE_SECONDS * 1000:.0f}ms'".encode())
        except BaseException:
            connection.close()
            raise
        return connection

    def _key(self) -> str:
        return f"{self.address}\n{self._settings().as_string()}"

    def _settings(self) -> sql.Composed:
        """Return the SQL for a new session: search path, lock timeout, and synchronous_commit off.

        With synchronous_commit off, statements such as the creation of tables are faster. The transactions that write
        rows must be durable, so they begin with `BEGIN`, which resets synchronous_commit to the server's value.
        """
        settings = "SET synchronous_commit = off; SET lock_timeout = {}; SET search_path = {}"
        schema, patience = (sql.Identifier(self._schema), f"{postgres_connection.LOCK_SECONDS * 1000:.0f}ms")
        return sql.SQL(settings).format(sql.Literal(patience), schema)

    def give(self, connection: Connection) -> None:
        """Give a connection back to the pool, which closes the connection if it is broken or in a transaction."""
        idle = not connection.closed and connection.info.transaction_status is psycopg.pq.TransactionStatus.IDLE
        # Closing always makes the server roll back, while a ROLLBACK statement could fail again.
        if not idle:
            connection.close()
        with self._lock:
            self._taken.remove(connection)
        if idle:
            _keeper.keep(self._key(), Idle(connection, self._clock()))

    @contextmanager
    def using(self) -> Iterator[Connection]:
        """Take a connection for a `with` block. PostgreSQL's errors in the block become a `LabError`."""
        connection = self.take()
        try:
            with explained(connection, self.place):
                yield connection
        finally:
            self.give(connection)

    def close(self) -> None:
        """Close the connections in use, which rolls back their transactions; idle ones stay for other stores."""
        with self._lock:
            for connection in self._taken:
                connection.close()


class Keeper:
    """The idle connections in this process. Every store with the same server and schema can use them."""

    def __init__(self) -> None:
        self._kept: list[tuple[str, Idle]] = []
        self._inherited: list[tuple[str, Idle]] = []
        self._lock = threading.Lock()

    def take(self, key: str, now: float) -> Connection | None:
        """Remove and return an idle connection for this key (server and settings), or None; `now` is the time."""
        with self._lock:
            # The most recently used first, because the server will close it last.
            for entry in [each for each in reversed(self._kept) if each[0] == key]:
                self._kept.remove(entry)
                if is_usable(entry[1], now):
                    return entry[1].connection
        return None

    def keep(self, key: str, idle: Idle) -> None:
        """Keep an idle connection for later. If there are more than `KEPT` connections, close the oldest."""
        with self._lock:
            self._kept.append((key, idle))
            while len(self._kept) > KEPT:
                self._kept.pop(0)[1].connection.close()

    def close(self) -> None:
        with self._lock:
            while self._kept:
                self._kept.pop()[1].connection.close()

    def forget(self) -> None:
        """In a forked child process, stop using the connections without closing them, because the parent uses them.

        This object keeps a reference to them, because Python closes a connection that nobody refers to.
        """
        self._inherited, self._kept = self._kept, []
        self._lock = threading.Lock()


def is_usable(idle: Idle, now: float) -> bool:
    """Return whether an idle connection may be used again; if not, close it. The check neither reads nor sends data.

    A connection may not be used again if it was idle for more than `FRESH_SECONDS`, or if the server has sent data
    unasked, which it does before it closes a connection. `now` is the present time of the pool's clock, in seconds.
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
