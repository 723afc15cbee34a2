"""What only a real PostgreSQL can show: orphans and their locks, a server that dies, rights, and names."""

import signal
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import psycopg
import pytest
import small_disk
from hypothesis import given
from hypothesis import strategies as st
from other_processes import has_ended
from plain_engine import PlainEngine
from store_rows import HANDLE, prepare, row, written
from waiting import until

from labkit.core.errors import InvalidInput, JobFailed, LabError, ServiceUnavailable
from labkit.core.failpoints import Crash, FailPoint, Order
from labkit.core.judge import Guarantee
from labkit.core.records import Observation
from labkit.core.strategies import Strategy
from labkit.host import addresses
from labkit.host.servers import postgres_connection
from labkit.host.servers.postgres import PostgresService
from labkit.host.servers.tethered import _fresh_folder
from labkit.stores.contract import Handle
from labkit.stores.postgres import prepared as postgres_prepared
from labkit.stores.postgres import schema as postgres_schema
from labkit.stores.postgres.store import PostgresStore, sweep


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "run" / "store" / "postgres"


@pytest.fixture
def store(place: Path) -> Iterator[PostgresStore]:
    with closing(PostgresStore(place)) as opened:
        yield opened


@pytest.fixture
def by_hand(postgres: str) -> Iterator[psycopg.Connection]:
    with psycopg.connect(postgres, autocommit=True) as connection:
        yield connection


@pytest.fixture(scope="module")
def own() -> Iterator[PostgresService]:
    """A server that a test may kill and configure; it is up when a test begins."""
    found = PostgresService(_fresh_folder(), settings=["--no-sync"])
    yield found
    found.discard()


@pytest.fixture
def server(own: PostgresService, monkeypatch: pytest.MonkeyPatch) -> Iterator[PostgresService]:
    own.up()
    monkeypatch.setenv(addresses.POSTGRES, own.address)
    yield own
    own.up()
    with psycopg.connect(own.address, autocommit=True) as connection:  # PostgreSQL starts with no more than it allows
        for gid in gids(connection):
            connection.execute(f"ROLLBACK PREPARED '{gid}'".encode())


def kill(server: PostgresService) -> None:
    killed = server.kill()
    assert len(killed) > 3
    until(lambda: all(map(has_ended, killed)), "the end of every process of the server")
    assert server.status().state == "stale"


@pytest.fixture(autouse=True, scope="module")
def nothing_prepared(postgres: str) -> None:
    """Writers that other tests have killed may have left transactions: here they would be counted."""
    with psycopg.connect(postgres, autocommit=True) as connection:
        for gid in gids(connection):
            connection.execute(psycopg.sql.SQL("ROLLBACK PREPARED {}").format(psycopg.sql.Literal(gid)))


def gids(connection: psycopg.Connection) -> set[str]:
    return {gid for (gid,) in connection.execute("SELECT gid FROM pg_prepared_xacts")}


# Names

handles = st.builds(Handle, st.from_regex(r"[a-z0-9_]{1,40}", fullmatch=True), *[st.integers(0, 2**63)] * 4)


@given(handles, handles)
def test_no_two_handles_share_a_gid_and_none_is_too_long(one: Handle, other: Handle) -> None:
    found = postgres_schema.gid_of("labkit_0123456789abcdef", one)
    assert len(found.encode()) < 200
    assert (found == postgres_schema.gid_of("labkit_0123456789abcdef", other)) == (one == other)
    assert list(postgres_schema.handles_in("labkit_0123456789abcdef", [found, f"x{found}", "labkit:"])) == [one]
    assert list(postgres_schema.handles_in("labkit_0123456789abcde", [found])) == []


def test_a_name_that_the_server_would_not_take_is_refused_before_anything_is_open(store: PostgresStore) -> None:
    with pytest.raises(InvalidInput, match="at most 199 bytes; give the query a shorter name"):
        store.begin(HANDLE._replace(query="q" * 200))
    assert store.prepared("q" * 200) == []


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=20).map(lambda text: text.replace("x", "\\")))
def test_any_key_survives_as_text(key: str) -> None:
    assert "\0" not in postgres_schema.key_to_text(key)
    assert postgres_schema.key_from_text(postgres_schema.key_to_text(key)) == key


def test_what_an_open_or_prepared_transaction_hides_can_be_read_whatever_its_keys_are(store: PostgresStore) -> None:
    odd = ["", " ", "NULL", '"', "\\", "\\0", "\0", "{a,b}", "a\nb\tc\r", "'", "%s", "é\u2028", "w" * 3000]
    rows = [Observation(number, odd[number % len(odd)] + str(number), number, 0, 1) for number in range(2500)]
    transaction = store.begin(HANDLE)
    for one in rows:
        transaction.write(one)
    assert list(store.hidden()) == rows[:2001], "one alone, then a thousand at a time"
    transaction.prepare()
    assert list(store.hidden()) == rows
    store.commit(HANDLE)
    assert list(store.hidden()) == []
    assert list(store.history()) == rows


def test_a_bare_name_is_the_schema_and_any_path_gives_one_of_its_own() -> None:
    assert postgres_schema.schema_of(Path("orders")) == "orders"
    assert postgres_schema.schema_of(Path("/a/orders")) != postgres_schema.schema_of(Path("/b/orders"))
    assert postgres_schema.schema_of(Path("Orders!")).startswith("labkit_")


def test_a_schema_of_somebody_else_is_not_touched(by_hand: psycopg.Connection) -> None:
    with closing(PostgresStore(Path("public"))) as foreign:
        for step in (lambda: foreign.append(row(0)), foreign.destroy, lambda: list(foreign.history())):
            with pytest.raises(InvalidInput, match="schema public exists, but the lab did not"):
                step()
    assert by_hand.execute("SELECT to_regnamespace('public') IS NOT NULL").fetchone() == (True,)


# Orphans


def test_one_recovery_resolves_fifty_orphans_and_touches_no_foreign_one(
    tmp_path: Path, by_hand: psycopg.Connection
) -> None:
    """Two are from killed drivers, at different points; the others are made here: prepared, or open."""
    engine = PlainEngine(tmp_path, Strategy.TWO_PHASE, "postgres", Order.DECISION)
    assert engine.drive(Crash(FailPoint.MID_WRITE)) == signal.SIGKILL
    store = PostgresStore(engine.location)
    assert [handle.incarnation for handle in store.prepared("plain")] == [1, 1]
    left = [Handle("plain", number // 7, number % 7, 1, 100 + number) for number in range(48)]
    for number, handle in enumerate(left):
        transaction = written(store, handle, number)
        if number % 4:
            transaction.prepare()
    foreign = [Handle("plain_2", 0, 0, 1, 1), Handle("plai", 0, 0, 1, 1)]
    for handle in foreign:
        prepare(store, handle, 0)
    by_hand.execute("BEGIN; CREATE TABLE t_of_somebody (n int); PREPARE TRANSACTION 'somebody-plain-b0-p0-i1-a1'")
    try:
        assert len(store.prepared("plain")) == 50
        assert engine.drive() == 0
        assert store.prepared("plain") == []
        assert [handle for each in foreign for handle in store.prepared(each.query)] == foreign
        assert "somebody-plain-b0-p0-i1-a1" in gids(by_hand)
        verdict = engine.verdict()
        assert (verdict.guarantee, verdict.rows) == (Guarantee.UNKNOWN if verdict.unseen else "exactly-once", 3)
    finally:
        by_hand.execute("ROLLBACK PREPARED 'somebody-plain-b0-p0-i1-a1'")
        store.destroy()
        store.close()
    assert not gids(by_hand)


def test_a_writer_that_an_abort_could_not_end_in_time_cannot_prepare_all_the_same(
    store: PostgresStore, by_hand: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The line in `opened` decides between the abort and the preparation, not who is faster."""
    monkeypatch.setattr(postgres_prepared, "terminate", lambda *_: None)
    transaction = written(store, HANDLE, 0)
    store.abort(HANDLE)
    with pytest.raises(JobFailed, match="was aborted while it was open"):
        transaction.prepare()
    assert (gids(by_hand), list(store.history()), list(store.hidden())) == (set(), [], [])


def test_a_marked_transaction_that_a_fence_could_not_end_in_time_cannot_commit_all_the_same(
    store: PostgresStore, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres_prepared, "terminate", lambda *_: None)
    marking = store.transaction(HANDLE)
    marking.__enter__()(row(0))
    with closing(PostgresStore(place)) as later:
        later.fence("q", 2)
    with pytest.raises(JobFailed, match="Driver 1 of the query q was replaced"):
        marking.__exit__(None, None, None)
    assert (list(store.history()), store.has_marker("q", 0)) == ([], False)


def test_an_orphan_that_holds_a_row_is_named_instead_of_waited_for(
    store: PostgresStore, by_hand: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres_connection, "LOCK_SECONDS", 0.3)
    store.upsert(row(0))
    change = f"UPDATE {store.schema}.totals SET value = -1 WHERE key = 'hello'"
    by_hand.execute(f"BEGIN; {change}; PREPARE TRANSACTION 'orphan of hello'")
    with pytest.raises(JobFailed, match=r"waited 0\.3 s for a lock; .*prepared.*orphan of hello.*ROLLBACK PREPARED"):
        store.upsert(row(1))
    assert list(store.history()) == [row(0)]
    by_hand.execute("ROLLBACK PREPARED 'orphan of hello'")
    store.upsert(row(1))
    assert list(store.history()) == [row(0), row(1)]


def test_a_prepared_transaction_waits_through_restarts_of_the_server(server: PostgresService, place: Path) -> None:
    with closing(PostgresStore(place)) as before:
        prepare(before, HANDLE, 0, 1)
    for _ in range(2):
        server.down()
        server.up()
    with closing(PostgresStore(place)) as after:
        assert (list(after.history()), list(after.hidden())) == ([], [row(0), row(1)])
        after.commit(HANDLE)
        after.commit(HANDLE)
        assert (list(after.history()), list(after.hidden())) == ([row(0), row(1)], [])


def test_what_somebody_commits_by_hand_is_seen_and_need_not_be_committed(
    store: PostgresStore, by_hand: psycopg.Connection
) -> None:
    prepare(store, HANDLE, 0)
    by_hand.execute(f"COMMIT PREPARED '{postgres_schema.gid_of(store.schema, HANDLE)}'")
    store.commit(HANDLE)
    assert (list(store.history()), list(store.hidden()), store.prepared("q")) == ([row(0)], [], [])


# A server that dies


def test_a_server_that_is_killed_between_pre_commit_and_commit_loses_and_doubles_nothing(
    server: PostgresService, tmp_path: Path
) -> None:
    engine = PlainEngine(tmp_path, Strategy.TWO_PHASE, "postgres", Order.DECISION)
    assert engine.drive(Crash(FailPoint.AFTER_COMMIT_LOG)) == signal.SIGKILL
    kill(server)
    server.up()
    with closing(PostgresStore(engine.location)) as store:
        assert sorted(one.offset for one in store.hidden()) == [0, 1, 2]
    assert engine.drive() == 0
    assert (engine.verdict().guarantee, engine.verdict().rows) == (Guarantee.EXACTLY_ONCE, 3)


@pytest.mark.parametrize("moment", ["write", "prepare", "commit", "append", "recovery"])
def test_a_server_that_is_down_gives_a_sentence_and_nothing_is_lost_or_doubled(
    server: PostgresService, place: Path, moment: str
) -> None:
    with closing(PostgresStore(place)) as store:
        store.append(row(0))
        prepare(store, HANDLE, 1)
        transaction = written(store, HANDLE._replace(partition=1), 2)
        steps: dict[str, Callable[[], object]] = {
            "write": lambda: [transaction.write(row(3)) for _ in range(1_000)],
            "prepare": transaction.prepare,
            "commit": lambda: store.commit(HANDLE),
            "append": lambda: store.append(row(4)),
            "recovery": lambda: store.prepared("q"),
        }
        kill(server)
        with pytest.raises(ServiceUnavailable, match=r"PostgreSQL at .*(connection|does not answer)"):
            steps[moment]()
        server.up()
    with closing(PostgresStore(place)) as after:
        assert after.prepared("q") == [HANDLE]
        after.commit(HANDLE)
        assert list(after.history()) == [row(0), row(1)]


@pytest.mark.slow
def test_a_full_disk_of_the_server_is_said_and_what_was_committed_stays(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = _fresh_folder()
    if not small_disk.mount(disk, 200):
        disk.rmdir()
        pytest.skip("This user may not mount a small disk.")
    full = PostgresService(disk / "server", settings=["--no-sync"])
    try:
        disk.chmod(0o755)
        monkeypatch.setenv(addresses.POSTGRES, full.up().address)
        with closing(PostgresStore(place)) as store:
            store.append(row(0))
            prepare(store, HANDLE, 1)
            ballast = small_disk.fill(disk, 2_000_000)
            rows = (tuple(row(number) for number in range(start, start + 1_000)) for start in range(2, 200_000, 1_000))
            with pytest.raises((JobFailed, ServiceUnavailable), match=r"PostgreSQL at .*run again\.$") as told:
                deque((store.append(*each) for each in rows), maxlen=0)
            assert "\n" not in str(told.value)
        ballast.unlink()
        monkeypatch.setenv(addresses.POSTGRES, full.up().address)
        with closing(PostgresStore(place)) as after:
            assert after.prepared("q") == [HANDLE]
            after.commit(HANDLE)
            found = list(after.history())
            assert (found[0], found[-1]) == (row(0), row(1))
            after.destroy()
    finally:
        full.discard()
        small_disk.unmount(disk)
        disk.rmdir()


def test_a_server_that_was_never_there(monkeypatch: pytest.MonkeyPatch, place: Path, tmp_path: Path) -> None:
    monkeypatch.delenv(addresses.POSTGRES)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with (
        closing(PostgresStore(place)) as store,
        pytest.raises(ServiceUnavailable, match="`labkit services up postgres`, or set LABKIT_POSTGRES"),
    ):
        store.check("Appendable")


# Settings and rights


def test_prepared_transactions_that_are_switched_off_are_answered_with_the_remedy(
    server: PostgresService, place: Path
) -> None:
    with setting(server, "max_prepared_transactions", "0"), closing(PostgresStore(place)) as store:
        store.check("Atomic")
        store.append(row(0))
        steps = (lambda: store.check("Transactional"), lambda: store.begin(HANDLE), lambda: store.prepared("q"))
        for step in steps:
            with pytest.raises(
                ServiceUnavailable, match="ALTER SYSTEM SET max_prepared_transactions = 64`, and restart"
            ):
                step()
        assert list(store.history()) == [row(0)]


def test_too_many_prepared_transactions_are_refused_and_none_is_half_there(
    server: PostgresService, place: Path
) -> None:
    with setting(server, "max_prepared_transactions", "2"), closing(PostgresStore(place)) as store:
        for number in (1, 2):
            prepare(store, HANDLE._replace(partition=number), number)
        with pytest.raises(JobFailed, match="maximum number of prepared transactions reached; raise max_prepared"):
            prepare(store, HANDLE, 0)
        for handle in store.prepared("q"):
            (store.commit if handle.partition else store.abort)(handle)
        assert list(store.history()) == [row(1), row(2)]


@contextmanager
def setting(server: PostgresService, name: str, value: str) -> Iterator[None]:
    """A server that was restarted with another setting, for a block."""
    for change in (f"SET {name} = {value}", f"RESET {name}"):
        with psycopg.connect(server.address, autocommit=True) as connection:
            connection.execute(f"ALTER SYSTEM {change}".encode())
        server.down()
        server.up()
        if change.startswith("SET"):
            try:
                yield
            except BaseException:
                with psycopg.connect(server.address, autocommit=True) as connection:
                    connection.execute(f"ALTER SYSTEM RESET {name}".encode())
                server.down()
                raise


def test_a_participant_that_the_server_ends_while_it_is_idle_never_prepares(
    server: PostgresService, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`idle_in_transaction_session_timeout` breaks the demand that a transaction may stay open for an interval."""
    monkeypatch.setenv(addresses.POSTGRES, f"{server.address} options='-c idle_in_transaction_session_timeout=300ms'")
    with closing(PostgresStore(place)) as store, psycopg.connect(server.address, autocommit=True) as looking:
        transaction = written(store, HANDLE, 0)
        idle = "SELECT count(*) FROM pg_stat_activity WHERE state = 'idle in transaction'"
        until(lambda: looking.execute(idle).fetchone() == (0,), "the end of the idle transaction")
        with pytest.raises(JobFailed, match="idle_in_transaction_session_timeout above the time that a batch takes"):
            transaction.prepare()
        assert gids(looking) == set()
        assert list(store.history()) == []
        assert store.prepared("q") == [HANDLE]
        store.abort(HANDLE)
        assert store.prepared("q") == []


SECRET = "open-sesame"


@pytest.fixture
def guarded(server: PostgresService) -> Iterator[str]:
    """The end of a connection string for a user who needs a password and may only read."""
    rules = server.folder / "data" / "pg_hba.conf"
    before = rules.read_text()
    rules.write_text(f"local all guarded scram-sha-256\n{before}")
    with psycopg.connect(server.address, autocommit=True) as connection:
        connection.execute("DROP ROLE IF EXISTS guarded")
        connection.execute(f"CREATE ROLE guarded LOGIN PASSWORD '{SECRET}'".encode())
        connection.execute("SELECT pg_reload_conf()")
        yield f"host='{server.folder / 'socket'}' user=guarded dbname=postgres"
    rules.write_text(before)


@pytest.mark.parametrize(
    ("password", "said"),
    [
        ("not-the-secret", "refuses the connection.*password authentication failed"),
        (SECRET, "guarded may not write there; name a user that may create a schema"),
        (f"{SECRET} oops =", "not a connection string of PostgreSQL"),
    ],
)
def test_a_wrong_password_or_a_reader_gets_one_sentence_without_the_password(
    guarded: str, place: Path, monkeypatch: pytest.MonkeyPatch, password: str, said: str
) -> None:
    monkeypatch.setenv(addresses.POSTGRES, f"{guarded} password={password}")
    with closing(PostgresStore(place)) as store:
        for step in (lambda: store.check("Atomic"), lambda: store.append(row(0))):
            with pytest.raises(LabError) as refused:
                step()
            assert refused.value.exit_code == 64
            assert "\n" not in str(refused.value)
            assert password.split(maxsplit=1)[0] not in str(refused.value)
        with pytest.raises(LabError, match=said):
            store.check("Atomic")


# What is left


def test_destroy_leaves_no_schema_and_no_transaction(store: PostgresStore, by_hand: psycopg.Connection) -> None:
    prepare(store, HANDLE, 0)
    store.begin(HANDLE._replace(partition=1)).write(row(1))
    other = PostgresStore(Path("/somewhere/else/entirely"))
    prepare(other, HANDLE, 2)
    for _ in range(2):
        store.destroy()
    assert gids(by_hand) == {postgres_schema.gid_of(other.schema, HANDLE)}
    assert by_hand.execute("SELECT to_regnamespace(%s)", [store.schema]).fetchone() == (None,)
    other.destroy()
    other.close()


def test_a_sweep_drops_the_stores_of_runs_whose_folders_are_gone(tmp_path: Path, by_hand: psycopg.Connection) -> None:
    places = [tmp_path / name / "store" / "postgres" for name in ("kept", "gone")]
    places[0].parents[1].mkdir()
    stores = [PostgresStore(place) for place in places]
    for one in stores:
        prepare(one, HANDLE, 0)
        one.close()
    dropped = sweep()
    assert stores[1].schema in dropped
    assert stores[0].schema not in dropped
    assert gids(by_hand) == {postgres_schema.gid_of(stores[0].schema, HANDLE)}
    stores[0].destroy()
    stores[0].close()
