"""Where the reader sees rows that nothing recorded explains, nothing may be said of the guarantee."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path

import pytest

from labkit.crashtest.harness.reader import Reader
from labkit.crashtest.harness.watching import Watcher
from labkit.crashtest.instrument.effects import LISTENER, Effect, Kind
from labkit.crashtest.instrument.ticket import Ticket
from labkit.crashtest.project import Project
from labkit.crashtest.rows import Seen
from labkit.crashtest.seeing import Logged, PointReading, doubts, gaps, imports, read_logged
from labkit.crashtest.subject import Subject

PROCESS = Path(__file__).parents[1] / "support" / "plain_sink_process.py"
SINKS = Path(__file__).parents[2] / "data" / "sinks"
PATIENCE = 60.0
ROWS = (Seen(0, "k0", 1), Seen(1, "k1", 1))


def logged(*kinds: Kind, **more: object) -> list[Logged]:
    """A log whose nth line ends at byte n; the effect of line n is by line 10 + n of the file."""
    return [
        Logged(n, Effect(0, "call", n, kind, "t", 10 + n, **more))  # type: ignore[arg-type]  # options by name, as the callee takes them
        for n, kind in enumerate(kinds, start=1)
    ]


def readings(*rows: Sequence[Seen]) -> list[PointReading]:
    """What was read behind line n of the log, from 0."""
    return [PointReading(f"p{n}", n, tuple(seen)) for n, seen in enumerate(rows)]


@pytest.mark.parametrize("kind", [Kind.COMMIT, Kind.WRITE, Kind.RENAME, Kind.JVM, Kind.CREATE, Kind.SCHEMA])
def test_rows_that_appear_by_a_recorded_effect_are_seen(kind: Kind) -> None:
    assert gaps(readings([], [], ROWS), logged(Kind.BEGIN, kind)) == []


@pytest.mark.parametrize("kind", [Kind.STATEMENT, Kind.MKDIR, Kind.FSYNC, Kind.NETWORK, Kind.RETURN])
def test_rows_that_appear_where_nothing_could_bring_them_are_a_gap(kind: Kind) -> None:
    found = gaps(readings([], [], ROWS), logged(Kind.BEGIN, kind))
    assert [(gap.earlier, gap.later, gap.appeared) for gap in found] == [("p1", "p2", 2)]


def test_a_marker_in_another_store_does_not_explain_rows_beside_it() -> None:
    """As with psycopg2, of which nothing is seen, and a line of a log file, of which everything is."""
    log = logged(Kind.BEGIN, Kind.WRITE, Kind.RETURN)
    found = doubts(readings([], [], [], ROWS), log, {"psycopg2"})
    assert len(found) == 1
    assert "2 row(s) appeared between [p2] and [p3]" in found[0]
    assert "psycopg2; use psycopg (3)" in found[0]


def test_a_sink_in_the_jvm_is_told_to_be_there_unless_python_is_called() -> None:
    rows = readings([], [], ROWS)
    task = [Logged(n, Effect(0, "task 0", n, Kind.BEGIN, "", 0)) for n in (1, 2)]
    (found,) = doubts(rows, task, {"pyarrow"}, in_jvm=True)
    assert "the sink writes in the JVM" in found
    called = logged(Kind.BEGIN, Kind.RETURN)
    (found,) = doubts(rows, called, {"pyarrow"}, in_jvm=True)
    assert "writes of pyarrow" in found


def test_rows_that_change_or_go_are_told_too() -> None:
    changed = (Seen(0, "k0", 7), ROWS[1])
    found = gaps(readings(ROWS, changed, ()), logged(Kind.STATEMENT, Kind.STATEMENT))
    assert [(gap.appeared, gap.gone) for gap in found] == [(1, 1), (0, 2)]


def test_the_order_of_rows_says_nothing() -> None:
    assert gaps(readings(ROWS, ROWS[::-1]), []) == []


def test_what_a_producer_was_given_may_arrive_until_the_next_call_is_over() -> None:
    sent = logged(
        *(Kind.BEGIN, Kind.SEND, Kind.FLUSH, Kind.RETURN), *(Kind.BEGIN, Kind.STATEMENT, Kind.BEGIN, Kind.STATEMENT)
    )
    until: list[Sequence[Seen]] = [[], [], [], [], [], [], ROWS, ROWS, ROWS]
    assert gaps(readings(*until), sent) == []
    later: list[Sequence[Seen]] = [*[()] * 8, ROWS]
    assert len(gaps(readings(*later), sent)) == 1
    never = [each for each in sent if each.effect.kind is not Kind.FLUSH]
    assert gaps(readings(*later), never) == []


def test_where_no_durable_effect_was_seen_nothing_was_cut() -> None:
    log = logged(Kind.BEGIN, Kind.MKDIR, Kind.RETURN)
    found = doubts(readings(ROWS, ROWS, ROWS, ROWS), log, {"duckdb"})
    assert len(found) == 1
    assert "writes of duckdb; --eyes kernel" in found[0]


def test_bytes_for_somebody_else_stop_the_claim() -> None:
    log = logged(Kind.BEGIN, Kind.NETWORK, Kind.COMMIT)
    found = doubts(readings([], [], [], ROWS), log)
    (doubt,) = found
    assert "bytes to t by line 12" in doubt
    assert "--ignore t" in doubt


def test_what_a_thread_does_after_the_return_was_returned_too_early() -> None:
    log = [*logged(Kind.BEGIN, Kind.RETURN), *logged(Kind.COMMIT, late=True)]
    log[2] = log[2]._replace(end=3)
    found = doubts(readings([], [], [], ROWS), log)
    assert len(found) == 1
    assert found[0].startswith("the sink returned too early: commit of t by line 11")


def test_what_a_listener_of_the_query_does_comes_late_on_purpose() -> None:
    late = Effect(0, LISTENER, 3, Kind.COMMIT, "t", 13, late=True)
    log = [*logged(Kind.BEGIN, Kind.RETURN), Logged(3, late)]
    assert doubts(readings([], [], [], ROWS), log) == []


def test_imports_are_followed_within_the_project(tmp_path: Path) -> None:
    (tmp_path / "sink.py").write_text("import os\nfrom beside import put\n")
    (tmp_path / "beside.py").write_text("import redis.client\nfrom . import other\n")
    (tmp_path / "other.py").write_text("import sink, duckdb\n")
    assert {"redis", "duckdb", "os"} <= imports(tmp_path / "sink.py")


Healthy = Callable[[str], list[str]]


@pytest.fixture
def healthy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Healthy:
    """The doubts about a sink after a run without a crash and without Spark, its reader asked at each point."""
    monkeypatch.setenv("SINK_STORE", str(tmp_path / "store"))

    def run(file: str) -> list[str]:
        path = SINKS / file
        if "\n" in file:
            path = tmp_path / "sink.py"
            path.write_text(file)
        log = tmp_path / "effects.jsonl"
        for left in (log, tmp_path / "store"):
            left.unlink(missing_ok=True)
        project = Project.of(str(path))
        ticket = Ticket(*map(str, (path, log)), 1, None, "", "crash", *project[1:])
        plain = ticket.to_json() | {"asks": str(tmp_path / "asks")}
        words = [str(PROCESS), str(path), "write_batch", json.dumps(plain), "3"]
        with (
            Reader(Subject(str(path), "read"), tmp_path / "log") as reader,
            Watcher(reader, asks=tmp_path / "asks") as watcher,
        ):
            subprocess.run([sys.executable, *words], check=True, env=os.environ, timeout=PATIENCE)
            watcher.look("end")
        size = log.stat().st_size
        end = PointReading("the end", size, watcher.samples[-1].seen)
        found = read_logged(log)
        effects = [each.effect for each in found if not each.effect.late]
        assert len(watcher.readings) >= len(effects)
        return doubts([PointReading("the start", 0, ()), *watcher.readings, end], found, imports(path))

    return run


@pytest.mark.parametrize(
    "file",
    [
        "right_marker.py",
        "right_logged.py",
        "right_overwrite.py",
        "wrong_marker_after.py",
        "wrong_savepoints.py",
        "wrong_swallowed.py",
        "wrong_in_module.py",
        "wrong_files_new_names.py",
    ],
)
def test_a_sink_of_which_everything_is_seen_leaves_no_doubt(healthy: Healthy, file: str) -> None:
    assert healthy(file) == []


def test_rows_that_another_program_writes_are_seen_to_be_unseen(healthy: Healthy) -> None:
    (found,) = healthy("wrong_copied_unseen.py")
    assert "10 row(s) appeared between [batch 0, call, after effect 3 (write by line" in found
    assert "subprocess" in found


def test_a_pool_that_nobody_waits_for_has_returned_too_early(healthy: Healthy) -> None:
    found = healthy("wrong_pool.py")
    assert any(label.startswith("the sink returned too early: ") for label in found)


def test_the_answers_of_a_question_are_those_of_its_point(healthy: Healthy) -> None:
    """Rows that are there between two statements only: no reading at fixed intervals is sure to meet them."""
    text = (SINKS / "wrong_delete_first.py").read_text()
    assert healthy(text) == []
    unseen = text.replace("    db.close()\n\n\ndef read", "    db.close()\n    hidden()\n\n\ndef read")
    hidden = (
        "\n\ndef hidden():\n    import subprocess, sys\n"
        "    code = \"import sqlite3, os; db = sqlite3.connect(os.environ['SINK_STORE']);"
        " db.execute('DELETE FROM orders'); db.commit()\"\n"
        '    subprocess.run([sys.executable, "-c", code], check=True)\n'
    )
    (doubt,) = healthy(unseen + hidden)
    assert "disappeared between" in doubt


def test_an_effect_and_its_json_are_one() -> None:
    effect = Effect(0, "call", 1, Kind.COMMIT, "t", 3, file="a/b.py", late=True)
    assert Effect.from_json(json.loads(json.dumps(asdict(effect)))) == effect
    assert effect.label() == "commit of t by line 3 of a/b.py"
