"""`lab.try_sink` and `lab.save_sink` with what learners hand over: each gets a sentence, and no file is lost."""

from collections.abc import Callable
from functools import partial
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import pytest
from choosing import spread
from exercise_sources import all_sources

from labkit import lab
from labkit.core.errors import InvalidInput
from labkit.teach.own_file import WRITTEN

ORDERS = "CREATE TABLE IF NOT EXISTS orders (id, item, amount)"


def raises(db: Any, query: str, batch: int, rows: list[dict[str, Any]]) -> None:
    raise ValueError("no")


def raises_later(db: Any, query: str, batch: int, rows: list[dict[str, Any]]) -> None:
    db.execute(ORDERS)
    if batch == 1:
        raise ValueError("no")


def raises_behind_a_crash(db: Any, query: str, batch: int, rows: list[dict[str, Any]]) -> None:
    db.execute(f"CREATE TABLE seen_{query}_{batch} (x)")
    db.execute("CREATE TABLE IF NOT EXISTS orders (id, item, amount)")
    values = ", ".join("(?, ?, ?)" for _ in rows)
    given = [value for row in rows for value in row.values()]
    db.execute(f"INSERT INTO orders VALUES {values}", given)


def test_a_sink_that_raises_is_a_result_and_no_traceback() -> None:
    tried = lab.try_sink(raises_behind_a_crash)
    assert not tried.holds
    assert "the sink raised Operational" in str(tried)
    assert "the sink raised Operational" in tried.html()


def test_a_sink_goes_into_a_file_that_is_python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert lab.save_sink(raises_later, "my_sink.py") == "my_sink.py:foreach_batch"
    names: dict[str, Any] = {"Any": Any}
    exec((tmp_path / "my_sink.py").read_text(encoding="utf-8"), names)  # our own file
    assert {"raises_later", "foreach_batch", "read", "reset"} <= names.keys()
    assert lab.save_sink(raises, "my_sink.py") == "my_sink.py:foreach_batch"


def test_a_file_of_somebody_else_is_not_replaced(tmp_path: Path) -> None:
    theirs = tmp_path / "theirs.py"
    theirs.write_text("work = 1\n", encoding="utf-8")
    with pytest.raises(InvalidInput, match="did not write it"):
        lab.save_sink(raises, str(theirs))
    assert theirs.read_text(encoding="utf-8") == "work = 1\n"
    theirs.write_text(f"# {WRITTEN}\n", encoding="utf-8")
    lab.save_sink(raises, str(theirs))


class Sink:
    """No function, although it can be called."""

    def write(self, *_: object) -> None:
        """A method, whose file would need the object."""


@pytest.mark.parametrize(
    ("sink", "file", "said"),
    [
        (lambda *_: None, "my_sink.py", "define it in a cell as a function, with def"),
        (partial(raises, None), "my_sink.py", "define it in a cell as a function, with def"),
        (print, "my_sink.py", "define it in a cell as a function, with def"),
        (Sink, "my_sink.py", "define it in a cell as a function, with def"),
        (Sink().write, "my_sink.py", "define it in a cell as a function, with def"),
        (raises, "", "not the name of a Python file"),
        (raises, "my_sink", "not the name of a Python file"),
        (raises, "my_sink.txt", "not the name of a Python file"),
        (raises, "my sink.py", "not the name of a Python file"),
        (raises, "nowhere/my_sink.py", "nowhere does not exist"),
    ],
)
def test_what_cannot_be_saved_gets_a_sentence_and_leaves_no_file(
    sink: Callable[..., Any], file: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InvalidInput, match=said):
        lab.save_sink(sink, file)
    assert not list(tmp_path.iterdir())


def torn_manifest(folder: Any, query: str, batch: int, rows: list[dict[str, Any]]) -> None:
    import json

    name, known = f"{query}-{batch}", []
    if "manifest.json" in folder.names():
        known = json.loads(folder.read("manifest.json"))
    if name not in known:
        folder.write(name, "\n".join(map(json.dumps, rows)))
        folder.write("manifest.json", json.dumps([*known, name]))


def test_a_file_that_nobody_can_read_is_told_with_its_kill() -> None:
    said = str(lab.try_sink(torn_manifest, "folder"))
    assert "Killed in batch 0, in the middle of write('manifest.json'" in said


def test_the_file_has_no_statement_but_those_of_the_sink(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A crash test names the innermost line of the file: it has to be the sink's own."""
    monkeypatch.chdir(tmp_path)
    lab.save_sink(raises_later, "my_sink.py")
    text = (tmp_path / "my_sink.py").read_text(encoding="utf-8")
    called, _, reading = text.partition("def read()")
    assert called.count(".execute(") == 1
    assert "execute(ORDERS)" in called
    assert "def reset()" in reading


def keyed(folder: Any, query: str, batch: int, rows: list[dict[str, Any]]) -> None:
    import json

    folder.write(f"{query}-{batch}", "\n".join(map(json.dumps, rows)))
    names = {*folder.names()} - {"manifest.json", "new"}
    folder.write("new", json.dumps(sorted(names)))
    folder.rename("new", "manifest.json")


def test_a_sink_for_a_folder_gets_a_folder_and_its_reader_the_manifest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    lab.save_sink(keyed, "my_files.py", "folder")
    names: dict[str, Any] = {"Any": Any}
    exec((tmp_path / "my_files.py").read_text(encoding="utf-8"), names)  # our own file
    names["reset"]()
    assert names["read"]() == []
    many = [{"id": n, "item": "pen", "amount": 1} for n in range(9_000)]
    keyed(names["Folder"](names["STORE"]), "orders", 0, many)
    assert names["read"]() == [[row["id"], "pen", 1] for row in many]
    names["reset"]()
    assert list((tmp_path / "my_files.files").iterdir()) == []


def test_only_a_table_and_a_folder_can_be_saved(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match='write "table" or "folder"'):
        lab.save_sink(raises, str(tmp_path / "my_sink.py"), "writers")
    assert list(tmp_path.iterdir()) == []


WHERE_OTHERS_BREAK = ("rename checkpoint/commits/<n> #1", "two_queries")
"""The batch comes again, and a query with the same batch numbers: what most sinks of the notebook do not survive."""


@pytest.mark.variant
@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.parametrize(
    ("exercise", "answer", "kind"),
    spread([("14-table", "write_batch", "table"), ("14b-folder", "write_files", "folder")], 2),
)
@pytest.mark.usefixtures("java")
def test_a_sink_that_passes_its_exercise_is_exactly_once_on_real_spark(
    exercise: str, answer: str, kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    solution = tmp_path / "solution.py"
    solution.write_text(all_sources()[exercise][1], encoding="utf-8")
    spec = spec_from_file_location("solution", solution)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    saved = lab.save_sink(getattr(module, answer), "my_sink.py", kind)
    tested = lab.crash_test(saved, only=WHERE_OTHERS_BREAK, seconds=900)
    runs = {each.id: each for each in tested.report.summary.results}
    assert {"healthy", *WHERE_OTHERS_BREAK} <= set(runs)
    assert {each.guarantee for each in runs.values()} == {"exactly-once"}, str(tested)
    assert [each.violated for each in runs.values() if each.violated] == []
