"""An option of the crash test is declared once: the printed command, TOML, JSON, pytest and refusals follow from it."""

import json
import os
import shlex
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from hypothesis import HealthCheck, given
from hypothesis import settings as load
from hypothesis import strategies as st
from modules import run_module
from typer.testing import CliRunner

from labkit.cli import crashtest as verb
from labkit.core.errors import InvalidInput
from labkit.core.options import options_of
from labkit.crashtest.blackbox.settings import PipelineSettings
from labkit.crashtest.configured import KEYS, OPTIONS, configured, requested
from labkit.crashtest.plugin import pytest_addoption
from labkit.crashtest.settings import Settings
from labkit.host.syscalls.faults import Fault

ROOT = Path(__file__).parents[2]
NASTY = [
    "a b",
    "it's",
    'a"b',
    "$HOME",
    "x; rm -r y",
    "*",
    "ä\n",
    "`id`",
    "\\",
    "--quick",
    "-x",
    "#",
    "a=b=c",
    "{x}",
    "~",
]
TEXTS = st.sampled_from(NASTY) | st.text(
    st.characters(exclude_characters="\0", exclude_categories=("Cs",)), min_size=1, max_size=12
)
SECONDS = st.floats(0.001, 1e6)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder whose own name needs quotes, with a sink, rows, a jar and folders."""
    here = tmp_path_factory.mktemp("options") / "it's a folder"
    here.mkdir()
    (here / "sink.py").touch()
    (here / "rows.jsonl").touch()
    (here / "store").mkdir()
    with zipfile.ZipFile(here / "one.jar", "w"):
        pass
    before = Path.cwd()
    os.chdir(here)
    yield here
    os.chdir(before)


COMMON = {
    "ignored": st.lists(TEXTS, max_size=2),
    "quick": st.just(value=True),
    "since": TEXTS,
    "limit": SECONDS,
    "seconds": SECONDS,
    "reader": st.sampled_from(["sink.py:read", "sink.py:other"]),
    "grace": SECONDS,
    "delay": SECONDS,
    "fault": st.lists(st.sampled_from(list(map(str, Fault))), min_size=1, max_size=2, unique=True),
}
SINKS: dict[str, st.SearchStrategy[object]] = COMMON | {
    "only": st.lists(st.sampled_from(["healthy", "rename a #1", "two_queries"]), max_size=2),
    "watch": st.lists(st.sampled_from(["store", "elsewhere"]), min_size=1, max_size=2),
    "batches": st.integers(1, 5),
    "rows": st.just("rows.jsonl"),
    "options": st.lists(TEXTS.map(lambda text: f"name={text}"), max_size=2),
    "conf": st.lists(TEXTS.map(lambda text: f"spark.a={text}"), max_size=2),
    "jars": st.just(["one.jar"]),
    "packages": st.lists(st.just("a:b:1"), max_size=1),
}
PIPELINES: dict[str, st.SearchStrategy[object]] = COMMON | {
    "only": st.lists(TEXTS, max_size=2),
    "watch": st.lists(st.sampled_from(["store", "elsewhere"]), min_size=1, max_size=2),
    "expected": st.just("rows.jsonl"),
    "feed": TEXTS,
    "reset": TEXTS,
    "more": TEXTS,
    "checkpoint": st.sampled_from(["store", "not there yet"]),
    "pause": st.sampled_from([0.0, 1.5, 70.0]),
    "parallel": st.integers(1, 9),
    "pairs": st.integers(0, 500),
}


def parsed(command: str) -> Settings | PipelineSettings:
    """The settings for which the command line itself starts a test, after a shell's own parsing."""
    words = shlex.split(command)
    assert words[:2] == ["labkit", "crashtest"]
    wanted: list[Settings | PipelineSettings] = []

    class Enough(Exception):
        pass

    def instead(said: dict[str, Any], typed: dict[str, Any]) -> None:
        wanted.append(requested(said, typed))
        raise Enough

    app = typer.Typer(rich_markup_mode=None)
    app.command()(verb.crashtest)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(verb, "requested", instead)
        done = CliRunner().invoke(app, words[2:])
    assert isinstance(done.exception, Enough), (done.output, done.exception)
    return wanted[0]


def every(strategies: dict[str, st.SearchStrategy[object]]) -> st.SearchStrategy[dict[str, object]]:
    return st.fixed_dictionaries({}, optional=strategies)


LOAD = load(max_examples=50, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture])


@LOAD
@given(
    words=every(SINKS), subject=st.sampled_from([{"subject": "sink.py:f"}, {"sink_format": "a b"}, {"table": "it's"}])
)
def test_the_printed_command_gives_the_same_test_of_a_sink(
    folder: Path, words: dict[str, Any], subject: dict[str, str]
) -> None:
    if "subject" not in subject:
        words = {"reader": "sink.py:read", **words}
    wanted = Settings.plan(words | subject)
    assert parsed(wanted.command()) == wanted
    assert Settings.from_json(json.loads(json.dumps(wanted.to_json()))) == wanted
    assert parsed(wanted.command("rename a #1")).only == ("rename a #1",)


@LOAD
@given(words=every(PIPELINES), command=TEXTS.filter(str.strip), read=TEXTS, power=st.booleans(), whole=st.booleans())
def test_the_printed_command_gives_the_same_test_of_a_pipeline(
    folder: Path, words: dict[str, Any], command: str, read: str, power: bool, whole: bool
) -> None:
    if "reader" not in words:
        words["read_command"] = read
    if power:
        words |= {"power_cut": True, "watch": ["store"]}
    if whole and not {"quick", "only", "since"} & words.keys():
        words |= {"exhaustive": True}
    wanted = PipelineSettings.plan(words | {"command": command})
    assert parsed(wanted.command()) == wanted
    assert PipelineSettings.from_json(json.loads(json.dumps(wanted.to_json()))) == wanted
    assert parsed(wanted.command("write it's #1")).only == ("write it's #1",)


def test_every_option_is_generated_above() -> None:
    subjects = {each.keyword for each in OPTIONS.values() if each.names_subject}
    assert set(SINKS) == {each.keyword for each in options_of(Settings)} - subjects
    drawn = {*PIPELINES, "read_command", "power_cut", "exhaustive"}
    assert drawn == {each.keyword for each in options_of(PipelineSettings)} - subjects


WRONG = {
    'batches = "2"': "batches",
    "batches = true": "batches",
    "batches = 2.0": "batches",
    "batches = 0": "batches",
    'reader = ["x"]': "reader",
    'reader = "nowhere.py:read"': "reader",
    "rows = 5": "rows",
    'rows = "nowhere.jsonl"': "rows",
    'ignore = "a*"': "ignore",
    "ignore = [1]": "ignore",
    "options = { path = 1 }": "options",
    'options = ["path"]': "options",
    'conf = ["x=1"]': "conf",
    'jars = "one.jar"': "jars",
    'packages = ["a"]': "packages",
    'seconds = "5 min"': "seconds",
    "seconds = true": "seconds",
    "seconds = nan": "seconds",
    "limit = 0": "limit",
    "grace = 0": "grace",
    'delay = "1 min"': "delay",
    'expect = "exactly"': "expect",
    "expect = 1": "expect",
    'also = "lost"': "also",
    'also = ["lots"]': "also",
    "subject = 1": "subject",
    "format = 1": "format",
    "command = 1": "command",
    'power_cut = "yes"': "power_cut",
    'fault = "eio"': "fault",
    'fault = ["oie"]': "fault",
    "parallel = 0": "parallel",
    'watch = "store"': "watch",
    "checkpoint = 1": "checkpoint",
    "quick = true": "quick",
    'only = ["healthy"]': "only",
    'subject = "sink.py:f"\nfeed = "true"': "feed",
    'command = "true"\nbatches = 2': "batches",
    'command = "true"\nsubject = "sink.py:f"': "subject",
}


@pytest.mark.parametrize("text", WRONG)
def test_a_wrong_line_of_the_project_s_file_is_one_sentence(folder: Path, text: str) -> None:
    path = folder / "pyproject.toml"
    path.write_text(f"[tool.labkit.crashtest]\n{text}\n")
    with pytest.raises(InvalidInput) as refused:
        configured(path)
    said = str(refused.value)
    assert said.startswith(f"{path}, [tool.labkit.crashtest]: {WRONG[text]}")
    assert "\n" not in said
    assert refused.value.exit_code == 64


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        *((text, "crashtest") for text in ("tool = 1", "tool.labkit = 1", "tool.labkit.crashtest = 1")),
        ("[[tool.labkit.crashtest]]", "crashtest"),
        ("[", "not valid TOML"),
        ("tool.labkit.crashtest.subjct = 'x'", "did you mean 'subject'"),
        ("tool.labkit.crashtest.also = ['fractured']", "did you mean 'fractured_read'"),
    ],
)
def test_a_file_without_such_a_table_or_key_is_refused(tmp_path: Path, text: str, sentence: str) -> None:
    (tmp_path / "pyproject.toml").write_text(text)
    with pytest.raises(InvalidInput, match=sentence):
        configured(tmp_path / "pyproject.toml")


@pytest.mark.parametrize(
    "words",
    [["labkit", "crashtest"], ["pytest", "-c", "pyproject.toml", "-p", "labkit.crashtest.plugin", "--crashtest"]],
)
def test_a_wrong_project_ends_before_anything_starts(tmp_path: Path, words: list[str]) -> None:
    (tmp_path / "pyproject.toml").write_text('[tool.labkit.crashtest]\ncommand = "true"\nignore = "a*"\n')
    done = run_module(*words, cwd=tmp_path)
    assert done.returncode == (64 if "labkit" in words else pytest.ExitCode.USAGE_ERROR), done.stderr
    assert 'ignore = "a*": write a list, as in ["a*"].' in " ".join(done.stderr.split())
    assert "Traceback" not in done.stderr


def test_the_project_s_file_has_the_keys_that_settings_have(folder: Path) -> None:
    """What JSON holds of settings may stand in the project's file, and gives the same settings."""
    for wanted in (
        Settings.plan({"subject": "sink.py:f", "batches": 2, "limit": 7, "ignored": ["a*"]}),
        PipelineSettings.plan(
            {"command": "true", "read_command": "cat", "parallel": 2, "power_cut": True, "watch": ["store"]}
        ),
    ):
        plain = {key: each for key, each in wanted.to_json().items() if each is not None and KEYS.get(key)}
        lines = [f"{key} = {json.dumps(each)}" for key, each in plain.items() if each not in ("", [])]
        path = folder / "pyproject.toml"
        path.write_text("\n".join(["[tool.labkit.crashtest]", *lines]))
        assert requested(configured(path), {}) == wanted


def test_a_name_on_the_command_line_replaces_the_project_s(folder: Path) -> None:
    project = {"command": "true", "reader": "sink.py:read", "watch": ["store"], "ignored": ["a*"]}
    pipeline = requested(project, {"read_command": "cat"})
    assert isinstance(pipeline, PipelineSettings)
    assert pipeline.reader is None
    assert pipeline.ignored == ("a*",)
    sink = requested(project, {"subject": "sink.py:f"})
    assert isinstance(sink, Settings)
    assert (sink.watched, sink.ignored) == ((), ())
    with pytest.raises(InvalidInput, match=r"--batches .* a sink"):
        requested(project, {"batches": 2})
    with pytest.raises(InvalidInput, match="give only one of the two"):
        requested({}, {"command": "true", "subject": "sink.py:f"})
    with pytest.raises(InvalidInput, match=r"--parallel .* a pipeline"):
        requested({}, {"parallel": 2, "subject": "sink.py:f"})


def test_pytest_has_every_option_of_the_command_line() -> None:
    parser = pytest.Parser(_ispytest=True)
    pytest_addoption(parser)
    words = ["--crashtest", "--crashtest-batches", "2", "--crashtest-ignore", "a", "--crashtest-ignore", "b"]
    known = parser.parse_known_args([*words, "--crashtest-quick", "--crashtest-limit", "4.5"])
    assert (known.crashtest_batches, known.crashtest_ignore, known.crashtest_limit) == (2, ["a", "b"], 4.5)
    assert known.crashtest_quick is True
    assert known.crashtest_power_cut is None
    for option in OPTIONS.values():
        assert option.argument or hasattr(known, f"crashtest_{option.parameter}")


def test_the_plugin_loads_nothing_heavy() -> None:
    code = (
        "import sys, pytest, labkit.crashtest.plugin as plugin; plugin.pytest_addoption(pytest.Parser(_ispytest=True));"
        "heavy = {'pyspark', 'pandas', 'numpy', 'psutil', 'typer', 'rich', 'jinja2', 'matplotlib'} & set(sys.modules);"
        "sys.exit(f'{heavy}' if heavy else 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
