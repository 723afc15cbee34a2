"""A real PostgreSQL from its wheel: started, stopped, killed, damaged, and never left behind."""

import os
import shutil
import signal
import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace

import psutil
import psycopg
import pytest
from other_processes import has_ended, until_killed
from waiting import until

from labkit.core.errors import ServiceUnavailable
from labkit.host import addresses
from labkit.host.servers import postgres_connection, postgres_programs, service
from labkit.host.servers.postgres import PostgresService
from labkit.host.servers.tethered import _fresh_folder, tethered_postgres


@pytest.fixture(scope="module")
def cluster() -> Iterator[PostgresService]:
    """One data folder for this module; every test finds it down or up, as it likes."""
    found = PostgresService(_fresh_folder(), settings=["--no-sync"])
    yield found
    found.discard()
    assert not found.folder.exists()


@pytest.fixture
def up(cluster: PostgresService) -> PostgresService:
    cluster.up()
    return cluster


def asked(address: str, question: str) -> object:
    with psycopg.connect(address) as connection:
        row = connection.execute(question).fetchone()
        return row[0]


def killed(server: PostgresService) -> int:
    """SIGKILL to the server's first process; the others end when they notice."""
    pid = server.status().pid
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    until(lambda: has_ended(pid), "the death of the server")
    return pid


def test_up_and_down_may_be_repeated(cluster: PostgresService) -> None:
    first = cluster.up()
    assert first == cluster.up() == cluster.status()
    assert (first.state, first.folder, first.version.split(".")[0]) == ("up", cluster.folder, "18")
    assert first.pid is not None
    assert asked(first.address, "SHOW max_prepared_transactions") == "64"
    for _ in range(2):
        assert cluster.down().state == cluster.status().state == "down"
    assert has_ended(first.pid)
    assert cluster.up().pid != first.pid


def test_it_listens_on_no_port_and_only_its_user_reaches_the_socket(up: PostgresService) -> None:
    pid = up.status().pid
    assert pid is not None
    assert psutil.Process(pid).net_connections("inet") == []
    assert (up.folder / "socket").stat().st_mode & 0o077 == 0
    assert (up.folder / "data").stat().st_mode & 0o077 == 0


def test_a_taken_port_does_not_matter(cluster: PostgresService) -> None:
    cluster.down()
    with socket.socket() as taken:
        with suppress(OSError):  # then somebody else has taken it
            taken.bind(("127.0.0.1", 5432))
            taken.listen()
        assert cluster.up().state == "up"


def test_after_a_sigkill_it_is_stale_and_up_mends_it(up: PostgresService) -> None:
    with psycopg.connect(up.address, autocommit=True) as connection:
        connection.execute("CREATE TABLE IF NOT EXISTS kept (n int)")
        connection.execute("BEGIN; INSERT INTO kept VALUES (7); PREPARE TRANSACTION 'kept'")
    killed(up)
    assert up.status().state == "stale"
    assert up.status().pid is None
    again = up.up()
    assert again.state == "up"
    with psycopg.connect(again.address, autocommit=True) as connection:
        connection.execute("COMMIT PREPARED 'kept'")
    assert asked(again.address, "SELECT max(n) FROM kept") == 7


def test_a_pid_file_with_the_number_of_a_living_stranger_is_stale(cluster: PostgresService) -> None:
    cluster.up()
    note = cluster.folder / "data" / "postmaster.pid"
    content = note.read_text().split("\n", 1)[1]
    killed(cluster)
    note.write_text(f"{os.getpid()}\n{content}")
    assert cluster.status().state == "stale"
    assert cluster.up().state == "up"
    assert cluster.down().state == "down"


def test_down_after_a_sigkill_leaves_no_pid_file(up: PostgresService) -> None:
    killed(up)
    assert up.down().state == "down"
    assert not (up.folder / "data" / "postmaster.pid").exists()


@pytest.mark.slow
def test_a_stopped_server_does_not_answer_and_is_taken_down(
    up: PostgresService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres_connection, "CONNECT_SECONDS", 2)
    pid = up.status().pid
    assert pid is not None
    os.kill(pid, signal.SIGSTOP)
    assert (up.status().state, up.status().pid) == ("stale", pid)
    with pytest.raises(
        ServiceUnavailable, match=rf"is running \(process {pid}\), but does not answer: `labkit services down"
    ):
        up.up()
    assert up.down().state == "down"
    assert has_ended(pid)


def test_several_that_start_it_at_once_get_the_same_server(cluster: PostgresService) -> None:
    cluster.down()
    found: list[int | None] = []
    threads = [threading.Thread(target=lambda: found.append(PostgresService(cluster.folder).up().pid)) for _ in "1234"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [cluster.status().pid] * 4


def test_two_labs_are_not_confused(up: PostgresService) -> None:
    with tethered_postgres("--no-sync") as other:
        with psycopg.connect(other.address, autocommit=True) as connection:
            connection.execute("CREATE TABLE only_here ()")
        assert asked(up.address, "SELECT to_regclass('only_here')") is None
        assert other.pid != up.status().pid
        up.down()
        assert asked(other.address, "SELECT 1") == 1
    assert has_ended(other.pid)
    assert has_ended(other.guard)
    assert not Path(other.folder).exists()


def test_a_server_tied_to_a_process_ends_when_that_is_killed() -> None:
    code = "import sys\nfrom labkit.host.servers.tethered import tethered_postgres\n"
    code += "with tethered_postgres('--no-sync') as s:\n"
    code += "    print(s.pid, s.guard, s.folder, flush=True); sys.stdin.read()"
    with until_killed(code) as line:
        server, guard, folder = line().split()
        assert not has_ended(int(server))
    until(lambda: has_ended(int(server)) and has_ended(int(guard)), "the end of the server and its guard")
    assert not Path(folder).exists()


def test_yours_is_neither_started_nor_stopped_nor_deleted(
    up: PostgresService, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv(addresses.POSTGRES, up.address)
    pid, yours = up.status().pid, service("postgres")
    for found in (yours.up(), yours.status(), yours.down()):
        assert (found.state, found.pid, found.folder) == ("yours", None, None)
    assert up.status().pid == pid
    assert list(tmp_path.iterdir()) == []
    up.down()
    assert yours.status().state == yours.down().state == "down"
    with pytest.raises(ServiceUnavailable, match="does not answer"):
        yours.up()
    assert up.status().state == "down"


@pytest.mark.parametrize("damage", ["global/pg_control", "PG_VERSION", "postgresql.conf"])
def test_a_damaged_folder_is_named(cluster: PostgresService, damage: str) -> None:
    cluster.down()
    path = cluster.folder / "data" / damage
    aside = path.with_name("aside")
    path.rename(aside)
    try:
        with pytest.raises(ServiceUnavailable, match=r"did not start \(.+\).*; .*/log; .*delete") as refused:
            cluster.up()
        assert str(cluster.folder) in str(refused.value)
        assert cluster.status().state == "down"
    finally:
        aside.rename(path)
    assert cluster.up().state == "up"


def test_an_interrupted_creation_is_begun_again() -> None:
    fresh = PostgresService(_fresh_folder(), settings=["--no-sync"])
    try:
        (fresh.folder / "data.part" / "base").mkdir(parents=True)
        assert fresh.up().state == "up"
        assert not (fresh.folder / "data.part").exists()
    finally:
        fresh.discard()
    assert not fresh.folder.exists()


def test_a_long_name_gets_its_socket_elsewhere() -> None:
    base = _fresh_folder()
    base.chmod(0o755)
    fresh = PostgresService(base / ("a long name " * 8), settings=["--no-sync"])
    try:
        found = fresh.up()
        assert str(fresh.folder) not in found.address
        assert asked(found.address, "SELECT 1") == 1
    finally:
        fresh.discard()
        shutil.rmtree(base)


def test_without_the_wheel_it_says_what_to_do(cluster: PostgresService, monkeypatch: pytest.MonkeyPatch) -> None:
    cluster.down()
    monkeypatch.setattr(postgres_programs, "find_spec", lambda _: None)
    with pytest.raises(ServiceUnavailable, match="PostgreSQL is not installed: pip install"):
        cluster.up()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root cannot run PostgreSQL itself")
def test_root_runs_it_as_nobody_where_nobody_can_reach(up: PostgresService, tmp_path: Path) -> None:
    pid = up.status().pid
    assert pid is not None
    assert psutil.Process(pid).username() == postgres_programs.UNPRIVILEGED
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o700)
    assert postgres_programs.place(closed / "lab").parent == postgres_programs.SYSTEM_CACHE
    assert closed.stat().st_mode & 0o777 == 0o700


@pytest.mark.slow
@pytest.mark.skipif(os.geteuid() != 0, reason="only root cannot run PostgreSQL itself")
def test_programs_in_a_closed_folder_are_copied_once_with_their_libraries(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    cache = _fresh_folder()
    cache.chmod(0o755)
    installed = postgres_programs.programs().parent
    closed = tmp_path / "closed" / "site-packages"
    closed.parent.mkdir(mode=0o700)
    for folder in (installed.parent, installed.parent.with_name(f"{installed.parent.name}.libs")):
        shutil.copytree(folder, closed / folder.name, symlinks=True)
    monkeypatch.setattr(postgres_programs, "SYSTEM_CACHE", cache / "labkit")
    wheel = SimpleNamespace(origin=str(closed / installed.parent.name / "__init__.py"))
    monkeypatch.setattr(postgres_programs, "find_spec", lambda _: wheel)
    try:
        with ThreadPoolExecutor(4) as several:
            [one] = {each.result() for each in [several.submit(postgres_programs.programs) for _ in range(4)]}
        assert one.is_relative_to(cache)
        assert postgres_programs.run("initdb", "--version", cwd=tmp_path).stdout.startswith("initdb (PostgreSQL)")
        assert len(list((cache / "labkit").iterdir())) == 1, "no draft is left"
    finally:
        shutil.rmtree(cache)
