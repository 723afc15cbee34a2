"""The base does its work without any extra; what needs an extra says in one sentence which one, with exit code 69."""

import ast
import json
import re
from importlib import import_module
from pathlib import Path

import base_environment
import pytest
from choosing import slow_but
from command import refusal

from labkit import lab
from labkit.core.extras import missing_extra

ROOT = Path(__file__).parents[2]
SINK = str(ROOT / "data" / "sinks" / "right_marker.py:write_batch")

Base = dict[str, str]


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Base:
    return base_environment.make(tmp_path_factory.mktemp("base"))


MISSING = {
    "run": ([], "spark"),
    "demo": ([], "spark"),
    "matrix": ([], "spark"),
    "crashtest": ([SINK, "--quick"], "spark"),
    "services": (["status"], "spark"),
    "doctor": (["--prepare"], "spark"),
    "lab": ([str(ROOT / "notebooks")], "lab"),
    "bisect": (["--package", "dlt"], "bisect"),
}


@pytest.mark.parametrize("verb", slow_but(["run"], MISSING))
def test_a_verb_names_the_extra_that_it_misses(base: Base, tmp_path: Path, verb: str) -> None:
    words, extra = [verb, *MISSING[verb][0]], MISSING[verb][1]
    done = base_environment.run(base, "-m", "labkit", *words, cwd=tmp_path)
    assert done.returncode == 69, done.stderr
    assert f"pip install 'labkit[{extra}]'" in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert done.stdout == ""


ENOUGH = {
    "--help": [],
    "explore": ["two_phase_commit"],
    "replay": ["jump_back"],
    "export": ["jump_back", "--as", "shiviz"],
    "orders": [],
    "points": [],
    "timeouts": ["--interval", "10", "--checkpoint", "5", "--transaction", "60"],
    "matrix": ["--engine", "sim", "--store", "sqlite"],
    "course": ["course"],
    "doctor": [],
}


@pytest.mark.parametrize("verb", slow_but(["explore"], ENOUGH))
def test_the_base_is_enough(base: Base, tmp_path: Path, verb: str) -> None:
    done = base_environment.run(base, "-m", "labkit", verb, *ENOUGH[verb], cwd=tmp_path)
    found = 1 if verb == "replay" else 0  # this run breaks a property, and that is what it is replayed for
    assert done.returncode == found, done.stderr
    assert done.stdout


@pytest.mark.parametrize(
    "verb", slow_but(["run"], ["run", "demo", "matrix", "crashtest", "grade", "services", "lab", "check"])
)
def test_help_needs_no_extra(base: Base, tmp_path: Path, verb: str) -> None:
    done = base_environment.run(base, "-m", "labkit", verb, "--help", cwd=tmp_path)
    assert done.returncode == 0, done.stderr


@pytest.mark.variant
@pytest.mark.slow
@pytest.mark.usefixtures("watched_calls")
def test_the_base_crash_tests_a_pipeline_and_shows_its_effects(base: Base, tmp_path: Path) -> None:
    (tmp_path / "job.sh").write_text("echo '{\"id\": 1}' > .out; mv .out out\n")
    shown = base_environment.run(base, "-m", "labkit", "effects", "--command", "sh job.sh", cwd=tmp_path)
    assert shown.returncode == 0, shown.stderr
    (tmp_path / "out").unlink()
    command = ["--command", "sh job.sh", "--read-command", "cat out 2>/dev/null || true", "--reset", "rm -f out .out"]
    done = base_environment.run(base, "-m", "labkit", "crashtest", *command, "--quick", "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["claim"]["at_best"] == "exactly-once"


def test_the_doctor_says_which_extras_are_there(base: Base, tmp_path: Path) -> None:
    done = base_environment.run(base, "-m", "labkit", "doctor", "--json", cwd=tmp_path)
    found = {each["name"]: each for each in json.loads(done.stdout)}
    for extra in ("spark", "lab"):
        assert not found[f"labkit[{extra}]"]["ok"]
        assert f"pip install 'labkit[{extra}]'" in found[f"labkit[{extra}]"]["remedy"]
    assert not found["PySpark"]["required"]


@pytest.mark.slow
def test_notebooks_import_the_lab_with_the_base_and_ipython_alone(tmp_path: Path) -> None:
    """Nothing else is loaded before a name is used, and a name that needs an extra says which one."""
    environment = base_environment.make(tmp_path, "ipython")
    done = base_environment.run(environment, "-c", NOTEBOOK, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert len([name for name in found["loaded"] if name.startswith("labkit")]) <= 12
    assert not {"IPython", "typer", "rich", "psutil", "msgspec"} & set(found["loaded"])
    assert found["refused"].keys() <= {
        "compare",
        "copy_topic",
        "kafka",
        "panel",
        "postgres",
        "rebalance",
        "shop",
        "stopped_writers",
        "ten_steps",
    }
    for sentence in found["refused"].values():
        assert re.fullmatch(r"MissingExtra: .+ is not installed: pip install 'labkit\[(spark|lab)\]'\.", sentence)
    assert found["called"] == "MissingExtra: PySpark is not installed: pip install 'labkit[spark]'."


NOTEBOOK = """
import json, sys
from labkit.core.errors import ServiceUnavailable
from labkit import lab
loaded = sorted(sys.modules)
refused = {}
for name in lab.__all__:
    try:
        getattr(lab, name)
    except ServiceUnavailable as error:
        [refused[name]] = error._render_traceback_()
lab.show("pipeline.jump_back"), lab.explore("two_phase_commit"), lab.points("append"), lab.ask("00-rows")
lab.hint("05-recovery")
lab.check("05-recovery")
try:
    lab.crash("sink.mid_write", sink="append")
except Exception as error:
    [called] = error._render_traceback_()
print(json.dumps({"loaded": loaded, "refused": refused, "called": called}))
"""


def test_the_lab_says_its_names_twice_and_alike() -> None:
    """A type checker reads the imports, a notebook the table."""
    tree = ast.parse(Path(lab.__file__).read_text(encoding="utf-8"))
    (block,) = [node for node in tree.body if isinstance(node, ast.If)]
    imported: dict[str, set[str]] = {}
    for node in block.body:
        assert isinstance(node, ast.ImportFrom)
        imported.setdefault(str(node.module), set()).update(str(alias.asname) for alias in node.names)
    assert imported == {module: set(names) for module, names in lab.HOMES.items()}
    assert dir(lab) == lab.__all__
    for module, names in lab.HOMES.items():
        for name in names:
            assert getattr(import_module(module), lab._OTHER_NAMES.get(name, name)) is getattr(lab, name)


def test_a_name_that_the_lab_has_not_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="crsh"):
        _ = lab.crsh


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


def test_without_the_grader_one_sentence_says_what_to_install(monkeypatch, tmp_path: Path) -> None:
    from labkit.cli import common

    monkeypatch.setattr(common.importlib.util, "find_spec", lambda _name: None)
    for words in (["grade", tmp_path, "--out", tmp_path / "out"], ["release", tmp_path / "copy"]):
        assert "pip install labkit-grading" in refusal(*words, code=69)
