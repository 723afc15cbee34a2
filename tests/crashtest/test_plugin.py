"""`pytest --crashtest` makes the runs that `labkit crashtest` makes, and claims no more."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from labkit.host.syscalls.support import supported

ROOT = Path(__file__).parents[2]

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

ROWS = """
from pathlib import Path
def read():
    return Path("store/rows").read_text().split() if Path("store/rows").exists() else []
def reset():
    for path in Path("store").iterdir():
        path.unlink()
"""


@pytest.fixture(autouse=True)
def _place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if why := supported():
        pytest.skip(why)
    (tmp_path / "store").mkdir()
    (tmp_path / "pyproject.toml").write_text(
        "[tool.labkit.crashtest]\ncommand = 'python3 -S job.py'\nreader = 'rows.py:read'\nwatch = ['store']\n"
    )
    (tmp_path / "job.py").write_text(JOB)
    (tmp_path / "rows.py").write_text(ROWS)
    monkeypatch.chdir(tmp_path)


def run(*words: str) -> "subprocess.CompletedProcess[str]":
    every = [sys.executable, "-m", "pytest", "-c", "pyproject.toml", "-p", "labkit.crashtest.plugin", "--crashtest"]
    environment = dict(os.environ, PYTHONPATH=str(ROOT), PYTEST_DISABLE_PLUGIN_AUTOLOAD="1")
    done = subprocess.run([*every, *words], env=environment, capture_output=True, text=True, check=False)
    print(done.stdout, done.stderr)
    return done


@pytest.mark.slow
def test_a_requested_power_cut_is_tried() -> None:
    done = run("--crashtest-power-cut", "-k", "power and exit or guarantee")
    assert done.returncode == pytest.ExitCode.TESTS_FAILED
    assert "crashtest[power cut exit]" in done.stdout
    assert "job.py: not exactly-once, at best at-most-once; " in done.stdout


def test_runs_side_by_side_are_refused() -> None:
    done = run("--crashtest-parallel", "4")
    assert done.returncode == pytest.ExitCode.USAGE_ERROR
    assert "--crashtest-parallel: pytest makes one run at a time; leave this option out." in done.stderr
