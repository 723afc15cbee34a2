"""What is recorded of a sink; and whoever reaches the armed point stops, threads and all, and can be killed there."""

import json
import os
import signal
import socket
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import psycopg
import pytest
from plain_sinks import PATIENCE, Sink, await_stopped, line_of

from labkit.core.errors import JobFailed
from labkit.crashtest.harness.evidence import read_evidence
from labkit.crashtest.instrument.effects import BOUNDS, Kind, Point, Side
from labkit.crashtest.instrument.jvm import instrument_merge, instrument_session, kind_of_spark
from labkit.crashtest.instrument.recorder import Recorder
from labkit.crashtest.instrument.ticket import Ticket
from labkit.crashtest.points import points, read_log
from labkit.crashtest.project import counts


def test_what_a_thread_does_while_the_next_call_begins_is_recorded(tmp_path: Path) -> None:
    """The call waits there for its reader, as long as that takes; a listener of Spark may commit meanwhile."""
    file, asks = tmp_path / "sink.py", tmp_path / "asks"
    asks.mkdir()
    names: dict[str, Any] = {}
    exec(compile("def act(do):\n    do()\n", str(file), "exec"), names)
    ticket = Ticket(str(file), str(tmp_path / "effects.jsonl"), 1)
    recorder, done = Recorder(), threading.Event()

    def write() -> None:
        with recorder.effect(Kind.WRITE, "t"):
            done.set()

    recorder.end(recorder.begin(ticket, 0, "call"))
    waits = replace(ticket, asks=str(asks))
    beginning = threading.Thread(target=recorder.begin, args=(waits, 1, "call"))
    beside = threading.Thread(target=names["act"], args=(write,))
    beginning.start()
    end = time.monotonic() + PATIENCE
    while not (questions := list(asks.glob("*.ask"))):
        assert time.monotonic() < end
        time.sleep(0.001)
    beside.start()
    # Nothing is to happen before the answer, so there is nothing to wait for.
    assert not done.wait(0.5)
    questions[0].unlink()
    beginning.join(PATIENCE)
    beside.join(PATIENCE)
    assert done.is_set()
    [written] = [each for each in read_log(Path(ticket.log)) if each.kind is Kind.WRITE]
    assert (written.batch, written.late) in ((0, True), (1, False))


def test_a_transaction_is_its_statements_and_one_commit(sink: Callable[..., Sink]) -> None:
    kinds = sink("right_marker.py").kinds()
    file = "right_marker.py"
    assert kinds[-3:] == [
        ("statement", line_of(file, "INSERT INTO orders")),
        ("statement", line_of(file, "INSERT INTO batches")),
        ("commit", line_of(file, "with db:")),
    ]


def test_a_statement_outside_of_a_transaction_commits(sink: Callable[..., Sink]) -> None:
    kinds = [kind for kind, _ in sink("wrong_swallowed.py").kinds()]
    assert kinds == ["schema", *["commit"] * 10]


def test_a_file_is_created_written_when_its_buffer_goes_and_renamed(sink: Callable[..., Sink]) -> None:
    kinds = [kind for kind, _ in sink("right_overwrite.py").kinds()]
    assert kinds == ["mkdir", "mkdir", "create", "write", "fsync", "create", "write", "rename"]


@pytest.mark.parametrize(
    ("code", "kinds"),
    [
        ("open(S, 'w').close()", ["create"]),
        ("p = open(S, 'a'); p.write('x'); p.flush(); p.write('y'); p.close()", ["create", "write", "write"]),
        ("Path(S).write_text('x'); Path(S).unlink()", ["create", "write", "unlink"]),
        ("Path(S).write_bytes(b'x'); os.link(S, S + '2'); os.symlink(S, S + '3')", ["create", "write", "link", "link"]),
        ("f = os.open(S, os.O_WRONLY | os.O_CREAT); os.write(f, b'x'); os.fsync(f)", ["create", "write", "fsync"]),
        ("open(S, 'wb', 0).write(b'x'); os.replace(S, S + '2')", ["create", "write", "rename"]),
        ("open(S, 'w').write('x' * 20); f = open(S, 'r+'); f.write('y'); f.close()", ["create", "write", "write"]),
        ("open('/dev/null', 'w').close(); os.pipe(); open(__file__).read()", []),
        ("import shutil; open(S, 'w').write('x'); shutil.move(S, S + '2')", ["create", "write", "rename"]),
        ("threading.Thread(target=lambda: open(S, 'w').close()).start(); time.sleep(0.2)", ["create"]),
    ],
)
def test_what_is_done_to_files_is_recorded(sink: Callable[..., Sink], code: str, kinds: list[str]) -> None:
    text = "import os, threading, time\nfrom pathlib import Path\nS = os.environ['SINK_STORE']\n"
    found = sink(f"{text}def write_batch(df, batch):\n    {code}\n").kinds()
    assert [kind for kind, _ in found if kind != "create" or "null" not in code] == kinds
    assert {line for _, line in found} <= {5}


def test_what_a_rolled_back_transaction_and_a_reading_do_is_no_commit(sink: Callable[..., Sink]) -> None:
    code = (
        "import os, sqlite3\ndef write_batch(df, batch):\n    db = sqlite3.connect(os.environ['SINK_STORE'])\n"
        "    db.execute('CREATE TABLE t (n)')\n    db.execute('SELECT 1').fetchall()\n"
        "    db.execute('INSERT INTO t VALUES (1)')\n    db.rollback()\n    db.commit()\n    db.close()\n"
    )
    assert sink(code).kinds() == [("schema", 4), ("statement", 6), ("rollback", 7)]


def test_an_effect_that_raises_is_no_point(sink: Callable[..., Sink]) -> None:
    code = (
        "import os\ndef write_batch(df, batch):\n    try:\n        os.mkdir('/')\n    except OSError:\n        pass\n"
    )
    effects = [each for each in sink(code).effects() if each.kind is Kind.MKDIR]
    assert [each.failed for each in effects] == [True]


def test_what_no_line_of_the_user_does_is_not_recorded(sink: Callable[..., Sink]) -> None:
    made = sink("def write_batch(df, batch):\n    pass\n")
    assert {each.kind for each in made.effects()} == {Kind.BEGIN, Kind.RETURN}


@pytest.mark.parametrize("side", list(Side))
def test_the_process_stops_at_its_point_and_dies_there_by_sigkill(sink: Callable[..., Sink], side: Side) -> None:
    made = sink("wrong_marker_after.py")
    point = next(
        point
        for point in points(made.effects(), [0])
        if point.kind is Kind.COMMIT and point.side is side and point.line == line_of(made.file.name, "with db:")
    )
    made.store.unlink()
    made.log.unlink()
    with made.start(point) as process:
        await_stopped(process, made.evidence)
        os.killpg(process.pid, signal.SIGKILL)
        assert process.wait(PATIENCE) == -signal.SIGKILL
    assert read_evidence(made.evidence, point)["pid"] == process.pid
    assert (point.number in {each.number for each in read_log(made.log)}) is (side is Side.AFTER)
    assert rows_in(made.store) == (10 if side is Side.AFTER else 0)


def rows_in(store: Path) -> int:
    import sqlite3
    from contextlib import closing

    with closing(sqlite3.connect(store)) as db:
        return int(db.execute("SELECT count(*) FROM orders").fetchone()[0])


def test_every_thread_of_the_process_stops(sink: Callable[..., Sink], tmp_path: Path) -> None:
    code = (
        "import os, threading, time\nS = os.environ['SINK_STORE']\nstop = []\n"
        "def tick():\n    while True:\n        os.utime(S)\n        time.sleep(0.001)\n"
        "def write_batch(df, batch):\n    open(S, 'w').close()\n"
        "    threading.Thread(target=tick, daemon=True).start()\n    os.mkdir(S + '2')\n"
    )
    made = sink(code)
    with made.start(Point(0, "call", 2, Kind.MKDIR, Side.AFTER, 11)) as process:
        await_stopped(process, made.evidence)
        before = made.store.stat().st_mtime_ns
        time.sleep(0.1)
        assert made.store.stat().st_mtime_ns == before
        os.killpg(process.pid, signal.SIGKILL)


def test_what_lies_in_a_buffer_is_gone_with_the_process(sink: Callable[..., Sink]) -> None:
    code = "import os\nFILE = open(os.environ['SINK_STORE'], 'w')\ndef write_batch(df, batch):\n    FILE.write('row')\n"
    made = sink(code)
    with made.start(Point(0, "call", 1, Kind.RETURN, Side.AFTER)) as process:
        await_stopped(process, made.evidence)
        os.killpg(process.pid, signal.SIGKILL)
    assert made.store.read_text() == ""


def test_a_point_is_found_again_where_another_line_did_more_before_it(sink: Callable[..., Sink]) -> None:
    code = (
        "import os\nS = os.environ['SINK_STORE']\ndef write_batch(df, batch):\n"
        "    if os.path.exists(S + 'more'):\n        os.mkdir(S + '1')\n    os.mkdir(S + '2')\n"
    )
    made = sink(code)
    point = next(point for point in points(made.effects(), [0]) if point.line == 6 and point.side is Side.AFTER)
    Path(f"{made.store}2").rmdir()
    Path(f"{made.store}more").touch()
    with made.start(point) as process:
        await_stopped(process, made.evidence)
        assert Path(f"{made.store}1").exists()
        os.killpg(process.pid, signal.SIGKILL)
    assert read_evidence(made.evidence, point)["kind"] == "mkdir"


def test_evidence_of_something_else_is_none(tmp_path: Path) -> None:
    point = Point(0, "call", 2, Kind.COMMIT, Side.AFTER)
    path = tmp_path / "reached"
    with pytest.raises(JobFailed, match="no evidence"):
        read_evidence(path, point)
    path.write_text(json.dumps({"point": "b0.call.1.after", "kind": "commit"}))
    with pytest.raises(JobFailed, match=r"b0\.call\.1\.after .* instead of b0\.call\.2\.after"):
        read_evidence(path, point)
    path.write_text(json.dumps({"point": point.id, "kind": "write"}))
    with pytest.raises(JobFailed, match=r"\(write\)"):
        read_evidence(path, point)


def test_the_release_of_the_outermost_savepoint_commits(sink: Callable[..., Sink]) -> None:
    code = (
        "import os, sqlite3\ndef write_batch(df, batch):\n"
        "    db = sqlite3.connect(os.environ['SINK_STORE'], isolation_level=None)\n"
        "    db.execute('CREATE TABLE t (n)')\n    db.execute('SAVEPOINT a')\n"
        "    db.execute('SAVEPOINT b')\n    db.execute('INSERT INTO t VALUES (1)')\n"
        "    db.execute('RELEASE b')\n    db.execute('RELEASE a')\n    db.close()\n"
    )
    assert sink(code).kinds() == [("schema", 4), ("statement", 7), ("statement", 8), ("commit", 9)]


def test_what_another_module_of_the_project_does_has_that_module_s_line(
    sink: Callable[..., Sink], tmp_path: Path
) -> None:
    (tmp_path / "shop").mkdir()
    for name, text in {
        "__init__.py": "",
        "files.py": "def put(path):\n    path.write_text('x')\n",
        "job.py": "import os\nfrom pathlib import Path\nfrom .files import put\n"
        "def write_batch(df, batch):\n    put(Path(os.environ['SINK_STORE']))\n",
    }.items():
        (tmp_path / "shop" / name).write_text(text)
    made = sink("")
    made.file = tmp_path / "shop" / "job.py"
    found = [each for each in made.effects() if each.kind not in BOUNDS]
    assert [(each.kind, each.file, each.line) for each in found] == [
        (Kind.CREATE, "files.py", 2),
        (Kind.WRITE, "files.py", 2),
    ]


def test_an_armed_point_in_another_module_is_reached(sink: Callable[..., Sink], tmp_path: Path) -> None:
    (tmp_path / "beside.py").write_text("import os\ndef put(p):\n    os.mkdir(p)\n")
    made = sink("import os\nfrom beside import put\ndef write_batch(df, batch):\n    put(os.environ['SINK_STORE'])\n")
    (effect,) = (each for each in made.effects() if each.kind is Kind.MKDIR)
    made.store.rmdir()
    with made.start(effect.point(Side.AFTER)) as process:
        await_stopped(process, made.evidence)
        os.killpg(process.pid, signal.SIGKILL)
    assert (effect.file, effect.line) == ("beside.py", 3)


def test_code_of_an_installed_package_counts_where_it_is_named(tmp_path: Path) -> None:
    folder = tmp_path / "site-packages" / "library"
    file = str(folder / "module.py")
    assert not counts(file, (str(tmp_path),), ())
    assert counts(file, (str(tmp_path),), (str(folder),))
    assert not counts(json.__file__, ("/",), ())
    assert not counts("<string>", ("/",), ("/",))


LOGGING = """
import logging, os
log = logging.getLogger("job")
log.addHandler(logging.FileHandler(os.environ["SINK_STORE"] + ".log", delay=True))
log.setLevel("INFO")
def write_batch(df, batch):
    log.info("begin")
    open(os.environ["SINK_STORE"], "w").close()
    open(os.environ["SINK_STORE"] + ".metrics", "w").close()
    log.info("end")
"""


def test_the_line_of_a_log_is_no_effect_of_the_sink(sink: Callable[..., Sink]) -> None:
    made = sink(LOGGING)
    assert [line for _, line in made.kinds()] == [8, 9]
    assert Path(f"{made.store}.log").read_text() == "begin\nend\n"


def test_a_file_that_is_to_be_ignored_is_no_effect(sink: Callable[..., Sink]) -> None:
    made = sink(LOGGING)
    made.ignored = ("*.metrics",)
    assert [line for _, line in made.kinds()] == [8]


def test_bytes_for_somebody_else_are_recorded_with_the_receiver(sink: Callable[..., Sink]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        made = sink(
            "import os, socket\ndef write_batch(df, batch):\n"
            f"    with socket.create_connection(('127.0.0.1', {port})) as there:\n"
            "        there.sendall(b'rows')\n"
        )
        found = [each for each in made.effects() if each.kind is Kind.NETWORK]
    assert [(each.target, each.line) for each in found] == [(f"127.0.0.1:{port}", 4)]


def test_what_a_logger_sends_is_no_news(sink: Callable[..., Sink]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        made = sink(
            "import logging, logging.handlers\nlog = logging.getLogger('job')\n"
            f"log.addHandler(logging.handlers.SocketHandler('127.0.0.1', {port}))\n"
            "def write_batch(df, batch):\n    log.error('it is sent')\n"
        )
        assert made.kinds() == []


def test_what_a_thread_does_after_the_return_is_recorded_as_late(sink: Callable[..., Sink]) -> None:
    made = sink(
        "import os, threading\nreturned = threading.Event()\ndef late():\n"
        "    while returned.is_set() is False:\n        pass\n"
        "    os.mkdir(os.environ['SINK_STORE'])\n"
        "def write_batch(df, batch):\n    threading.Thread(target=late).start()\n"
        "    from labkit.crashtest.instrument.recorder import recorder\n"
        "    end = recorder.end\n"
        "    def ended(call, **named):\n"
        "        end(call, **named)\n        returned.set()\n"
        "    recorder.end = ended\n"
    )
    (effect,) = (each for each in made.effects() if each.kind is Kind.MKDIR)
    assert (effect.late, effect.line, effect.batch) == (True, 6, 0)


@pytest.mark.parametrize(
    ("sql", "kind"),
    [
        ("INSERT INTO t SELECT * FROM v", Kind.JVM),
        ("\n  merge into t using v on t.id = v.id", Kind.JVM),
        ("WITH v AS (SELECT 1) INSERT INTO t SELECT * FROM v", Kind.JVM),
        ("CREATE TABLE t AS SELECT * FROM v", Kind.JVM),
        ("CALL system.rewrite_data_files('t')", Kind.JVM),
        ("CREATE TABLE t (id BIGINT)", Kind.SCHEMA),
        ("ALTER TABLE a RENAME TO b", Kind.SCHEMA),
        ("CREATE OR REPLACE TEMP VIEW v AS SELECT 1", None),
        ("WITH v AS (SELECT 1) SELECT * FROM v", None),
        ("ADD JAR 'x.jar'", None),
        ("SET a = b", None),
    ],
)
def test_a_statement_of_spark_sql_is_a_write_by_its_words(sql: str, kind: Kind | None) -> None:
    assert kind_of_spark(sql) is kind


def test_what_writes_in_spark_sql_and_a_merge_are_tapped(monkeypatch: pytest.MonkeyPatch) -> None:
    from pyspark.sql import merge, session

    for owner, name in ((session.SparkSession, "sql"), (merge.MergeIntoWriter, "merge")):
        monkeypatch.setattr(owner, name, getattr(owner, name))
    instrument_session(session)
    instrument_merge(merge)
    instrument_session(session)
    assert session.SparkSession.sql.recorded
    assert merge.MergeIntoWriter.merge.recorded


def test_blocks_and_copies_of_psycopg_are_recorded_where_they_end(
    sink: Callable[..., Sink], postgres: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SINK_POSTGRES", postgres)
    made = sink("wrong_transaction_blocks.py")
    file = made.file.name
    assert made.kinds()[-4:] == [
        ("statement", line_of(file, "copy(")),
        ("commit", line_of(file, "copy(")),
        ("statement", line_of(file, "INSERT INTO")),
        ("commit", line_of(file, "with db.transaction():")),
    ]


def test_an_inner_block_and_a_copy_that_reads_commit_nothing(
    sink: Callable[..., Sink], postgres: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SINK_POSTGRES", postgres)
    code = (
        "import os, psycopg\ndef write_batch(df, batch):\n"
        "    db = psycopg.connect(os.environ['SINK_POSTGRES'], autocommit=True)\n"
        "    with db.transaction():\n        with db.transaction():\n            pass\n"
        "    with db.cursor().copy('COPY (SELECT 1) TO STDOUT') as copy:\n        list(copy)\n"
        "    with db.transaction(force_rollback=True):\n        pass\n    db.close()\n"
    )
    assert sink(code).kinds() == [("statement", 5), ("commit", 4), ("rollback", 9)]


@pytest.mark.parametrize(
    ("file", "kinds"),
    [
        ("right_async.py", ["statement", "statement", "commit"]),
        ("wrong_async.py", ["statement", "commit", "statement", "commit"]),
    ],
)
def test_the_samples_with_coroutines_do_what_they_say(
    sink: Callable[..., Sink], postgres: str, monkeypatch: pytest.MonkeyPatch, file: str, kinds: list[str]
) -> None:
    monkeypatch.setenv("SINK_POSTGRES", postgres)
    inserts = line_of(file, "INSERT INTO crashtest_rows")
    drop = "DROP TABLE IF EXISTS crashtest_rows, crashtest_batches"
    with psycopg.connect(postgres, autocommit=True) as db:
        db.execute(drop)  # another test may have left the batch that is written here
        seen = [kind for kind, line in sink(file).kinds() if line >= inserts - 1]
        db.execute(drop)
    assert seen[-len(kinds) :] == kinds


ASYNC = """
import asyncio, os, psycopg
async def put(rows):
    db = await psycopg.AsyncConnection.connect(os.environ["SINK_POSTGRES"], autocommit=True)
    async with db.transaction():
        async with db.cursor().copy("COPY t FROM STDIN") as copy:
            await copy.write_row((1,))
    await db.execute("INSERT INTO t VALUES (2)")
    await db.execute("SELECT 1")
    await db.set_autocommit(False)
    await db.execute("INSERT INTO t VALUES (3)")
    await db.commit()
    await db.commit()
    await db.execute("DROP TABLE t")
    await db.commit()
    await db.close()
def write_batch(df, batch):
    with psycopg.connect(os.environ["SINK_POSTGRES"]) as db:
        db.execute("CREATE TABLE t (n int)")
    asyncio.run(put(df.collect()))
"""


def test_psycopg_s_classes_for_coroutines_are_recorded_like_the_others(
    sink: Callable[..., Sink], postgres: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SINK_POSTGRES", postgres)
    assert sink(ASYNC).kinds() == [
        ("schema", 19),
        ("commit", 18),
        ("statement", 6),
        ("commit", 5),
        ("commit", 8),
        ("statement", 11),
        ("commit", 12),
        ("statement", 14),
        ("commit", 15),
    ]


SIDE_BY_SIDE = """
import asyncio, os, psycopg
SLOW = "INSERT INTO s SELECT 1 FROM pg_sleep(0.3)"
async def put():
    async with await psycopg.AsyncConnection.connect(os.environ["SINK_POSTGRES"], autocommit=True) as db:
        await db.execute(SLOW)
async def both():
    await asyncio.gather(put(), put())
def write_batch(df, batch):
    with psycopg.connect(os.environ["SINK_POSTGRES"], autocommit=True) as db:
        db.execute("CREATE TEMP TABLE IF NOT EXISTS x (n int)")
        db.execute("DROP TABLE IF EXISTS s")
        db.execute("CREATE TABLE s (n int)")
        asyncio.run(both())
        db.execute("DROP TABLE s")
"""


def test_coroutines_side_by_side_are_each_seen(
    sink: Callable[..., Sink], postgres: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While one of them waits for the server within its effect, the other one has an effect of its own."""
    monkeypatch.setenv("SINK_POSTGRES", postgres)
    kinds = sink(SIDE_BY_SIDE).kinds()
    assert [kind for kind, line in kinds if line == 6] == ["commit", "commit"]
