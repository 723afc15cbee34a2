"""Judges SQL that finishes the prepared transactions of one job, by running it on a real PostgreSQL.

The server alone parses the learner's SELECT, in a READ ONLY transaction of a session that ends behind it. What the
SELECT gives is sent in another session, and only if every row has the form of one COMMIT PREPARED or ROLLBACK PREPARED
(`FORM`). Both sessions belong to a role of this case alone, which owns nothing, may read two tables and add to one,
and is dropped with the case. A session that lasts longer than `LONGEST` is cut on this side, whatever the server does.
A server that lost a session, or on which something could not be dropped, is ended, and the next case gets a fresh one.
So nothing of one answer reaches the next. What a session may take of the machine's memory is limited on Linux
(`MEMORY`).

The server is the judge's own, nobody else uses it, and it ends with this process; a user's own server is never taken.
"""

import atexit
import os
import re
import socket
import uuid
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass
from threading import Timer

import psycopg
from psycopg import sql
from psycopg.conninfo import make_conninfo

from labkit.core.errors import LabError, ServiceUnavailable
from labkit.host.servers.postgres_connection import Connection, connect
from labkit.host.servers.tethered import tethered_postgres
from labkit.teach.exercises.asking import Unusable, shown
from labkit.teach.exercises.contract import Answer, Finding, Plain, Variant

MOST_STATEMENTS = 50
MOST_CHARACTERS = 500
"""Of one statement that a query gives."""
LONGEST = 8.0
"""Seconds of one session of an answer: of the query, and again of all its statements together."""
FORM = re.compile(
    r"""\s* (?: COMMIT | ROLLBACK ) \s+ PREPARED \s*
    (?: (?: U& )? ' (?: [^'] | '' )* '
      | E ' (?: [^'\\] | \\. | '' )* '
      | \$ (?P<tag> (?: [a-z_]\w* )? ) \$ (?: (?! \$(?P=tag)\$ ) . )* \$(?P=tag)\$
    ) \s* ;? \s*""",
    re.VERBOSE | re.IGNORECASE | re.ASCII | re.DOTALL,
)
"""One statement that is sent: the verb, and the name as one constant: 'gid', E'gid', U&'gid', or $$gid$$, also with a
tag. One semicolon may end it. Comments, UESCAPE and a constant in several pieces are refused."""
SETUP = (
    "CREATE DATABASE elsewhere",
    "REVOKE TEMPORARY ON DATABASE postgres, elsewhere FROM PUBLIC",
    # It writes to the log of the server also in a READ ONLY transaction; its arguments
    # differ from version to version.
    """DO $$ DECLARE each regprocedure; BEGIN
    FOR each IN SELECT oid FROM pg_proc WHERE proname = 'pg_logical_emit_message' LOOP
    EXECUTE format('REVOKE EXECUTE ON FUNCTION %s FROM PUBLIC', each); END LOOP; END $$""",
)
"""What a fresh server needs once."""
ASKED = """
CREATE FUNCTION asked(query text) RETURNS SETOF text LANGUAGE plpgsql AS $$
BEGIN
    RETURN QUERY EXECUTE query;
EXCEPTION WHEN OTHERS THEN
    RAISE EXCEPTION USING MESSAGE = left(SQLERRM, 500), ERRCODE = SQLSTATE;
END $$
"""
"""Runs a query with its caller's rights. An error may quote a value of a gigabyte, and here the error becomes short."""
MEMORY = 512 * 1024**2
"""Bytes of address space of one process of the server, 128 MiB of which all share.

One session at a time is an answer's, and no query gets helpers (`ALONE`), so this bounds what an answer may take. It is
a limit of processes, since a cgroup needs a right that few learners have.
"""
ALONE = ("-c", "max_worker_processes=0", "-c", "max_logical_replication_workers=0")
LIMITS = ("statement_timeout = '5s'", "lock_timeout = '2s'", "temp_file_limit = '20MB'")
"""Settings of a case's role. A query may change the first two for what follows it in its session: nothing does."""


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

    Raises `ServiceUnavailable` where no PostgreSQL can be started, or where a fresh one cannot be prepared.
    """
    given = dict(variant.parameters)
    case = Case(given["job"], given["decided"], given["prepared"], given.get("elsewhere", ()))
    try:
        query = _query(answer.value())
        with _prepared(case) as place:
            statements = _formed(place.asked(query))
            refused = place.sent(statements)
            committed, left = place.committed(), place.waiting()
    except Unusable as error:
        return Finding(
            False,
            str(error),
            general="PostgreSQL does not take finish_sql, or a row of it is not one COMMIT PREPARED 'gid' "
            "or ROLLBACK PREPARED 'gid'.",
        )
    return _finding(case, statements, refused, committed, left)


def _query(value: Plain) -> str:
    if type(value) is not str or not value.strip():
        raise Unusable(f"finish_sql is {shown(value)}; it must be a text with one SELECT.")
    if "\0" in value:
        raise Unusable("finish_sql has a character NUL, which no text of SQL may have.")
    return value.strip().removesuffix(";")


def _formed(statements: Sequence[str]) -> Sequence[str]:
    """The statements, if all of them may be sent. Raises `Unusable` with the first that may not."""
    for statement in statements:
        if not FORM.fullmatch(statement):
            raise Unusable(
                f"finish_sql gives {shown(statement)}; each row must be one COMMIT PREPARED 'gid' or "
                "ROLLBACK PREPARED 'gid' (a quote in the name is written twice), so nothing was sent."
            )
    return statements


def _finding(
    case: Case, statements: Sequence[str], refused: str, committed: Sequence[str], left: Sequence[str]
) -> Finding:
    waits = f"left waiting: {_names(left)}; committed: {_names(committed)}"
    wanted = f"left waiting: {_names(case.left)}; committed: {_names(case.committed)}"
    told = f"Job {case.job!r}, decided up to {case.decided}; prepared: {_names([*case.prepared, *case.elsewhere])}."
    for is_wrong, what in (
        (bool(refused), f"A statement of yours was refused: {refused}"),
        (bool(set(case.left) - set(left)), "A transaction was finished that is not this job's."),
        (bool(set(left) - set(case.left)), "A transaction of this job still waits."),
        (list(committed) != case.committed, "A decided batch was rolled back, or an undecided one was committed."),
    ):
        if is_wrong:
            general = what.partition(":")[0].rstrip(".") + "."
            return Finding(False, f"{told} {what} {waits}.", waits, wanted, general=general)
    sent = "; ".join(statements) or "nothing"
    return Finding(True, f"{told} Sent: {sent}. Then {waits}.", waits)


def _names(gids: Sequence[str]) -> str:
    return ", ".join(gids) or "nothing"


class _Place:
    """A schema with what a case needs, the owner's connection to it, and the role of the learner's sessions."""

    def __init__(self, address: str, owner: Connection) -> None:
        self.name = f"case_{uuid.uuid4().hex[:12]}"
        """Of the schema and of the role."""
        self.lost = False
        """Whether the server may still be busy with an answer, or is gone."""
        self._address, self._owner = address, owner

    def prepare(self, case: Case) -> None:
        """Makes role, schema, tables and transactions."""
        for limit in LIMITS:
            self._owner.execute(f"SET {limit}".encode())
        self._run("CREATE ROLE {} LOGIN")
        for limit in LIMITS:
            self._run(f"ALTER ROLE {{}} SET {limit}")
        self._run("ALTER ROLE {0} SET search_path = {0}")
        self._run("CREATE SCHEMA {}")
        self._run("SET search_path = {}")
        self._run("CREATE TABLE job (name text, decided int)")
        self._run("CREATE TABLE done (gid text)")
        self._owner.execute(ASKED)
        self._run("GRANT USAGE ON SCHEMA {0} TO {0}")
        self._run("GRANT SELECT ON job, done TO {}")
        self._run("GRANT INSERT ON done TO {}")
        self._owner.execute("INSERT INTO job VALUES (%s, %s)", (case.job, case.decided))
        with self._session() as learner:
            for gid in case.prepared:
                _prepare(learner, gid, "INSERT INTO done VALUES (%s)")
        if case.elsewhere:
            with self._session("elsewhere") as learner:
                for gid in case.elsewhere:
                    _prepare(learner, gid, "SELECT pg_advisory_xact_lock_shared(length(%s))")

    def asked(self, query: str) -> list[str]:
        """What the query gives. Raises `Unusable` with the server's own words."""
        wrapped = (
            f"SELECT left(statement::text, {MOST_CHARACTERS}) FROM (\n{query}\n) AS answer(statement) "  # noqa: S608  # a role that may do nothing runs it
            f"LIMIT {MOST_STATEMENTS + 1}"
        )
        try:
            with self._session() as learner:
                learner.execute("BEGIN READ ONLY")
                # Prepared, so that the server takes one statement and no second one behind it; and
                # one statement also without the brackets, so that none of its own closes
                # ours and leaves the limits.
                learner.execute(f"PREPARE answer AS {query}".encode(), prepare=True)
                rows = learner.execute("SELECT asked(%s)", (wrapped,)).fetchall()
        except (psycopg.Error, LabError, UnicodeError) as error:
            raise Unusable(f"PostgreSQL does not take finish_sql: {_said(error)}") from None
        if len(rows) > MOST_STATEMENTS:
            raise Unusable(f"finish_sql gives more than {MOST_STATEMENTS} rows.")
        if any(statement is None for (statement,) in rows):
            raise Unusable("finish_sql gives a row without a statement (NULL).")
        return [str(statement) for (statement,) in rows]

    def sent(self, statements: Sequence[str]) -> str:
        """Sends each statement as it is; the first refusal, or nothing."""
        statement = "nothing"
        try:
            with self._session() as learner:
                for statement in statements:
                    learner.execute(statement.encode(), prepare=True)
        except (psycopg.Error, LabError, UnicodeError) as error:
            return f"{statement}: {_said(error)}."
        return ""

    def committed(self) -> list[str]:
        """The marker rows that are visible. Raises `Unusable` where the answer took the server along."""
        return self._seen('SELECT gid FROM done ORDER BY gid COLLATE "C"')

    def waiting(self) -> list[str]:
        """The transactions that still wait, in whatever database. Raises as `committed`."""
        return sorted(self._seen("SELECT gid FROM pg_prepared_xacts"))

    def end(self) -> None:
        """Drops everything of the case; where that fails, or a session was lost, the server ends instead."""
        dropped = False
        try:
            with suppress(psycopg.Error, LabError), closing(self._owner):
                if not self.lost:
                    self._drop()
                    dropped = True
        finally:
            if not dropped:
                end()

    def _drop(self) -> None:
        """Ends whatever still waits, in its own database, and drops schema and role."""
        waiting = "SELECT gid, database FROM pg_prepared_xacts"
        for gid, database in self._owner.execute(waiting).fetchall():
            with connect(make_conninfo(self._address, dbname=str(database))) as there:
                there.execute(sql.SQL("ROLLBACK PREPARED {}").format(sql.Literal(gid)))
        self._run("DROP SCHEMA {} CASCADE")
        self._run("DROP OWNED BY {}")
        with connect(make_conninfo(self._address, dbname="elsewhere")) as there:
            there.execute(sql.SQL("DROP OWNED BY {}").format(sql.Identifier(self.name)))
        self._run("DROP ROLE {}")

    @contextmanager
    def _session(self, database: str = "postgres") -> Iterator[Connection]:
        """A connection of the case's role, which is cut after `LONGEST`. What is open at its end is rolled back."""
        address = make_conninfo(self._address, user=self.name, dbname=database)
        self.lost = True
        with closing(connect(address)) as connection, _cut_after(LONGEST, connection):
            try:
                yield connection
            finally:
                self.lost = connection.broken

    def _run(self, statement: str) -> None:
        self._owner.execute(sql.SQL(statement).format(sql.Identifier(self.name)))

    def _seen(self, query: str) -> list[str]:
        try:
            return [str(gid) for (gid,) in self._owner.execute(query.encode())]
        except psycopg.Error as error:
            self.lost = True
            raise Unusable(f"PostgreSQL ended while finish_sql ran: {_said(error)}") from None


@contextmanager
def _prepared(case: Case) -> Iterator[_Place]:
    """A place in which the transactions of a case wait; afterwards nothing of them is left, or no server is."""
    place = _made(case)
    try:
        yield place
    finally:
        place.end()


def _made(case: Case) -> _Place:
    """A place on the server that is there; where that one fails, on a fresh one."""
    if os.getpid() in _servers:
        with suppress(ServiceUnavailable):
            return _made_at(_server(), case)
    return _made_at(_server(), case)


def _made_at(address: str, case: Case) -> _Place:
    """Raises `ServiceUnavailable`, and then leaves no server that is half prepared."""
    with ExitStack() as failing:
        failing.callback(end)
        try:
            owner = failing.enter_context(closing(connect(address)))
            place = _Place(address, owner)
            place.prepare(case)
        except (psycopg.Error, LabError) as error:
            said = str(error).splitlines()[0]
            raise ServiceUnavailable(f"The judge's own PostgreSQL cannot be prepared: {said}") from error
        failing.pop_all()
    return place


def _prepare(connection: Connection, gid: str, statement: str) -> None:
    connection.execute("BEGIN")
    connection.execute(statement.encode(), (gid,))
    connection.execute(sql.SQL("PREPARE TRANSACTION {}").format(sql.Literal(gid)))


@contextmanager
def _cut_after(seconds: float, connection: Connection) -> Iterator[None]:
    """Ends a connection on this side, for a server may be too busy to end anything itself."""
    with socket.socket(fileno=os.dup(connection.fileno())) as line:

        def cut() -> None:
            with suppress(OSError):
                line.shutdown(socket.SHUT_RDWR)

        timer = Timer(seconds, cut)
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()
            timer.join()


def _said(error: Exception) -> str:
    """The first line of the server's own words; without any, the connection is gone."""
    is_of_connection = isinstance(error, psycopg.OperationalError) and not error.sqlstate
    if is_of_connection or isinstance(error, LabError):
        return f"the session was lost, or took longer than {LONGEST:g} s"
    known = error.diag.message_primary if isinstance(error, psycopg.Error) else None
    text = known or str(error).strip()
    return text.splitlines()[0][:200] if text else type(error).__name__


_servers: dict[int, tuple[str, ExitStack]] = {}


def _server() -> str:
    """The address of this process's own server, started when it is first asked for."""
    if os.getpid() not in _servers:
        with ExitStack() as starting:
            server = tethered_postgres("--no-sync", *ALONE, memory=MEMORY)
            address = starting.enter_context(server).address
            with connect(address) as connection:
                for statement in SETUP:
                    connection.execute(statement.encode())
            _servers[os.getpid()] = address, starting.pop_all()
    return _servers[os.getpid()][0]


def end() -> None:
    """Ends this process's server, if there is one; the next answer gets a fresh one."""
    _, ending = _servers.pop(os.getpid(), ("", ExitStack()))
    ending.close()


atexit.register(end)
