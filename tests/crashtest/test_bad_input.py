"""A file, a name, a reader or a store that cannot be tested: one sentence each, and nothing is left running."""

import os
import sqlite3
import time
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from other_processes import with_word
from waiting import until

from labkit.core.errors import InvalidInput
from labkit.crashtest.batch_expectation import plain
from labkit.crashtest.blackbox.healthy import Glances
from labkit.crashtest.configured import requested
from labkit.crashtest.harness.plain_job import sentence_of
from labkit.crashtest.harness.reader import Reader, ReaderFailed
from labkit.crashtest.rows import Seen, read_rows
from labkit.crashtest.settings import settings
from labkit.crashtest.subject import Adapter, Subject, module_name

SOURCE = """
from pyspark.sql.datasource import DataSource
class Bare(DataSource): pass
class Full(DataSource):
    def streamWriter(self, schema, overwrite): ...
"""


def subject(folder: Path, text: str, name: str = "sink") -> Subject:
    path = folder / "user_sink.py"
    path.write_text(text)
    return Subject.parse(f"{path}:{name}")


def reading(folder: Path, text: str) -> Reader:
    """A reader, whose file has this text."""
    return Reader(subject(folder, text, "read"), folder / "log")


def examine(subject: Subject) -> Adapter:
    return Reader(subject, Path(os.devnull)).examine()


@pytest.mark.parametrize(
    ("text", "name", "adapter"),
    [
        ("def sink(df, batch_id): ...", "sink", Adapter.BATCH),
        ("sink = lambda df, batch: None", "sink", Adapter.BATCH),
        ("def sink(row): ...", "sink", Adapter.WRITER),
        ("class sink:\n    def process(self, row): ...", "sink", Adapter.WRITER),
        ("class C:\n    def process(self, row): ...\nsink = C()", "sink", Adapter.WRITER),
        (SOURCE, "Full", Adapter.SOURCE),
        ("def sink(s): return s.writeStream.format('x')", "sink", Adapter.STREAM),
        ("def sink(s: 'DataStreamWriter'): ...", "sink", Adapter.STREAM),
        ("def sink(s: 'DataFrame'): return go(s)", "sink", Adapter.STREAM),
        ("print('hello')\nprint('{\"labkit\": 1}'[:5])\ndef sink(df, batch_id): ...", "sink", Adapter.BATCH),
    ],
)
def test_every_kind_of_sink_is_recognised(tmp_path: Path, text: str, name: str, adapter: Adapter) -> None:
    assert examine(subject(tmp_path, text, name)) is adapter


@pytest.mark.parametrize(
    ("text", "name", "sentence"),
    [
        ("def sink(", "sink", "failed (SyntaxError"),
        ("import nowhere_to_be_found", "sink", "failed (ModuleNotFoundError"),
        ("1 / 0", "sink", "failed (ZeroDivisionError"),
        ("raise SystemExit(3)", "sink", "failed (SystemExit"),
        ("import os\nos._exit(3)", "sink", "exit code 3"),
        ("x = 1", "sink", "does not define sink"),
        ("sink = 1", "sink", "an object of type int is not a sink"),
        ("class sink: ...", "sink", "a class sink is not a sink"),
        ("def sink(): ...", "sink", "has 0 parameters"),
        ("def sink(a, b, c): ...", "sink", "has 3 parameters"),
        (SOURCE, "Bare", "streamWriter"),
    ],
)
def test_what_is_no_sink_is_said_in_one_sentence(tmp_path: Path, text: str, name: str, sentence: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        examine(subject(tmp_path, text, name))
    assert sentence in str(refused.value)
    assert "\n" not in str(refused.value)


def test_what_the_sink_raised_is_found_in_what_spark_makes_of_it() -> None:
    text = (
        "[STREAM_FAILED] Query terminated: An exception was raised by the Python Proxy. Return Message: "
        'Traceback (most recent call last):\n  File "x.py", line 1, in call\n    db: Any = commit()\n'
        "sqlite3.IntegrityError: UNIQUE: id\n"
        "\n\tat py4j.Protocol.getReturnValue(Protocol.java:476)"
    )
    assert sentence_of(Exception(text)) == "IntegrityError: UNIQUE: id (x.py:1)"
    assert sentence_of(ValueError("no traceback in it")) == "no traceback in it"


def test_what_the_jvm_raised_is_told_with_its_cause() -> None:
    text = (
        "Return Message: Traceback (most recent call last):\n  File 'x.py', line 1, in call\n"
        "py4j.protocol.Py4JJavaError: An error occurred while calling o67.sql.\n"
        ": org.apache.spark.SparkException: no such catalog\n\tat org.apache.Spark.run(Spark.java:1)\n"
        "Caused by: java.lang.ClassNotFoundException: org.postgresql.Driver\n\tat java.Base\n"
    )
    assert sentence_of(Exception(text)) == (
        "Py4JJavaError: An error occurred while calling o67.sql. org.apache.spark.SparkException: no such catalog; "
        "caused by java.lang.ClassNotFoundException: org.postgresql.Driver"
    )


PACKAGE = "from .tables import TABLE\ndef sink(df, batch_id): ...\n"


def test_a_sink_in_a_package_is_named_by_file_or_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "shop" / "jobs"
    folder.mkdir(parents=True)
    for path in (folder.parent, folder):
        (path / "__init__.py").touch()
    (folder / "tables.py").write_text("TABLE = 'orders'\n")
    (folder / "orders.py").write_text(PACKAGE)
    by_file = Subject.parse("shop/jobs/orders.py:sink")
    assert Subject.parse("shop.jobs.orders:sink") == by_file
    assert by_file.file == str(folder / "orders.py")
    assert examine(by_file) is Adapter.BATCH


@pytest.mark.parametrize("base", ["", "src"])
def test_a_package_without_init_files_is_a_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, base: str) -> None:
    """Its file names its neighbours by dots, so it belongs to the folder in which the test was started."""
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / base / "shop" / "jobs"
    folder.mkdir(parents=True)
    (folder / "tables.py").write_text("TABLE = 'orders'\n")
    (folder / "orders.py").write_text(PACKAGE)
    assert module_name(str(folder / "orders.py")) == "shop.jobs.orders"
    assert examine(Subject.parse("shop.jobs.orders:sink")) is Adapter.BATCH
    (folder / "plain.py").write_text("import tables\ndef sink(df, batch_id): ...\n")
    assert module_name(str(folder / "plain.py")) == "crashtest_subject_plain"
    assert examine(Subject.parse(f"{folder}/plain.py:sink")) is Adapter.BATCH


@pytest.mark.parametrize(
    ("more", "sentence"),
    [
        ({}, "nothing to test"),
        ({"sink_format": "json", "table": "t"}, "json and t are 2 sinks; name one of them."),
        ({"sink_format": "json"}, "add --reader"),
        ({"table": "t", "reader": "nowhere.py:read"}, "--reader nowhere.py:read"),
    ],
)
def test_one_sink_and_its_reader_must_be_named(more: dict[str, str], sentence: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        settings(**more)
    assert sentence in str(refused.value)


def test_a_sink_of_spark_s_own_is_known_by_its_name(tmp_path: Path) -> None:
    made = subject(tmp_path, "", "rows")
    wanted = settings(sink_format="parquet", reader=f"{made.file}:rows", options=("path=out",))
    assert str(wanted.subject) == "format parquet"
    assert wanted.command() == (f"labkit crashtest --format parquet --reader {made.file}:rows --option path=out")
    said = {"table": "orders", "reader": f"{made.file}:rows"}
    assert str(requested(said, {}).subject) == "table orders"
    assert str(requested(said, {"sink_format": "csv"}).subject) == "format csv"


@pytest.mark.parametrize("text", ["sink", "sink.py", "nowhere.py:sink", "sink.py:", ":sink", "sink.py:1x"])
def test_another_form_of_a_name_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput):
        Subject.parse(text)


def test_a_file_that_waits_is_not_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("labkit.crashtest.harness.reader.LOAD_SECONDS", 0.5)
    with pytest.raises(InvalidInput, match="took more than"):
        examine(subject(tmp_path, "import time\ntime.sleep(60)"))


@pytest.mark.parametrize(
    ("row", "seen"),
    [
        ("{'id': 1, 'key': 'k', 'amount': 2, 'more': 3}", Seen(1, "k", 2)),
        ("(1, 'k', 2)", Seen(1, "k", 2)),
        ("[1]", Seen(1, None, None)),
        ("7", Seen(7, None, None)),
        ("('k', 2)", Seen(None, "k", 2)),
        ("__import__('decimal').Decimal(4)", Seen(4, None, None)),
        ("(__import__('decimal').Decimal(4), 'k', __import__('decimal').Decimal('2.00'))", Seen(4, "k", 2)),
        ("(__import__('numpy').int64(1), 'k', __import__('numpy').float32(2))", Seen(1, "k", 2)),
        ("__import__('collections').namedtuple('R', 'id key')(1, 'k')", Seen(1, "k", None)),
        ("{'id': 1.5}", None),
        ("{'id': 2**63}", None),
        ("{'id': True}", None),
        ("object()", None),
        ("(1, 2, 3, 4)", None),
    ],
)
def test_rows_of_every_form_are_read_and_others_refused(tmp_path: Path, row: str, seen: Seen | None) -> None:
    outcome = nullcontext() if seen else pytest.raises((InvalidInput, TypeError))
    with reading(tmp_path, f"def read():\n    return [{row}]") as reader, outcome:
        assert list(map(plain, reader.values())) == [seen]


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        ("return None", "returned None"),
        ("return 3", "returned an object of type int"),
        ("return 'rows'", "returned an object of type str"),
        ("return {'id': 1}", "returned an object of type dict"),
        ("import os; os._exit(1)", "ended the reader's process"),
    ],
)
def test_a_reader_that_returns_something_else_is_refused(tmp_path: Path, body: str, sentence: str) -> None:
    with reading(tmp_path, f"def read():\n    {body}") as reader, pytest.raises(InvalidInput, match=sentence):
        reader.values()


def test_a_reader_that_raises_may_be_asked_again(tmp_path: Path) -> None:
    text = (
        "asked = []\ndef read():\n    print('noise')\n    asked.append(1)\n    return [1] if len(asked) > 2 else 1 / 0"
    )
    with reading(tmp_path, text) as reader:
        with pytest.raises(ReaderFailed, match=r"user_sink\.py:read raised ZeroDivisionError"):
            reader.values()
        with pytest.raises(ReaderFailed):
            reader.values()
        assert reader.values() == [1]
    assert "noise" in (tmp_path / "log").read_text()


def test_a_reader_that_hangs_is_ended_with_its_children(tmp_path: Path) -> None:
    text = "import subprocess, time\ndef read():\n    subprocess.Popen(['sleep', '61.25'])\n    time.sleep(60)"
    with reading(tmp_path, text) as reader, pytest.raises(ReaderFailed, match="took more than 1 s"):
        reader.values(1.0)
    until(lambda: not with_word("61.25"), "the end of its child", 5)


LOCKED = """
import sqlite3
def read():
    return sqlite3.connect({database!r}, timeout=30).execute("SELECT id FROM rows").fetchall()
"""
BUSY = """
import time
def read():
    end = time.monotonic() + 1.5
    while time.monotonic() < end:
        pass
    return [1]
"""


def test_a_reader_that_waits_for_a_lock_is_given_up_where_nobody_waits(tmp_path: Path) -> None:
    """As while the writer is held: SQLite sleeps between two tries."""
    database = str(tmp_path / "db")
    with sqlite3.connect(database) as db, reading(tmp_path, LOCKED.format(database=database)) as reader:
        db.execute("CREATE TABLE rows (id)")
        db.commit()
        assert reader.values(asleep=0.15) == []
        db.execute("BEGIN EXCLUSIVE")
        with pytest.raises(ReaderFailed, match="waited for a lock"):
            reader.values(20.0, asleep=0.15)
        db.rollback()
        assert reader.values(asleep=0.15) == []


def test_readings_end_when_their_time_is_used_up_and_a_note_says_so(tmp_path: Path) -> None:
    def values(*_: Any, **__: Any) -> list[Any]:
        time.sleep(0.02)
        return []

    glances = Glances(SimpleNamespace(reader=SimpleNamespace(values=values)), 0.0, [tmp_path], seconds=0.05)
    for number in range(9):
        glances(SimpleNamespace(family=str(number)))
    assert 1 < len(glances.taken) < 6
    (said,) = glances.note()
    assert "more than 0 s" in said


def test_a_reader_that_waited_is_called_again_only_under_other_locks(tmp_path: Path) -> None:
    database = str(tmp_path / "db")
    calls: list[str] = []
    with (
        sqlite3.connect(database, isolation_level=None) as db,
        reading(tmp_path, LOCKED.format(database=database)) as reader,
    ):
        db.execute("CREATE TABLE rows (id)")

        def values(*arguments: Any, **named: Any) -> list[Any]:
            calls.append(family)
            return reader.values(*arguments, **named)

        glances = Glances(SimpleNamespace(reader=SimpleNamespace(values=values)), 0.0, [tmp_path])
        for family, statement in {
            "before": "BEGIN",
            "begun": "INSERT INTO rows VALUES (1)",  # locked, but only against other writers
            "inserted": "PRAGMA locking_mode",
            "same": "COMMIT",
            "committed": "BEGIN EXCLUSIVE",
            "shut": "INSERT INTO rows VALUES (2)",
            "still shut": "COMMIT",
            "open": "SELECT 1",
        }.items():
            glances(SimpleNamespace(family=family))
            db.execute(statement)
    assert calls == ["before", "begun", "inserted", "same", "committed", "shut", "open"]
    assert [glance.happened for glance in glances.taken] == [0, 0, 1, 2, 3, 4, 7]


def test_a_reader_that_works_is_not_given_up(tmp_path: Path) -> None:
    with reading(tmp_path, BUSY) as reader:
        assert reader.values(20.0, asleep=0.15) == [1]


def test_a_file_without_a_reader_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"write read\(\) that returns the rows"):
        reading(tmp_path, "x = 1").__enter__()


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"batches": 0}, "--batches 0"),
        ({"batches": 6}, "--batches 6"),
        ({"options": ("path",)}, "--option path"),
        ({"limit": 0}, "more than 0"),
        ({"reader": "nowhere.py:read"}, "--reader nowhere.py:read"),
    ],
)
def test_a_setting_that_makes_no_sense_is_refused(tmp_path: Path, given: dict, sentence: str) -> None:
    made = subject(tmp_path, "")
    with pytest.raises(InvalidInput, match=sentence.replace("(", r"\(")):
        settings(f"{made.file}:{made.name}", **given)


def test_the_project_says_what_the_command_line_does_not(tmp_path: Path) -> None:
    made = subject(tmp_path, "")
    said = {"subject": f"{made.file}:sink", "batches": 2, "options": ["path=x"]}

    assert requested(said, {}).batches == 2
    assert requested(said, {"batches": 4}).batches == 4
    assert requested(said, {}).options == {"path": "x"}
    assert requested(said | {"seconds": 600}, {}).seconds == 600
    assert requested(said | {"seconds": 600}, {"seconds": 20.0}).seconds == 20
    with pytest.raises(InvalidInput, match="nothing to test"):
        requested({}, {})


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("{", "one JSON object per line"),
        ('{"id": 1}\n\n{"id": }', r"line 3: this is not valid JSON"),
        ('{"id": true}', "line 1: every row needs a column id"),
        (f'{{"id": {2**63}}}', "whole number of at most 63 bits"),
        ("{}", "line 1: every row needs a column id"),
        ('{"id": 1}\n{"id": 1}', "two rows have the same id"),
        ('{"id": 1}\n{"id": 2}', "need at least 12 rows"),
    ],
)
def test_rows_that_prove_nothing_are_refused(tmp_path: Path, text: str, sentence: str) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text(text)
    with pytest.raises(InvalidInput, match=sentence):
        read_rows(path, 3)
