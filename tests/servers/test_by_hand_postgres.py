"""SQL by hand on a real PostgreSQL: what the server says is what is shown, and nothing is left."""

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from other_processes import until_killed, with_word
from waiting import until

from labkit.core.errors import InvalidInput, ServiceUnavailable
from labkit.host import addresses
from labkit.teach.hands_on import private
from labkit.teach.hands_on.postgres import Postgres
from labkit.teach.hands_on.postgres import postgres as by_hand


@pytest.fixture
def server(postgres: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Postgres]:
    """A schema of this test's own on the server of all tests, as on a user's own server."""
    monkeypatch.setenv(addresses.POSTGRES, postgres)
    found = by_hand()
    yield found
    found.clean()


def test_a_prepared_transaction_outlives_its_session_and_its_error_is_an_answer(server: Postgres) -> None:
    writer, other = server.session("writer"), server.session("other")
    said = writer.run("CREATE TABLE t (n int)", "BEGIN", "INSERT INTO t VALUES (1)", "PREPARE TRANSACTION 'hand-1'")
    assert str(said).splitlines()[-1] == "writer: PREPARE TRANSACTION"
    writer.crash()
    assert other.run("SELECT n FROM t").rows == []
    assert str(other.run("SELECT n FROM t")) == "other: n\nother: (no row)"
    assert other.run("COMMIT PREPARED 'hand-1'", "SELECT n FROM t").value == 1
    again = other.run("COMMIT PREPARED 'hand-1'", "SELECT 2")
    assert (again.code, len(again.answers)) == ("42704", 1)
    assert str(again).startswith("other: ERROR 42704: ")


def test_a_connection_of_ones_own_has_the_same_tables_and_a_block_is_one_transaction(server: Postgres) -> None:
    reader = server.session("reader")
    reader.run("CREATE TABLE t (n int)")
    with server.connect() as connection:
        connection.execute("INSERT INTO t VALUES (%s)", [1])
        assert reader.run("SELECT n FROM t").rows == []
    assert reader.run("SELECT n FROM t").value == 1
    with suppress(ZeroDivisionError), server.connect() as connection:
        connection.execute("INSERT INTO t VALUES (2)")
        raise ZeroDivisionError
    assert reader.run("SELECT count(*) FROM t").value == 1


def test_an_open_transaction_dies_with_its_session(server: Postgres) -> None:
    writer, other = server.session("writer"), server.session("other")
    writer.run("CREATE TABLE t (n int)", "BEGIN", "INSERT INTO t VALUES (1)")
    writer.crash()
    assert other.run("SELECT n FROM t").rows == []
    with pytest.raises(ServiceUnavailable, match="closed; open another session"):
        writer.run("COMMIT")


LOCKS = "FROM pg_prepared_xacts JOIN pg_locks ON virtualtransaction = '-1/' || transaction WHERE gid = 'held'"


def test_the_locks_of_an_orphan_are_found_through_the_lock_on_its_own_id(server: Postgres) -> None:
    """The manual's join finds them only after a start of the server, which notebook 08 shows on PostgreSQL 18."""
    writer, reader = server.session("writer"), server.session("reader")
    writer.run("CREATE TABLE t (n int)", "BEGIN", "INSERT INTO t VALUES (1)")
    writer.run("PREPARE TRANSACTION 'held'")
    writer.crash()
    assert reader.run(f"SELECT count(*) {LOCKS}").value == 0
    held = reader.run(
        """SELECT held.locktype FROM pg_prepared_xacts
           JOIN pg_locks own ON own.transactionid = transaction AND own.granted
           JOIN pg_locks held ON held.virtualtransaction = own.virtualtransaction
           WHERE gid = 'held' ORDER BY 1"""
    )
    assert held.rows == [("relation",), ("transactionid",)]


def test_mistakes_are_sentences(server: Postgres) -> None:
    session = server.session("me")
    assert session.run("SELEC 1").code == "42601"
    with pytest.raises(InvalidInput, match="needs a statement"):
        session.run()
    with pytest.raises(InvalidInput, match="no row"):
        session.run("SELECT 1 WHERE false").value  # noqa: B018  # it raises
    assert "your own server" in server.kill()


def test_what_was_prepared_and_forgotten_is_gone_with_the_next_call(server: Postgres) -> None:
    session = server.session("me")
    session.run("CREATE TABLE t (n int)", "BEGIN", "INSERT INTO t VALUES (1)", "PREPARE TRANSACTION 'it''s'")
    watcher = by_hand().session("watcher")
    gids = watcher.run("SELECT gid FROM pg_prepared_xacts WHERE gid LIKE 'it%'").rows
    schemas = watcher.run("SELECT nspname FROM pg_namespace WHERE nspname LIKE 'notebook%'").rows
    assert (gids, len(schemas)) == ([], 1)


KERNEL = """
import sys
from labkit import lab
from labkit.teach.hands_on import private
server = lab.postgres()
session = server.session("me")
session.run("CREATE TABLE t (n int)", "BEGIN", "INSERT INTO t VALUES (1)", "PREPARE TRANSACTION 'x'")
session.crash()
print(server.kill().endswith("yes"))
print(server.session("other").run("COMMIT PREPARED 'x'", "SELECT n FROM t").value)
print(private._private["LABKIT_POSTGRES"][1].folder, flush=True)
sys.stdin.read()
"""


def test_a_private_server_survives_its_own_death_and_ends_with_a_killed_kernel() -> None:
    with until_killed(KERNEL, without=addresses.POSTGRES) as line:
        assert [line(), line()] == ["True", "1"]
        folder = Path(line())
        assert folder.is_dir()
    until(lambda: not folder.exists() and not with_word(str(folder)), f"the end of {folder} and of every process in it")


def test_the_private_server_is_found_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(private._private, "X", (os.getpid(), private.Server("here", Path())))
    monkeypatch.delenv("X", raising=False)

    def never() -> None:
        pytest.fail("another one was started")

    assert private.find("X", never).address == "here"
    assert os.environ["X"] == "here"
    monkeypatch.setenv("X", "yours")
    assert private.find("X", never) == private.Server("yours", None)
