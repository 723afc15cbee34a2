"""Killing the runner in each phase of a run: nothing of it is left, and the run can be finished afterwards."""

import json
import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest
from choosing import variant_but
from command import apart
from runners import PATIENCE, marked, running
from waiting import until

from labkit.cli import GO_ON, STOPPED

pytestmark = [pytest.mark.spark, pytest.mark.slow]
"""Quick tests of the same: `test_cancel_leaves_nothing` of the panel, and the words in `tests/cli/test_outputs.py`."""

PHASES: dict[str, Callable[[Path], bool]] = {
    "the supervisor is starting": lambda run: (run / "scratch").exists(),
    "the JVM is starting": lambda run: any((run / "scratch").glob("*/home")),
    "the query runs": lambda run: (run / "checkpoint" / "offsets" / "0").exists(),
    "between two drivers": lambda run: (run / "driver-1.log").exists(),
    "the second driver runs": lambda run: (run / "evidence.json").exists() and any((run / "scratch").glob("*2/home")),
}


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


@pytest.mark.parametrize("phase", variant_but(PHASES.keys() - {"between two drivers"}, PHASES))
def test_nothing_is_left_of_a_runner_that_was_killed(phase: str, tmp_path: Path):
    code, _ = stop(tmp_path / "run", phase, signal.SIGKILL)
    assert code == -signal.SIGKILL


@pytest.mark.parametrize(
    ("phase", "number"),
    [
        ("the query runs", signal.SIGINT),
        ("the JVM is starting", signal.SIGINT),
        ("the second driver runs", signal.SIGTERM),
        pytest.param("the query runs", signal.SIGTERM, marks=pytest.mark.variant),
        ("the JVM is starting", signal.SIGTERM),
        pytest.param("the second driver runs", signal.SIGINT, marks=pytest.mark.variant),
    ],
)
def test_a_runner_that_is_asked_to_stop_says_so_in_one_line(phase: str, number: signal.Signals, tmp_path: Path):
    code, words = stop(tmp_path / "run", phase, number)
    assert code == 128 + number
    assert "Traceback" not in words
    assert words.strip().splitlines()[-1] == f"labkit: {STOPPED}{GO_ON['run']}."
    assert not (tmp_path / "run" / "scratch").exists()


def test_a_run_that_was_stopped_is_finished_by_resume(tmp_path: Path):
    folder = tmp_path / "run"
    stop(folder, "the second driver runs", signal.SIGKILL)
    code, out, words = apart("run", "--resume", str(folder), "--json")
    assert code == 0, words
    result = json.loads(out)
    assert (result["guarantee"], result["final"]) == ("exactly-once", {"hello": 2, "world": 1})
    assert result["crash"]["signal"] == 9
