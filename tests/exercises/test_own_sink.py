"""A learner's own sink: real stores, real kills, and nothing that a sink asks for gets any further than its
own trial.
"""

import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import psutil
import pytest

from labkit.core.errors import MissingSolution
from labkit.core.judge import Guarantee
from labkit.grading.hidden import variants
from labkit.grading.marking import mark
from labkit.teach.exercises import capstone
from labkit.teach.exercises.contract import Exercise, Finding, Plain
from labkit.teach.exercises.namespace import InNotebook
from labkit.teach.exercises.own_sink import axes, store
from labkit.teach.exercises.own_sink.trials import Bench, Kill, Past, Recoveries, StepAsker, StoreServer, conclude
from labkit.teach.exercises.registry import find
from labkit.teach.exercises.steps import step

Sink = Callable[..., Any]
PUBLIC = {"batches": capstone.PUBLIC, "query": ["orders"], "others": capstone.OTHERS, "other": ["refunds"]}
INSERT = "INSERT INTO orders VALUES (?, ?, ?)"


@pytest.fixture(autouse=True)
def _nothing_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    yield
    assert not list(tmp_path.glob("labkit-own-sink-*"))
    mine = psutil.Process().children(recursive=True)
    assert not [each for each in mine if "store.py" in " ".join(each.cmdline())]


def table_of(db: Any, rows: list[dict[str, Any]]) -> None:
    for row in rows:
        db.execute(INSERT, [row["id"], row["item"], row["amount"]])


def made(db: Any) -> None:
    db.execute("CREATE TABLE IF NOT EXISTS orders (id, item, amount)")
    db.execute("CREATE TABLE IF NOT EXISTS marks (query, batch)")


def judged(name: str, sink: Sink, axis: str = axes.CRASH) -> Finding:
    exercise = find(name)
    answer = InNotebook(exercise.answer, {exercise.answer: sink})
    [variant] = [each for each in exercise.public if each["axis"] == axis]
    return exercise.judge(answer, variant)


# --- what is right, in more than one style


def upsert(db: Any, query: str, batch: int, rows: list[dict[str, Any]]) -> None:
    db.execute("CREATE TABLE IF NOT EXISTS orders (id PRIMARY KEY, item, amount)")
    db.execute("BEGIN")
    for row in rows:
        db.execute(f"{INSERT} ON CONFLICT DO NOTHING", [*row.values()])
    db.execute("COMMIT")


def delete_and_insert(db: Any, query: str, batch: int, rows: list[dict[str, Any]]) -> None:
    db.execute("CREATE TABLE IF NOT EXISTS orders (id, item, amount, query, batch)")
    db.execute("BEGIN")
    db.execute("DELETE FROM orders WHERE query = ? AND batch = ?", [query, batch])
    for row in rows:
        db.execute("INSERT INTO orders VALUES (?, ?, ?, ?, ?)", [*row.values(), query, batch])
    db.execute("COMMIT")


def unique_marker(db: Any, query: str, batch: int, rows: list[dict[str, Any]]) -> None:
    import sqlite3

    made(db)
    db.execute("CREATE UNIQUE INDEX IF NOT EXISTS once ON marks (query, batch)")
    db.execute("SAVEPOINT whole")
    try:
        db.execute("INSERT INTO marks VALUES (?, ?)", [query, batch])
        table_of(db, rows)
    except sqlite3.IntegrityError:
        db.execute("ROLLBACK TO whole")
    db.execute("RELEASE whole")


def one_statement(db: Any, query: str, batch: int, rows: list[dict[str, Any]]) -> None:
    db.execute("CREATE TABLE IF NOT EXISTS orders (id, item, amount)")
    values = ", ".join("(?, ?, ?)" for _ in rows)
    db.execute(
        f"INSERT INTO orders SELECT * FROM (VALUES {values}) AS new "
        "WHERE NOT EXISTS (SELECT 1 FROM orders WHERE id = new.column1)",
        [value for row in rows for value in row.values()],
    )


def view(db: Any, query: str, batch: int, rows: list[dict[str, Any]]) -> None:
    db.execute("CREATE TABLE IF NOT EXISTS raw (id PRIMARY KEY, item, amount)")
    db.execute("CREATE VIEW IF NOT EXISTS Orders AS SELECT id, item, amount FROM raw")
    db.execute("CREATE TEMP TABLE IF NOT EXISTS stage (id, item, amount)")
    for row in rows:
        db.execute("INSERT INTO stage VALUES (?, ?, ?)", [*row.values()])
    db.execute("INSERT OR IGNORE INTO raw SELECT * FROM stage")
    db.execute("DELETE FROM stage")


@pytest.mark.parametrize(
    "sink",
    [
        upsert,
        *(
            pytest.param(sink, marks=pytest.mark.slow)
            for sink in (delete_and_insert, unique_marker, one_statement, view)
        ),
    ],
)
def test_a_right_sink_of_another_style_gets_all_points(sink: Sink) -> None:
    exercise, answer = find("14-table"), InNotebook("write_batch", {"write_batch": sink})
    for variant in variants(exercise.name, 3):
        found = exercise.judge(answer, variant)
        assert found.passed, (variant.name, found.message)


@pytest.mark.parametrize("begin", ["BEGIN EXCLUSIVE", pytest.param("BEGIN", marks=pytest.mark.slow)])
def test_a_writer_whose_engine_tries_again_after_a_lock_gets_all_points(begin: str) -> None:
    """While a stopped writer has an exclusive lock, no other one can even set up its connection."""

    def write_fenced(db: Any, epoch: int, query: str, batch: int, rows: list[dict[str, Any]]) -> str:
        db.execute("CREATE TABLE IF NOT EXISTS orders (id, item, amount)")
        db.execute("CREATE TABLE IF NOT EXISTS newest (query TEXT PRIMARY KEY, epoch INTEGER)")
        db.execute(begin)
        db.execute(
            "INSERT INTO newest VALUES (?, ?) ON CONFLICT (query) DO UPDATE SET epoch = max(epoch, excluded.epoch)",
            [query, epoch],
        )
        [[top]] = db.execute("SELECT epoch FROM newest WHERE query = ?", [query])
        for row in rows if top == epoch else []:
            values = [*row.values(), row["id"]]
            db.execute("INSERT INTO orders SELECT ?, ?, ? WHERE NOT EXISTS (SELECT 1 FROM orders WHERE id = ?)", values)
        db.execute("COMMIT")
        return "written" if top == epoch else "fenced"

    exercise, answer = find("14b-writers"), InNotebook("write_fenced", {"write_fenced": write_fenced})
    for variant in exercise.public:
        found = exercise.judge(answer, variant)
        assert found.passed, (variant.name, found.message)


@pytest.mark.slow
def test_a_file_may_have_a_long_name_in_front_of_that_of_the_query() -> None:
    def write_files(folder: Any, query: str, batch: int, rows: list[dict[str, Any]]) -> None:
        import json

        name = f"batch-{batch:020d}-of-{query}.jsonl"
        names = json.loads(folder.read("manifest.json")) if "manifest.json" in folder.names() else []
        if name not in names:
            folder.write(name, "\n".join(map(json.dumps, rows)))
            folder.write("m.part", json.dumps([*names, name]))
            folder.rename("m.part", "manifest.json")

    exercise, answer = find("14b-folder"), InNotebook("write_files", {"write_files": write_files})
    for variant in (*exercise.public, *variants(exercise.name, 3)):
        found = exercise.judge(answer, variant)
        assert found.passed, (variant.name, found.message)


@pytest.mark.slow
def test_a_sink_that_keeps_one_file_for_each_query_is_right_too() -> None:
    def write_files(folder: Any, query: str, batch: int, rows: list[dict[str, Any]]) -> None:
        import json

        names = json.loads(folder.read("manifest.json")) if "manifest.json" in folder.names() else []
        stage = f"{query}-{batch}.new"
        if stage in folder.names():
            folder.remove(stage)
        if f"{query}-{batch}" in names:
            return
        folder.write(stage, "\n".join(map(json.dumps, rows)))
        folder.rename(stage, f"{query}-{batch}")
        folder.write("m", json.dumps([*names, f"{query}-{batch}"]))
        folder.rename("m", "manifest.json")

    for axis in capstone.FOLDER:
        found = judged("14b-folder", write_files, axis)
        assert found.passed, (axis, found.message)


# --- the eight sinks of the notebook


def eight() -> dict[str, Sink]:
    names: dict[str, Any] = {}
    for block in re.findall(r"```python\n(.*?)```", find("14-judge").task, re.DOTALL):
        exec(block, names)  # the text of the exercise
    return {letter: names[letter] for letter in capstone.EIGHT}


def prepared(sink: Sink) -> Sink:
    """The sink behind the tables, which exist already in the exercise."""

    def whole(db: Any, *arguments: Any) -> None:
        made(db)
        sink(db, *arguments)

    return whole


LATER: dict[str, Any] = PUBLIC | {"others": capstone.moved(capstone.OTHERS, 200)}
"""The second query has larger numbers, as the exercise says."""
QUICK = ("a", "d", "h")
"""One of each guarantee but the rarest, in every run of the tests; the others are slow."""


@pytest.mark.parametrize(
    "letter", [letter if letter in QUICK else pytest.param(letter, marks=pytest.mark.slow) for letter in capstone.EIGHT]
)
def test_the_eight_sinks_are_as_they_were_predicted(letter: str) -> None:
    answer = InNotebook("sink", {"sink": prepared(eight()[letter])})
    lost = doubled = False
    with closing(StoreServer()) as server:
        bench = Bench(server, StepAsker(answer, "sink"), "table", **LATER, past=Past())
        for axis in (axes.CRASH, axes.SECOND, axes.OLDER, axes.QUERY):
            for each in axes.TESTS[axis][0](bench):
                verdict = each.verdict
                lost |= bool(verdict.lost)
                doubled |= bool(verdict.duplicate or verdict.unexpected)
    known = {
        (False, False): Guarantee.EXACTLY_ONCE,
        (False, True): Guarantee.AT_LEAST_ONCE,
        (True, False): Guarantee.AT_MOST_ONCE,
        (True, True): Guarantee.NONE,
    }
    assert known[lost, doubled] == capstone.EIGHT[letter]


class Forgetful(Recoveries):
    """Remembers no recovery, so that every one really runs."""

    def __contains__(self, key: object) -> bool:
        return False


@pytest.mark.parametrize(
    "letter", [letter if letter in QUICK else pytest.param(letter, marks=pytest.mark.slow) for letter in capstone.EIGHT]
)
def test_a_recovery_that_finds_the_same_files_would_be_the_same(letter: str) -> None:
    """A trial does not run a recovery that another trial ran from the same files; here each of them runs."""
    answer = InNotebook("sink", {"sink": prepared(eight()[letter])})
    taken = 0
    with closing(StoreServer()) as server:
        quick = Bench(server, StepAsker(answer, "sink"), "table", **LATER, past=Past())
        whole = quick._replace(past=Past(recoveries=Forgetful()))
        for axis in (axes.CRASH, axes.SECOND):
            for one, other in zip(axes.TESTS[axis][0](quick), axes.TESTS[axis][0](whole), strict=True):
                assert one == other
                taken += bool(one.story.kills)
    assert taken > len(quick.past.recoveries)


def test_sink_h_needs_a_second_query_that_begins_when_the_first_has_ended() -> None:
    """Why the exercise says so: with two queries at once, the numbers of `h` tell nothing."""
    sink = prepared(eight()["h"])
    ask = StepAsker(InNotebook("sink", {"sink": sink}), "sink")
    with closing(StoreServer()) as server, Bench(server, ask, "table", **LATER, past=Past()).trial() as begun:
        assert begun.run(["orders"], capstone.PUBLIC[:1])
        assert begun.run(["refunds"], capstone.OTHERS)
        assert begun.run(["orders"], capstone.PUBLIC, first=1)
        both = conclude(begun, [*capstone.PUBLIC, *capstone.OTHERS])
    assert both.verdict.lost


def test_of_the_eight_every_single_wrong_answer_fails() -> None:
    exercise = find("14-judge")
    right: dict[str, Plain] = {key: each.value for key, each in capstone.EIGHT.items()}
    for letter in right:
        for other in set(Guarantee) - {capstone.EIGHT[letter], Guarantee.UNKNOWN}:
            answer = InNotebook("guarantees", {"guarantees": right | {letter: other.value}})
            found = exercise.judge(answer, exercise.public[0])
            assert not found.passed
            assert found.message.startswith("7 of 8")


# --- points by axis


class Counting(InNotebook):
    calls = 1

    def repeat(self) -> None: ...


def marked(exercise: Exercise, sink: Sink) -> Any:
    answer = Counting(exercise.answer, {exercise.answer: sink})
    return mark(exercise, answer, variants(exercise.name, 1))


@pytest.mark.slow
def test_points_are_given_by_axis() -> None:
    def batch_alone(db: Any, query: str, batch: int, rows: list[dict[str, Any]]) -> None:
        made(db)
        db.execute("BEGIN")
        if not db.execute("SELECT 1 FROM marks WHERE batch = ?", [batch]):
            table_of(db, rows)
            db.execute("INSERT INTO marks VALUES (?, ?)", [query, batch])
        db.execute("COMMIT")

    item = marked(find("14-table"), batch_alone)
    assert (item.status, item.points, item.most) == ("wrong", 7, 8)
    assert "a second query: 0 of 1 points." in item.shown
    assert "a crash at every place: 2 of 2 points." in item.shown


def test_a_sink_that_does_nothing_gets_nothing() -> None:
    for name in ("14-table", "14b-folder", "14b-writers"):
        item = marked(find(name), lambda *_: None)
        assert (item.points, item.status) == (0, "wrong"), name


# --- what a sink may not do


@pytest.mark.parametrize(
    "statement",
    [
        "ATTACH '/etc/passwd' AS other",
        "ATTACH '../other.db' AS other",
        "PRAGMA journal_mode = WAL",
        "PRAGMA writable_schema = ON",
        "VACUUM INTO '/tmp/out.db'",
        "SELECT load_extension('x')",
        "CREATE VIRTUAL TABLE v USING fts5(x)",
        "CREATE TRIGGER t AFTER INSERT ON orders BEGIN SELECT 1; END",
    ],
)
def test_a_statement_beyond_tables_and_rows_is_refused(statement: str) -> None:
    def write_batch(db: Any, *_: Any) -> None:
        made(db)
        db.execute(statement)

    found = judged("14-table", write_batch)
    assert not found.passed
    assert re.search(r"not authorized|prohibited|authorization denied", found.message), found.message


LONG = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) "


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        (f"{LONG}SELECT count(*) FROM n", "took more than 2 s"),
        (f"{LONG}SELECT x FROM n", "more than 1000 rows"),
        ("SELECT length(hex(zeroblob(400000000)))", "too big|Memory"),
        ("SELECT x'ff'", "JSON serializable"),
        ("SELECT 1; SELECT 2", "one statement at a time"),
        ("nonsense", "syntax error"),
    ],
)
def test_what_takes_too_much_or_is_nonsense_gets_a_sentence(statement: str, said: str) -> None:
    def write_batch(db: Any, *_: Any) -> None:
        db.execute(statement)

    found = judged("14-table", write_batch)
    assert not found.passed
    assert re.search(said, found.message), found.message
    assert len(found.message) < 1_000


def test_a_store_that_grows_too_large_is_refused() -> None:
    def write_batch(db: Any, *_: Any) -> None:
        db.execute("CREATE TABLE t (x)")
        db.execute("INSERT INTO t VALUES (zeroblob(40000000))")

    found = judged("14-table", write_batch)
    assert not found.passed
    assert re.search(r"full|disk I/O|stuck|ended the process", found.message), found.message


@pytest.mark.parametrize("name", ["../out", "/etc/passwd", "a/b", "", ".hidden", 3, "x" * 300])
def test_a_file_outside_of_the_folder_is_refused(name: Any, tmp_path: Path) -> None:
    def write_files(folder: Any, *_: Any) -> None:
        folder.write(name, "text")

    found = judged("14b-folder", write_files)
    assert not found.passed
    assert "this file name is not allowed" in found.message
    assert not (tmp_path / "out").exists()


def test_a_sink_that_asks_for_ever_or_for_something_else_is_told_so() -> None:
    def endless(db: Any, *_: Any) -> None:
        while True:
            db.execute("SELECT 1")

    def private(db: Any, *_: Any) -> None:
        db._ask("see")

    def by_chance(db: Any, *_: Any) -> None:
        db.execute(f"SELECT {time.monotonic_ns()}")

    assert "more than 55 requests" in judged("14-table", endless).message
    assert "which a table does not support" in judged("14-table", private).message
    assert "must not depend on chance" in judged("14-table", by_chance).message


def test_a_finally_that_goes_on_asking_and_a_bare_except_do_no_harm() -> None:
    def write_batch(db: Any, query: str, batch: int, rows: list[dict[str, Any]]) -> None:
        made(db)
        db.execute("BEGIN")
        try:
            if not db.execute("SELECT 1 FROM marks WHERE query = ? AND batch = ?", [query, batch]):
                table_of(db, rows)
                db.execute("INSERT INTO marks VALUES (?, ?)", [query, batch])
        except:  # noqa: E722  # as learners write it
            db.execute("ROLLBACK")
        finally:
            db.execute("COMMIT")

    assert judged("14-table", write_batch).passed


@pytest.mark.parametrize(
    "reply",
    [
        ["do", []],
        ["do", [[]]],
        ["do", [{}]],
        ["do", ["execute"]],
        ["do", ["execute", "SELECT 1", [], 0.5]],
        ["do", ["see"]],
        ["do", "execute"],
        ["do"],
        ["do", None],
        [[]],
        [{}, 1],
        [],
        "do",
        7,
    ],
)
def test_a_reply_of_a_sandbox_that_is_no_request_fails_the_answer_and_not_the_judge(reply: Any) -> None:
    class Hostile(InNotebook):
        def step(self, *_: Any) -> Any:
            return reply

    exercise = find("14-table")
    for variant in exercise.public:
        found = exercise.judge(Hostile("write_batch", {}), variant)
        assert not found.passed
        assert len(found.message) < 1_000


def test_the_largest_number_of_all_queries_is_no_marker() -> None:
    def write_batch(db: Any, _query: str, _batch: int, rows: list[dict[str, Any]]) -> None:
        made(db)
        db.execute("BEGIN")
        [[most]] = db.execute("SELECT coalesce(max(id), 0) FROM orders")
        table_of(db, [row for row in rows if row["id"] > most])
        db.execute("COMMIT")

    assert judged("14-table", write_batch).passed
    assert not judged("14-table", write_batch, axes.QUERY).passed


# --- the trial itself


def test_the_kill_is_a_sigkill_of_the_process_that_has_the_store(tmp_path: Path) -> None:
    def write_batch(db: Any, *_: Any) -> None:
        db.execute("BEGIN")

    ask = StepAsker(InNotebook("write_batch", {"write_batch": write_batch}), "write_batch")
    with closing(StoreServer()) as server, Bench(server, ask, "table", **LATER, past=Past()).trial() as begun:
        process = psutil.Process(begun.process()._pid)
        begun.run(["orders"], capstone.PUBLIC[:1], [Kill(0, 1)])
        assert begun.story.kills == ["batch 0, when the sink had returned"]
        process.wait(10)
        assert not process.is_running()


def test_everything_ends_with_the_process_that_has_begun_it(tmp_path: Path) -> None:
    program = """
import sys, time
from pathlib import Path
from contextlib import closing
from labkit.teach.exercises.own_sink.trials import StoreServer
with closing(StoreServer()) as server:
    one = server.start("table", Path(sys.argv[1]))
    print(server._process.pid, one._pid, flush=True)
    time.sleep(600)
"""
    command = [sys.executable, "-c", program, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as begun:
        assert begun.stdout is not None
        pids = [int(each) for each in begun.stdout.readline().split()]
        begun.kill()
    deadline = time.monotonic() + 30
    while any(map(psutil.pid_exists, pids)) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not [pid for pid in pids if psutil.pid_exists(pid)]


def test_a_stub_is_missing_and_a_step_is_plain() -> None:
    def stub(*_: Any) -> Any:
        return ...

    assert step(stub, "table", [], ["orders", 0, []]) is ...
    with pytest.raises(MissingSolution):
        InNotebook("x", {"x": stub}).step("table", [], ["orders", 0, []])

    def sink(db: Any, *_: Any) -> None:
        db.execute("SELECT ?", [1])

    assert step(sink, "table", [], ["orders", 0, []]) == ["do", ["execute", "SELECT ?", [1]]]
    known = [[["execute", "SELECT ?", [1]], ["gave", [[1]]]]]
    assert step(sink, "table", known, ["orders", 0, []]) == ["end", None]
    known = [[["execute", "SELECT ?", [2]], ["gave", [[2]]]]]
    assert step(sink, "table", known, ["orders", 0, []]) == ["differs"]


def test_the_store_is_a_program_of_the_standard_library() -> None:
    text = Path(store.__file__).read_text(encoding="utf-8")
    assert "labkit" not in re.findall(r"^(?:import|from) (\w+)", text, re.MULTILINE)
    assert os.access(store.__file__, os.R_OK)
