"""What a guarantee costs, measured: only orders, slopes and counts are asked for, since times are the machine's."""

import json
import sqlite3
import tempfile
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from itertools import chain
from pathlib import Path
from types import SimpleNamespace

import pytest

from labkit import lab
from labkit.core.errors import InvalidInput, JobFailed
from labkit.host.syscalls.support import supported
from labkit.teach.price import effects, waiting
from labkit.teach.price.effects import Counts, Effects, count_effects, kept
from labkit.teach.price.expected import noted
from labkit.teach.price.transactions import Rates, measure_rows
from labkit.teach.price.waiting import Measured, Waits, measure_waits
from labkit.teach.price.writer import ROUNDS, SCHEMA, WAYS, connect, records, write
from labkit.view.prices import Dots, wait_chart

INTERVALS = (0.2, 1.0)


@pytest.fixture(scope="module")
def waits() -> Waits:
    return measure_waits(INTERVALS)


@pytest.mark.slow
def test_a_transaction_a_record_or_one_an_interval(waits: Waits) -> None:
    counts = [ROUNDS * records(each) for each in INTERVALS]
    assert waits.commits("append") == counts
    assert waits.commits("open") == waits.commits("gathered") == [ROUNDS, ROUNDS]
    for way in WAYS:
        assert [len(waits[way][each].records) for each in INTERVALS] == counts
        assert all(min(waits[way][each].records) > 0 for each in INTERVALS)


def test_who_waits_for_the_commit_waits_half_an_interval_more(waits: Waits) -> None:
    ways = ("open", "gathered")
    # A commit for which the disk needs half a second makes a wait longer by chance, but hardly three times in a row.
    tries = chain([waits], (measure_waits(INTERVALS) for _ in range(2)))
    measured = next((each for each in tries if all(each.slope(way) < 0.75 for way in ways)), None)
    assert measured is not None
    for way in ways:
        assert measured.slope(way) > 0.25
        assert measured[way][1.0].worst > measured[way][1.0].typical > 0.25


def test_an_open_transaction_keeps_others_out(waits: Waits) -> None:
    assert waits.others.slowest == "open"


@pytest.mark.parametrize("way", WAYS)
def test_what_a_job_has_written_is_there(tmp_path: Path, way: str) -> None:
    database = str(tmp_path / "rows.db")
    with closing(sqlite3.connect(database)) as connection:
        connection.executescript(SCHEMA)
    commits = write(database, way, 0.1)
    with closing(connect(database, 1)) as connection:
        dues = [due for (due,) in connection.execute("SELECT due FROM rows")]
        markers = connection.execute("SELECT count(*) FROM markers").fetchone()[0]
    assert dues == sorted(dues)
    assert len(dues) == ROUNDS
    assert commits == ROUNDS
    assert markers == (ROUNDS if way == "gathered" else 0)


def test_who_opens_a_database_waits_for_whoever_opens_it_too(tmp_path: Path) -> None:
    database = str(tmp_path / "rows.db")
    with closing(sqlite3.connect(database)) as first, ThreadPoolExecutor(1) as pool:
        first.executescript("PRAGMA locking_mode = EXCLUSIVE;" + SCHEMA)
        opening = pool.submit(connect, database, 0)
        with pytest.raises(TimeoutError):
            opening.result(timeout=0.3)
        first.close()
        with closing(opening.result()) as second:
            assert second.execute("PRAGMA busy_timeout").fetchone() == (0,)


def test_a_job_that_dies_is_told_and_nothing_is_left(monkeypatch, tmp_path) -> None:
    monkeypatch.setattr(waiting, "PATIENCE", -0.5)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with pytest.raises(JobFailed, match=r"records within|died"):
        measure_waits((0.1, 0.2))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("call", [lambda: measure_waits((0.1, 0.2)), lambda: measure_rows((1,), rows=1)])
def test_a_folder_that_is_not_there_gets_one_sentence(call, monkeypatch, tmp_path):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "gone"))
    with pytest.raises(JobFailed, match=r"could not write .* set TMPDIR"):
        call()


def test_the_table_and_the_chart_show_what_was_measured() -> None:
    measured = {
        way: {each: Measured([slope * each] * ROUNDS, [0.0, other, other], ROUNDS) for each in (1.0, 2.0)}
        for way, slope, other in (("append", 0, 0.1), ("open", 0.5, 0.9))
    }
    shown = Waits(measured, predicted=2.0)
    assert shown.slope("open") == 0.5
    assert shown.others.slowest == "open"
    assert "0.90 s" in shown.others._repr_mimebundle_()["text/html"]
    assert str(shown.others).split()[:3] == ["way", "interval", "1"]
    assert str(shown).splitlines()[-1].split()[:3] == ["open", "2", "s"]
    bundle = shown._repr_mimebundle_()
    assert "open: 0.50 s at 1 s, 1.00 s at 2 s" in bundle["text/html"]
    assert "your prediction" in bundle["text/html"]
    assert len(bundle["text/html"]) < 50_000
    assert "your prediction" not in Waits(measured).svg()


def test_one_disturbed_interval_does_not_count() -> None:
    quiet, disturbed = [0.4, 0.5, 0.6], [5.0, 5.0, 5.0]
    each = Measured([*disturbed, *quiet, *disturbed, *quiet], [0.0], ROUNDS)
    assert each.typical == 0.5
    assert each.worst == 5.0


def test_a_prediction_is_a_line_and_none_is_a_sentence(monkeypatch) -> None:
    monkeypatch.setattr("labkit.teach.questions.notes.of", lambda _: SimpleNamespace(words=("2",)))
    assert noted("13-slope") == 2
    line = lab.expected_wait("13-slope")
    assert "grows by 2 s for each second" in str(line)
    assert 'class="lkp-p"' in line._repr_mimebundle_()["text/html"]
    assert 'class="lkp-p"' not in wait_chart([Dots("open", [(1, 0.5)])], 1, None)
    monkeypatch.setattr("labkit.teach.questions.notes.of", lambda _: None)
    assert "no prediction" in str(lab.expected_wait("13-slope"))
    with pytest.raises(InvalidInput, match="does not ask for a number"):
        lab.expected_wait("13-lock")


def test_the_number_of_transactions_is_what_takes_time() -> None:
    rates = measure_rows((1, 50), rows=50)
    assert [rate.transactions for rate in rates.values()] == [50, 1]
    assert rates[1].seconds > rates[50].seconds
    assert rates[50].a_second > rates[1].a_second
    assert isinstance(rates, Rates)
    assert "50" in str(rates)


def test_rows_that_fill_no_transaction_get_one() -> None:
    rates = measure_rows((4,), rows=10, store="files")
    assert rates[4].transactions == 3
    assert rates[4].rows == 10


@pytest.mark.slow
@pytest.mark.skipif(bool(supported()), reason=supported())
def test_the_counts_that_come_with_the_lab_are_those_of_a_run() -> None:
    found = count_effects()
    assert dict(found) == kept()
    assert found.note == effects.HERE
    for sink in found.sinks:
        assert found.growing(sink) == ["bytes"], sink


def test_each_stronger_promise_syncs_more() -> None:
    found = kept()
    for rows in effects.SIZES:
        syncs = [found[sink, rows].syncs for sink in effects.SINKS]
        assert syncs == sorted(syncs)
        assert syncs[0] == 0
        assert found["wal", rows].bytes > 1.5 * found["append", rows].bytes
    small, large = (found["two_phase", rows].bytes for rows in effects.SIZES)
    votes = small - found["append", 4].bytes
    assert large - found["append", 400].bytes == votes


def test_without_eyes_the_counts_of_another_machine_are_shown(monkeypatch) -> None:
    monkeypatch.setattr(effects, "supported", lambda: "System calls are not seen.")
    found = lab.count_effects()
    assert dict(found) == kept()
    assert effects.ELSEWHERE in found._repr_mimebundle_()["text/html"]
    with pytest.raises(InvalidInput, match=r"sizes=\[4, 400\]"):
        lab.count_effects(sizes=[5])


def test_what_grows_is_named() -> None:
    counted = {("wal", 4): Counts(1, 2, 3, 4), ("wal", 8): Counts(1, 3, 3, 9)}
    assert Effects(counted).growing("wal") == ["syncs", "bytes"]


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: lab.measure_waits([1]), "2 to 5 different intervals"),
        (lambda: lab.measure_waits([0.01, 1]), "of 0.1 to 10 seconds"),
        (lambda: lab.measure_rows([0]), "from 1 to 300 rows"),
        (lambda: lab.measure_rows([1], rows=100_000), "at most 10,000"),
        (lambda: lab.measure_rows([1], store="paper"), "unknown"),
        (lambda: lab.count_effects(sizes=[1]), "2 to 10,000 rows"),
        (lambda: count_effects(["idempotent"]), "plain files"),
    ],
)
def test_what_cannot_be_measured_gets_one_sentence(call, sentence) -> None:
    with pytest.raises(InvalidInput, match=sentence):
        call()


def test_the_kept_counts_are_whole() -> None:
    path = Path(effects.__file__).with_name("counted.json")
    assert list(json.loads(path.read_text("utf-8"))) == list(effects.SINKS)
