"""With --since only points at changed lines are tried, and a few others; a sample says that it is one."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from command import labkit, refusal

from labkit.core.errors import InvalidInput
from labkit.host.changed_lines import changed_since
from labkit.host.syscalls.support import supported

JOB = """\
import os

for number in range(3):
    with open(f"rows-{number}.tmp", "w") as rows:
        rows.write(f"{number}\\n")
    os.rename(f"rows-{number}.tmp", f"rows-{number}")
open("log", "a").close()
"""
READ = "cat rows-? 2>/dev/null || true"


def git(folder: Path, *words: str) -> None:
    who = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "init.defaultBranch=main"]
    subprocess.run(["git", *who, *words], cwd=folder, check=True, capture_output=True)


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with a job in a folder of its own, in which the command line works."""
    inner = tmp_path / "a project"
    inner.mkdir()
    (inner / "job.py").write_text(JOB)
    (tmp_path / ".gitignore").write_text("rows-*\nlog\n")
    git(tmp_path, "init")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-m", "one")
    monkeypatch.chdir(inner)
    return inner


def tried() -> dict:
    command = ["--command", f"{sys.executable} job.py", "--read-command", READ, "--reset", "rm -f rows-* log"]
    code, out, _ = labkit("crashtest", *command, "--since", "HEAD", "--parallel", "1", "--json")
    assert code == 0
    return json.loads(out)


def points_of(report: dict) -> set[str]:
    """The crash points of the runs with one crash."""
    return {each["id"] for each in report["runs"] if " then " not in each["id"]} - {"healthy"}


def test_lines_that_differ_from_a_revision(project: Path) -> None:
    lines = (project / "job.py").read_text().splitlines()
    (project / "job.py").write_text("\n".join([*lines[:3], "    pass", *lines[3:6]]) + "\n")
    (project / "nöw.py").write_text("new")
    changed = changed_since("HEAD", project)
    path = str(project / "job.py")
    assert sorted(changed.lines[path]) == [4, 7, 8]  # a line was added, and the last one was removed
    assert changed.include("job.py", 4)
    assert not changed.include("job.py", 5)
    assert not changed.include("b.py", 4)
    assert changed.include(str(project / "nöw.py"), 17)
    git(project, "commit", "-a", "-m", "two")
    assert path not in changed_since("HEAD", project).lines
    assert sorted(changed_since("HEAD^", project).lines[path]) == [4, 7, 8]


@pytest.mark.parametrize(
    ("revision", "says"), [("no-such", "no such revision"), ("--output=x", "no such revision"), ("HEAD:job.py", "")]
)
def test_a_revision_that_does_not_exist_is_refused(project: Path, revision: str, says: str) -> None:
    with pytest.raises(InvalidInput, match=f"--since {revision}: git cannot compare .*{says}"):
        changed_since(revision, project)
    assert sorted(path.name for path in project.iterdir()) == ["job.py"]


def test_a_folder_without_a_repository_is_refused_before_anything_runs(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    words = ["--command", "touch ran", "--read-command", "cat ran", "--reset", "rm -f ran", "--since", "HEAD"]
    assert "--since HEAD: git cannot compare" in refusal("crashtest", *words, cwd=tmp_path)
    assert not (tmp_path / "ran").exists()


def test_without_git_it_says_so(project: Path, monkeypatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(InvalidInput, match="git is not installed"):
        changed_since("HEAD", project)


@pytest.mark.slow
@pytest.mark.skipif(bool(supported()), reason=supported())
def test_only_points_at_changed_lines_are_tried_and_a_few_others(project: Path) -> None:
    report = tried()
    few = points_of(report)
    assert len(few) == 3
    assert "exit" in few
    assert report["claim"]["strength"] == "sampled"
    assert report["guarantee"].startswith("not refuted (3 of ")
    (project / "job.py").write_text(JOB.replace('open("log", "a").close()', 'open("log", "w").close()'))
    report = tried()
    # Which three points are the important ones depends on whether the reader, a shell, is quick enough to be asked at
    # every effect.
    points = points_of(report)
    assert {"exit", "create log #1"} <= points
    assert 3 <= len(points) <= 4
    others = {each["id"] for each in report["runs"]} - {"healthy"} - points
    # If the reader was quick, the point is none of the three, and a second crash there leaves files of its own.
    assert others or "create log #1" in few
    # A restart empties the log, which then is the file that was written last.
    assert {each.rpartition(" then ")[2] for each in others} <= {"create log #1", "truncate log #1"}
    [line] = {each["line"] for each in report["effects"] if each["name"] == "create log #1"}
    assert line == "job.py:7"
