"""Tasks write one after the other while a point in a task is armed; evidence is written once, before the wait."""

import json
import threading
from pathlib import Path

import pytest

from labkit.core.errors import JobFailed
from labkit.core.failpoints import Crash, FailPoint
from labkit.core.records import Observation
from labkit.spark import reach
from labkit.spark.reach import Armed, Turn, reach_in_task, take_turns, wait_until

ROW = Observation(0, "hello", 1, 0, 1)


def armed(tmp_path: Path, point: FailPoint = FailPoint.MID_WRITE, batch: int = 0) -> Armed:
    return Armed(Crash(point, batch), tmp_path / "reached-1.json")


def test_only_the_armed_point_and_batch_park_and_leave_evidence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    parked = []
    monkeypatch.setattr(reach, "park", lambda: parked.append(1))
    arming = armed(tmp_path, batch=2)
    arming.reach(FailPoint.MID_WRITE, 1)
    arming.reach(FailPoint.AFTER_COMMIT, 2)
    assert (parked, arming.evidence.exists()) == ([], False)
    arming.reach(FailPoint.MID_WRITE, 2)
    first = arming.evidence.read_text()
    assert json.loads(first)["point"] == "sink.mid_write"
    arming.reach(FailPoint.MID_WRITE, 2)
    assert (len(parked), arming.evidence.read_text()) == (2, first)


def test_an_arming_survives_the_way_to_another_process(tmp_path: Path):
    assert Armed.from_json(json.loads(json.dumps(armed(tmp_path).to_json()))) == armed(tmp_path)
    assert Armed.from_json(None) is None


def test_tasks_write_in_partition_order_and_the_last_with_rows_knows_it(tmp_path: Path):
    """Three tasks at once, started in the wrong order; the last has no rows."""
    told: list[tuple[int, bool]] = []

    def task(partition: int) -> None:
        turn = Turn(tmp_path / "reached-1.json", partition, 3)
        rows = list(turn.take(iter([ROW] if partition < 2 else [])))
        if rows:
            told.append((partition, turn.is_last()))
        turn.done()

    threads = [threading.Thread(target=task, args=(partition,)) for partition in (2, 1, 0)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert told == [(0, False), (1, True)]


def test_a_turn_that_never_comes_is_given_up_with_a_sentence():
    with pytest.raises(JobFailed, match=r"waited 0 s for the tasks before it, .*too few cores"):
        wait_until(lambda: False, "the tasks before it", patience=0.01)


def test_whoever_waits_when_the_point_is_reached_waits_for_the_kill(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """However long the other queries of the driver take: a task that gave up would let Spark abort the batch."""

    class Killed(Exception):
        pass

    def killed() -> None:
        raise Killed

    monkeypatch.setattr(reach, "park", killed)
    (tmp_path / "reached-1.json").touch()
    with pytest.raises(Killed):
        Turn(tmp_path / "reached-1.json", 1, 3).take(iter([ROW]))


@pytest.mark.parametrize(
    ("point", "batch", "free"),
    [(FailPoint.MID_WRITE, 0, False), (FailPoint.MID_WRITE, 1, True), (FailPoint.AFTER_COMMIT, 0, True)],
)
def test_turns_are_taken_only_where_a_point_in_a_task_of_this_batch_is_armed(
    point: FailPoint, batch: int, free: bool, tmp_path: Path
):
    assert (take_turns(armed(tmp_path, point, batch), 0, 1, 3) is None) is free
    assert take_turns(None, 0, 1, 3) is None


def test_the_middle_of_a_write_is_passed_by_the_last_task_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    reached = []
    monkeypatch.setattr(Armed, "reach", lambda arming, point, batch: reached.append(point))
    for last in (False, True):
        turn = Turn(tmp_path / "reached-1.json", 0, 1)
        monkeypatch.setattr(turn, "is_last", lambda last=last: last)
        reach_in_task(armed(tmp_path), turn)(FailPoint.MID_WRITE, 0)
        assert reached == ([FailPoint.MID_WRITE] if last else [])
