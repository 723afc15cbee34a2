"""Drivers that a notebook keeps warm: taken by its runs, and gone when nobody needs them, whatever happens."""

import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import nbformat
import psutil
import pytest
from other_processes import with_word
from waiting import until

from labkit import lab
from labkit.core.errors import LabError
from labkit.host import turns
from labkit.host.fast_start import VARIABLE, FastStart
from labkit.host.java import Java
from labkit.host.processes.events import AnyEvent, DriverStarts, Ended, Killed
from labkit.runs import warm_drivers
from labkit.runs.prepare import prepare
from labkit.runs.scenario import plan
from labkit.runs.warm_drivers import KEPT, WarmDrivers
from labkit.teach import kernel

WAITS = """
import sys
print('{"event": "ready"}', flush=True)
sys.stdin.read()
"""
FAILS = """
import sys
print('{"event": "driver_failed", "because": "no memory", "code": 69}', flush=True)
sys.stdin.read()
"""


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder of all temporary files, which are gone after each test."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    yield folder
    assert list(folder.iterdir()) == []
    assert drivers_of(folder) == []


def drivers_of(folder: Path) -> list[int]:
    """The processes that have this folder in their command: supervisors and their drivers."""
    return with_word(str(folder))


@pytest.fixture
def pool(with_driver: Callable[[str], None]) -> Iterator[WarmDrivers]:
    with_driver(WAITS)
    pool = WarmDrivers()
    yield pool
    pool.end()


def warm(pool: WarmDrivers) -> None:
    pool.want()
    until(lambda: pool.are_warm, "warm drivers", 300)  # one starts after the other, which takes minutes beside others


def test_a_run_takes_one_and_what_is_left_ends(pool: WarmDrivers, tmp_path: Path) -> None:
    warm(pool)
    taken = pool.take(prepare(plan(), tmp_path / "run"))
    assert taken.error is None
    taken.end()


@pytest.mark.parametrize(
    "options",
    [{"job": "totals"}, {"partitions": 8}, {"master": "spark://127.0.0.1:7077"}],
    ids=["its own settings", "more tasks", "a cluster"],
)
def test_another_kind_of_run_takes_none(pool: WarmDrivers, tmp_path: Path, options: dict) -> None:
    warm(pool)
    scenario = plan(**options) if "master" not in options else plan(sink="two_phase", **options)
    run = SimpleNamespace(scenario=scenario)
    assert pool.take(run) is None
    assert len(pool._drivers) == KEPT


def test_after_a_change_of_the_environment_none_is_taken(
    pool: WarmDrivers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    warm(pool)
    run, before = prepare(plan(), tmp_path / "run"), list(pool._drivers)
    monkeypatch.setenv("LABKIT_POSTGRES", "postgresql://elsewhere/")
    taken = pool.take(run)
    assert taken not in before
    if taken:  # the pool has noticed the change already, and started another one
        taken.end()


def test_one_that_died_while_it_was_warm_is_not_taken(pool: WarmDrivers, tmp_path: Path) -> None:
    warm(pool)
    first, second = pool._drivers
    for child in psutil.Process(first.standby.driver.pid).children():
        child.kill()
    until(lambda: not first.standby.driver.is_alive, "the end of its supervisor")
    taken = pool.take(prepare(plan(), tmp_path / "run"))
    assert taken is second
    taken.end()


def test_they_end_when_nobody_has_used_them_for_long(with_driver: Callable[[str], None], place: Path) -> None:
    with_driver(WAITS)
    pool = WarmDrivers(idle=1.0)
    pool.want()
    until(lambda: drivers_of(place) != [], "a driver")
    until(lambda: drivers_of(place) == [] and not list(place.iterdir()), "the drivers' end")


def test_they_end_when_memory_is_short_and_none_starts(
    pool: WarmDrivers, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    warm(pool)
    monkeypatch.setattr(psutil, "virtual_memory", lambda: SimpleNamespace(available=10**8))
    until(lambda: drivers_of(place) == [] and not list(place.iterdir()), "the drivers' end")
    pool.want()
    until(lambda: pool._keeper is None, "the end of their keeper")


def test_a_driver_that_could_not_be_started_does_not_stop_later_ones(
    pool: WarmDrivers, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails() -> None:
        raise OSError(28, "No space left on device")

    usual = warm_drivers.WarmDriver
    monkeypatch.setattr(warm_drivers, "WarmDriver", fails)
    pool.want()
    until(lambda: pool._keeper is None, "the end of the keeper")
    monkeypatch.setattr(warm_drivers, "WarmDriver", usual)
    warm(pool)


def test_none_starts_while_a_run_needs_the_processor(
    pool: WarmDrivers, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks, memory = [], psutil.virtual_memory()
    monkeypatch.setattr(psutil, "virtual_memory", lambda: looks.append(len(pool._drivers)) or memory)
    with pool.run():
        pool.want()
        until(lambda: len(looks) > 1, "the keeper's looks at the machine's memory")
        assert not any(looks)
    until(lambda: len(pool._drivers) == KEPT, "the drivers")


def test_they_wait_for_a_turn_and_give_it_back(
    pool: WarmDrivers, tmp_path: Path, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(turns.VARIABLE, f"1:{tmp_path}/turns")
    with turns.turn(print):
        pool.want()
        until(lambda: len(list((tmp_path / "turns").iterdir())) == 2, "the keeper's ticket")
        assert drivers_of(place) == []
    until(lambda: pool.are_warm and not list((tmp_path / "turns").iterdir()), "warm drivers, and no ticket")


def test_one_that_fails_ends_the_attempts(with_driver: Callable[[str], None], tmp_path: Path) -> None:
    with_driver(FAILS)
    pool = WarmDrivers()
    pool.want()
    until(lambda: pool._keeper is None, "the end of their keeper")
    assert pool.take(prepare(plan(), tmp_path / "run")) is None


KEEPS = """
import sys, time
from labkit.runs.warm_drivers import WarmDrivers
pool = WarmDrivers()
pool.want()
while not pool.are_warm:
    time.sleep(0.01)
print("warm", flush=True)
sys.stdin.read()
"""


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM, None], ids=["killed", "terminated", "ends"])
def test_nothing_is_left_of_a_kernel(
    with_driver: Callable[[str], None], place: Path, how: signal.Signals | None
) -> None:
    with_driver(WAITS)
    environment = dict(os.environ, TMPDIR=str(place))
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen([sys.executable, "-c", KEEPS], env=environment, **pipes) as kernel:
        assert kernel.stdout.readline() == b"warm\n"
        if how is None:
            kernel.stdin.close()
        else:
            kernel.send_signal(how)
    until(lambda: drivers_of(place) == [] and not list(place.iterdir()), "the drivers' end")


def written(folder: Path, source: str) -> str:
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source)])
    nbformat.write(notebook, folder / "notebook.ipynb")
    return str(folder / "notebook.ipynb")


@pytest.mark.parametrize(
    ("source", "allowed", "wanted"),
    [
        ('lab.crash("sink.after_pre_commit")', "", True),
        ('lab.explore("two_phase_commit")', "", False),
        ('lab.crash("sink.after_pre_commit")', str(FastStart(warm=False)), False),
    ],
)
def test_they_start_when_a_notebook_is_opened_that_crashes_real_jobs(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, java: Java, source: str, allowed: str, wanted: bool
) -> None:
    monkeypatch.setenv(VARIABLE, allowed)
    monkeypatch.setenv(kernel.FILE, written(tmp_path, source))
    monkeypatch.setattr("labkit.view.front_end.is_watched", lambda: True)
    monkeypatch.setattr(warm_drivers, "is_watched", lambda: True)
    asked: list[WarmDrivers] = []

    def want(drivers: WarmDrivers) -> None:
        asked.append(drivers)

    monkeypatch.setattr(WarmDrivers, "want", want)
    kernel.warm_up()
    for thread in threading.enumerate():
        if thread.name == "labkit opened notebook":
            thread.join()
    assert bool(asked) is wanted


@pytest.mark.variant
@pytest.mark.slow
@pytest.mark.spark
def test_a_real_crash_uses_them_and_its_verdict_is_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pool = WarmDrivers()
    monkeypatch.setattr("labkit.runs.crash.warm_drivers", lambda: pool)
    heard: list[AnyEvent] = []
    try:
        warm(pool)
        outcome = lab.crash("sink.after_pre_commit", folder=tmp_path / "run", tell=heard.append)
        assert outcome.verdict.guarantee == "at-least-once"
        kinds = list(map(type, heard))
        assert DriverStarts not in kinds
        assert (kinds.count(Killed), kinds.count(Ended)) == (2, 1)
        [crash] = outcome.crashes
        assert crash["signal"] == 9
        assert len(crash["killed"]) > 3, "a JVM, its driver and its Python daemons"
        assert (tmp_path / "run" / "driver-2.log").exists()
        # One has begun to start by now, and the next run waits for it.
        until(lambda: len(pool._drivers) == 1, "another driver")
        with pytest.raises(LabError, match="without reaching the failpoint"):
            lab.crash("sink.mid_commit", sink="two_phase", records_per_batch=1, folder=tmp_path / "never")
    finally:
        pool.end()
