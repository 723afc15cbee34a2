"""The guards of `conftest.py` bite: a survivor is named and ended, and a skip fails where nothing may be missing."""

import os
import re
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

CONFTEST = Path(__file__).with_name("conftest.py")

LEAK = """
import subprocess, sys

def test_leaks():
    code = "import time; time.sleep(120)"
    null = subprocess.DEVNULL
    subprocess.Popen([sys.executable, "-c", code], start_new_session=True, stdout=null, stderr=null)
"""

SKIPS = """
import pytest

def test_skips():
    pytest.skip("No gizmo on PATH.")

@pytest.mark.xfail(strict=True)
def test_fails_as_expected():
    assert False
"""

PURE = """
import os
from types import SimpleNamespace
import pytest
from labkit.host import addresses

@pytest.mark.parametrize("kind", ["kafka"])
@pytest.mark.parametrize("store", ["kafka"])
@pytest.mark.parametrize("cell", [SimpleNamespace(store="kafka")], ids=["cell"])
def test_draws(kind, store, cell):
    assert addresses.KAFKA not in os.environ
"""


def run(folder: Path, test: str, *options: str, require: str = "") -> subprocess.CompletedProcess[str]:
    """Run one test file in a pytest of its own, under the project's conftest."""
    (folder / "conftest.py").write_text(CONFTEST.read_text().replace("GRACE_SECONDS = 5.0", "GRACE_SECONDS = 0.1"))
    (folder / "pytest.ini").write_text("[pytest]\nmarkers =\n    notebook\n    slow\n")
    (folder / "test_it.py").write_text(test)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-ra", "-p", "no:cacheprovider", "-p", "no:nbval", *options, folder],
        env=environment | {"LABKIT_REQUIRE": require},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("options", [(), pytest.param(("-n", "1"), marks=pytest.mark.slow)], ids=["alone", "xdist"])
def test_a_process_that_outlives_its_test_fails_the_session(tmp_path: Path, options: tuple[str, ...]) -> None:
    ended = run(tmp_path, LEAK, *options)
    assert ended.returncode == 1, ended.stdout
    told = re.search(r"(\d+): .*time\.sleep\(120\).*started during \S*::test_leaks", ended.stdout)
    assert told, ended.stdout
    assert not psutil.pid_exists(int(told[1])) or psutil.Process(int(told[1])).status() == psutil.STATUS_ZOMBIE


def test_a_skip_names_its_reason_and_no_server_starts_for_the_name_of_a_parameter(tmp_path: Path) -> None:
    ended = run(tmp_path, SKIPS + PURE)
    assert ended.returncode == 0, ended.stdout
    assert "No gizmo on PATH." in ended.stdout
    assert "1 passed, 1 skipped, 1 xfailed" in ended.stdout


def test_a_skip_fails_where_nothing_may_be_missing(tmp_path: Path) -> None:
    """Neither a test may skip itself there, nor a whole module."""
    (tmp_path / "test_module.py").write_text('import pytest\npytest.importorskip("no_such_module_at_all")\n')
    ended = run(tmp_path, SKIPS, "--continue-on-collection-errors", require="all")
    assert ended.returncode == 1
    assert "LABKIT_REQUIRE=all forbids a skip. Skipped: No gizmo on PATH." in ended.stdout
    assert re.search(r"LABKIT_REQUIRE=all forbids a skip.*no_such_module_at_all", ended.stdout)
    assert "1 failed, 1 xfailed, 1 error" in ended.stdout
