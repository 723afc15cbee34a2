"""Judges SQL that finishes the prepared transactions of one job, by running it on a real PostgreSQL.

The server parses the query. It runs read-only and is rolled back, as a role that is made for one case and dropped with
it, on a server of the judge's own that nobody else uses and that ends with this process. Of the statements that it
gives, only those that finish a prepared transaction are sent, one by one: any other could reach the next answer. A
user's own server is never taken. This module must not decide which statements are right: what is left on the server
does.
"""

import atexit
import os
import re
import uuid
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass

import psycopg
from psycopg import sql
from psycopg.conninfo import make_conninfo

from labkit.host.servers.postgres_connection import Connection, connect
from labkit.host.servers.tethered import tethered_postgres
from labkit.teach.exercises.asking import Unusable, shown
from labkit.teach.exercises.contract import Answer, Finding, Plain, Variant

MOST_STATEMENTS = 50
MOST_CHARACTERS = 500
"""Of one statement that a query gives."""
FINISHES = re.compile(
    r"\s*(COMMIT|ROLLBACK)\s+PREPARED\s+E?'(?:[^'\\]|''|\\.)*'\s*;?\s*", re.IGNORECASE
)
"""One statement that finishes one prepared transaction: nothing else is sent."""
ROLE = (
    "CREATE ROLE {role} LOGIN",
    "ALTER ROLE {role} SET statement_timeout = '5s'",
    "ALTER ROLE {role} SET lock_timeout = '2s'",
    "ALTER ROLE {role} SET temp_file_limit = '20MB'",
)
"""No superuser, so no file and no program of this machine. The query cannot outlast the limit that it began with."""


@dataclass(frozen=True)
class Case:
    """What is prepared before the answer runs, and what must be there afterwards."""

    job: str
    decided: int
    prepared: Sequence[str]
    elsewhere: Sequence[str]
    """Prepared in another database of the same server."""

    @property
    def own(self) -> list[str]:
        """The names that belong to the job and can be finished here."""
        return [gid for gid in self.prepared if gid.split("/")[0] == self.job]

    @property
    def committed(self) -> list[str]:
        """Those of its decided batches."""
        return sorted(gid for gid in self.own if int(gid.split("/")[1]) <= self.decided)

    @property
    def left(self) -> list[str]:
        """What must still wait: everything that is not the job's, or not here."""
        others = [gid for gid in self.prepared if gid not in self.own]
        return sorted([*others, *self.elsewhere])


def judge_orphans(answer: Answer, variant: Variant) -> Finding:
    """Prepares, runs the query and then its statements, and looks at what is left and what was committed.

    Raises `ServiceUnavailable` where no PostgreSQL can be started.
    """
    given = dict(variant.parameters)
    case = Case(
        given["job"],
        given["decided"],
        given["prepared"],
        given.get("elsewhere", ()),
    )
    try:
        query = _query(answer.value())
        with _prepared(case) as place:
            statements = place.asked(query)
            refused = place.sent(statements)
            committed, left = place.committed(), place.waiting()
    except Unusable as error:
        return Finding(
            False,
            str(error),
            general="PostgreSQL does not take finish_sql, or it gives no statements.",
        )
    return _finding(case, statements, refused, committed, left)


def _query(value: Plain) -> str:
    if type(value) is not str or not value.strip():
        raise Unusable(
            f"finish_sql is {shown(value)}; it must be a text with one SELECT."
        )
    return value.strip().removesuffix(";")


def _finding(
    case: Case,
    statements: Sequence[str],
    refused: str,
    committed: Sequence[str],
    left: Sequence[str],
) -> Finding:
    waits = f"left waiting: {_names(left)}; committed: {_names(committed)}"
    wanted = f"left waiting: {_names(case.left)}; committed: {_names(case.committed)}"
    told = f"Job {case.job!r}, decided up to {case.decided}; prepared: {_names([*case.prepared, *case.elsewhere])}."
    for is_wrong, what in (
        (
            bool(refused),
            f"A statement of yours was refused: {refused}",
        ),
        (
            bool(set(case.left) - set(left)),
            "A transaction was finished that is not this job's.",
        ),
        (
            bool(set(left) - set(case.left)),
            "A transaction of this job still waits.",
        ),
        (
            list(committed) != case.committed,
            "A decided batch was rolled back, or an undecided one was committed.",
        ),
    ):
        if is_wrong:
            general = what.partition(":")[0].rstrip(".") + "."
            return Finding(
                False, f"{told} {what} {waits}.", waits, wanted, general=general
            )
    sent = "; ".join(statements) or "nothing"
    return Finding(True, f"{told} Sent: {sent}. Then {waits}.", waits)


def _names(gids: Sequence[str]) -> str:
    return ", ".join(gids) or "nothing"


class _Place:
    """A schema with what a case needs, the owner's connection to it and the learner's."""

    def __init__(self, case: Case, owner: Connection, learner: Connection) -> None:
        self._case, self._owner, self._learner = case, owner, learner

    def asked(self, query: str) -> list[str]:
        """What the query gives. Raises `Unusable` with the server's own words."""
        wrapped = (
            f"SELECT left(statement::text, {MOST_CHARACTERS}) FROM (\n{query}\n) AS answer(statement) "  # noqa: S608  # a role that may do nothing runs it
            f"LIMIT {MOST_STATEMENTS + 1}"
        )
        try:
            # Rolled back: settings that a query changes must not outlive it.
            with self._learner.transaction(force_rollback=True):
                self._learner.execute("SET TRANSACTION READ ONLY")
                # Prepared, so that the server takes one statement and no second one behind it.
                rows = self._learner.execute(wrapped.encode(), prepare=True).fetchall()
        except psycopg.Error as error:
            raise Unusable(
                f"PostgreSQL does not take finish_sql: {_said(error)}"
            ) from None
        if len(rows) > MOST_STATEMENTS:
            raise Unusable(f"finish_sql gives more than {MOST_STATEMENTS} rows.")
        if any(statement is None for (statement,) in rows):
            raise Unusable("finish_sql gives a row without a statement (NULL).")
        return [str(statement) for (statement,) in rows]

    def sent(self, statements: Sequence[str]) -> str:
        """Sends each statement as it is; the first refusal, or nothing."""
        for statement in statements:
            if not FINISHES.fullmatch(statement):
                return f"{statement[:100]}: only COMMIT PREPARED 'name' and ROLLBACK PREPARED 'name' are sent."
            try:
                self._learner.execute(statement.encode(), prepare=True)
            except psycopg.Error as error:
                return f"{statement}: {_said(error)}."
        return ""

    def committed(self) -> list[str]:
        """The marker rows that are visible."""
        rows = self._owner.execute('SELECT gid FROM done ORDER BY gid COLLATE "C"')
        return [str(gid) for (gid,) in rows.fetchall()]

    def waiting(self) -> list[str]:
        """The transactions that still wait, in whatever database."""
        rows = self._owner.execute("SELECT gid FROM pg_prepared_xacts").fetchall()
        return sorted(str(gid) for (gid,) in rows)


@contextmanager
def _prepared(case: Case) -> Iterator[_Place]:
    """A place in which the transactions of a case wait; afterwards nothing of them is left."""
    address = _server()
    schema = f"case_{uuid.uuid4().hex[:12]}"  # the role's name, too
    with ExitStack() as stack:
        owner = stack.enter_context(connect(address))
        stack.callback(_clean, owner, address, schema)
        with suppress(psycopg.errors.DuplicateDatabase):
            owner.execute("CREATE DATABASE elsewhere")
        for statement in ROLE:
            owner.execute(statement.format(role=schema).encode())
        owner.execute(f"CREATE SCHEMA {schema} AUTHORIZATION {schema}".encode())
        owner.execute(f"SET search_path = {schema}".encode())
        learner = stack.enter_context(connect(make_conninfo(address, user=schema)))
        learner.execute(f"SET search_path = {schema}".encode())
        learner.execute("CREATE TABLE job (name text, decided int)")
        learner.execute("INSERT INTO job VALUES (%s, %s)", (case.job, case.decided))
        learner.execute("CREATE TABLE done (gid text)")
        for gid in case.prepared:
            _prepare(learner, gid, "INSERT INTO done VALUES (%s)")
        if case.elsewhere:
            other = stack.enter_context(
                connect(make_conninfo(address, user=schema, dbname="elsewhere"))
            )
            for gid in case.elsewhere:
                _prepare(other, gid, "SELECT pg_advisory_xact_lock_shared(length(%s))")
        yield _Place(case, owner, learner)


def _prepare(connection: Connection, gid: str, statement: str) -> None:
    connection.execute("BEGIN")
    connection.execute(statement.encode(), (gid,))
    connection.execute(sql.SQL("PREPARE TRANSACTION {}").format(sql.Literal(gid)))


def _clean(owner: Connection, address: str, schema: str) -> None:
    """Ends whatever still waits, in its own database, and drops schema and role."""
    with suppress(psycopg.Error):
        rows = owner.execute("SELECT gid, database FROM pg_prepared_xacts").fetchall()
        for gid, database in rows:
            with connect(make_conninfo(address, dbname=str(database))) as there:
                there.execute(sql.SQL("ROLLBACK PREPARED {}").format(sql.Literal(gid)))
        owner.execute(f"DROP OWNED BY {schema} CASCADE".encode())
        owner.execute(f"DROP ROLE {schema}".encode())


def _said(error: psycopg.Error) -> str:
    text = error.diag.message_primary or str(error).strip()
    return text.splitlines()[0][:200] if text else type(error).__name__


_servers: dict[int, tuple[str, ExitStack]] = {}


def _server() -> str:
    """The address of this process's own server, started when it is first asked for."""
    if os.getpid() not in _servers:
        ending = ExitStack()
        address = ending.enter_context(tethered_postgres("--no-sync")).address
        _servers[os.getpid()] = address, ending
    return _servers[os.getpid()][0]


def end() -> None:
    """Ends this process's server, if there is one; the next answer gets a fresh one."""
    _, ending = _servers.pop(os.getpid(), ("", ExitStack()))
    ending.close()


atexit.register(end)
