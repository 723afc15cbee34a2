"""The sink of the whole course: one file, tested after each notebook that asks for a better edition."""

import textwrap
from pathlib import Path

import pytest

from labkit import lab
from labkit.core.errors import InvalidInput, LabError
from labkit.teach import own, own_history
from labkit.teach.exercises.own_sink.axes import RESTORED
from labkit.teach.own_history import FILE, SinkHistory

MARKER = """
    def my_sink(db, query, batch, rows):
        db.execute("CREATE TABLE IF NOT EXISTS orders (id, item, amount)")
        db.execute("CREATE TABLE IF NOT EXISTS marks (query, batch)")
        db.execute("BEGIN")
        if not db.execute("SELECT 1 FROM marks WHERE query = ? AND batch = ?", [query, batch]):
            for row in rows:
                db.execute("INSERT INTO orders VALUES (?, ?, ?)", [row["id"], row["item"], row["amount"]])
            db.execute("INSERT INTO marks VALUES (?, ?)", [query, batch])
        db.execute("COMMIT")
"""
KEY = """
    def my_sink(db, query, batch, rows):
        db.execute("CREATE TABLE IF NOT EXISTS orders (id PRIMARY KEY, item, amount)")
        db.execute("BEGIN")
        for row in rows:
            db.execute("INSERT OR REPLACE INTO orders VALUES (?, ?, ?)", [row["id"], row["item"], row["amount"]])
        db.execute("COMMIT")
"""


@pytest.fixture(autouse=True)
def _in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def edited(text: str) -> None:
    """As in an editor: the sink is another one, and the lines around it stay."""
    _, mark, around = FILE.read_text(encoding="utf-8").partition("\n\n# How Spark")
    assert mark
    FILE.write_text(textwrap.dedent(text) + mark + around, encoding="utf-8")


@pytest.mark.slow
def test_the_same_file_gets_better_from_notebook_to_notebook() -> None:
    first = lab.my_sink(after="00")
    assert isinstance(first, SinkHistory)
    assert len(first.wrong) == 6
    edited(MARKER)
    marked = lab.my_sink(after="06")
    assert marked.wrong == [RESTORED]
    assert "2 of" not in str(marked)
    edited(KEY)
    last = lab.my_sink(after="12")
    assert last.wrong == []
    shown = str(last).splitlines()
    assert shown[0] == "my_sink.py: 6 of 6 properties hold"
    assert [line.split()[:2] for line in shown[2:5]] == [["after", "00"], ["after", "06"], ["after", "12"]]
    assert [line.count("wrong") for line in shown[2:5]] == [6, 1, 0]
    # The same file goes through the crash test on Spark, which calls it by this name.
    assert "def foreach_batch(frame, batch)" in FILE.read_text(encoding="utf-8")


def my_sink(db, query, batch, rows):
    db.execute("CREATE TABLE IF NOT EXISTS orders (id, item, amount)")
    for row in rows:
        db.execute("INSERT INTO orders VALUES (?, ?, ?)", [row["id"], row["item"], row["amount"]])


def test_an_early_notebook_that_is_run_again_takes_nothing_from_the_file() -> None:
    assert own_history._replace(my_sink) is None
    assert own_history._replace(my_sink) is None
    edited(MARKER)
    better = FILE.read_text(encoding="utf-8")
    kept = own_history._replace(my_sink)
    assert kept == Path("my_sink_1.py")
    assert kept.read_text(encoding="utf-8") == better
    assert MARKER.strip() not in FILE.read_text(encoding="utf-8")
    shown = str(SinkHistory(own.Tried("my_sink", [], []), [], kept))
    assert "my_sink.py contained another sink, which is now in my_sink_1.py." in shown
    assert sorted(path.name for path in Path().glob("*.py")) == ["my_sink.py", "my_sink_1.py"]


def test_what_is_no_sink_is_refused_with_one_sentence() -> None:
    with pytest.raises(InvalidInput, match=r'after="13" is not accepted'):
        lab.my_sink(after="13")
    FILE.write_text("rows = 3\n")
    with pytest.raises(InvalidInput, match=r"my_sink\.py defines no function"):
        lab.my_sink(after="02")
    FILE.write_text("def my_sink(:\n")
    with pytest.raises(InvalidInput, match=r"cannot be read as a Python file"):
        lab.my_sink(after="02")
    FILE.write_text("def my_sink(db, query, batch, rows):\n    pass\n1 / 0\n")
    with pytest.raises(InvalidInput, match=r"raised ZeroDivisionError"):
        lab.my_sink(after="02")


class Sink:
    def __call__(self) -> None:
        """Hand over nothing."""


@pytest.mark.parametrize(
    ("sink", "what"),
    [
        (lambda db, query, batch, rows: None, "a lambda, which has no name"),
        (Sink, "the class Sink"),
        (Sink(), "of the type Sink"),
        (print, "Python's own function print"),
    ],
)
def test_what_is_no_function_of_a_cell_is_named_as_what_it_is(sink: object, what: str) -> None:
    with pytest.raises(InvalidInput) as refusal:
        lab.my_sink(sink, after="00")
    assert str(refusal.value) == f"lab.my_sink(): the sink is {what}; define it in a cell as a function, with def."


@pytest.mark.parametrize(
    ("at_once", "in_the_sink", "says"),
    [
        ("", "while True: pass", r"^lab\.my_sink\(\): my_sink took longer than 5 seconds"),
        ("", "os._exit(3)", "ended its process with exit code 3"),
        ("os._exit(3)", "pass", "ended its process with exit code 3"),
        ("raise SystemExit", "pass", "raised SystemExit"),
        ("print(5)", "raise NotImplementedError", "my_sink is not written yet"),
    ],
)
def test_a_file_that_ends_or_hangs_does_not_end_the_notebook_and_what_it_prints_is_shown(
    at_once: str,
    in_the_sink: str,
    says: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    FILE.write_text(f"import os\ndef my_sink(db, query, batch, rows):\n    {in_the_sink}\n{at_once}\n")
    with pytest.raises(LabError, match=says):
        lab.my_sink(after="02")
    assert [path.name for path in tmp_path.iterdir()] == ["my_sink.py"]
    assert capsys.readouterr().out == ("5\n" if at_once == "print(5)" else "")
