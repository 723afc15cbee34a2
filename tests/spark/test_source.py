"""The replayable log: the same offsets give the same records, and a batch is found without a long read."""

import json
from pathlib import Path

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows

from labkit.core.errors import InvalidInput
from labkit.core.failpoints import Crash, FailPoint
from labkit.spark.reach import Armed
from labkit.spark.source import STRIDE, LogReader

LINES = 2 * STRIDE + 500


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "words.jsonl"
    path.write_text("".join(json.dumps({"word": f"wörd{number}"}) + "\n" for number in range(LINES)))
    return path


def reader(log: Path, **options: str) -> LogReader:
    return LogReader({"path": str(log), "records_per_batch": "300", **options})


@pytest.mark.parametrize(("start", "end"), [(0, 3), (STRIDE - 1, STRIDE + 1), (STRIDE, STRIDE + 1), (1700, LINES)])
def test_a_range_holds_the_records_of_its_lines(log: Path, start: int, end: int):
    [span] = reader(log).partitions({"offset": start}, {"offset": end})
    assert list(reader(log).read(span)) == [(number, f"wörd{number}") for number in range(start, end)]


def test_an_empty_range_has_no_partition(log: Path):
    assert reader(log).partitions({"offset": 5}, {"offset": 5}) == []


def test_a_batch_has_at_most_so_many_records_unless_all_are_asked_for(log: Path):
    source = reader(log)
    assert source.getDefaultReadLimit() == ReadMaxRows(300)
    assert source.latestOffset({"offset": 0}, ReadMaxRows(300)) == {"offset": 300}
    assert source.latestOffset({"offset": LINES - 1}, ReadMaxRows(300)) == {"offset": LINES}
    assert source.latestOffset({"offset": 10}, ReadAllAvailable()) == {"offset": LINES}


def test_a_log_that_became_shorter_does_not_run_backwards(log: Path):
    assert reader(log).latestOffset({"offset": LINES + 7}, ReadMaxRows(300)) == {"offset": LINES + 7}


def test_a_line_that_is_damaged_later_is_named(log: Path):
    lines = log.read_text().splitlines()
    lines[4] = "{"
    log.write_text("\n".join(lines))
    [span] = reader(log).partitions({"offset": 0}, {"offset": 9})
    with pytest.raises(InvalidInput, match=r"words\.jsonl, line 5: "):
        list(reader(log).read(span))


def test_planning_the_next_batch_passes_the_commit_log_of_the_armed_one(log: Path, tmp_path: Path, monkeypatch):
    reached = []
    monkeypatch.setattr(Armed, "reach", lambda armed, point, batch: reached.append((point, batch)))
    armed = Armed(Crash(FailPoint.AFTER_COMMIT_LOG, 1), tmp_path / "reached")
    options = {"armed": json.dumps(armed.to_json()), "commits": str(tmp_path / "commits")}
    source = reader(log, **options)
    (tmp_path / "commits").mkdir()
    (tmp_path / "commits" / "0").touch()
    source.latestOffset({"offset": 300}, ReadMaxRows(300))
    assert reached == []
    (tmp_path / "commits" / "1").touch()
    source.latestOffset({"offset": 600}, ReadMaxRows(300))
    assert reached == [(FailPoint.AFTER_COMMIT_LOG, 1)]
