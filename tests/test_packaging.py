"""What is installed is what is declared: the locks, the conda environment, the wheel's data files, the version."""

import importlib.metadata
import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

import labkit

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
DECLARED = [
    Requirement(line)
    for line in [
        *PROJECT["project"]["dependencies"],
        *PROJECT["project"]["optional-dependencies"]["dev"],
        *PROJECT["build-system"]["requires"],
    ]
]
LOCKS = ["requirements.lock", "requirements-java.lock"]


def pinned(lock: str) -> dict[str, str]:
    """Name and version of everything in a lock that this Python would install."""
    text = (ROOT / lock).read_text().replace("\\\n", "")
    lines = [
        Requirement(line.partition("--hash")[0]) for line in text.splitlines() if line and not line.startswith("#")
    ]
    return {
        line.name: next(iter(line.specifier)).version for line in lines if line.marker is None or line.marker.evaluate()
    }


@pytest.mark.parametrize("requirement", DECLARED, ids=str)
def test_the_lock_satisfies_what_is_declared(requirement: Requirement) -> None:
    assert pinned("requirements.lock")[requirement.name.lower()] in requirement.specifier


def test_the_java_lock_satisfies_what_is_declared() -> None:
    (requirement,) = map(Requirement, PROJECT["dependency-groups"]["java"])
    locked = pinned("requirements-java.lock")
    assert set(locked) == {requirement.name}
    assert locked[requirement.name] in requirement.specifier


@pytest.mark.parametrize("lock", LOCKS)
def test_every_entry_is_pinned_and_hashed_and_no_line_is_an_address(lock: str) -> None:
    text = (ROOT / lock).read_text()
    assert "://" not in text
    assert not re.search(r"^\s*-(?!-hash)", text, re.MULTILINE)
    entries = [entry for entry in re.split(r"\n(?=\S)", text) if not entry.startswith("#")]
    assert entries
    for entry in entries:
        assert re.match(r"[a-z0-9._-]+==\S+", entry), entry
        assert "--hash=sha256:" in entry, entry


def test_the_engine_is_locked_at_the_version_of_its_kafka_connector() -> None:
    assert pinned("requirements.lock")["pyspark"] == "4.2.0"


def test_this_environment_is_the_locked_one() -> None:
    locked = pinned("requirements.lock")
    there = {requirement.name: importlib.metadata.version(requirement.name) for requirement in DECLARED}
    assert there == {name: locked[name.lower()] for name in there}


def test_the_conda_environment_is_in_step() -> None:
    environment = yaml.safe_load((ROOT / "environment.yml").read_text())
    *conda, pip = environment["dependencies"]
    wanted = {Requirement(line).name: Requirement(line).specifier for line in conda}
    assert environment["name"] == PROJECT["project"]["name"]
    assert wanted["python"] == SpecifierSet(PROJECT["project"]["requires-python"])
    assert "16" not in wanted["openjdk"]
    assert "17" in wanted["openjdk"]
    assert "pip" in wanted
    assert pip == {"pip": ["-e .[dev]"]}
    assert "dev" in PROJECT["project"]["optional-dependencies"]


def test_the_version_is_said_once_over() -> None:
    assert labkit.__version__ == PROJECT["project"]["version"] == importlib.metadata.version("labkit")


def test_the_wheel_holds_the_package_but_the_grader_and_nothing_else(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", tmp_path], cwd=ROOT, check=True)
    (wheel,) = tmp_path.glob("*.whl")
    held = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    package = {path.relative_to(ROOT).as_posix() for path in (ROOT / "labkit").rglob("*") if path.is_file()}
    for_learners = {name for name in package if "__pycache__" not in name and not name.startswith("labkit/grading/")}
    inputs = {path.name for path in (ROOT / "data").iterdir() if path.suffix in {".jsonl", ".txt"}}
    engines = {
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / "data" / "pipelines" / "engines").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    notebooks = {path.name for path in (ROOT / "notebooks").glob("*.ipynb")}
    sources = (ROOT / "notebooks" / "src").glob("*.py")
    assert notebooks == {f"{path.stem}.ipynb" for path in sources}
    assert held == (
        for_learners
        | {f"labkit/data/{name}" for name in inputs}
        | {f"labkit/{name}" for name in engines}
        | {f"labkit/notebooks/{name}" for name in notebooks}
    )


def test_nothing_in_the_package_needs_what_only_a_checkout_has() -> None:
    """Playwright is an extra of the developers': who measures or tests in a browser has a checkout."""
    users = [path for path in (ROOT / "labkit").rglob("*.py") if "playwright" in path.read_text(encoding="utf-8")]
    assert users == []


def test_make_lists_its_verbs() -> None:
    listed = subprocess.run(
        ["make", "--no-print-directory"], cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout
    verbs = {line.split()[1] for line in listed.splitlines()}
    assert verbs == {
        *(
            "help",
            "demo",
            "test",
            "test-all",
            "test-slow",
            "pipelines",
            "sinks",
            "bench",
            "lab",
            "lock",
            "lint",
            "notebooks",
            "clean",
            "doctor",
            "ci",
        ),
        *("site", "stills"),
    }
