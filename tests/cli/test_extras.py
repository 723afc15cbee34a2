"""The base does its work without any extra; what needs an extra says in one sentence which one, with exit code 69."""

import json
from pathlib import Path

import base_environment
import pytest

from labkit.core.extras import missing_extra
from labkit.host.syscalls.support import supported

ROOT = Path(__file__).parents[2]
SINK = str(ROOT / "data" / "sinks" / "right_marker.py:write_batch")

Base = dict[str, str]


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Base:
    return base_environment.make(tmp_path_factory.mktemp("base"))


@pytest.mark.parametrize(
    ("words", "extra"),
    [
        (["run"], "spark"),
        (["demo"], "spark"),
        (["matrix"], "spark"),
        (["crashtest", SINK, "--quick"], "spark"),
        (["crashtest", SINK, "--quick", "--eyes", "kernel"], "spark"),
        (["services", "status"], "spark"),
        (["doctor", "--prepare"], "spark"),
        (["lab", str(ROOT / "notebooks")], "lab"),
    ],
    ids=lambda each: each if isinstance(each, str) else each[0],
)
def test_a_verb_names_the_extra_that_it_misses(base: Base, tmp_path: Path, words: list[str], extra: str) -> None:
    done = base_environment.run(base, "-m", "labkit", *words, cwd=tmp_path)
    assert done.returncode == 69, done.stderr
    assert f"pip install 'labkit[{extra}]'" in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert done.stdout == ""


@pytest.mark.parametrize(
    "words",
    [
        ["--help"],
        ["explore", "two_phase_commit"],
        ["replay", "jump_back"],
        ["orders"],
        ["points"],
        ["timeouts", "--interval", "10", "--checkpoint", "5", "--transaction", "60"],
        ["matrix", "--engine", "sim", "--store", "sqlite"],
        ["course", "course"],
        ["doctor"],
    ],
    ids=lambda words: words[0],
)
def test_the_base_is_enough(base: Base, tmp_path: Path, words: list[str]) -> None:
    done = base_environment.run(base, "-m", "labkit", *words, cwd=tmp_path)
    found = 1 if words[0] == "replay" else 0  # this run breaks a property, and that is what it is replayed for
    assert done.returncode == found, done.stderr
    assert done.stdout


@pytest.mark.parametrize("verb", ["run", "demo", "matrix", "crashtest", "grade", "services", "lab", "check"])
def test_help_needs_no_extra(base: Base, tmp_path: Path, verb: str) -> None:
    done = base_environment.run(base, "-m", "labkit", verb, "--help", cwd=tmp_path)
    assert done.returncode == 0, done.stderr


def test_the_base_crash_tests_a_pipeline_and_shows_its_effects(base: Base, tmp_path: Path) -> None:
    if why := supported():
        pytest.skip(why)
    (tmp_path / "job.sh").write_text("echo '{\"id\": 1}' > .out; mv .out out\n")
    shown = base_environment.run(base, "-m", "labkit", "effects", "--command", "sh job.sh", cwd=tmp_path)
    assert shown.returncode == 0, shown.stderr
    (tmp_path / "out").unlink()
    command = ["--command", "sh job.sh", "--read-command", "cat out 2>/dev/null || true", "--reset", "rm -f out .out"]
    done = base_environment.run(base, "-m", "labkit", "crashtest", *command, "--quick", "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["guarantee"] == "exactly-once"


def test_the_doctor_says_which_extras_are_there(base: Base, tmp_path: Path) -> None:
    done = base_environment.run(base, "-m", "labkit", "doctor", "--json", cwd=tmp_path)
    found = {each["name"]: each for each in json.loads(done.stdout)}
    for extra in ("spark", "lab"):
        assert not found[f"labkit[{extra}]"]["ok"]
        assert f"pip install 'labkit[{extra}]'" in found[f"labkit[{extra}]"]["remedy"]
    assert not found["PySpark"]["required"]


def test_a_missing_package_of_the_base_is_our_own_fault(tmp_path: Path) -> None:
    place = tmp_path / "base"
    place.mkdir()
    environment = base_environment.make(place)
    (place / "psutil").unlink()
    done = base_environment.run(environment, "-m", "labkit", "doctor", cwd=tmp_path)
    assert done.returncode == 70
    assert "psutil" in done.stderr


@pytest.mark.parametrize(
    "error",
    [
        ModuleNotFoundError("a package of nobody's", name="nowhere"),
        ModuleNotFoundError("a part of a package that is installed", name="pyspark.nowhere"),
        ImportError("an installed package that is broken", name="pyspark"),
        ModuleNotFoundError("an error without a name"),
        ModuleNotFoundError("one of our own modules", name="labkit.nowhere"),
    ],
    ids=str,
)
def test_no_other_error_is_taken_for_a_missing_extra(error: ImportError) -> None:
    assert missing_extra(error) is None


def test_without_the_grader_one_sentence_says_what_to_install(monkeypatch, tmp_path: Path, capsys) -> None:
    from labkit.cli import execute, grade

    monkeypatch.setattr(grade.importlib.util, "find_spec", lambda _name: None)
    for words in (["grade", str(tmp_path), "--out", str(tmp_path / "out")], ["release", str(tmp_path / "copy")]):
        assert execute(words) == 69
        assert "pip install labkit-grading" in capsys.readouterr().err
