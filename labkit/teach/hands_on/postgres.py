"""Use SQL by hand: sessions on a real PostgreSQL, and the server's answers as text and as cards.

Each session is a separate connection, like that of a separate program. `crash` cuts the connection, because this is all
that a server notices when a program dies.
"""

import time
import uuid
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing, suppress
from functools import partial
from typing import Any

import psycopg
from psycopg.conninfo import make_conninfo

from labkit.core.errors import InvalidInput, LabError, ServiceUnavailable
from labkit.core.words import columns
from labkit.host import addresses
from labkit.host.servers.postgres import PostgresService
from labkit.host.servers.postgres_connection import Row
from labkit.host.servers.tethered import tethered_postgres
from labkit.stores.postgres.session import Answer, SqlConnection
from labkit.teach.hands_on import answers, private
from labkit.view.card import Html

PATIENCE = 20.0
"""The longest time, in seconds, that the client waits for the server."""

NO_ROW = "(no row)"


class Reply(answers.Answered):
    """PostgreSQL's answers to the statements of one `session.run` call, up to the first statement that failed."""

    def __init__(self, name: str, answers: Iterable[Answer]) -> None:
        self.name, self.answers = name, list(answers)

    @property
    def code(self) -> str:
        """The SQLSTATE of the statement that failed, such as 42704; empty if none failed."""
        return self.answers[-1].code

    @property
    def rows(self) -> list[tuple[Any, ...]]:
        """The rows of the last statement that was sent, as tuples."""
        return list(self.answers[-1].rows)

    @property
    def value(self) -> Any:
        """The first value of the last statement's first row. Raises `InvalidInput` if it returned no row."""
        if not self.rows:
            raise InvalidInput(
                f"{self.name}: the last statement returned no row, so it has no value ({self.answers[-1].message})."
            )
        return self.rows[0][0]

    def __str__(self) -> str:
        """Return lines of text: for each statement the server's message, rows, or error with SQLSTATE."""
        return "\n".join(line for answer in self.answers for line in self._lines(answer))

    def parts(self) -> Sequence[Html]:
        """Return a list of HTML tables: for each statement the server's message, rows, or error."""
        return [part for answer in self.answers for part in self._parts(answer)]

    def _parts(self, answer: Answer) -> Sequence[Html]:
        if answer.code or not answer.names:
            return answers.ServerAnswer(self._lines(answer)[0]).parts()
        head = (f"{self.name}: {answer.names[0]}", *answer.names[1:])
        body = [[_shown(cell) for cell in row] for row in answer.rows]
        return answers.rows(head, body, NO_ROW)

    def _lines(self, answer: Answer) -> list[str]:
        if answer.code:
            return [f"{self.name}: ERROR {answer.code}: {answer.message}"]
        if not answer.names:
            return [f"{self.name}: {answer.message}"]
        table = columns([list(answer.names), *([_shown(cell) for cell in row] for row in answer.rows)])
        return [f"{self.name}: {line}" for line in (*table.splitlines(), *([] if answer.rows else [NO_ROW]))]


class Session:
    """A connection to PostgreSQL; its name appears next to each of its answers."""

    def __init__(self, server: "Postgres", name: str, connection: SqlConnection) -> None:
        self._server, self.name, self._connection = server, name, connection

    def run(self, *statements: str) -> Reply:
        """Send SQL statements one by one, stop at the first that fails, and return the server's answers.

        Outside of BEGIN and COMMIT every statement is a transaction of its own. Raises `InvalidInput` without a
        statement, and `ServiceUnavailable` after `crash`.
        """
        replies: list[Answer] = []
        for statement in statements:
            replies.append(self._connection.execute(statement))
            if replies[-1].code:
                break
        if not replies:
            raise InvalidInput("session.run() needs a statement, as in session.run('SELECT 1').")
        return Reply(self.name, replies)

    def crash(self) -> None:
        """Cut the connection, as if the program had died, and wait until the server has noticed."""
        self._connection.close()
        self.wait_for_its_end()

    def wait_for_its_end(self) -> None:
        """Wait until the server has ended this session; after `PATIENCE` s raises `ServiceUnavailable`."""
        gone = f"SELECT NOT EXISTS (SELECT FROM pg_stat_get_activity({self._connection.pid}))"  # noqa: S608  # a number
        self._server.until(gone)

    @property
    def gids(self) -> list[str]:
        """The names (gids) of the transactions prepared in this session, quoted as SQL literals."""
        return self._connection.gids

    def close(self) -> None:
        """Close the connection to the server."""
        self._connection.close()


class Postgres:
    """A PostgreSQL server for experiments by hand, with a new schema that `clean` or the end of the process drops."""

    def __init__(self, server: private.Server) -> None:
        self.address = server.address
        self._server, self._schema = server, f"notebook_{uuid.uuid4().hex[:12]}"
        self._sessions: list[Session] = []
        self._cleaning: list[Callable[[], object]] = []

    @property
    def name(self) -> str:
        """The name of the new schema, also used for other objects on the server that need a unique name."""
        return self._schema

    def session(self, name: str) -> Session:
        """Open a new connection under this name; all sessions use the same tables."""
        self._sessions.append(Session(self, name, SqlConnection(self.address, self._schema)))
        return self._sessions[-1]

    def connect(self) -> psycopg.Connection[Row]:
        """Return a psycopg connection for your own code, which uses the same tables as the sessions.

        A `with` block of the connection is a transaction.
        """
        setting = f"-c search_path={self._schema}"
        return psycopg.connect(make_conninfo(self.address, options=setting))

    def until(self, condition: str) -> None:
        """Repeat the query `condition` until it returns true. Raises `ServiceUnavailable` after `PATIENCE` seconds."""
        deadline = time.monotonic() + PATIENCE
        with closing(SqlConnection(self.address, self._schema)) as connection:
            while connection.execute(condition).rows != [(True,)]:
                if time.monotonic() > deadline:
                    raise ServiceUnavailable(
                        f"PostgreSQL did not return true within {PATIENCE:g} s for the query {condition}; run the cell "
                        "again."
                    )
                time.sleep(0.02)

    def kill(self) -> answers.ServerAnswer:
        """Kill a private server with SIGKILL, restart it, and return the result as text; your own server stays up."""
        if self._server.folder is None:
            return answers.ServerAnswer(f"{addresses.POSTGRES} names your own server, so labkit did not kill it.")
        service = PostgresService(self._server.folder)
        killed = service.kill()
        after = service.up()
        another = "no" if after.pid in killed else "yes"
        return answers.ServerAnswer(f"the server died by signal 9; another process runs now: {another}")

    def at_clean(self, close: Callable[[], object]) -> None:
        """Register a function that `clean` calls before it closes the sessions."""
        self._cleaning.append(close)

    def clean(self) -> None:
        """Close all sessions, roll back the transactions that they prepared, and drop the schema."""
        while self._cleaning:
            self._cleaning.pop()()
        gids = [gid for session in self._sessions for gid in session.gids]
        for session in self._sessions:
            session.close()
        self._sessions.clear()
        with suppress(LabError), closing(SqlConnection(self.address, self._schema)) as connection:
            for gid in gids:
                connection.execute(f"ROLLBACK PREPARED {gid}")
            connection.execute(f"DROP SCHEMA {self._schema} CASCADE")


def postgres() -> Postgres:
    """Return the PostgreSQL server that the environment variable LABKIT_POSTGRES names, or start a private one.

    Drops the tables and closes the sessions of an earlier call. Raises `ServiceUnavailable` if no server can be
    started.
    """
    # Logical decoding needs more information in the WAL than PostgreSQL writes by default.
    start = partial(tethered_postgres, "--no-sync", "-c", "wal_level=logical")
    return private.client(addresses.POSTGRES, start, Postgres)


def _shown(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "-" if value is None else str(value)
