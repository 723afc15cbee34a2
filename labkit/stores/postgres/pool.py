"""Pools of connections to PostgreSQL, each for one schema; idle ones outlive the store that used them.

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
"""The number of idle connections that a process keeps. A writer uses two: one has its transaction, one records it."""

IDLE_SECONDS = 10.0
"""Seconds after which the server closes an idle connection (`idle_session_timeout`, from PostgreSQL 14)."""

FRESH_SECONDS = 4.0
"""Seconds after which the pool does not reuse an idle connection.

The server closes it at `IDLE_SECONDS`, and a busy machine may take seconds between the check and the statement.
"""

_IDLE_TIMEOUT_SINCE = 14_00_00

Clock = Callable[[], float]


class Idle(NamedTuple):
    """An open connection that no caller uses now."""

    connection: Connection
    since: float
    """When the connection was returned, in seconds of its pool's clock."""


class Pool:
    """The connections of one store in one process. A caller takes one for a statement or transaction and returns it."""

    def __init__(self, address: str, schema: str, clock: Clock = time.monotonic) -> None:
        self.address = address
        self.place = redacted(address)
        self._schema = schema
        self._clock = clock
        self._idle: list[Idle] = []
        self._taken: list[Connection] = []
        self._lock = threading.Lock()

    def take(self) -> Connection:
        """Return a connection with the store's schema, for the caller alone until the caller returns it by `give`."""
        # Connecting happens outside the lock, so that no other thread waits for the round trip or the timeout.
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
        """Return the SQL that sets schema and lock timeout of a new session, and commits that do not wait for the disk.

        `BEGIN` restores the server's own setting (synchronous_commit) for the transactions of a store.
        """
        settings = "SET synchronous_commit = off; SET lock_timeout = {}; SET search_path = {}"
        schema, patience = (sql.Identifier(self._schema), f"{postgres_connection.LOCK_SECONDS * 1000:.0f}ms")
        return sql.SQL(settings).format(sql.Literal(patience), schema)

    def give(self, connection: Connection) -> None:
        """Take back a connection. If it is broken or has an open transaction, close it, which rolls that back."""
        idle = not connection.closed and connection.info.transaction_status is psycopg.pq.TransactionStatus.IDLE
        # Closing always makes the server roll back, while a ROLLBACK statement could fail again.
        if not idle:
            connection.close()
        with self._lock:
            self._taken.remove(connection)
            if idle:
                self._idle.append(Idle(connection, self._clock()))

    @contextmanager
    def using(self) -> Iterator[Connection]:
        """Take a connection for a `with` block; turn errors of the server in it into a `LabError` of one sentence."""
        connection = self.take()
        try:
            with explained(connection, self.place):
                yield connection
        finally:
            self.give(connection)

    def close(self) -> None:
        """Close the connections in use, which rolls back their open transactions; hand idle ones to the `Keeper`."""
        with self._lock:
            for connection in self._taken:
                connection.close()
            while self._idle:
                # The oldest first, because the keeper closes those first that it received first.
                _keeper.keep(self._key(), self._idle.pop(0))


class Keeper:
    """The idle connections of stores that this process has closed, for the next store with the same schema."""

    def __init__(self) -> None:
        self._kept: list[tuple[str, Idle]] = []
        self._inherited: list[tuple[str, Idle]] = []
        self._lock = threading.Lock()

    def take(self, key: str, now: float) -> Connection | None:
        """Remove and return a usable idle connection with this key (see `Pool`), or None.

        `now` is the pool's clock, in seconds.
        """
        with self._lock:
            # The freshest first, because the server will close it last.
            for number in reversed(range(len(self._kept))):
                if self._kept[number][0] != key:
                    continue
                _, idle = self._kept.pop(number)
                if is_usable(idle, now):
                    return idle.connection
        return None

    def keep(self, key: str, idle: Idle) -> None:
        """Keep a connection, and close the oldest one if there are more than `KEPT`."""
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
        """Drop the parent's connections in a forked child. Closing them here would end the parent's sessions."""
        self._inherited, self._kept = self._kept, []
        self._lock = threading.Lock()


def is_usable(idle: Idle, now: float) -> bool:
    """Return whether a connection may be reused at the time `now` (in seconds), and close it if not.

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
