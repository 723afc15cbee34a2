"""Connections to PostgreSQL that are set up for one schema, taken and given back, and kept when a store is closed.

Connecting costs a server more than a small batch does, and a store is opened anew for every batch; so a process keeps
the last few connections that nobody uses. What is kept holds no transaction and no lock, ends with its process, and is
ended by the server itself when it stays idle.

The server may end a connection at any moment, so `take` replaces one that is over, or that the server is about to end,
by a fresh one. That is safe because nothing was sent yet. Once a statement was sent it may have been executed, so its
failure is the caller's to tell: nothing here, and nothing in the stores, sends a statement twice. This module must not
know any table.
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
"""Connections that a process keeps; a writer uses two, one of them for the notes beside its transaction."""

IDLE_SECONDS = 10.0
"""After so long in which nobody uses it the server ends a connection (`idle_session_timeout`, from PostgreSQL 14)."""

FRESH_SECONDS = 4.0
"""A connection that was idle for longer is not handed out.

The server ends it at `IDLE_SECONDS`, and a loaded machine may take seconds from the look at the socket to the
statement.
"""

_IDLE_TIMEOUT_SINCE = 14_00_00

Clock = Callable[[], float]


class Idle(NamedTuple):
    """A connection that nobody uses."""

    connection: Connection
    since: float
    """When it was given back, by the clock of its pool, in seconds."""


class Pool:
    """The connections of one store in one process. One is taken for every statement or transaction."""

    def __init__(self, address: str, schema: str, clock: Clock = time.monotonic) -> None:
        self.address = address
        self.place = redacted(address)
        self._schema = schema
        self._clock = clock
        self._idle: list[Idle] = []
        self._taken: list[Connection] = []
        self._lock = threading.Lock()

    def take(self) -> Connection:
        """A connection of one's own until it is given back. Its statements see the store's schema."""
        # The lock is not held while connecting: that takes a round trip or a timeout,
        # and other threads of the task must not wait for it.
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
                # A process that is stopped or forgotten must not hold one of the
                # server's few connections for ever.
                if connection.info.server_version >= _IDLE_TIMEOUT_SINCE:
                    connection.execute(f"SET idle_session_timeout = '{IDLE_SECONDS * 1000:.0f}ms'".encode())
        except BaseException:
            connection.close()
            raise
        return connection

    def _key(self) -> str:
        return f"{self.address}\n{self._settings().as_string()}"

    def _settings(self) -> sql.Composed:
        """Notes beside the protocol need not wait for the disk; `begin` gives a transaction the server's setting."""
        settings = "SET synchronous_commit = off; SET lock_timeout = {}; SET search_path = {}"
        schema, patience = (sql.Identifier(self._schema), f"{postgres_connection.LOCK_SECONDS * 1000:.0f}ms")
        return sql.SQL(settings).format(sql.Literal(patience), schema)

    def give(self, connection: Connection) -> None:
        """Takes a connection back; one that is broken or has a transaction open is closed, which rolls that back."""
        idle = not connection.closed and connection.info.transaction_status is psycopg.pq.TransactionStatus.IDLE
        # The server rolls back what a closed connection had open, whatever state the
        # protocol was in; cleaning up by statements could fail once more.
        if not idle:
            connection.close()
        with self._lock:
            self._taken.remove(connection)
            if idle:
                self._idle.append(Idle(connection, self._clock()))

    @contextmanager
    def using(self) -> Iterator[Connection]:
        """A connection for a block, with its errors explained."""
        connection = self.take()
        try:
            with explained(connection, self.place):
                yield connection
        finally:
            self.give(connection)

    def close(self) -> None:
        """Closes connections that are in use, so that the server rolls back what they had open, and keeps idle ones."""
        with self._lock:
            for connection in self._taken:
                connection.close()
            while self._idle:
                # The oldest goes first, so that the freshest is the last to be given up
                # when the keeper has too many.
                _keeper.keep(self._key(), self._idle.pop(0))


class Keeper:
    """The connections that closed stores of this process have left, for the next store of the same schema."""

    def __init__(self) -> None:
        self._kept: list[tuple[str, Idle]] = []
        self._inherited: list[tuple[str, Idle]] = []
        self._lock = threading.Lock()

    def take(self, key: str, now: float) -> Connection | None:
        """A connection that was set up in the same way and still works, if there is any."""
        with self._lock:
            # The freshest is tried first: it is the one that the server is least likely
            # to be ending.
            for number in reversed(range(len(self._kept))):
                if self._kept[number][0] != key:
                    continue
                _, idle = self._kept.pop(number)
                if is_usable(idle, now):
                    return idle.connection
        return None

    def keep(self, key: str, idle: Idle) -> None:
        """Keeps a connection, and closes the one that has been here longest if there are too many."""
        with self._lock:
            self._kept.append((key, idle))
            while len(self._kept) > KEPT:
                self._kept.pop(0)[1].connection.close()

    def close(self) -> None:
        """Closes what is kept."""
        with self._lock:
            while self._kept:
                self._kept.pop()[1].connection.close()

    def forget(self) -> None:
        """Forgets the parent's connections in a forked child: using them, or closing them, would end the parent's."""
        self._inherited, self._kept = self._kept, []
        self._lock = threading.Lock()


def is_usable(idle: Idle, now: float) -> bool:
    """Whether a connection may be handed out; closes one that may not.

    It may not when it has been idle for more than `FRESH_SECONDS`, or when the server has spoken unasked, as it does
    when it ends a connection. This looks at the socket only, so it costs no round trip.
    """
    connection = idle.connection
    if connection.closed:
        return False
    # `select` would refuse descriptors above 1023, which a driver with many files open
    # may reach.
    poll = select.poll()
    poll.register(connection.fileno(), select.POLLIN)
    if now - idle.since <= FRESH_SECONDS and not poll.poll(0):
        return True
    connection.close()
    return False


_keeper = Keeper()
atexit.register(_keeper.close)
os.register_at_fork(after_in_child=_keeper.forget)
