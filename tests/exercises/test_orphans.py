"""The judge of 08-finish: what it does to a server, and what an answer cannot do."""

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
    assert found.observed == "left waiting: sales/1/0; committed: counts/1/0"


def test_nothing_is_left_on_the_server_and_the_next_case_may_use_the_same_names():
    assert not judged("SELECT 'COMMIT PREPARED ''counts/1/0'''").passed
    assert judged(RIGHT).passed
    with psycopg.connect(orphans._server(), autocommit=True) as connection:
        [waiting] = connection.execute(
            "SELECT count(*) FROM pg_prepared_xacts"
        ).fetchall()
        [schemas] = connection.execute(
            "SELECT count(*) FROM pg_namespace WHERE nspname LIKE 'case%'"
        ).fetchall()
    assert (waiting, schemas) == ((0,), (0,))


@pytest.mark.parametrize(
    ("query", "said"),
    [
        (3, "it must be a text"),
        ("  ", "it must be a text"),
        ("DROP TABLE job", "syntax error"),
        (f"{RIGHT}; SELECT 'x'", "syntax error"),
        ("SELECT pg_read_file('/etc/passwd')", "permission denied"),
        ("SELECT nextval('s')", "does not exist"),
        ("SELECT NULL", "NULL"),
        ("SELECT 'x' FROM generate_series(1, 51)", "more than 50 rows"),
        ("SELECT 1, 2 FROM job", "1: only COMMIT PREPARED"),
        ("SELECT pg_terminate_backend(pg_backend_pid())::text", "does not take"),
        ("SELECT lo_create(0)::text", "read-only"),
        ("SELECT 'COPY job TO PROGRAM ''id'''", "only COMMIT PREPARED"),
        ("SELECT 'SET ROLE labkit'", "only COMMIT PREPARED"),
        ("SELECT 'SELECT 1; SELECT 2'", "only COMMIT PREPARED"),
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
        "ALTER ROLE CURRENT_USER SET default_transaction_read_only = on",
        "SET statement_timeout = 0",
        "DO $$ BEGIN PERFORM pg_sleep(60); END $$",
        "SELECT pg_advisory_lock(1)",
        "COMMIT PREPARED 'counts/1/0'; DROP TABLE job",
        "COMMIT PREPARED 'counts/1/0''; DROP TABLE job",
        "PREPARE TRANSACTION 'left'",
    ],
)
def test_what_one_answer_sends_reaches_no_other(statement: str):
    quoted = statement.replace("'", "''")
    found = judged(f"SELECT '{quoted}'")
    assert not found.passed
    assert "only COMMIT PREPARED" in found.message
    assert judged(RIGHT).passed


def test_what_a_query_sets_does_not_outlive_it():
    taken = "SELECT set_config('statement_timeout', '0', false), pg_advisory_lock(1)"
    found = judged(f"SELECT s FROM ({RIGHT}) AS found(s), ({taken}) AS side")
    assert found.passed
    assert judged(RIGHT).passed
    with psycopg.connect(orphans._server(), autocommit=True) as connection:
        [roles] = connection.execute(
            "SELECT count(*) FROM pg_roles WHERE rolname LIKE 'case%'"
        ).fetchall()
    assert roles == (0,)


def test_a_query_without_end_is_ended():
    found = judged("SELECT pg_sleep(60)::text")
    assert "statement timeout" in found.message


def test_a_server_of_the_users_is_left_alone(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv(addresses.POSTGRES, "host=nowhere.invalid")
    assert judged(RIGHT).passed
