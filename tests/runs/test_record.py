"""A run is recorded once: its store is opened once when the last driver has ended, and every page is made of the
record.
"""

import json
import os
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import pytest
from ended_runs import ROWS, ended

from labkit.core.errors import InvalidInput
from labkit.core.records import Observation, Reading, Visibility
from labkit.runs import history, run
from labkit.runs.conclude import conclude
from labkit.runs.history import read_history, written
from labkit.runs.pages.diagram import write_diagram
from labkit.runs.pages.report import write_report
from labkit.runs.pages.result import fragment
from labkit.runs.record import MOST_KEYS
from labkit.stores import open_store
from labkit.stores.contract import Tell


@pytest.fixture
def openings(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Every opening of a store and every reading of its history, wherever in the runs it happens."""
    seen: list[str] = []

    def counting(kind: str, location: Path) -> object:
        seen.append("opened")
        store = open_store(kind, location)
        history = store.clocked_history

        def read(tell: Tell) -> Iterator[Observation]:
            seen.append("read")
            return history(tell)

        store.clocked_history = read  # both histories go through it
        return store

    monkeypatch.setattr(run, "open_store", counting)
    return seen


def test_the_end_of_a_run_opens_its_store_once(tmp_path: Path, openings: list[str]) -> None:
    outcome = conclude(ended(tmp_path))
    assert openings == ["opened", "read"]
    assert outcome.rows() == ROWS
    assert "hello=1 | crash 1 | world=1" in outcome.seen
    assert str(outcome).startswith("append on files: exactly-once")
    assert "offsets/0" in fragment(outcome.record)
    assert outcome.to_json()["in_doubt_rows"] == 0
    assert openings == ["opened", "read"]


def test_the_folder_holds_what_it_always_held(tmp_path: Path) -> None:
    outcome = conclude(ended(tmp_path))
    history = (tmp_path / "history.jsonl").read_text().splitlines()
    assert history[0] == (
        '{"offset": 0, "key": "hello", "value": 1, "batch": 0, "attempt": 1, "visibility": "committed"}'
    )
    assert [json.loads(line).get("reading") for line in history] == [*(None, "crash 1", None, None, "end")]
    assert json.loads((tmp_path / "verdict.json").read_text()) == outcome.to_json()
    evidence = json.loads((tmp_path / "evidence.json").read_text())
    assert (evidence["ended"], evidence["readings"]) == (True, [["crash 1", 1]])
    assert "append on files" in (tmp_path / "report.html").read_text()
    assert "hello = 1 visible" in (tmp_path / "spacetime.svg").read_text()


def test_every_event_is_read_as_it_was_written(tmp_path: Path) -> None:
    events = [
        Observation(0, 'a "word" of ünicode \u2028', 2**40, 1, 2),
        Observation(7, "b", -1, 0, 1, Visibility.ABORTED),
        Reading("crash 1"),
        Reading("end"),
    ]
    path = tmp_path / "history.jsonl"
    assert list(written(events, path)) == events
    assert list(read_history(path)) == events


def test_a_short_history_is_not_read_from_its_file_again(tmp_path: Path) -> None:
    run = ended(tmp_path)
    run.folder.history.symlink_to(os.devnull)
    outcome = conclude(run)
    assert (outcome.rows(), outcome.record.explanation.exists.value) == (ROWS, "holds")
    assert outcome.seen == "hello=1 | crash 1 | world=1 hello=2"
    assert "hello = 2 visible" in run.folder.diagram.read_text()
    assert outcome.exposure is not None


@pytest.mark.parametrize("most", [100, 2])
def test_a_run_is_judged_by_the_values_that_it_has_looked_up(
    most: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(history, "MOST_ROWS", most)
    pen, book, lamp = (Observation(n, word, 10 * (n + 1), 0, 1) for n, word in enumerate(("pen", "book", "lamp")))
    dearer = pen._replace(value=11)
    shop = {"job": "shop", "between": "edit-prices"}
    once = conclude(ended(tmp_path / "once", [dearer, book, lamp], **shop))
    assert (once.verdict.guarantee, dict(once.verdict.final)["pen"]) == ("exactly-once", 11)
    assert once.record.explanation.drawn == {0: 11, 1: 20, 2: 30}
    twice = conclude(ended(tmp_path / "twice", [pen, book, dearer, lamp], **shop))
    assert (twice.verdict.guarantee, twice.verdict.unexpected) == ("at-least-once", (0,))
    assert (once.exposure is None) is (most < 3)


def test_a_long_history_is_shown_without_being_held(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history, "MOST_ROWS", 10)
    many = 30_000
    words = tmp_path / "words.jsonl"
    words.write_text('{"word": "w"}\n' * many)
    rows = [Observation(number, "w", number + 1, 0, 1) for number in range(many)]
    outcome = conclude(ended(tmp_path / "run", rows, input=words))
    assert (outcome.verdict.guarantee, outcome.record.kept) == ("exactly-once", None)
    del rows
    tracemalloc.start()
    try:
        write_report([outcome.record], tmp_path / "report.html", "t", "l")
        write_diagram(outcome.record)
        shown = outcome.seen
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert shown.startswith("w=1 | crash 1 | w=2 w=3")
    # Two readings and 58 rows are shown.
    assert f"... {many - 58} more ..." in shown
    assert peak < 3_000_000, "a row takes 200 bytes"


def test_the_history_is_whole_even_where_the_judge_refuses_it(tmp_path: Path) -> None:
    odd = Observation(1, "world", 1, 2**80, 1)
    refused = ended(tmp_path, [ROWS[0], odd, ROWS[2]])
    with pytest.raises(InvalidInput, match="fits into 64 bits"):
        conclude(refused)
    assert len((tmp_path / "history.jsonl").read_text().splitlines()) == 5


def test_the_values_of_many_keys_are_in_a_file_of_their_own(tmp_path: Path) -> None:
    words = tmp_path / "words.jsonl"
    words.write_text("".join(f'{{"word": "w{number}"}}\n' for number in range(MOST_KEYS + 1)))
    rows = [Observation(number, f"w{number}", 1, 0, 1) for number in range(MOST_KEYS + 1)]
    found = conclude(ended(tmp_path / "run", rows, input=words)).to_json()
    assert (found["final"], found["final_file"]["keys"]) == (None, MOST_KEYS + 1)
    final = json.loads(Path(found["final_file"]["path"]).read_text())
    assert len(final) == MOST_KEYS + 1
