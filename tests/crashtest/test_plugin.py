"""`pytest --crashtest` makes the runs that `labkit crashtest` makes, and claims no more."""

import subprocess
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from modules import run_module

JOB = """
import os
if not os.path.exists("store/done"):
    with open("store/.new", "w") as new:
        new.write("1\\n2\\n")
    os.rename("store/.new", "store/rows")
    os.fsync(os.open("store/done", os.O_CREAT | os.O_WRONLY))
    os.fsync(os.open("store", os.O_RDONLY))
"""
"""Right after every SIGKILL; but its marker is safe before its rows are, so the loss of power may take them."""

MARKER_AFTER = """
import os
if not os.path.exists("store/done"):
    with open("store/rows", "a") as rows:
        rows.write("1\\n2\\n")
    os.close(os.open("store/done", os.O_CREAT | os.O_WRONLY))
"""

ROWS = """
from pathlib import Path
def read():
    return Path("store/rows").read_text().split() if Path("store/rows").exists() else []
def reset():
    for path in Path("store").iterdir():
        path.unlink()
"""


@pytest.fixture(autouse=True)
def _place(watched_calls: None, nothing_is_left: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "store").mkdir()
    (tmp_path / "pyproject.toml").write_text(
        "[tool.labkit.crashtest]\ncommand = 'python3 -S job.py'\nreader = 'rows.py:read'\nwatch = ['store']\n"
    )
    (tmp_path / "job.py").write_text(JOB)
    (tmp_path / "rows.py").write_text(ROWS)
    monkeypatch.chdir(tmp_path)


def run(*words: str) -> "subprocess.CompletedProcess[str]":
    return run_module("pytest", "-c", "pyproject.toml", "-p", "labkit.crashtest.plugin", "--crashtest", *words)


@pytest.mark.variant
@pytest.mark.slow
def test_a_requested_power_cut_is_tried() -> None:
    done = run("--crashtest-power-cut", "-k", "power and exit or guarantee")
    assert done.returncode == pytest.ExitCode.TESTS_FAILED
    assert "crashtest[power cut exit]" in done.stdout
    assert "job.py: not exactly-once, at best at-most-once; " in done.stdout


@pytest.mark.slow
def test_pytest_has_a_test_for_each_run_that_is_asked_for() -> None:
    Path("job.py").write_text(MARKER_AFTER)
    with Path("pyproject.toml").open("a") as file:
        file.write("expect = 'exactly-once'\n")
    only = ("write rows #1", "job.py:6", "exit")
    words = ["--junit-xml=junit.xml", *(word for name in only for word in ("--crashtest-only", name))]
    assert run(*words).returncode == pytest.ExitCode.TESTS_FAILED
    cases = {case.attrib["name"]: case for case in ET.parse("junit.xml").iter("testcase")}
    failed = {name for name, case in cases.items() if case.find("failure") is not None}
    names = ("healthy", "seeing", *only, "last-runs", "guarantee")
    assert list(cases) == [f"crashtest[{name}]" for name in names]
    assert failed == {f"crashtest[{name}]" for name in (only[1], "guarantee")}
    done = run(*words, "--crashtest-only", "unlink nothing #1")
    assert done.returncode == pytest.ExitCode.USAGE_ERROR
    assert "--only unlink nothing #1: the run without a crash does not pass this crash point" in done.stderr


def test_runs_side_by_side_are_refused() -> None:
    done = run("--crashtest-parallel", "4")
    assert done.returncode == pytest.ExitCode.USAGE_ERROR
    assert "--crashtest-parallel: under pytest" in done.stderr
