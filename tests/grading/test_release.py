"""What learners get holds no solution, no hidden variant and no grader: neither the copy nor the wheel."""

import json
import os
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import exercise_sources
import grading_beside_others
import pytest

from labkit import __version__
from labkit.core.errors import GradingError, InvalidInput
from labkit.grading import release as releasing
from labkit.grading.release import release

ROOT = Path(__file__).parent.parent.parent
NAMED = ("labkit.grading.hidden", "labkit.grading.marking", "def variants(")
"""What only the grader says."""


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("release") / "learners"
    release(folder)
    return folder


def telling() -> dict[str, str]:
    """Lines of solutions that are in no stub, by the exercise they solve."""
    sources = exercise_sources.all_sources()
    stubs = "\n".join(stub for stub, _ in sources.values())
    return {
        line.strip(): name
        for name, (_, solution) in sources.items()
        for line in solution.splitlines()
        if len(line.strip()) >= 25 and line.strip() not in stubs and not line.strip().startswith(("#", "def ", "from "))
    }


def texts(folder: Path) -> Iterator[tuple[Path, str]]:
    for path in folder.rglob("*"):
        if path.is_file():
            text = path.read_bytes().decode(errors="replace")
            yield (path, text.replace('\\"', '"') if path.suffix in {".ipynb", ".json"} else text)


def test_the_copy_holds_every_module_but_the_graders(copy: Path) -> None:
    ours, theirs = (
        {path.relative_to(base).as_posix() for path in base.glob("labkit/**/*.py")} for base in (ROOT, copy)
    )
    missing = {name for name in ours - theirs if "/grading/" not in name}
    assert missing == set()
    assert theirs <= ours


def test_the_copy_holds_no_solution_and_no_grader(copy: Path) -> None:
    lines = telling()
    assert len(lines) >= 30
    for path, text in texts(copy):
        assert [line for line in lines if line in text] == [], path
        if "cli" not in path.parts:
            assert [name for name in NAMED if name in text] == [], path
    there = {path.relative_to(copy).as_posix() for path in copy.rglob("*")}
    assert not [name for name in there if name.startswith(("labkit/grading", "tests", "notebooks/src", "checked"))]


def test_the_wheel_holds_no_solution_and_no_grader(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", tmp_path], cwd=ROOT, check=True)
    (wheel,) = tmp_path.glob("*.whl")
    zipfile.ZipFile(wheel).extractall(tmp_path / "wheel")
    assert not (tmp_path / "wheel" / "labkit" / "grading").exists()
    lines = telling()
    for path, text in texts(tmp_path / "wheel"):
        assert [line for line in lines if line in text] == [], path


def test_a_released_notebook_says_which_one_of_which_version_it_is(copy: Path) -> None:
    for path in (copy / "notebooks").glob("*.ipynb"):
        said = json.loads(path.read_text())["metadata"]["labkit"]
        assert (said["version"], said["notebook"]) == (__version__, path.stem)


def test_the_instructors_copy_shows_every_solution(tmp_path: Path) -> None:
    release(tmp_path / "all", instructor=True)
    cells = {
        "".join(cell["source"])
        for path in (tmp_path / "all" / "notebooks").glob("*.ipynb")
        for cell in json.loads(path.read_text())["cells"]
    }
    for stub, solution in exercise_sources.all_sources().values():
        assert solution in cells
        assert stub not in cells


def test_a_solution_that_got_into_the_package_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    line = (copy_of := ROOT / "labkit" / "core" / "errors.py").read_text().splitlines()[-4].strip()
    assert copy_of.exists()
    assert len(line) >= 25
    monkeypatch.setattr(releasing, "_telling", lambda source: [line])
    with pytest.raises(GradingError, match="contains a line of the solution"):
        release(tmp_path / "out")


def test_a_folder_with_something_in_it_is_refused(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(InvalidInput, match="not empty"):
        release(tmp_path)


def test_the_comparison_of_graders_keeps_what_is_in_its_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    monkeypatch.setattr(sys, "argv", ["grading_beside_others.py", str(tmp_path), "--only", "otter"])
    with pytest.raises(SystemExit) as ended:
        grading_beside_others.main()
    assert ended.value.code == 64
    assert (tmp_path / "mine.txt").read_text() == "mine"


@pytest.mark.parametrize("command", [["grade", "x", "--out", "y"], ["release", "z"]])
def test_an_installation_for_learners_says_where_the_grader_is(command: list[str], copy: Path) -> None:
    said = subprocess.run(
        [sys.executable, "-P", "-m", "labkit", *command], env={**os.environ, "PYTHONPATH": str(copy)}, cwd=copy,
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert said.returncode == 69
    assert said.stderr.count("\n") == 1
    assert "pip install labkit-grading" in said.stderr
