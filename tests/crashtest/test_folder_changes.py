"""A file that changes although no effect names it makes the guarantee unknown, whatever the reason."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from watched_programs import run

from labkit.core.judge import Guarantee
from labkit.crashtest.blackbox.campaign import crash_test_pipeline, pipeline_campaign
from labkit.crashtest.blackbox.effects import Effect, Namer
from labkit.crashtest.blackbox.folder_changes import changed, files_in, unnamed
from labkit.crashtest.blackbox.settings import pipeline_settings
from labkit.host.syscalls import names

pytestmark = pytest.mark.usefixtures("watched_calls")

SERVER = """\
import os, sys, time
while True:
    if os.path.exists("store/asked"):
        open(sys.argv[1], "a").close()
        os.utime(sys.argv[1])
        os.remove("store/asked")
    time.sleep(0.005)
"""
"""A process of somebody else, which touches a file whenever it is asked to."""

JOB = """\
import os, time
with open("store/new", "w") as file:
    file.write("1")
open("store/asked", "w").close()
while os.path.exists("store/asked"):
    time.sleep(0.005)
os.rename("store/new", "store/rows")
"""
READ = "cat store/rows 2>/dev/null || true"
RESET = "rm -rf store; mkdir store"


@pytest.fixture
def job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "store").mkdir()
    (tmp_path / "job.py").write_text(JOB)
    (tmp_path / "server.py").write_text(SERVER)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def server(job: Path) -> Iterator[list[subprocess.Popen]]:
    started: list[subprocess.Popen] = []
    yield started
    for each in started:
        each.kill()
        each.wait()


def tried(**more: object) -> object:
    options = {"read_command": READ, "reset": RESET, "watch": ["store"], "only": ["exit"]}
    return crash_test_pipeline(f"{sys.executable} job.py", **options | more)


def test_a_file_that_another_process_writes_makes_the_guarantee_unknown(job: Path, server: list) -> None:
    server.append(subprocess.Popen([sys.executable, "server.py", "store/hidden"]))
    report = tried()
    assert report.summary.guarantee is Guarantee.UNKNOWN
    assert "hidden changed without a crash, and no effect names it" in str(report)


def test_a_file_that_nobody_depends_on_or_outside_of_the_folders_does_not(job: Path, server: list) -> None:
    server.append(subprocess.Popen([sys.executable, "server.py", "store/hidden"]))
    assert "no effect names it" not in str(tried(ignored=["hidden"]))
    server.append(subprocess.Popen([sys.executable, "server.py", "beside"]))
    server[0].kill()
    assert "no effect names it" not in str(tried())


def files(program: str, place: Path) -> list[str]:
    """The changed files that no effect of a shell's program names."""
    folder = place / "store"
    before = files_in([folder])
    _, calls = run(place, ["/bin/sh", "-ec", program])
    namer = Namer([folder])
    effects: list[Effect] = [each for call in calls if (each := namer.name(call)) is not None]
    after = files_in([folder])
    return [Path(each).name for each in unnamed(changed(before, after, namer, place / "own"), effects, before, after)]


@pytest.mark.parametrize(
    "program",
    [
        "mkdir store/a; echo x >store/a/b; mv store/a store/c",
        "echo x >store/a; ln store/a store/b; echo y >>store/b",
        "echo x >>store/old; rm store/gone; chmod 600 store/mode",
        "rm -r store/folder",
        "cd store; ln -s . here; echo x >here/a; rm here",
        ": >store/old; touch -d @7 store/mode",
        "cp -a store/folder store/copy; mv store/copy/in store/out; rmdir store/copy",
    ],
)
def test_each_change_is_named_by_an_effect(program: str, job: Path) -> None:
    store = job / "store"
    (store / "folder").mkdir()
    for name in ("old", "gone", "mode", "folder/in"):
        (store / name).touch()
    assert files(program, job) == []


def test_a_change_that_labkit_overlooks_is_found(job: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As if a system call were not known: the call that creates and empties files is taken for one without effect."""
    (job / "store" / "old").write_text("x")
    monkeypatch.setattr(names, "opens", lambda *_given: None)
    assert files(": >store/new; : >store/old; mkdir store/a", job) == ["new", "old"]


@pytest.mark.parametrize(("asks", "late"), [(False, 0.0), (True, 4.0)])
def test_rows_may_come_late_only_if_something_else_than_the_command_writes(
    asks: bool, late: float, job: Path, server: list
) -> None:
    if not asks:
        (job / "job.py").write_text(JOB.replace('open("store/asked", "w").close()', ""))
    server.append(subprocess.Popen([sys.executable, "server.py", "store/hidden"]))
    settings = pipeline_settings(f"{sys.executable} job.py", read_command=READ, reset=RESET, watch=["store"])
    with pipeline_campaign(settings) as running:
        running.healthy()
        assert running.harness.late == late
