"""Judge SQL that finishes the prepared transactions of one job, by running it on a real PostgreSQL.

Only the server parses the learner's SELECT, in a READ ONLY transaction of a session that ends afterwards. The
rows of the SELECT are statements, which are sent in another session, and only if each of them is one COMMIT
PREPARED or ROLLBACK PREPARED (`FORM`). Both sessions use a database role that exists only for this test: it owns
nothing, may read two tables and add to one, and is dropped afterwards. The client cuts a session that lasts longer
than `LONGEST`, whatever the server does. If a session is lost or something cannot be dropped, the server is stopped
and the next test gets a new one, so no answer can affect the next. On Linux the memory of a session is limited
(`MEMORY`).

The server is the judge's own, nobody else uses it, and it ends with this process. A user's own server is never used.
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
"""The largest number of characters of one statement that a query returns."""
LONGEST = 8.0
"""The seconds after which the client closes a session; one runs the query, and another one sends its statements."""
FORM = re.compile(
    r"""\s* (?: COMMIT | ROLLBACK ) \s+ PREPARED \s*
    (?: (?: U& )? ' (?: [^'] | '' )* '
      | E ' (?: [^'\\] | \\. | '' )* '
      | \$ (?P<tag> (?: [a-z_]\w* )? ) \$ (?: (?! \$(?P=tag)\$ ) . )* \$(?P=tag)\$
    ) \s* ;? \s*""",
    re.VERBOSE | re.IGNORECASE | re.ASCII | re.DOTALL,
)
"""The form of a statement that may be sent: COMMIT PREPARED or ROLLBACK PREPARED, and a name.

The name is one constant: 'gid', E'gid', U&'gid', or $$gid$$, also with a tag. One semicolon may end it. Comments,
UESCAPE and a constant in several pieces are refused.
"""
SETUP = (
    "CREATE DATABASE elsewhere",
    "REVOKE TEMPORARY ON DATABASE postgres, elsewhere FROM PUBLIC",
    # This function writes to the server's log even in a READ ONLY transaction; its
    # arguments differ from version to version.
    """DO $$ DECLARE each regprocedure; BEGIN
    FOR each IN SELECT oid FROM pg_proc WHERE proname = 'pg_logical_emit_message' LOOP
    EXECUTE format('REVOKE EXECUTE ON FUNCTION %s FROM PUBLIC', each); END LOOP; END $$""",
)
"""Statements that prepare a new server once."""
QUERY = """
CREATE FUNCTION asked(query text) RETURNS SETOF text LANGUAGE plpgsql AS $$
BEGIN
    RETURN QUERY EXECUTE query;
EXCEPTION WHEN OTHERS THEN
    RAISE EXCEPTION USING MESSAGE = left(SQLERRM, 500), ERRCODE = SQLSTATE;
END $$
"""
"""A SQL function that runs a query with its caller's rights, and cuts an error message that may have a gigabyte."""
MEMORY = 512 * 1024**2
"""The number of bytes of address space of one server process, including 128 MiB that all of them share.

Only one session at a time runs an answer, and no query gets helper processes (`ALONE`), so this bounds the
memory of an answer. The limit applies to processes, because a cgroup needs a right that few learners have.
"""
ALONE = ("-c", "max_worker_processes=0", "-c", "max_logical_replication_workers=0")
LIMITS = ("statement_timeout = '5s'", "lock_timeout = '2s'", "temp_file_limit = '20MB'")
"""Limits of the role that runs a learner's query; a query could change the first two only for later statements."""


@dataclass(frozen=True)
class Case:
    """A test of the learner's query: a `job`, and the `prepared` transactions, each named `job/batch`.

    The query must commit the job's transactions up to the batch `decided`, and roll back its later ones.
    """

    job: str
    decided: int
    prepared: Sequence[str]
    elsewhere: Sequence[str]
    """Transactions prepared in another database of the same server."""

    @property
    def own(self) -> list[str]:
        """The names of the job's own transactions, prepared in this database; the query should finish all of them."""
        return [gid for gid in self.prepared if gid.split("/")[0] == self.job]

    @property
    def committed(self) -> list[str]:
        """The names of the transactions that the query should commit: those of the job, up to batch `decided`."""
        return sorted(gid for gid in self.own if int(gid.split("/")[1]) <= self.decided)

    @property
    def left(self) -> list[str]:
        """The names of the transactions that the query must not touch: those of other jobs or in another database."""
        others = [gid for gid in self.prepared if gid not in self.own]
        return sorted([*others, *self.elsewhere])


def judge_orphans(answer: Answer, variant: Variant) -> Finding:
    """Test a learner's query that returns statements to finish prepared transactions, on a real PostgreSQL.

    Raises `ServiceUnavailable` if no PostgreSQL can be started or set up.
    """
    parameters = dict(variant.parameters)
    case = Case(parameters["job"], parameters["decided"], parameters["prepared"], parameters.get("elsewhere", ()))
    try:
        query = _query(answer.value())
        with closing(_judge_place(case)) as place:
            statements = _formed(place.statements(query))
            refused = place.sent(statements)
            committed, left = place.committed(), place.waiting()
    except Unusable as error:
        return Finding(
            False,
            str(error),
            general="PostgreSQL rejected finish_sql, or one of its rows is not one COMMIT PREPARED 'gid' "
            "or ROLLBACK PREPARED 'gid'.",
        )
    return _finding(case, statements, refused, committed, left)


def _query(value: Plain) -> str:
    if type(value) is not str or not value.strip():
        raise Unusable(f"finish_sql is {shown(value)}; it must be a text with one SELECT.")
    if "\0" in value:
        raise Unusable("finish_sql contains the character NUL, which SQL text must not contain; remove it.")
    return value.strip().removesuffix(";")


def _formed(statements: Sequence[str]) -> Sequence[str]:
    for statement in statements:
        if not FORM.fullmatch(statement):
            raise Unusable(
                f"finish_sql returns {shown(statement)}, so labkit sent none of its statements; each row must be one "
                "COMMIT PREPARED 'gid' or ROLLBACK PREPARED 'gid' (write a quote within the gid twice)."
            )
    return statements


def _finding(
    case: Case, statements: Sequence[str], refused: str, committed: Sequence[str], left: Sequence[str]
) -> Finding:
    waits = f"still prepared: {_names(left)}; committed: {_names(committed)}"
    wanted = f"still prepared: {_names(case.left)}; committed: {_names(case.committed)}"
    message = f"Job {case.job!r}, decided up to {case.decided}; prepared: {_names([*case.prepared, *case.elsewhere])}."
    for is_wrong, what in (
        (bool(refused), f"PostgreSQL refused one of your statements: {refused}"),
        (bool(set(case.left) - set(left)), "You finished a transaction that is not this job's."),
        (bool(set(left) - set(case.left)), "A transaction of this job is still prepared."),
        (list(committed) != case.committed, "A decided batch was rolled back, or an undecided one was committed."),
    ):
        if is_wrong:
            general = what.partition(":")[0].rstrip(".") + "."
            return Finding(False, f"{message} {what} {waits}.", waits, wanted, general=general)
    sent = "; ".join(statements) or "nothing"
    return Finding(True, f"{message} Sent: {sent}. Then {waits}.", waits)


def _names(gids: Sequence[str]) -> str:
    return ", ".join(gids) or "nothing"


class _Place:
    """The schema of one test, the role that runs the learner's query, and the connection for setting the test up."""

    def __init__(self, address: str, owner: Connection) -> None:
        self.name = f"case_{uuid.uuid4().hex[:12]}"
        """The name of both the schema and the role."""
        self.lost = False
        """Whether the server must be stopped, because it has ended or may still be busy with an answer."""
        self._address, self._owner = address, owner

    def prepare(self, case: Case) -> None:
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
        self._owner.execute(QUERY)
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

    def statements(self, query: str) -> list[str]:
        """Run the learner's query, and return its rows, each of which is a statement as text.

        Raises `Unusable` if the server rejects the query (with the server's message), or for NULL or too many rows.
        """
        wrapped = (
            f"SELECT left(statement::text, {MOST_CHARACTERS}) FROM (\n{query}\n) AS answer(statement) "  # noqa: S608  # a role that may do nothing runs it
            f"LIMIT {MOST_STATEMENTS + 1}"
        )
        try:
            with self._session() as learner:
                learner.execute("BEGIN READ ONLY")
                # PREPARE accepts only a single statement. It gets the query without our brackets, because
                # a query that is complete on its own cannot close them and escape the limits.
                learner.execute(f"PREPARE answer AS {query}".encode(), prepare=True)
                rows = learner.execute("SELECT asked(%s)", (wrapped,)).fetchall()
        except (psycopg.Error, LabError, UnicodeError) as error:
            raise Unusable(f"PostgreSQL rejected finish_sql: {_error_text(error)}") from None
        if len(rows) > MOST_STATEMENTS:
            raise Unusable(
                f"finish_sql returns more than {MOST_STATEMENTS} rows; return one for each transaction to finish."
            )
        if any(statement is None for (statement,) in rows):
            raise Unusable("finish_sql returns NULL in one of its rows; each row must be a statement.")
        return [str(statement) for (statement,) in rows]

    def sent(self, statements: Sequence[str]) -> str:
        """Send the statements one by one, and return a text with the first that fails and its error message.

        The text is empty if none fails.
        """
        statement = "nothing"
        try:
            with self._session() as learner:
                for statement in statements:
                    learner.execute(statement.encode(), prepare=True)
        except (psycopg.Error, LabError, UnicodeError) as error:
            return f"{statement}: {_error_text(error)}."
        return ""

    def committed(self) -> list[str]:
        """Return the names of the committed transactions, each of which left a row in the table `done`."""
        return self._seen('SELECT gid FROM done ORDER BY gid COLLATE "C"')

    def waiting(self) -> list[str]:
        """Return the names of the transactions that are still prepared, in all databases of the server."""
        return sorted(self._seen("SELECT gid FROM pg_prepared_xacts"))

    def close(self) -> None:
        """Drop the schema and the role of the test; if that fails or a connection broke, stop the server instead."""
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
        waiting = "SELECT gid, database FROM pg_prepared_xacts"
        for gid, database in self._owner.execute(waiting).fetchall():
            with connect(make_conninfo(self._address, dbname=str(database))) as connection:
                connection.execute(sql.SQL("ROLLBACK PREPARED {}").format(sql.Literal(gid)))
        self._run("DROP SCHEMA {} CASCADE")
        self._run("DROP OWNED BY {}")
        with connect(make_conninfo(self._address, dbname="elsewhere")) as connection:
            connection.execute(sql.SQL("DROP OWNED BY {}").format(sql.Identifier(self.name)))
        self._run("DROP ROLE {}")

    @contextmanager
    def _session(self, database: str = "postgres") -> Iterator[Connection]:
        """Provide a connection with the PostgreSQL role that runs the learner's query, for a `with` block.

        The connection is cut after `LONGEST` seconds, even if the block has not ended.
        """
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
            raise Unusable(
                f"PostgreSQL ended while finish_sql ran ({_error_text(error)}); run the check again, which starts a "
                "new server."
            ) from None


def _judge_place(case: Case) -> _Place:
    if os.getpid() in _servers:
        with suppress(ServiceUnavailable):
            return _set_up(case)
    return _set_up(case)


def _set_up(case: Case) -> _Place:
    """Set up a test on this process's PostgreSQL server, and return the test's schema, role and connection.

    If the setup fails, stop the server, because it may contain a part of the setup.
    """
    address = _server()
    with ExitStack() as failing:
        failing.callback(end)
        try:
            owner = failing.enter_context(closing(connect(address)))
            place = _Place(address, owner)
            place.prepare(case)
        except (psycopg.Error, LabError) as error:
            message = str(error).splitlines()[0]
            raise ServiceUnavailable(f"labkit cannot set up its private PostgreSQL: {message}") from error
        failing.pop_all()
    return place


def _prepare(connection: Connection, gid: str, statement: str) -> None:
    connection.execute("BEGIN")
    connection.execute(statement.encode(), (gid,))
    connection.execute(sql.SQL("PREPARE TRANSACTION {}").format(sql.Literal(gid)))


@contextmanager
def _cut_after(seconds: float, connection: Connection) -> Iterator[None]:
    """Close the connection's socket after some seconds, because a busy server may not obey its own timeout."""
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


def _error_text(error: Exception) -> str:
    is_of_connection = isinstance(error, psycopg.OperationalError) and not error.sqlstate
    if is_of_connection or isinstance(error, LabError):
        return f"the session was lost, or took longer than {LONGEST:g} s"
    primary = error.diag.message_primary if isinstance(error, psycopg.Error) else None
    text = primary or str(error).strip()
    return text.splitlines()[0][:200] if text else type(error).__name__


_servers: dict[int, tuple[str, ExitStack]] = {}


def _server() -> str:
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
    """Stop the PostgreSQL server of this process, if it runs; the next test starts a new one."""
    _, ending = _servers.pop(os.getpid(), ("", ExitStack()))
    ending.close()


atexit.register(end)
