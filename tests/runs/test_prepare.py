"""A run's folder is made when nothing refuses the run, and runs are loaded onto drivers that can bear them."""

from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest

from labkit.core.errors import InvalidInput, ServiceUnavailable
from labkit.core.failpoints import Crash, FailPoint
from labkit.host import addresses
from labkit.runs.conduct import PARKED, _parked_allowed, _runs_of_next_driver
from labkit.runs.driver import Work, demands
from labkit.runs.layout import RunFolder
from labkit.runs.prepare import prepare, prepare_all, resume
from labkit.runs.run import Run
from labkit.runs.scenario import plan


def test_a_run_that_is_refused_leaves_the_others_without_a_folder(tmp_path: Path) -> None:
    bad = plan(crashes=["sink.mid_write@7"])
    with pytest.raises(InvalidInput, match="so the last batch is 0"):
        prepare_all({tmp_path / "good": plan(), tmp_path / "bad": bad})
    assert list(tmp_path.iterdir()) == []


def test_a_missing_server_is_named_before_any_folder_is_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(addresses.POSTGRES, "postgresql://127.0.0.1:1/none")
    with pytest.raises(ServiceUnavailable):
        prepare_all({tmp_path / "good": plan(), tmp_path / "down": plan(sink="append", store="postgres")})
    assert list(tmp_path.iterdir()) == []


def test_a_prepared_run_can_be_resumed(tmp_path: Path) -> None:
    run = prepare(plan(crashes=["sink.mid_write"]), tmp_path / "run")
    again = resume(tmp_path / "run")
    assert (again.scenario, again.drivers, again.crashes_left) == (run.scenario, 0, (Crash(FailPoint.MID_WRITE),))


def test_the_tasks_of_an_armed_batch_need_a_slot_each(tmp_path: Path) -> None:
    armed = Run(plan(crashes=["sink.mid_write"], partitions=4), RunFolder(tmp_path / "armed"))
    later = Run(plan(sink="wal", store="sqlite", crashes=["sink.after_commit"]), RunFolder(tmp_path / "later"))
    works = [Work.decoded(run.query_task()) for run in (armed, later)]
    assert works[0].scenario == armed.scenario
    assert demands(works[:1]) == (4, {"files"})
    assert demands(works) == (5, {"files", "sqlite"})


def named(name: str, *crashes: str, drivers: int = 0) -> Run:
    return Run(plan(crashes=crashes), RunFolder(Path(name)), drivers=drivers, crashes=[{}] * drivers)


def test_runs_that_wait_for_recovery_go_first_and_only_crashes_count():
    ready = [
        named("new 1", "sink.mid_write"),
        named("new 2", "sink.mid_write"),
        named("old", "sink.mid_write", drivers=1),
    ]
    assert [one.name for one in _runs_of_next_driver(ready, 1)] == ["old", "new 1"]
    assert [one.name for one in _runs_of_next_driver(ready, 9)] == ["old", "new 1", "new 2"]


def test_the_next_crash_is_the_one_that_has_not_happened():
    twice = named("run", "sink.mid_write", "recovery.before_resolve", drivers=1)
    assert str(twice.next_crash) == "recovery.before_resolve"
    assert named("run", "sink.mid_write", drivers=1).next_crash is None


@pytest.mark.parametrize(("gigabytes", "drivers", "parked"), [(24, 1, PARKED), (4, 1, 22), (4, 2, 5), (1, 1, 2)])
def test_little_memory_parks_fewer_queries(gigabytes: int, drivers: int, parked: int, monkeypatch: pytest.MonkeyPatch):
    available = SimpleNamespace(available=gigabytes * 10**9)
    monkeypatch.setattr(psutil, "virtual_memory", lambda: available)
    assert _parked_allowed(drivers) == parked


def test_the_name_of_a_run_leaves_its_time_out():
    assert named("runs/20260102T030405-append-files").name == "append-files"
