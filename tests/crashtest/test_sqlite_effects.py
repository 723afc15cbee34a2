"""Every statement of SQLite that lasts by itself is an effect, and a commit that is several writes says so."""

import os
import signal
import sqlite3
import sys
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from plain_sinks import Sink, await_stopped, line_of

from labkit.crashtest.instrument.effects import BOUNDS, Effect, Kind, Side
from labkit.crashtest.instrument.torn import TICK, CommitWatch
from labkit.crashtest.seeing import Logged, doubts

OPEN = "import os, sqlite3\ndef write_batch(df, batch):\n    db = sqlite3.connect(os.environ['SINK_STORE']{options})\n"


@pytest.fixture
def code(sink: Callable[..., Sink]) -> Callable[..., Sink]:
    """A sink that connects to SQLite with these options and executes these lines, from line 4."""

    def made(lines: str, options: str = "") -> Sink:
        body = "".join(f"    {line}\n" for line in lines.strip().splitlines())
        return sink(OPEN.format(options=options) + body + "    db.close()\n")

    return made


def rows(store: Path, table: str = "t") -> int:
    with closing(sqlite3.connect(store)) as db:
        return int(db.execute(f"SELECT count(*) FROM {table}").fetchone()[0])


def test_each_statement_of_a_script_without_a_transaction_commits(code: Callable[..., Sink]) -> None:
    made = code(
        "db.executescript('CREATE TABLE t (n); -- a; b\\nINSERT INTO t VALUES (1), (2); INSERT INTO t VALUES (3)')"
    )
    assert made.kinds() == [("schema", 4), ("commit", 4), ("commit", 4)]
    assert rows(made.store) == 3


def test_a_kill_within_a_script_leaves_the_statements_before_it(code: Callable[..., Sink]) -> None:
    made = code("db.executescript('CREATE TABLE t (n); INSERT INTO t VALUES (1); INSERT INTO t VALUES (2);')")
    first = next(each for each in made.effects() if each.kind is Kind.COMMIT)
    made.store.unlink()
    with made.start(first.point(Side.AFTER)) as process:
        await_stopped(process, made.evidence)
        os.killpg(process.pid, signal.SIGKILL)
    assert rows(made.store) == 1


T = "CREATE TABLE t (n); "
ONE, TWO, THREE = (f"INSERT INTO t VALUES ({n}); " for n in (1, 2, 3))
TRIGGER = "CREATE TRIGGER g AFTER INSERT ON t BEGIN UPDATE t SET n = 2; SELECT 1; END; "


@pytest.mark.parametrize(
    ("script", "kinds"),
    [
        (f"{T}BEGIN; {ONE}{TWO}COMMIT;", "schema commit"),
        (f"{T}BEGIN; {ONE}END; {TWO}{THREE}", "schema commit commit commit"),
        (f"{T}BEGIN; {ONE}SAVEPOINT a; {TWO}ROLLBACK TO a; RELEASE a; COMMIT; {THREE}", "schema commit commit"),
        (f"{T}BEGIN; {ONE}ROLLBACK;", "schema rollback"),
        (f"{T}BEGIN; {ONE}", "schema statement"),
        (f"{T}SELECT 1; PRAGMA user_version; {ONE}", "schema commit"),
        (f"{T}{TRIGGER}INSERT INTO t VALUES ('a;b')", "schema commit commit"),
        ("/* ; */ CREATE TABLE t (n);; -- ;\n ;INSERT INTO t VALUES (1) -- last", "schema commit"),
        (f"{T}SAVEPOINT a; {ONE}RELEASE a; {TWO}", "schema commit"),
        (f"{T}\ufeffBEGIN; {ONE}{TWO}COMMIT;", "schema commit"),
    ],
)
def test_a_script_does_the_same_statement_by_statement(code: Callable[..., Sink], script: str, kinds: str) -> None:
    made = code(f"db.executescript({script!r})")
    assert [kind for kind, _ in made.kinds()] == kinds.split()
    plain = made.folder / "plain"
    with closing(sqlite3.connect(plain)) as db:
        db.executescript(script)
    with closing(sqlite3.connect(made.store)) as one, closing(sqlite3.connect(plain)) as other:
        assert list(one.iterdump()) == list(other.iterdump())


def test_a_script_first_commits_an_open_transaction(code: Callable[..., Sink]) -> None:
    made = code(
        "db.execute('CREATE TABLE t (n)')\ndb.execute('INSERT INTO t VALUES (1)')\n"
        "db.executescript('INSERT INTO t VALUES (2); SELECT nothing FROM nowhere; INSERT INTO t VALUES (3)') "
        "if batch else db.executescript('INSERT INTO t VALUES (2)')"
    )
    assert made.kinds() == [("schema", 4), ("statement", 5), ("commit", 6), ("commit", 6)]
    assert rows(made.store) == 2


def test_a_script_that_cannot_be_split_says_so(code: Callable[..., Sink]) -> None:
    script = "CREATE TABLE t (n); SAVEPOINT a; INSERT INTO t VALUES (1); RELEASE a; INSERT INTO t VALUES (2);"
    assert ["executescript" in each for each in doubts_of(code(f"db.executescript({script!r})"))] == [True]


AUTOCOMMIT = [", isolation_level=None", ", autocommit=True"][: 1 + (sys.version_info >= (3, 12))]
"""How a connection is put into autocommit; the second way came with Python 3.12."""


@pytest.mark.parametrize("options", AUTOCOMMIT)
def test_each_row_of_executemany_in_autocommit_is_a_commit(code: Callable[..., Sink], options: str) -> None:
    made = code(
        "db.execute('CREATE TABLE t (n)')\n"
        "c = db.executemany('INSERT INTO t VALUES (?)', ((n,) for n in range(3)))\n"
        "assert (c.rowcount, c.lastrowid) == (3, None), (c.rowcount, c.lastrowid)\n"
        "db.executemany('INSERT INTO t VALUES (?)', [])\n"
        "db.execute('BEGIN')\ndb.executemany('INSERT INTO t VALUES (?)', [(1,), (2,)])\ndb.execute('COMMIT')",
        options,
    )
    assert made.kinds() == [("schema", 4), *[("commit", 5)] * 3, ("statement", 9), ("commit", 10)]
    assert rows(made.store) == 5


def test_executemany_in_a_transaction_of_its_own_is_one_statement(code: Callable[..., Sink]) -> None:
    made = code(
        "db.execute('CREATE TABLE t (n)')\nc = db.executemany('INSERT INTO t VALUES (?)', [(1,), (2,)])\n"
        "assert c.rowcount == 2\ndb.commit()\n"
        "db.executemany('WITH v AS (SELECT ?) INSERT INTO t SELECT * FROM v', [(1,), (2,)])"
    )
    assert made.kinds() == [("schema", 4), ("statement", 5), ("commit", 7), ("commit", 8), ("commit", 8)]


def test_executemany_stops_at_the_row_that_fails_and_checks_the_statement_first(code: Callable[..., Sink]) -> None:
    made = code(
        "db.execute('CREATE TABLE t (n UNIQUE)')\nfor bad in ('INSERT INTO t VALUES (?, ?)', 'SELECT ?', 'nonsense'):\n"
        "    try:\n        db.executemany(bad, iter([(1,)]))\n        assert False\n"
        "    except sqlite3.Error:\n        pass\n"
        "try:\n    db.executemany('INSERT INTO t VALUES (?)', [(1,), (2,), (1,), (3,)])\n"
        "except sqlite3.IntegrityError:\n    pass\n",
        ", isolation_level=None",
    )
    assert made.kinds() == [("schema", 4), ("commit", 12), ("commit", 12)]
    assert rows(made.store) == 2


def doubts_of(made: Sink) -> list[str]:
    return doubts([], [Logged(number, each) for number, each in enumerate(made.effects())])


@pytest.mark.parametrize("name", ["wrong_attached", "wrong_no_journal"])
def test_a_commit_that_is_several_writes_is_doubted(sink: Callable[..., Sink], name: str) -> None:
    made = sink(f"{name}.py")
    line = line_of(made.file.name, "with db:")
    commits = [each for each in made.effects() if each.kind is Kind.COMMIT and each.line == line]
    assert [bool(each.torn) for each in commits] == [True]
    found = doubts_of(made)
    assert any(f"line {line}" in each and "--eyes kernel" in each for each in found)


ATTACHED = """
db.execute("ATTACH ? AS other", (os.environ['SINK_STORE'] + '2',))
for schema in ('main', 'other'): db.execute(f'PRAGMA {{schema}}.journal_mode={mode}')
db.execute('CREATE TABLE main.a (n)')
db.execute('CREATE TABLE other.b (n)')
db.execute('INSERT INTO a VALUES (1)')
db.execute('INSERT INTO b VALUES (1)') if {both} else None
db.commit()
"""


@pytest.mark.parametrize(
    ("mode", "both", "torn"),
    [
        ("WAL", True, True),
        ("WAL", False, False),
        ("DELETE", True, False),
        ("TRUNCATE", True, False),
        ("PERSIST", True, False),
        ("MEMORY", False, True),
        ("OFF", False, True),
        ("DELETE; PRAGMA synchronous=OFF", True, True),
    ],
)
def test_which_commits_are_several_writes(code: Callable[..., Sink], mode: str, both: bool, torn: bool) -> None:
    lines = ATTACHED.format(mode=mode, both=both)
    if ";" in mode:
        lines = lines.replace("db.execute(f'PRAGMA", "db.executescript(f'PRAGMA").replace(
            "PRAGMA syn", "PRAGMA {schema}.syn"
        )
    last = code(lines).effects()
    [commit] = [each for each in last if each.kind is Kind.COMMIT and each.target == "transaction"]
    assert bool(commit.torn) is torn


def test_a_file_changed_a_moment_before_a_commit_is_not_taken_for_unchanged(tmp_path: Path) -> None:
    """Two changes within one tick of the clock may leave the same time."""
    with closing(sqlite3.connect(tmp_path / "one")) as db:
        db.execute("ATTACH ? AS other", (str(tmp_path / "two"),))
        db.execute("CREATE TABLE other.t (n)")
        changed = (tmp_path / "two").stat().st_mtime
        CommitWatch(db.cursor(), sqlite3.Error)
        assert time.time() - changed >= TICK * 0.9


def test_a_plain_commit_is_not_doubted(sink: Callable[..., Sink]) -> None:
    assert doubts_of(sink("right_marker.py")) == []
    made = sink("right_logged.py")
    assert [each.torn for each in made.effects() if each.kind not in BOUNDS and each.torn] == []


def test_the_reason_survives_the_log() -> None:
    effect = Effect(0, "call", 1, Kind.COMMIT, "transaction", 3, torn="it is two")
    assert Effect.from_json(effect.to_json()) == effect
