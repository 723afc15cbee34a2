"""When a run's rows became visible: bounds where the store says nothing, and the sentences and files made of them."""

import json
import os
import re
import time
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

import pytest
from ended_runs import CRASH, ROWS, ended

from labkit.core.exposure import Span
from labkit.core.records import Observation, Record
from labkit.core.strategies import Strategy
from labkit.host.durable import replace
from labkit.host.processes.events import Begun, Recovered
from labkit.runs import history, moments
from labkit.runs.conclude import conclude
from labkit.runs.evidence import DriverEvents, note_waiting
from labkit.runs.layout import RunFolder
from labkit.runs.moments import Frame
from labkit.runs.pages.result import fragment
from labkit.runs.prepare import resume
from labkit.runs.run import Run
from labkit.stores import open_store
from labkit.stores.contract import Handle, Shown

KILL = 100.0
FRAME = Frame(50.0, 200.0, [(1, KILL)], {0: 60.0}, {0: 150.0})


@pytest.mark.parametrize(
    ("place", "batch", "at"), [(0, 0, (60, 100)), (1, 0, (100, 150)), (0, 7, (50, 100)), (1, 7, (100, 200))]
)
def test_a_row_lies_between_the_kills_and_the_logs_of_its_batch(
    place: int, batch: int, at: tuple[float, float]
) -> None:
    row = ROWS[0]._replace(batch=batch)
    assert FRAME.bound(place, row, Shown()) == Shown(Span(*at))


def test_a_row_comes_after_the_start_of_its_drivers_query() -> None:
    frame = Frame(50.0, 200.0, [(1, KILL)], {}, {}, {1: 55.0, 2: 130.0})
    later = ROWS[1]._replace(incarnation=2)
    assert frame.bound(0, ROWS[0], Shown()).at == Span(55, 100)
    assert frame.bound(1, later, Shown()).at == Span(130, 200)
    assert frame.bound(1, later._replace(incarnation=3), Shown()).at == Span(100, 200)


def test_the_start_of_each_query_is_noted_and_kept(tmp_path: Path) -> None:
    found = ended(tmp_path, [])
    found.crashes.clear()
    found.drivers = 0
    events = DriverEvents([found], lambda _: None)
    events.note(Begun(found.name))
    # The runner reads the event when it gets to it, perhaps after the first row.
    long_ago = time.time() - 3
    events.note(Recovered(found.name, [], long_ago))
    assert found.started == {1: long_ago}
    found.keep_evidence()
    evidence = json.loads(found.folder.evidence.read_text())
    assert evidence["started"] == {"1": long_ago}


def test_what_the_store_knows_is_kept() -> None:
    known = Shown(Span(70, 70), Span(65, 65))
    assert FRAME.bound(0, ROWS[0], known) == known
    at_once = FRAME.bound(0, ROWS[0], Shown(at_once=True))
    assert at_once.ready is at_once.at


def test_clocks_that_disagree_say_nothing() -> None:
    assert Frame(300.0, 200.0, [], {}, {}).bound(0, ROWS[0], Shown()).at is None
    assert Frame(None, 200.0, [], {}, {}).bound(0, ROWS[0], Shown()).at is None


def test_a_crash_whose_moment_is_unknown_bounds_nothing() -> None:
    frame = Frame(50.0, 200.0, [(1, None)], {}, {})
    assert frame.bound(0, ROWS[0], Shown()).at == Span(50, 200)


def crashed(folder: Path, rows: list[Observation]) -> Run:
    """A run that was killed once after its first rows, with the files that such a run has."""
    found = ended(folder, rows)
    replace(found.folder.config, "{}")
    begun = found.folder.config.stat().st_ctime
    found.crashes[0] = dict(CRASH) | {"killed_at": begun + 1e-4}
    found.readings = [("crash 1", len(ROWS))]
    return found


def test_a_row_that_came_twice_is_told_with_bounds(tmp_path: Path) -> None:
    outcome = conclude(crashed(tmp_path, [*ROWS, ROWS[0]]))
    said = dict(outcome.record.verdict_notes())
    assert re.search(r"after crash 1, (at|between) \d+\.\d\d ", said["breaks"])
    assert said["breaks"].endswith("offset 0 ('hello' = 1), written by attempt 1 of batch 0, appears a second time")
    assert said["wrong"].startswith("a reader of 'hello' could have read a wrong value")
    # How long, the machine decides.
    assert re.search(
        r"up to the end; right values of it were held back for (\d+\.\d{3} to )?\d+\.\d{3} s$", said["wrong"]
    )
    assert f"\n  breaks   {said['breaks']}\n" in str(outcome)
    html = outcome._repr_mimebundle_()
    for text in (*said.values(),):
        as_sentence = text[:1].upper() + text[1:] + "."
        plain = as_sentence.replace("'", "&#39;")
        assert plain in (tmp_path / "report.html").read_text()
        assert plain in fragment(outcome.record)
        assert as_sentence in html["text/html"]
        assert text not in html["text/plain"], "the plain text is the same in every run"
    found = outcome.to_json()
    assert found["explanation"]["failure_free_run"] == "violated"
    assert found["exposure"]["keys"]["hello"]["wrong_at_the_end"]
    lines = map(json.loads, RunFolder(tmp_path).moments.read_text().splitlines())
    assert [line["row"] for line in lines] == [0, 3]


def test_a_run_without_a_failure_says_nothing_of_failure_free_runs(tmp_path: Path) -> None:
    outcome = conclude(crashed(tmp_path, ROWS))
    assert list(dict(outcome.record.verdict_notes())) == ["wrong"]
    assert "no key showed a wrong value" in str(outcome)


def test_a_history_that_is_too_long_has_no_moments(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history, "MOST_ROWS", 2)
    outcome = conclude(crashed(tmp_path, [*ROWS, ROWS[0]]))
    assert outcome.to_json()["exposure"] is None
    assert outcome.to_json()["explanation"]["failure_free_run"] == "violated"
    assert not RunFolder(tmp_path).moments.exists()


def look(run: Run) -> None:
    with closing(run.open_store()) as store:
        note_waiting(run, store)


def test_what_was_pre_committed_at_a_crash_has_waited_since(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = ended(tmp_path, [])
    store = open_store("files", found.folder.store("files"))
    for number in (1, 2):
        transaction = store.begin(Handle("q", 0, 0, number, 1))
        transaction.write(ROWS[0])
        transaction.prepare()
    store.close()
    staged = sorted((found.folder.store("files") / "staging").glob("*.prepared"))
    for path, at in zip(staged, (20, 10), strict=True):
        os.utime(path, (at, at))
    look(found)
    assert found.ready == {0: Span(10, 10)}
    found.keep_evidence()
    assert json.loads(found.folder.evidence.read_text())["ready"] == {"0": [10.0, 10.0]}
    found.ready = {0: Span(1, 1)}
    look(found)
    assert found.ready == {0: Span(1, 1)}, "the first time counts"
    monkeypatch.setattr(moments, "MOST_WAITING", 1)
    look(found)
    assert found.ready is None, "two rows are one too many"


@pytest.mark.parametrize(
    ("kept", "ready"),
    [
        ({"ready": {"0": [3.0, 4.0]}, "started": {"1": 2.0}}, {0: Span(3, 4)}),
        ({"ready": None}, None),
        ({"ready": {}}, {}),
        ({}, None),
    ],
)
def test_a_run_is_resumed_with_or_without_what_was_ready(
    tmp_path: Path, kept: Mapping[str, object], ready: dict[int, Span] | None
) -> None:
    begun = ended(tmp_path, [])
    replace(begun.folder.config, json.dumps({"scenario": begun.scenario.to_json()}))
    evidence = {"crashes": [CRASH], "readings": [["crash 1", 0]], **kept}
    replace(begun.folder.evidence, json.dumps(evidence))
    resumed = resume(tmp_path)
    assert resumed.ready == ready
    assert resumed.started == ({1: 2.0} if "started" in kept else {})


def test_a_log_outside_of_the_store_holds_back_for_nobody_knows_how_long() -> None:
    at = Span(1, 1)
    expected = [Record(0, "hello", 1)]
    wal, append = Strategy.WAL, Strategy.APPEND
    for strategy, ready, held in ((wal, {}, None), (append, {}, Span(0, 0)), (append, None, None)):
        found = moments.exposed(expected, ROWS[:1], [Shown(at, at, at_once=True)], 9.0, ready, strategy=strategy)
        assert found.keys["hello"].held == held
