"""PostgreSQL as a store: rows, totals by key, and two-phase commit with PREPARE TRANSACTION.

A prepared transaction outlives its writer and never expires; any process can finish it by its name (gid). An open
transaction ends with its writer's connection. Nobody else can read the rows in either, so the writer records its
transactions in the table `opened` and copies of their rows in `staged`, on another connection; `prepared` and `hidden`
read these tables. A transaction is prepared if it is in the server's own list. Each transaction writes its handle into
the table `committed`, so it is committed if others can see the handle there.

Order of visibility: a number drawn at an insert is not enough, since a prepared transaction becomes visible long after
its insert, and commit timestamps follow a clock that may be set back. So a store takes one advisory lock before it
draws a number, and releases it after the commit, so a row with a higher number became visible later. A transaction that
somebody commits by hand has no number and counts as the last.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import psycopg
from psycopg import errors, sql

from labkit.core.errors import InvalidInput, ServiceUnavailable
from labkit.core.exposure import Span
from labkit.core.records import Observation
from labkit.host import addresses
from labkit.host.servers import postgres_connection as server
from labkit.host.servers.postgres_connection import BEGIN, Connection, Row, Step, at_once, explained, transaction
from labkit.stores.contract import Handle, Shown, Tell, Transaction, exists_already, fenced, not_prepared
from labkit.stores.postgres import prepared
from labkit.stores.postgres import schema as names
from labkit.stores.postgres.pool import Pool
from labkit.stores.postgres.prepared import Rows


class PostgresStore:
    """A PostgreSQL schema as a store. The first write creates the schema.

    It supports appending, upserts by key, batches with a marker, two-phase commit and fencing (`Appendable`, `Keyed`,
    `Atomic`, `Transactional`, `Fencing`).
    """

    def __init__(self, location: Path) -> None:
        self.location = location
        self.schema = names.schema_of(location)
        self._has_schema = False
        self._connected: Pool | None = None

    def history(self) -> Iterator[Observation]:
        yield from map(_observed, self._read(names.HISTORY))

    def clocked_history(self, tell: Tell) -> Iterator[Observation]:
        """Yield the rows of `history`; `tell` gets the times of each row's write, and just before its commit.

        Both times are by the server's clock.
        """
        if not self._notes_moments():
            tell(Shown())
            yield from self.history()
            return
        moments: tuple[Any, Any] | None = None
        for *row, at, ready in self._read(names.CLOCKED):
            if (at, ready) != moments:
                moments = at, ready
                # The server returns decimals, which JSON does not accept.
                tell(Shown.noted(_seconds(at), _seconds(ready)))
            yield _observed(row)

    def waiting(self) -> Iterator[tuple[Observation, Span]]:
        """Yield each row of a prepared transaction with the time at which its writer sent the row."""
        prefix = names.prefix_of(self.schema)
        for *row, at in self._read(names.WAITING, prefix) if self._notes_moments() else ():
            yield _observed(row), Span.exactly(float(at))

    def _notes_moments(self) -> bool:
        return any(True for _ in self._read(names.HAS_MOMENTS, self.schema))

    def hidden(self) -> Iterator[Observation]:
        """Yield the rows of open and prepared transactions, except rows that a writer has not sent yet."""
        yield from map(_observed, self._read(names.HIDDEN))

    def close(self) -> None:
        """Close all connections. The server then rolls back open transactions, while prepared transactions remain."""
        pool, self._connected = self._connected, None
        if pool is not None:
            pool.close()

    def append(self, *rows: Observation) -> None:
        self._publish(names.APPEND, rows)

    def upsert(self, *rows: Observation) -> None:
        self._publish(names.UPSERT, rows)

    def has_marker(self, query: str, batch: int) -> bool:
        return any(self._read("SELECT 1 FROM markers WHERE query = %s AND batch = %s", query, batch))

    @contextmanager
    def transaction(self, handle: Handle) -> Iterator[Callable[[Observation], None]]:
        """Open a transaction for a batch. Raises `JobFailed` if the batch is committed, or this driver is fenced."""
        name = names.ATOMIC + str(handle)
        with self._ready().using() as connection:
            number, rows = prepared.open_atomic(connection, name, handle), Rows(name)

            def write(row: Observation) -> None:
                if rows.keep(row):
                    at_once(connection, *rows.steps())

            try:
                yield write
                seal = Step(prepared.SEAL, {"name": name, "number": number})
                at_once(connection, *rows.steps(), self._lock, seal, Step("COMMIT"))
            except BaseException as error:
                with suppress(psycopg.Error):
                    connection.execute("ROLLBACK")
                    # Only the row with this number, because another process may have begun under the same name.
                    prepared.forget_opened(connection, name, number)
                if isinstance(error, errors.NotNullViolation):
                    raise fenced(handle.query, handle.incarnation) from None
                raise

    def begin(self, handle: Handle) -> Transaction:
        pool = self._ready()
        connection = pool.take()
        try:
            with explained(connection, self._place):
                number = prepared.open_noted(connection, self.schema, handle)
                if number is None:
                    self._refuse_disabled(connection)
                    raise exists_already(self._place, handle)
        except BaseException:
            pool.give(connection)
            raise
        return prepared.OpenTransaction(pool, self.schema, handle, connection, number)

    def commit(self, handle: Handle) -> None:
        if not self._is_there():
            raise not_prepared(self._place, handle)
        with self._pool.using() as connection:
            carried = "SELECT FROM committed WHERE handle = %s"
            try:
                done = prepared.finish(connection, self.schema, handle)
                if not done and connection.execute(carried, [str(handle)]).rowcount == 0:
                    raise not_prepared(self._place, handle)
            finally:
                # Not released before the commit is visible or has failed, so that numbers rise with visibility.
                prepared.let_go(connection, self.schema, handle)

    def abort(self, handle: Handle) -> None:
        """Abort a transaction: with ROLLBACK PREPARED if it is prepared, or by closing its writer's connection."""
        if self._is_there():
            with self._pool.using() as connection:
                prepared.drop(connection, self.schema, handle)

    def prepared(self, query: str) -> list[Handle]:
        if not self._is_there():
            return []
        with self._pool.using() as connection:
            self._refuse_disabled(connection)
            # A set: a prepared transaction is also in `opened`, because the deletion of its row is not committed yet.
            return sorted({each for each in prepared.unfinished(connection, self.schema) if each.query == query})

    def fence(self, query: str, incarnation: int) -> None:
        """Fence earlier drivers of the query, and roll back their open transactions that contain a batch marker."""
        with self._ready().using() as connection:
            with transaction(connection):
                if connection.execute(names.FENCE, [query, incarnation]).rowcount == 0:
                    raise fenced(query, incarnation)
            # Recovery does not know transactions with a marker, and a repeated batch would wait for its marker's lock.
            for name, pid, started in connection.execute("SELECT handle, pid, started FROM opened").fetchall():
                if _is_atomic_of(str(name), query, incarnation):
                    prepared.terminate(connection, [pid, started])
                    prepared.forget_opened(connection, str(name))

    def check(self, capability: str) -> None:
        """Raise a `LabError` unless the server answers, lets this user write, and supports the capability."""
        with self._pool.using() as connection:
            _exists(connection, self.schema)
            if capability == "Transactional":
                self._refuse_disabled(connection)
            allowed = "SELECT has_database_privilege(current_database(), 'CREATE'), current_user"
            may, user = connection.execute(allowed).fetchone() or (False, "")
            if not may or connection.execute("SHOW default_transaction_read_only").fetchone() == ("on",):
                raise InvalidInput(
                    f"PostgreSQL at {self._place}: the user {user} may not write there; {server.RIGHTS}."
                )

    def destroy(self) -> None:
        """Roll back all transactions of the store, also those of other processes, and drop the store's schema."""
        if not self._is_there():
            return
        with self._pool.using() as connection:
            # A prepared transaction keeps its locks without any connection, so DROP SCHEMA would wait for ever.
            for handle in set(prepared.unfinished(connection, self.schema)):
                prepared.drop(connection, self.schema, handle)
            connection.execute(sql.SQL("DROP SCHEMA {} CASCADE").format(sql.Identifier(self.schema)))
        self._has_schema = False

    @property
    def _pool(self) -> Pool:
        if self._connected is None:
            self._connected = Pool(addresses.postgres(), self.schema)
        return self._connected

    @property
    def _place(self) -> str:
        return self._pool.place

    def _read(self, statement: str, *parameters: str | int) -> Iterator[Row]:
        # Each query has its own connection, so it sees only committed data.
        if self._is_there():
            with self._pool.using() as connection:
                yield from connection.execute(statement, parameters)

    def _is_there(self) -> bool:
        if not self._has_schema:
            with self._pool.using() as connection:
                self._has_schema = _exists(connection, self.schema)
        return self._has_schema

    def _ready(self) -> Pool:
        if not self._is_there():
            with self._pool.using() as connection, transaction(connection):
                at_once(connection, self._lock)
                # Checked again under the lock: another process may have created the schema in the meantime.
                if not _exists(connection, self.schema):
                    connection.execute(names.creation(self.schema, self.location))
            self._has_schema = True
        return self._pool

    def _publish(self, statement: str, rows: Sequence[Observation]) -> None:
        # The rows are numbered under the lock, so that their numbers are in the order of visibility.
        with self._ready().using() as connection:
            at_once(connection, *BEGIN, self._lock, Step(statement, names.to_arrays(rows)), Step("COMMIT"))

    @property
    def _lock(self) -> Step:
        """The SQL statement that takes the lock of this store until the end of the transaction.

        Only the process with the lock can make rows of the store visible.
        """
        return Step("SELECT pg_advisory_xact_lock(%s)", [names.lock_of(self.schema)])

    def _refuse_disabled(self, connection: Connection) -> None:
        if connection.execute("SHOW max_prepared_transactions").fetchone() == ("0",):
            raise ServiceUnavailable(
                f"PostgreSQL at {self._place}: two-phase commit needs prepared transactions, but this server has "
                "max_prepared_transactions = 0 (the default); run `ALTER SYSTEM SET max_prepared_transactions = 64`, "
                "and restart the server."
            )


def sweep() -> list[str]:
    """In labkit's own server, delete the stores of runs whose folders no longer exist.

    Each store is a schema. Returns the names of the deleted schemas.
    """
    # The pool needs the name of a schema that exists, and pg_catalog exists on every server.
    pool, dropped = Pool(addresses.postgres(), "pg_catalog"), list[str]()
    with closing(pool), pool.using() as connection:
        commented = (
            "SELECT nspname, obj_description(oid, 'pg_namespace') FROM pg_namespace WHERE nspname LIKE 'labkit%'"
        )
        schemas = connection.execute(commented).fetchall()
    for schema, comment in schemas:
        location = Path(str(comment).removeprefix(names.MARK))
        if names.schema_of(location) == schema and len(location.parents) > 1 and not location.parents[1].exists():
            with closing(PostgresStore(location)) as store:
                store.destroy()
            dropped.append(schema)
    return dropped


def _exists(connection: Connection, schema: str) -> bool:
    comment = "SELECT obj_description(oid, 'pg_namespace') FROM pg_namespace WHERE nspname = %s"
    row = connection.execute(comment, [schema]).fetchone()
    if row is not None and not str(row[0]).startswith(names.MARK):
        raise InvalidInput(
            f"The schema {schema} exists, but the lab did not create it. It is named after the location of the "
            "store; choose another location."
        )
    return row is not None


def _observed(row: Sequence[Any]) -> Observation:
    offset, key, value, batch, attempt = row
    return Observation(offset, names.key_from_text(key), value, batch, attempt)


def _seconds(moment: Any) -> float | None:
    return None if moment is None else float(moment)


def _is_atomic_of(name: str, query: str, before: int) -> bool:
    if not name.startswith(names.ATOMIC):
        return False
    handle = Handle.parse(name.removeprefix(names.ATOMIC))
    return handle.query == query and handle.incarnation < before
