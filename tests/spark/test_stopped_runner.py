"""Killing the runner in each phase of a run: nothing of it is left, and the run can be finished afterwards."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from labkit.cli import STOPPED
from labkit.services.java import Java

pytestmark = pytest.mark.spark

PATIENCE = 90.0
MARK = "LABKIT_STOPPED_RUNNER"

PHASES: dict[str, Callable[[Path], bool]] = {
    "the supervisor is starting": lambda run: (run / "scratch").exists(),
    "the JVM is starting": lambda run: any((run / "scratch").glob("*/conf")),
    "the query runs": lambda run: (run / "checkpoint" / "offsets" / "0").exists(),
    "between two drivers": lambda run: (run / "driver-1.log").exists(),
    "the second driver runs": lambda run: (run / "evidence.json").exists() and any((run / "scratch").glob("*2/conf")),
}


@contextmanager
def running(folder: Path) -> Iterator[tuple["subprocess.Popen[bytes]", str]]:
    """A runner in a session of its own, with a mark that everything it starts inherits."""
    mark = f"{os.getpid()}-{time.monotonic_ns()}"
    command = [sys.executable, "-m", "labkit", "run", "--sink", "two_phase", "--crash", "sink.after_pre_commit@0"]
    process = subprocess.Popen(
        [*command, "--out", str(folder), "--json"],
        env=dict(os.environ, **{MARK: mark}),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    try:
        yield process, mark
    finally:
        process.kill()
        process.communicate()


def until(condition: Callable[[], bool], what: str) -> None:
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end, f"waited {PATIENCE:.0f} s for: {what}"
        time.sleep(0.01)


def marked(mark: str) -> list[str]:
    """Every process that inherited the mark."""
    found = []
    for process in psutil.process_iter():
        try:
            if process.environ().get(MARK) == mark and process.status() != psutil.STATUS_ZOMBIE:
                found.append(f"{process.pid} {' '.join(process.cmdline())[:100]}")
        except psutil.Error:
            continue
    return found


def stop(folder: Path, phase: str, number: int) -> tuple[int, str]:
    """Sends the signal to the runner alone when the phase is reached; its exit code and last words."""
    with running(folder) as (process, mark):
        until(lambda: PHASES[phase](folder) or process.poll() is not None, phase)
        assert process.poll() is None, f"the run was over before this: {phase}"
        os.kill(process.pid, number)
        _, words = process.communicate(timeout=PATIENCE)
        until(lambda: not marked(mark), "every process that the run started to be gone")
        until(lambda: not (folder / "scratch" / "driver-1").exists(), "the first driver's temporary files to be gone")
        return process.returncode, words.decode()


@pytest.mark.parametrize("phase", PHASES)
def test_nothing_is_left_of_a_runner_that_was_killed(phase: str, java: Java, tmp_path: Path):
    code, _ = stop(tmp_path / "run", phase, signal.SIGKILL)
    assert code == -signal.SIGKILL


@pytest.mark.parametrize(
    "phase",
    [
        "the query runs",
        pytest.param("the JVM is starting", marks=pytest.mark.slow),
        pytest.param("the second driver runs", marks=pytest.mark.slow),
    ],
)
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_runner_that_is_asked_to_stop_says_so_in_one_line(
    phase: str, number: signal.Signals, java: Java, tmp_path: Path
):
    code, words = stop(tmp_path / "run", phase, number)
    assert code == 128 + number
    assert "Traceback" not in words
    assert words.strip().splitlines()[-1] == f"labkit: {STOPPED}"
    assert not (tmp_path / "run" / "scratch").exists()


def test_a_run_that_was_stopped_is_finished_by_resume(java: Java, tmp_path: Path):
    folder = tmp_path / "run"
    stop(folder, "the second driver runs", signal.SIGKILL)
    command = [sys.executable, "-m", "labkit", "run", "--resume", str(folder), "--json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert (result["guarantee"], result["final"]) == ("exactly-once", {"hello": 2, "world": 1})
    assert result["crash"]["signal"] == 9
