"""How runs are loaded onto drivers; no Spark is needed to plan."""

from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest

from labkit.runs.conduct import PARKED, _parked_allowed, _runs_of_next_driver
from labkit.runs.layout import RunFolder
from labkit.runs.run import Run
from labkit.runs.scenario import plan


def run(name: str, *crashes: str, drivers: int = 0) -> Run:
    return Run(plan(crashes=crashes), RunFolder(Path(name)), drivers=drivers, crashes=[{}] * drivers)


def test_runs_that_wait_for_recovery_go_first_and_only_crashes_count():
    ready = [run("new 1", "sink.mid_write"), run("new 2", "sink.mid_write"), run("old", "sink.mid_write", drivers=1)]
    assert [one.name for one in _runs_of_next_driver(ready, 1)] == ["old", "new 1"]
    assert [one.name for one in _runs_of_next_driver(ready, 9)] == ["old", "new 1", "new 2"]


def test_the_next_crash_is_the_one_that_has_not_happened():
    twice = run("run", "sink.mid_write", "recovery.before_resolve", drivers=1)
    assert str(twice.next_crash) == "recovery.before_resolve"
    assert run("run", "sink.mid_write", drivers=1).next_crash is None


@pytest.mark.parametrize(("gigabytes", "drivers", "parked"), [(24, 1, PARKED), (4, 1, 22), (4, 2, 5), (1, 1, 2)])
def test_little_memory_parks_fewer_queries(gigabytes: int, drivers: int, parked: int, monkeypatch: pytest.MonkeyPatch):
    available = SimpleNamespace(available=gigabytes * 10**9)
    monkeypatch.setattr(psutil, "virtual_memory", lambda: available)
    assert _parked_allowed(drivers) == parked


def test_the_name_of_a_run_leaves_its_time_out():
    assert run("runs/20260102T030405-append-files").name == "append-files"
