"""`labkit crashtest` and `pytest --crashtest`: exit codes, files, one sentence for what cannot be tested."""

import json
import shlex
import subprocess
import xml.etree.ElementTree as ET
from pathlib import Path

import psutil
import pytest
import yaml
from build_sinks import ROOT, SINKS
from choosing import variant_but
from command import refusal
from modules import run_module

pytestmark = pytest.mark.usefixtures("nothing_is_left")


def run(folder: Path, *words: str) -> "subprocess.CompletedProcess[str]":
    return run_module(*words, cwd=folder, SINK_STORE=str(folder / "store"))


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ([], "nothing to test"),
        (["nowhere.py:sink"], "there is no file nowhere.py"),
        (["sink.py:nothing"], "does not define nothing"),
        (["sink.py:sink"], "there is no such function; write read()"),
        (["sink.py:sink", "--expect", "exactly"], "did you mean 'exactly-once'"),
        (["sink.py:sink", "--out", "."], "this folder already exists"),
    ],
)
def test_what_cannot_be_tested_is_one_sentence_and_64(tmp_path: Path, words: list[str], sentence: str) -> None:
    (tmp_path / "sink.py").write_text("def sink(df, batch): ...\n")
    assert sentence in refusal("crashtest", *words, cwd=tmp_path)


def test_pytest_says_it_in_one_sentence_too(tmp_path: Path) -> None:
    done = run(tmp_path, "pytest", "-p", "labkit.crashtest.plugin", "--crashtest", "nowhere.py:sink")
    assert done.returncode == pytest.ExitCode.USAGE_ERROR
    assert "--crashtest: FILE:NAME nowhere.py:sink: there is no file" in done.stderr


def test_pytest_without_the_option_runs_as_ever(tmp_path: Path) -> None:
    (tmp_path / "test_one.py").write_text("def test_one(): pass\n")
    done = run(tmp_path, "pytest", "-p", "labkit.crashtest.plugin", "-q")
    assert done.returncode == 0, done.stdout
    assert "1 passed" in done.stdout


@pytest.mark.variant
@pytest.mark.slow
@pytest.mark.spark
def test_the_steps_of_the_sink_in_the_example_for_github_do_what_they_say(tmp_path: Path) -> None:
    """Step by step, but for the installation: this is the environment in which it is installed.

    The whole test is cut down to one kill; so nothing is guaranteed, and what was expected is left out.
    """
    steps = yaml.safe_load((ROOT / "docs" / "crashtest.yml").read_text())["jobs"]["sink"]["steps"]
    (tmp_path / "data").symlink_to(ROOT / "data")
    ran = []
    for step in steps:
        if "run" not in step or step["run"].startswith("pip install"):
            continue
        words = shlex.split(step["run"])
        if "--quick" in words:
            at = words.index("--expect")
            assert words[at + 1] == "not-refuted"
            words[at : at + 2] = ["--only", "rename checkpoint/commits/<n> #1", "--seconds", "900"]
        done = run(tmp_path, *words)
        assert done.returncode == 0, step["name"]
        ran.append(words[1])
    assert ran == ["doctor", "crashtest"]
    assert ET.parse(tmp_path / "crashtest.xml").getroot().attrib["failures"] == "0"
    report = json.loads((tmp_path / "crashtest" / "report.json").read_text())
    assert report["claim"] == {"strength": "sampled", "at_best": "exactly-once"}
    assert "not refuted (" in (tmp_path / "crashtest" / "badge.svg").read_text()


BAD = {
    "raises": (
        "raise ValueError('not today')",
        "sink.py:sink: without any crash it ended with exit code 1; the sink raised ValueError: not today (sink.py:2).",
    ),
    "hangs": ("import time; time.sleep(600)", "sink.py:sink: without any crash it did nothing for 4 s"),
    "exits": (
        "import os, sys; sys.stderr.write('out of fuel\\n'); sys.stderr.flush(); os._exit(3)",
        "sink.py:sink: without any crash it ended with exit code 3",
    ),
    "writes nothing": ("pass", "the reader found no rows after the command had ended well"),
}


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.parametrize("kind", variant_but(["raises"], BAD))
def test_a_sink_that_does_not_even_do_without_a_crash(tmp_path: Path, kind: str) -> None:
    body, sentence = BAD[kind]
    (tmp_path / "sink.py").write_text(
        f"def sink(df, batch):\n    {body}\ndef read():\n    return []\ndef reset(): ...\n"
    )
    done = run(
        tmp_path, "labkit", "crashtest", "sink.py:sink", "--batches", "2", "--limit", "4" if kind == "hangs" else "60"
    )
    assert done.returncode == 64
    assert sentence in done.stderr


@pytest.mark.variant
@pytest.mark.slow
@pytest.mark.spark
def test_a_relative_path_means_the_same_in_a_task_and_in_the_reader(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The documented sample as it is: workers run where plain Spark's do."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SINK_STORE", raising=False)
    words = ["labkit", "crashtest", f"{SINKS}/wrong_partitions.py:Writer", "--json"]
    done = run_module(*words, "--quick", "--only", "rename checkpoint/commits/<n> #1", "--expect", "exactly-once")
    assert done.returncode == 1
    assert json.loads(done.stdout)["claim"]["at_best"] == "at-least-once"


NOISY = """
import os, sqlite3, subprocess
from pathlib import Path
STORE = Path(os.environ["SINK_STORE"])
def sink(df, batch):
    print('{"event": "awaits_kill"}', flush=True)
    os.system("echo noise")
    subprocess.Popen(["sleep", "611"], start_new_session=True)
    db = sqlite3.connect(STORE)
    db.execute("CREATE TABLE IF NOT EXISTS t (id INTEGER PRIMARY KEY)")
    db.executemany("INSERT OR IGNORE INTO t VALUES (?)", [(row.id,) for row in df.collect()])
    db.commit()
def read():
    db = sqlite3.connect(STORE)
    try:
        return db.execute("SELECT id FROM t").fetchall()
    except sqlite3.OperationalError:
        return []
def reset():
    STORE.unlink(missing_ok=True)
"""


@pytest.mark.slow
@pytest.mark.spark
def test_a_sink_that_prints_forks_and_leaves_things_behind_is_tested_and_cleaned_up(tmp_path: Path) -> None:
    (tmp_path / "sink.py").write_text(NOISY)
    words = ["labkit", "crashtest", "sink.py:sink", "--json", "--batches", "2"]
    done = run(tmp_path, *words, "--only", "rename checkpoint/commits/<n> #1", "--only", "fresh_checkpoint")
    report = json.loads(done.stdout)
    assert done.returncode == 0
    assert report["claim"] == {"strength": "sampled", "at_best": "exactly-once"}
    assert "run 2 of 3: " in done.stderr
    sleeping = [each for each in psutil.process_iter(["cmdline"]) if "611" in (each.info["cmdline"] or ())]
    assert sleeping == []
