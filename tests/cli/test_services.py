"""`labkit services`: a server of the lab's own in the user's cache, and one of the user's that is only looked at."""

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest
from command import apart
from other_processes import has_ended

from labkit.cli import services
from labkit.core.errors import MissingExtra
from labkit.host import addresses
from labkit.host.java import Java
from labkit.host.servers import service
from labkit.host.servers.tethered import _fresh_folder

Labkit = Callable[..., tuple[int, str, str]]


@pytest.fixture
def labkit(monkeypatch: pytest.MonkeyPatch) -> Iterator[Labkit]:
    """The command line of a user with a cache of his own, whose server is stopped and removed at the end."""
    monkeypatch.delenv(addresses.POSTGRES, raising=False)
    cache = _fresh_folder()
    cache.chmod(0o755)

    def run(*arguments: str, **environment: str) -> tuple[int, str, str]:
        return apart(*arguments, cwd=cache, **{"XDG_CACHE_HOME": str(cache)} | environment)

    yield run
    if any(cache.iterdir()):
        run("services", "down", "postgres")
    shutil.rmtree(cache)


def said(answer: tuple[int, str, str]) -> dict:
    code, out, words = answer
    assert code == 0, words
    [status] = json.loads(out)["services"]
    return status


@pytest.mark.slow
def test_up_status_down_and_what_they_print(labkit: Labkit) -> None:
    code, out, _ = labkit("services", "status", "postgres")
    assert code == 69
    assert out.startswith("postgres is down; labkit services up postgres starts it (folder ")
    first = said(labkit("services", "up", "postgres", "--json"))
    assert (first["name"], first["state"], first["version"].split(".")[0]) == ("postgres", "up", "18")
    assert said(labkit("services", "up", "postgres", "--json"))["pid"] == first["pid"]
    code, out, _ = labkit("services", "status", "postgres")
    assert code == 0
    assert f"is up: {first['address']} (process {first['pid']}, folder {first['folder']})" in out
    assert said(labkit("services", "down", "postgres", "--json"))["state"] == "down"
    assert labkit("services", "down", "postgres")[0] == 0
    assert has_ended(first["pid"])


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["pu"], "services pu: there is no such action; did you mean 'up'?"),
        (["up", "postgre"], "services postgre: there is no such server; did you mean 'postgres'?"),
    ],
)
def test_a_wrong_word_is_refused(labkit: Labkit, arguments: list[str], sentence: str) -> None:
    assert labkit("services", *arguments) == (64, "", f"labkit: {sentence}\n")


def test_yours_is_told_without_its_password(labkit: Labkit, postgres: str) -> None:
    code, out, words = labkit("services", "up", "postgres", LABKIT_POSTGRES=f"{postgres} password=open-sesame")
    assert (code, words) == (0, "")
    assert "is yours: labkit@" in out
    assert "open-sesame" not in out
    gone = {"LABKIT_POSTGRES": "host=/nowhere user=me password=open-sesame"}
    code, out, words = labkit("services", "up", "postgres", **gone)
    assert (code, out) == (69, "")
    assert "PostgreSQL at me@/nowhere/me does not answer (No such file or directory)" in words
    assert labkit("services", "status", "postgres", **gone)[:2] == (
        69,
        "postgres is down: yours at me@/nowhere/me does not answer\n",
    )


def test_a_run_without_its_server_is_refused_before_anything_is_made(labkit: Labkit, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    code, out, words = labkit("run", "--store", "postgres", "--out", str(folder))
    assert (code, out) == (69, "")
    assert words == (
        "labkit: No PostgreSQL is running for the lab: start one with `labkit services up postgres`, "
        "or set LABKIT_POSTGRES to the address of your own.\n"
    )
    assert not folder.exists()


def test_a_matrix_without_a_server_says_how_to_leave_it_out(labkit: Labkit, java: Java, tmp_path: Path) -> None:
    code, out, words = labkit("matrix", "--engine", "spark", "--out", str(tmp_path / "matrix"))
    assert (code, out) == (69, "")
    rest = "postgres: add --store files --store sqlite --store kafka"
    assert words.endswith(f"or set LABKIT_POSTGRES to the address of your own. Or leave out the store {rest}.\n")
    assert not (tmp_path / "matrix").exists()


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ("--between kill", "--between kill: unknown; did you mean 'kill-server'?"),
        ("--between kill-server", "--between kill-server: the store files has no server; use --store postgres, kafka."),
        (
            "--store postgres --between kill-server",
            "--between kill-server: it happens after a crash; name one with --crash.",
        ),
    ],
)
def test_what_cannot_happen_between_two_drivers_is_refused(labkit: Labkit, arguments: str, sentence: str) -> None:
    assert labkit("run", *arguments.split()) == (64, "", f"labkit: {sentence}\n")


def test_a_server_of_yours_is_not_killed_between_two_drivers(labkit: Labkit, postgres: str) -> None:
    options = "--store postgres --sink two_phase --crash sink.after_pre_commit@0 --between kill-server"
    code, out, words = labkit("run", *options.split(), LABKIT_POSTGRES=postgres)
    assert (code, out) == (69, "")
    assert "needs a server that labkit started" in words


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.parametrize(
    ("point", "between"),
    [
        ("sink.after_pre_commit", "kill-server"),
        pytest.param("sink.mid_commit", "restart-server", marks=pytest.mark.variant),
    ],
)
def test_the_server_dies_too_and_nothing_is_lost_or_doubled(labkit: Labkit, point: str, between: str) -> None:
    """Real Spark, a real server; after the run its schema is gone."""
    address = said(labkit("services", "up", "postgres", "--json"))["address"]
    options = f"run --store postgres --sink two_phase --crash {point}@0 --between {between} --out here --json"
    code, out, words = labkit(*options.split())
    assert code == 0, words
    result = json.loads(out)
    evidence = json.loads((Path(result["folder"]) / "evidence.json").read_text())["crashes"][0]
    assert evidence["signal"] == 9
    assert evidence["server"]["between"] == between
    assert evidence["server"]["signal"] == (9 if between == "kill-server" else 2)
    assert evidence["server"]["now"] not in evidence["server"]["ended"]
    assert (result["guarantee"], result["rows"], result["in_doubt_rows"]) == ("exactly-once", 3, 0)
    with psycopg.connect(address) as connection:
        assert connection.execute("SELECT count(*) FROM pg_namespace WHERE nspname LIKE 'labkit%'").fetchone() == (0,)
        assert connection.execute("SELECT count(*) FROM pg_prepared_xacts").fetchone() == (0,)


def test_a_server_whose_package_is_missing_hides_no_other(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def missing() -> None:
        raise MissingExtra("psycopg is not installed.")

    monkeypatch.setattr(services, "service", lambda name: Lacking(missing) if name == "postgres" else service(name))
    with pytest.raises(MissingExtra, match="psycopg"):
        services.services("status", None, as_json=False)
    assert "kafka" in capsys.readouterr().out


class Lacking:
    """A service of which nothing can be asked."""

    def __init__(self, refuse: Callable[[], None]) -> None:
        self.up = self.status = self.down = refuse
