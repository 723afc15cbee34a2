"""Runs that the grid does not have: later batches, second crashes, points that are never passed, a full disk."""

import subprocess
import sys
from pathlib import Path

import pytest
from command import apart
from conducted import Outcomes

from labkit.core.errors import InvalidInput, JobFailed
from labkit.runs.prepare import prepare
from labkit.runs.scenario import plan

pytestmark = pytest.mark.spark

RUNS = {
    "append, second batch": plan(sink="append", crashes=["sink.after_pre_commit@1"], records_per_batch=1),
    "append, a batch in between is committed": plan(
        sink="append", crashes=["engine.after_commit_log@1"], records_per_batch=1
    ),
    "idempotent, one update a batch": plan(
        sink="idempotent", store="sqlite", crashes=["sink.after_pre_commit@2"], records_per_batch=1
    ),
    "wal, second batch": plan(sink="wal", crashes=["sink.before_confirm@1"], records_per_batch=1),
    "two_phase, second batch committed": plan(
        sink="two_phase", store="sqlite", crashes=["sink.after_commit@1"], records_per_batch=1
    ),
    "two_phase, three crashes": plan(
        sink="two_phase",
        crashes=["sink.after_pre_commit@0", "recovery.mid_resolve", "recovery.after_resolve"],
    ),
    "two_phase, decided, then two more": plan(
        sink="two_phase",
        store="sqlite",
        crashes=["engine.after_commit_log@0", "recovery.before_resolve", "recovery.mid_resolve"],
    ),
    "wal, recovery interrupted": plan(sink="wal", crashes=["engine.after_commit_log@0", "recovery.mid_resolve"]),
    "one participant has no middle": plan(
        sink="two_phase", crashes=["sink.mid_commit@0"], records_per_batch=1
    ),
    "no crash": plan(sink="batch_marker", store="sqlite"),
}  # fmt: skip

GIVES = {
    "append, second batch": ("at-least-once", [1], []),
    "append, a batch in between is committed": ("exactly-once", [], []),
    "idempotent, one update a batch": ("exactly-once", [], []),
    "wal, second batch": ("at-least-once", [1], []),
    "two_phase, second batch committed": ("exactly-once", [], []),
    "two_phase, three crashes": ("exactly-once", [], []),
    "two_phase, decided, then two more": ("exactly-once", [], []),
    "wal, recovery interrupted": ("at-least-once", [1], []),
    "no crash": ("exactly-once", [], []),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", GIVES)
def test_a_run_gives_what_was_predicted(name: str, outcomes: Outcomes):
    outcome = outcomes[name]
    verdict = outcome.verdict
    assert (verdict.guarantee, list(verdict.duplicate), list(verdict.regression)) == GIVES[name]
    assert (verdict.lost, dict(verdict.final)) == ((), {"hello": 2, "world": 1})
    crashes = RUNS[name].crashes
    assert [(crash["point"], crash["batch"]) for crash in outcome.crashes] == [tuple(crash) for crash in crashes]
    assert {crash["signal"] for crash in outcome.crashes} <= {9}
    assert outcome.record.drivers == len(crashes) + 1


@pytest.mark.slow
def test_a_point_that_is_never_reached_fails_the_run(outcomes: Outcomes):
    outcome = outcomes.get("one participant has no middle")
    assert isinstance(outcome, JobFailed)
    assert "without reaching the failpoint sink.mid_commit@0" in str(outcome)


def test_two_runs_at_once_do_not_share_a_folder(tmp_path: Path):
    scenario = plan()
    prepare(scenario, tmp_path / "run")
    with pytest.raises(InvalidInput, match="exists already"):
        prepare(scenario, tmp_path / "run")


@pytest.mark.slow
def test_two_runs_at_once_in_two_folders(tmp_path: Path):
    command = [sys.executable, "-m", "labkit", "run", "--crash", "sink.after_pre_commit@0", "--expect", "at-least-once"]
    both = [
        subprocess.Popen([*command, "--json", "--out", tmp_path / name], stdout=subprocess.DEVNULL) for name in "ab"
    ]
    assert [process.wait(300) for process in both] == [0, 0]


@pytest.mark.slow
def test_a_guarantee_that_was_asked_for_and_did_not_hold_is_exit_code_1(tmp_path: Path):
    crash = ("--crash", "sink.after_pre_commit@0")
    code, out, words = apart("run", *crash, "--expect", "exactly-once", "--out", f"{tmp_path}/run")
    assert code == 1
    assert "append on files: at-least-once" in out
    assert "Traceback" not in words
