"""A connection to PostgreSQL for statements that a learner types in a notebook; errors are returned as answers."""

import re
from collections.abc import Sequence
from typing import NamedTuple

import psycopg
from psycopg import sql

from labkit.core.errors import ServiceUnavailable
from labkit.host.servers.postgres_connection import Row, connect, redacted

LOCK_SECONDS = 5
"""Seconds for which a statement waits for a lock, unless the learner changes that with SET lock_timeout."""

_PREPARE = re.compile(r"\s*PREPARE\s+TRANSACTION\s+('(?:[^']|'')+')", re.IGNORECASE)


class Answer(NamedTuple):
    """PostgreSQL's answer to one statement: its message or error message, the column names, and the rows."""

    message: str
    names: Sequence[str] = ()
    rows: Sequence[Row] = ()
    code: str = ""
    """The SQLSTATE of an error, for example 42704; empty if the statement succeeded."""


class SqlConnection:
    """A connection to PostgreSQL for a notebook's statements, in a schema that is created if it is missing."""

    def __init__(self, address: str, schema: str) -> None:
        self._place = redacted(address)
        self._connection = connect(address)
        self.pid = self._connection.info.backend_pid
        self.gids: list[str] = []
        """The quoted names of all transactions prepared on this connection, whether or not they still exist."""
        setting = sql.SQL("CREATE SCHEMA IF NOT EXISTS {0}; SET search_path = {0}; SET lock_timeout = '{1}s'")
        self._connection.execute(setting.format(sql.Identifier(schema), sql.SQL(str(LOCK_SECONDS))))

    def execute(self, statement: str) -> Answer:
        """Run one statement, and return the answer, perhaps an SQL error. Raises `ServiceUnavailable` after `close`."""
        if self._connection.closed and not self._connection.broken:
            raise ServiceUnavailable(f"This connection to PostgreSQL at {self._place} is closed; open another session.")
        # Recorded first: if the connection breaks before the answer arrives, the server may have prepared it.
        if preparation := _PREPARE.match(statement):
            self.gids.append(preparation[1])
        try:
            cursor = self._connection.execute(statement.encode())
        except psycopg.Error as error:
            message = error.diag.message_primary or str(error).strip().splitlines()[0]
            return Answer(message, code=error.diag.sqlstate or "08006")
        names = [column.name for column in cursor.description or ()]
        return Answer(cursor.statusmessage or "", names, cursor.fetchall() if names else ())

    def close(self) -> None:
        """Close the connection. The server then rolls back an open transaction, as it does when a client crashes."""
        self._connection.close()
