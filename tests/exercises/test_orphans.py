"""The judge of 08-finish: what it does to a server, and what an answer cannot do."""

import resource
import sys
from pathlib import Path

import psycopg
import pytest

from labkit.host import addresses
from labkit.teach.exercises import orphans
from labkit.teach.exercises.contract import Finding, Variant
from labkit.teach.exercises.namespace import InNotebook
from labkit.teach.exercises.registry import find

EXERCISE = find("08-finish")
NAMES = ("counts/1/0", "counts/2/0", "sales/1/0")
VARIANT = Variant("one", (("job", "counts"), ("decided", 1), ("prepared", NAMES)))
RIGHT = """SELECT format(CASE WHEN split_part(gid, '/', 2)::int <= decided THEN 'COMMIT PREPARED %L'
                              ELSE 'ROLLBACK PREPARED %L' END, gid)
           FROM pg_prepared_xacts, job WHERE database = current_database() AND split_part(gid, '/', 1) = name"""


def judged(query: object) -> Finding:
    return EXERCISE.judge(InNotebook("finish_sql", {"finish_sql": query}), VARIANT)


def test_a_right_query_passes_and_says_what_was_sent():
    found = judged(f"{RIGHT}; ")
    assert found.passed
    assert "COMMIT PREPARED 'counts/1/0'" in found.message
    assert found.observed == "still prepared: sales/1/0; committed: counts/1/0"


def test_nothing_is_left_on_the_server_and_the_next_case_may_use_the_same_names():
    assert not judged("SELECT 'COMMIT PREPARED ''counts/1/0'''").passed
    assert judged(RIGHT).passed
    with psycopg.connect(orphans._server(), autocommit=True) as connection:
        [waiting] = connection.execute("SELECT count(*) FROM pg_prepared_xacts").fetchall()
        [roles] = connection.execute("SELECT count(*) FROM pg_roles WHERE rolname LIKE 'case%'").fetchall()
        [schemas] = connection.execute("SELECT count(*) FROM pg_namespace WHERE nspname LIKE 'case%'").fetchall()
    assert (waiting, schemas, roles) == ((0,), (0,), (0,))


@pytest.mark.parametrize(
    ("query", "said"),
    [
        (3, "it must be a text"),
        ("  ", "it must be a text"),
        ("DROP TABLE job", "syntax error"),
        (f"{RIGHT}; SELECT 'x'", "multiple commands"),
        ("SELECT 'x'\0", "NUL"),
        ("SELECT 'x') AS answer(statement) --", "syntax error"),
        ("SELECT pg_read_file('/etc/passwd')", "permission denied"),
        ("SELECT nextval('s')", "does not exist"),
        ("SELECT NULL", "NULL"),
        ("SELECT 'x' FROM generate_series(1, 51)", "more than 50 rows"),
        ("SELECT 1, 2 FROM job", "returns '1'"),
        ("SELECT 'COMMIT PREPARED ''nobody/1/0'''", "does not exist"),
    ],
)
def test_what_an_answer_cannot_do_is_said(query: object, said: str):
    found = judged(query)
    assert not found.passed
    assert said in found.message
    assert found.general


@pytest.mark.parametrize(
    "statement",
    [
        "ALTER ROLE learner SET default_transaction_read_only = on",
        "ALTER ROLE CURRENT_USER SET default_transaction_read_only = on",
        "SET statement_timeout = 0",
        "SELECT pg_sleep(60)",
        "SET ROLE labkit",
        "DO $$ BEGIN PERFORM pg_sleep(60); END $$",
        "COPY job TO PROGRAM 'touch /tmp/labkit-was-here'",
        "CREATE TABLE mine AS SELECT 1",
        "COMMIT PREPARED 'counts/1/0'; COMMIT PREPARED 'counts/2/0'",
        "COMMIT PREPARED 'counts/1/0'; DROP TABLE done",
        "PREPARE TRANSACTION 'counts/3/0'",
        "COMMIT PREPARED 'counts/1/0",
        "COMMIT PREPARED 'o'clock/1/0'",
        "COMMIT PREPARED E'counts\\'",
        "COMMIT PREPARED $a$counts/1/0$b$",
        "COMMIT PREPARED 'counts/1/0' -- decided",
        "COMMIT",
        "",
    ],
)
def test_another_statement_is_refused_before_any_is_sent(statement: str):
    found = judged(f"VALUES ('COMMIT PREPARED ''sales/1/0'''), ($answer${statement}$answer$)")
    assert not found.passed
    assert "sent none of its statements" in found.message
    assert "sales" not in found.message
    assert judged(RIGHT).passed


@pytest.mark.parametrize(
    "form",
    [
        "commit prepared 'counts/1/0';",
        "\n Commit\tPrepared\n'counts/1/0' ; ",
        "COMMIT PREPARED E'counts\\x2f1/0'",
        "COMMIT PREPARED U&'counts\\002f1/0'",
        "COMMIT PREPARED $$counts/1/0$$",
        "COMMIT PREPARED $gid$counts/1/0$gid$",
    ],
)
def test_every_form_of_a_constant_is_sent(form: str):
    found = judged(f"VALUES ($answer${form}$answer$), ('ROLLBACK PREPARED ''counts/2/0''')")
    assert found.passed, found.message


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("SELECT set_config('default_transaction_read_only', 'on', false)", "returns 'on'"),
        ("SELECT set_config('transaction_read_only', 'off', false)", "read-write mode"),
        ("SELECT set_config('statement_timeout', '0', false)", "returns '0'"),
        ("SELECT set_config('role', 'labkit', false)", "permission denied"),
        ("SELECT set_config('client_encoding', 'SJIS', false) || '\u2460'", "codec"),
        ("SELECT lo_from_bytea(4711, 'x')::text", "read-only"),
        ("SELECT pg_logical_emit_message(false, 'x', 'y')::text", "permission denied"),
        ("SELECT pg_notify('x', 'y')::text", "returns ''"),
        ("SELECT query_to_xml('DELETE FROM job', true, true, '')::text", "not allowed"),
        ("SELECT pg_advisory_lock(1)::text", "returns ''"),
        ("DELETE FROM job RETURNING name", "syntax error"),
        ("SELECT 'x' FROM generate_series(1, 10000)", "more than 50 rows"),
        (
            """SELECT 'x') AS answer(statement) UNION ALL SELECT repeat('x', 1000)
            FROM generate_series(1, 10000), (SELECT 1""",
            "syntax error",
        ),
        ("SELECT format('COMMIT PREPARED %L', gid) FROM pg_prepared_xacts", "not this job's"),
        (
            """SELECT pg_terminate_backend(pid)::text FROM pg_stat_activity
            WHERE pid <> pg_backend_pid()""",
            "permission denied",
        ),
        ("SELECT pg_terminate_backend(pg_backend_pid())::text", "terminating"),
    ],
)
def test_what_a_query_does_to_its_session_reaches_nobody(query: str, said: str):
    found = judged(query)
    assert not found.passed
    assert said in found.message
    assert judged(RIGHT).passed


@pytest.mark.slow
@pytest.mark.parametrize(
    "query",
    ["SELECT pg_sleep(60)::text", "SELECT pg_sleep(60)::text WHERE set_config('statement_timeout', '0', false) = '0'"],
)
def test_a_query_without_end_is_ended(query: str):
    found = judged(query)
    assert "statement timeout" in found.message
    assert judged(RIGHT).passed


def test_an_error_that_quotes_a_huge_value_reaches_the_judge_as_a_short_one():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    found = judged("SELECT repeat('x', 30000000)::int::text")
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert "invalid input syntax" in found.message
    assert grown * (1 if sys.platform == "darwin" else 1024) < 25_000_000


@pytest.mark.skipif(sys.platform != "linux", reason="no such limit elsewhere")
@pytest.mark.parametrize(
    "query",
    [
        "SELECT repeat('x', 900000000)",
        "SELECT array_agg(repeat(g::text, 100000))::text FROM generate_series(10000, 12000) g",
    ],
)
def test_a_query_that_wants_all_memory_gets_an_error_and_the_server_goes_on(query: str):
    assert judged(RIGHT).passed
    before = orphans._server()
    found = judged(query)
    assert not found.passed
    assert "memory" in found.message
    assert judged(RIGHT).passed
    assert orphans._server() == before


@pytest.mark.skipif(sys.platform != "linux", reason="no such limit elsewhere")
def test_no_session_may_lift_its_limit_or_have_helpers():
    assert judged(RIGHT).passed
    with psycopg.connect(orphans._server()) as connection:
        limits = Path(f"/proc/{connection.info.backend_pid}/limits").read_text()
        [helpers] = connection.execute("SHOW max_worker_processes").fetchone()
    [space] = [line for line in limits.splitlines() if "address space" in line]
    assert space.split()[3:5] == [str(orphans.MEMORY)] * 2
    assert helpers == "0"


def test_a_session_that_its_server_does_not_end_is_cut(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(orphans, "LONGEST", 1.0)
    before = orphans._server()
    found = judged("SELECT pg_sleep(60)::text")
    assert "longer than 1 s" in found.message
    monkeypatch.undo()
    assert judged(RIGHT).passed
    assert orphans._server() != before


def test_a_server_that_dies_under_an_answer_is_replaced(monkeypatch: pytest.MonkeyPatch):
    asked = orphans._Place.statements

    def and_dies(place: orphans._Place, query: str) -> list[str]:
        statements = asked(place, query)
        orphans.end()
        return statements

    with monkeypatch.context() as patch:
        patch.setattr(orphans._Place, "statements", and_dies)
        found = judged(RIGHT)
    assert not found.passed
    assert "PostgreSQL" in found.message
    assert judged(RIGHT).passed


def test_a_server_that_was_spoiled_between_two_answers_is_replaced():
    before = orphans._server()
    with psycopg.connect(before, autocommit=True) as connection:
        connection.execute("ALTER ROLE labkit SET default_transaction_read_only = on")
    assert judged(RIGHT).passed
    assert orphans._server() != before


def test_a_server_of_the_users_is_left_alone(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv(addresses.POSTGRES, "host=nowhere.invalid")
    assert judged(RIGHT).passed
