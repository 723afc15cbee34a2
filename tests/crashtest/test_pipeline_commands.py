"""`labkit crashtest --command`: exit codes, files, one sentence for what cannot be tested, and nothing is
left behind.
"""

import json
import os
import random
import shlex
import signal
import subprocess
import sys
import time
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
import yaml
from choosing import variant_but
from crashtest_processes import left_over
from pipeline_samples import copied, expected
from waiting import until

from labkit.crashtest.harness.leftovers import FOLDERS
from labkit.host import durable

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def _place(watched_calls: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    copied(tmp_path, monkeypatch)
    yield
    until(lambda: left_over() == [], "the end of what a test has started", 20)


@pytest.mark.slow
def test_the_steps_of_the_pipeline_in_the_example_for_github_do_what_they_say() -> None:
    """All but the installation, in a copy of the folder that the step names."""
    steps = yaml.safe_load((ROOT / "docs" / "crashtest.yml").read_text())["jobs"]["pipeline"]["steps"]
    install, crash_test = [step for step in steps if "run" in step]
    assert install["run"] == "pip install labkit", "the base is enough"
    assert crash_test["working-directory"] == "data/pipelines"
    asked = [sys.executable, "-m", *shlex.split(crash_test["run"])]
    done = subprocess.run(asked, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert ET.parse("crashtest.xml").getroot().attrib["failures"] == "0"
    assert json.loads(Path("crashtest", "report.json").read_text())["claim"]["strength"] == "sampled"


def words(command: str, *more: str) -> list[str]:
    return [
        *(sys.executable, "-m", "labkit", "crashtest", "--command", command),
        *("--watch", "store", "--watch", "input", *more),
    ]


def sample(name: str, *more: str) -> list[str]:
    wanted = expected()[name]
    rows = ["--reader", f"rows.py:{wanted['reader']}", "--expected", "rows.py:expected"]
    return words(wanted["command"], *rows, *more)


def run(command: list[str]) -> "subprocess.CompletedProcess[str]":
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    print(done.stdout, done.stderr)
    return done


def refused(command: list[str], *sentences: str) -> None:
    """Holds a command against what it must say: one sentence, exit code 64, nothing on standard output."""
    done = run(command)
    assert done.returncode == 64, done.stderr
    last = done.stderr.strip().splitlines()[-1]
    for sentence in sentences:
        assert sentence in last
    assert last.startswith("labkit: ")
    assert done.stdout == ""
    assert "run 2 of" not in done.stderr  # refused before the first crash
    assert "Traceback" not in done.stderr


BY_HAND = ["--reader", "rows.py:read_all"]
"""A reader whose file has a reset."""


@pytest.mark.parametrize(
    ("command", "sentences"),
    [
        ("no-such-command", ["exit code 127, so there is no such command", "not found"]),
        ("./right_move.sh", ["exit code 126", "./right_move.sh: Permission denied"]),
        ("echo out of fuel; exit 3", ["ended with exit code 3", '"out of fuel"']),
        ("kill -9 $$", ["died of signal 9"]),
        ("true", ["the reader found no rows"]),
        ("(sleep 60; cp input/part-1 store/all.txt) &", ["process(es) that the command left running do the work"]),
        ("ulimit -f 0; cat input/part-1 > store/all.txt", ["without any crash", "by hand"]),
    ],
)
@pytest.mark.slow
def test_a_command_that_does_not_even_do_without_a_crash(command: str, sentences: list[str]) -> None:
    refused(words(command, *BY_HAND, "--expected", "rows.py:expected"), *sentences)


@pytest.mark.slow
@pytest.mark.parametrize("command", ["sleep 600", "while :; do :; done"])
def test_a_command_that_never_ends_and_does_nothing(command: str) -> None:
    said = "it did nothing for 3 s (--limit allows more)"
    refused(words(command, *BY_HAND, "--limit", "3"), said, "needs --expected")


READERS = {
    "lies": (
        "import random\ndef read():\n    return [random.random()] if Path('store/part-1').exists() else []",
        "the reader returned different rows",
    ),
    "hangs": ("import time\ndef read():\n    time.sleep(600)", "took more than 12 s"),
    "raises": ("def read():\n    return open('store/all.txt').read()", "FileNotFound"),
    "is none": ("def read():\n    return 1", "returned an object of type int instead of rows; return an iterable"),
    "ends": ("import os\ndef read():\n    os._exit(3)", "ended the reader's process"),
    "sees other rows": (
        "def read():\n    return [[len(list(Path('store').iterdir()))]]",
        "before any run, the reader returns 1 row(s)",
    ),
    "no reset": ("def read():\n    return []", "give --reset 'CMD'"),
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", READERS)
def test_a_reader_that_cannot_be_relied_on(kind: str) -> None:
    text, sentence = READERS[kind]
    reset = "" if kind == "no reset" else "from rows import reset\n"
    Path("bad.py").write_text(f"from pathlib import Path\n{reset}{text}\n")
    reader = ["--reader", "bad.py:read", "--limit", "3"]
    refused(words("sh right_move.sh", *reader), sentence)


FEED = "for n in 1 2 3; do for m in 1 2 3; do echo $((3 * n + m - 3)) apple; done > input/part-$n; done"
"""Gives as many rows as are expected."""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("more", "sentence"),
    [
        (["--feed", "exit 3"], "--feed: it ended with exit code 3"),
        (["--reset", "nowhere"], "--reset: it ended with exit code 127"),
        (["--reset", "mkdir -p store input", "--feed", FEED], "--reset: the reset left 9 row(s)"),
        (["--reader", "rows.py:nothing"], "there is no such function"),
        (["--more", "exit 3"], "--more exit 3: new input cannot be tested, because it ended with exit code 3"),
        (["--more", "true"], "no new row came out after this command"),
        (["--expected", "rows.py:PARTS"], "rows.py:PARTS"),
        (["--expected", "empty"], "contains no row"),
        (["--expected", "nowhere.jsonl"], "nowhere.jsonl: there is no such file"),
        (["--watch", "nowhere"], "nowhere: this folder does not exist"),
        (["--parallel", "0"], "--parallel 0: write how many runs"),
        (["--expected", "broken"], "line 2: this is not valid JSON"),
        (["--only", "write nowhere #1"], "does not pass this crash point"),
        (["--only", "exit", "--only", "rename store/part-1 #2"], "did you mean 'rename store/part-1 #1'?"),
    ],
)
def test_what_stands_beside_the_pipeline_is_checked_too(more: list[str], sentence: str) -> None:
    Path("empty").touch()
    Path("broken").write_text("[1]\n[\n")
    refused(sample("right_move", *more), sentence)


@pytest.mark.parametrize(
    ("more", "sentence"),
    [
        (["sink.py:sink"], "give only one of the two"),
        (["--batches", "2"], "--batches is an option for a sink"),
        (["--option", "a=b"], "--option is an option for a sink"),
        (["--read-command", "cat"], "--reader FILE:NAME"),
    ],
)
def test_a_sink_and_a_pipeline_are_told_apart(more: list[str], sentence: str) -> None:
    refused(sample("right_move", *more), sentence)


LEASE = """
import os, sys, time
if os.path.exists("store/lease") and time.time() - os.path.getmtime("store/lease") < {seconds}:
    sys.exit(0)  # somebody else holds it
open("store/lease", "w").close()
for part in sorted(os.listdir("input")):
    with open("store/.new", "w") as new:
        new.write(open("input/" + part).read())
    os.rename("store/.new", "store/" + part)
os.remove("store/lease")
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("seconds", "limit", "lost", "said"),
    [(6, 60, False, "they came with another start"), (600, 3, True, "as for a lease, count as lost (--limit)")],
)
def test_a_command_that_waits_for_a_lease_is_started_again_for_a_while(
    seconds: int, limit: int, lost: bool, said: str
) -> None:
    Path("lease.py").write_text(LEASE.format(seconds=seconds))
    done = run(
        [
            *words("python lease.py", "--reader", "rows.py:read_parts"),
            *("--watch", "store", "--expected", "rows.py:expected"),
            *("--only", "rename store/part-1 #1", "--limit", str(limit), "--json"),
        ]
    )
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    crashed = next(each for each in report["runs"] if each["group"] == "crash")
    assert bool(crashed["lost"]) == lost
    assert any(said in note for note in report["notes"]), report["notes"]


@pytest.mark.slow
def test_rows_may_be_printed_by_a_command_and_files_be_kept(tmp_path: Path) -> None:
    """No Python of the user's at all; what the run without a crash left is taken for right."""
    out, junit = tmp_path / "out", tmp_path / "junit.xml"
    read = 'cat store/part-* 2>/dev/null | awk \'{ print "{\\"id\\": " $1 "}" }\''
    command = words(
        "sh wrong_exists.sh",
        *("--read-command", read, "--reset", "rm -rf store input; mkdir store input"),
        *("--feed", "for n in 1 2; do echo $n row > input/part-$n; done"),
        *("--only", "write store/part-1 #1", "--expect", "exactly-once", "--json"),
        *("--out", str(out), "--junit", str(junit)),
    )
    done = run(command)
    assert done.returncode == 1
    report = json.loads(done.stdout)
    assert report["claim"] == {"strength": "refuted", "at_best": "at-most-once"}
    assert report["eyes"] == "kernel"
    assert report["runs"][0]["lost"] == [0]
    assert any("no --expected" in note for note in report["notes"])
    assert "run 2 of 2: before write store/part-1" in done.stderr
    assert ET.parse(junit).getroot().attrib["failures"] == "2"
    assert {each.name for each in out.iterdir()} >= {*("report.txt", "report.json", "badge.svg", "weakest.svg", "runs")}
    certificate = (out / "certificate.html").read_text()
    assert "not exactly-once, at best at-most-once</p>" in certificate


@pytest.mark.slow
def test_the_table_of_the_project_names_a_pipeline_too() -> None:
    Path("pyproject.toml").write_text(
        '[tool.labkit.crashtest]\ncommand = "sh right_move.sh"\nreader = "rows.py:read_parts"\n'
        'expected = "rows.py:expected"\nwatch = ["store", "input"]\nexpect = "exactly-once"\n'
    )
    done = run([*words("x")[:4], "--only", "rename store/part-1 #1", "--json"])
    assert done.returncode == 2, done.stderr
    assert json.loads(done.stdout)["claim"] == {"strength": "sampled", "at_best": "exactly-once"}


def alive(mark: str) -> list[int]:
    """Processes whose command line or folder names this test's folder."""
    found = []
    for process in psutil.process_iter():
        try:
            if mark in process.environ().get("PWD", "") or mark in process.cwd():
                found.append(process.pid)
        except psutil.Error:
            continue
    return [pid for pid in found if pid != os.getpid()]


def kill_at_a_moment(folder: Path, seconds: float) -> None:
    """Starts a test of a pipeline in the folder, and kills the tester alone after so many seconds of it."""
    place = folder / "temporary"
    place.mkdir(exist_ok=True)
    tester = subprocess.Popen(
        sample("wrong_endless", "--limit", "30"),
        cwd=folder,
        env=os.environ | {"PWD": str(folder), "TMPDIR": str(place)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    tester.stderr.readline()  # the first run begins
    time.sleep(seconds)  # the moment is what is tried here
    os.kill(tester.pid, signal.SIGKILL)
    tester.wait()
    tester.stderr.close()
    assert len(list(place.iterdir())) <= 2  # its own; those of testers before it are gone
    until(lambda: alive(str(folder)) == [], f"nothing left after {seconds} s", 20)


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGTERM, signal.SIGINT])
def test_nothing_is_left_of_a_test_that_is_stopped(tmp_path: Path, number: signal.Signals) -> None:
    place = tmp_path / "temporary"
    place.mkdir()
    usual = signal.signal(number, signal.SIG_DFL)  # the command would inherit that nohup has SIGHUP ignored
    try:
        tester = subprocess.Popen(
            sample("wrong_endless"),
            env=os.environ | {"TMPDIR": str(place)},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
    finally:
        signal.signal(number, usual)
    tester.stderr.readline()  # the first run begins
    assert list(place.iterdir())
    tester.send_signal(number)
    _, message = tester.communicate(timeout=60)
    assert tester.returncode == 128 + number, message
    assert list(place.iterdir()) == []


@pytest.mark.slow
def test_a_test_that_is_stopped_reports_what_it_has_found() -> None:
    """The runs that had ended count, the rest is unknown, and nothing is exactly-once."""
    command = sample("right_one_transaction", "--out", "out", "--junit", "found.xml")
    tester = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    ended = 0
    while ended < 4:
        ended += "nothing wrong: " in tester.stderr.readline()
    tester.send_signal(signal.SIGINT)
    text, message = tester.communicate(timeout=60)
    assert tester.returncode == 128 + signal.SIGINT
    assert message.splitlines()[-1] == "labkit: stopped; nothing is left running."
    report = json.loads(Path("out", "report.json").read_text())
    assert (report["claim"]["strength"], report["guarantee"]) == ("unknown", "unknown")
    assert report["coverage"]["hit"] == report["coverage"]["planned"] >= 3
    assert "stopped: the test was stopped after" in text
    [stopped] = [each for each in ET.parse("found.xml").iter("testcase") if "stopped" in each.attrib["name"]]
    assert [each.tag for each in stopped] == ["error"]


@pytest.mark.slow
def test_the_printed_command_repeats_the_run_from_any_folder(tmp_path: Path) -> None:
    done = run(sample("wrong_append", "--only", "exit"))
    [line] = [each for each in done.stdout.splitlines() if each.startswith("repeat ")]
    elsewhere = tmp_path / "else where"
    elsewhere.mkdir()
    command = line.removeprefix("repeat").strip().replace("labkit", f"{sys.executable} -m labkit", 1)
    again = subprocess.run(["/bin/sh", "-c", command], cwd=elsewhere, capture_output=True, text=True, check=False)
    assert again.returncode == done.returncode
    assert "at-least-once" in again.stdout
    assert list(elsewhere.iterdir()) == []


@pytest.mark.slow
@pytest.mark.parametrize("seed", variant_but([0], range(4)))
def test_nothing_is_left_of_a_test_that_is_killed_at_a_random_moment(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    for _ in range(5):
        kill_at_a_moment(tmp_path / "job", chance.uniform(0, 9))
    place = tmp_path / "job" / "temporary"
    with durable.own_folder(place, FOLDERS) as own:
        assert [*place.iterdir()] == [own]


@pytest.mark.slow
def test_pytest_has_a_test_for_each_place() -> None:
    Path("pyproject.toml").write_text(
        '[tool.labkit.crashtest]\ncommand = "sh wrong_recovery_log.sh"\nreader = "rows.py:read_all"\n'
        'expected = "rows.py:expected"\nwatch = ["store", "input"]\n'
    )
    words = ["-p", "labkit.crashtest.plugin", "--crashtest", "--crashtest-quick"]
    done = run(
        [
            *(sys.executable, "-m", "pytest", "-p", "no:cacheprovider"),
            *("-c", "pyproject.toml", *words, "--junit-xml=junit.xml"),
        ]
    )
    assert done.returncode == pytest.ExitCode.TESTS_FAILED
    cases = {case.attrib["name"]: case.find("failure") is not None for case in ET.parse("junit.xml").iter("testcase")}
    assert cases["crashtest[write store/all.txt #2]"]
    assert not cases["crashtest[healthy]"]
    assert not cases["crashtest[create store/all.txt #1]"]
    assert "crashtest[write store/progress #2]" not in cases  # it looks like a log, so it comes last
    assert cases["crashtest[second-crashes]"]
    assert cases["crashtest[guarantee]"]
    assert (
        "sh wrong_recovery_log.sh: not exactly-once, at best at-least-once; "
        in done.stdout.split("= labkit crashtest =")[1]
    )


@pytest.mark.slow
def test_with_pytest_a_test_is_complete_only_if_no_run_was_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "small"
    (place / "store").mkdir(parents=True)
    (place / "pyproject.toml").write_text(
        "[tool.labkit.crashtest]\ncommand = 'seq 3 > store/.new; mv store/.new store/rows'\nwatch = ['store']\n"
        "read_command = 'cat store/rows 2>/dev/null || true'\nreset = 'rm -f store/* store/.new'\n"
        "expect = 'exactly-once'\n"
    )
    monkeypatch.chdir(place)
    every = [sys.executable, "-m", "pytest", "-c", "pyproject.toml", "-p", "labkit.crashtest.plugin", "--crashtest"]
    done = run(every)
    assert done.returncode == pytest.ExitCode.OK
    assert ": exactly-once; " in done.stdout
    done = run([*every, "-k", "not second-crashes"])
    assert done.returncode == pytest.ExitCode.TESTS_FAILED
    assert "expected exactly-once, and the test says: not refuted (" in done.stdout


@pytest.mark.slow
def test_a_dry_test_lists_the_points_and_their_lines() -> None:
    done = run(sample("right_one_transaction", "--dry"))
    assert done.returncode == 0
    listed = [line.split("  ", 1) for line in done.stdout.splitlines()]
    assert [name for name, *_ in listed[-3:]] == ["exit", "later", "two_instances"]
    named = {name: line.strip() for name, *rest in listed for line in rest}
    assert named["unlink store/rows.db-journal #3"].startswith("right_one_transaction.py:")
    assert "run 2 of" not in done.stderr
    done = run(sample("right_one_transaction", "--dry", "--json"))
    ids = [each["id"] for each in json.loads(done.stdout)]
    assert ids[-3] == "exit"
    done = run(sample("right_one_transaction", "--dry", "--json", "--quick"))
    few = [each["id"] for each in json.loads(done.stdout)]
    assert few == [each for each in ids if each in few]
    assert len(few) == 12 + 2, "the points that a quick test tries, a later start and two instances"


@pytest.mark.slow
def test_a_point_may_be_asked_for_by_its_line() -> None:
    source = Path("right_one_transaction.py").read_text().splitlines()
    line = next(number for number, text in enumerate(source, start=1) if "INSERT INTO done" in text)
    done = run(sample("right_one_transaction", "--only", f"right_one_transaction.py:{line}", "--json"))
    tried = [each["id"] for each in json.loads(done.stdout)["runs"] if each["group"] == "crash"]
    assert len(tried) == 1
    assert "rows.db" in tried[0]
    assert run(sample("right_one_transaction", "--only", "right_one_transaction.py:1")).returncode == 64
