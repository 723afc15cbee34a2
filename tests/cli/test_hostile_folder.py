"""No verb runs a file of the folder in which somebody starts it, unless it is meant to: that folder may be a student's.

The folder holds modules with the names of modules that the lab imports. Each leaves a mark when it is imported.
"""

import ast
import os
import shlex
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

import msgspec
import pytest
import submitted

from labkit.cli.app import VERBS
from labkit.core.errors import InvalidInput
from labkit.host.processes.own_python import check_python_path

ROOT = Path(__file__).parents[2]
SCRIPT = Path(sys.executable).with_name("labkit")
DECOYS = (
    *("json", "msgspec", "papermill", "sitecustomize", "usercustomize", "typer", "psutil", "pathlib", "subprocess"),
    *("socket", "tempfile", "pyspark", "pandas", "jupyterlab", "jupyter_config", "jupyter_server_config", "IPython"),
)
WORDS = {
    "doctor": "",
    "services": "status",
    "grade": ". --out {out} --course {course}",
    "release": "{out}",
    "crashtest": "--command 'echo 1 > written' --reader {reader}:read --quick",
    "bisect": "--package tinydb --command '{{python}} job.py' --read-command 'cat written'",
    "compare": "{report}",
    "effects": "--command 'echo 1 > written'",
    "timeouts": "",
    "orders": "",
    "points": "",
    "run": "--out {out}",
    "demo": "--out {out}",
    "matrix": "--engine spark --sink append --store files --point sink.after_pre_commit",
    "explore": "delivery --cores 2",
    "replay": "",
    "export": "jump_back --as mermaid",
    "check": "01_guarantees.ipynb",
    "course": "{out}",
    "lab": ". --no-browser --port {port}",
}
"""Arguments for each verb with which it goes as far as its child processes."""
QUICK = {"check", "grade", "explore", "doctor"}
"""Verbs for files of strangers, a search with processes of its own, and one that looks at the machine."""
OFTEN_TRIED = {"matrix", "run", "demo", "release"}
"""Verbs that start Spark or real runs, as `crashtest` does and `grade` does."""

REPORT = """
{"subject": "sh job.sh", "guarantee": "exactly-once", "claim": {"strength": "complete", "at_best": "exactly-once"},
 "axes": {}, "conditions": {}, "coverage": {"found": 1, "tried": 1, "directed": 0, "directed_tried": 0}, "runs": [],
 "command": "labkit crashtest"}
"""
READER = """
from pathlib import Path

def read():
    return [1] if Path("written").exists() else []

def reset():
    Path("written").unlink(missing_ok=True)
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A student's folder: a notebook of the lab, and decoys."""
    place = tmp_path / "student"
    place.mkdir()
    shutil.copy(ROOT / "notebooks" / "01_guarantees.ipynb", place)
    (tmp_path / "reader.py").write_text(READER)
    (tmp_path / "report.json").write_text(REPORT)
    for name in DECOYS:
        (place / f"{name}.py").write_text(_marking(tmp_path / "marks", name))
    (place / "labkit").mkdir()
    (place / "labkit" / "__init__.py").write_text(_marking(tmp_path / "marks", "labkit"))
    return place


def _marking(marks: Path, name: str) -> str:
    marks.mkdir(exist_ok=True)
    return f"import os\nos.close(os.open({str(marks / name)!r}, os.O_CREAT | os.O_WRONLY))\n"


def _marks(folder: Path) -> set[str]:
    return {path.name for path in (folder.parent / "marks").iterdir()}


def _words(verb: str, folder: Path, port: int = 0) -> list[str]:
    beside = folder.parent
    filled = {"out": beside / "out", "reader": beside / "reader.py", "report": beside / "report.json", "port": port}
    return [verb, *(word.format(**filled, course=submitted.COURSE) for word in shlex.split(WORDS[verb]))]


def _run(command: list[str], folder: Path, **more: str) -> subprocess.CompletedProcess[str]:
    cache = {"XDG_CACHE_HOME": os.environ.get("XDG_CACHE_HOME", str(Path.home() / ".cache"))}
    environment = {**os.environ, **cache, **more}
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=600, check=False
    )


@pytest.mark.parametrize(
    "verb",
    [
        pytest.param(
            verb, marks=[*[pytest.mark.slow] * (verb not in QUICK), *[pytest.mark.variant] * (verb in OFTEN_TRIED)]
        )
        for verb in VERBS
    ],
)
def test_no_verb_runs_a_file_of_its_working_folder(verb: str, folder: Path) -> None:
    if verb == "lab":
        _open_lab(folder)
    else:
        # No index answers, so that a bisection ends once it has started pip.
        done = _run([str(SCRIPT), *_words(verb, folder)], folder, PIP_INDEX_URL="http://127.0.0.1:1", PIP_RETRIES="0")
        assert done.returncode in {0, 1, 2, 69}, done.stderr
        assert "labkit itself failed" not in done.stderr
    assert _marks(folder) == set()


def _open_lab(folder: Path) -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port = listener.getsockname()[1]
    server = subprocess.Popen(
        [SCRIPT, *_words("lab", folder, port)], cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        end = time.monotonic() + 120
        while True:
            assert server.poll() is None
            assert time.monotonic() < end
            try:
                assert b"version" in urlopen(f"http://127.0.0.1:{port}/api", timeout=10).read()
                break
            except URLError:
                time.sleep(0.2)
    finally:
        server.terminate()
        server.wait(30)


@pytest.mark.parametrize(
    "words",
    [["-m", "labkit"], *(pytest.param(each, marks=pytest.mark.slow) for each in (["-Bm", "labkit"], ["-mlabkit"]))],
)
def test_the_module_runs_no_file_of_its_working_folder_but_a_labkit(words: list[str], folder: Path) -> None:
    shutil.rmtree(folder / "labkit")
    done = _run([sys.executable, *words, *_words("check", folder)], folder)
    assert done.returncode == 1, done.stderr
    assert "not attempted" in done.stdout
    assert _marks(folder) == set()


def test_a_program_that_imports_labkit_keeps_its_folder(tmp_path: Path) -> None:
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "__init__.py").write_text("import labkit\n")
    (tmp_path / "own" / "__main__.py").write_text("import beside\n")
    (tmp_path / "beside.py").write_text("print('found')\n")
    done = _run([sys.executable, "-m", "own", "-m", "labkit"], tmp_path)
    assert done.stdout == "found\n", done.stderr


FORGING = """
import importlib.util, os, sys, sysconfig, threading, time

spec = importlib.util.spec_from_file_location("json", os.path.join(sysconfig.get_path("stdlib"), "json", "__init__.py"))
sys.modules["json"] = importlib.util.module_from_spec(spec)
spec.loader.exec_module(sys.modules["json"])


def forge():
    main = sys.modules["__main__"]
    while not hasattr(main, "settle"):
        time.sleep(0.001)
    honest = main.settle

    def settle(record, *others):
        honest(record, *others)
        for item in record.items:
            item.points = 2

    main.settle = settle


threading.Thread(target=forge, daemon=True).start()
"""
"""What a student writes into `json.py` to be paid in full: it gives the grader's worker another ending."""


def test_a_wrong_notebook_gets_no_points_for_a_module_beside_it(tmp_path: Path) -> None:
    wrong = submitted.answers(
        double=submitted.WRONG["01-double"], dedup=submitted.WRONG["01-dedup"], setting=submitted.WRONG["01-setting"]
    )
    folder, out = submitted.hand_in(tmp_path / "in", "ada", wrong).parent, tmp_path / "out"
    (folder / "json.py").write_text(FORGING)
    done = _run([str(SCRIPT), "grade", ".", "--out", str(out), "--course", str(submitted.COURSE)], folder)
    assert done.returncode == 0, done.stderr
    [record] = (out / "records").glob("*--01_sample.json")
    items = msgspec.json.decode(record.read_bytes())["items"]
    assert [item["points"] for item in items if item["name"] in submitted.JUDGED] == [0, 0, 0]


@pytest.mark.parametrize("entries", ["", ".", "src", f"{os.pathsep}/lab", f"/lab{os.pathsep}"])
def test_a_python_path_with_the_working_folder_is_refused(entries: str, folder: Path) -> None:
    if entries:
        with pytest.raises(InvalidInput, match="PYTHONPATH"):
            check_python_path({"PYTHONPATH": entries})
    check_python_path({"PYTHONPATH": "/lab"})
    check_python_path({})


@pytest.mark.parametrize("verb", ["grade", "check"])
def test_verbs_for_strangers_files_refuse_such_a_path(verb: str, tmp_path: Path) -> None:
    done = _run([str(SCRIPT), *_words(verb, tmp_path)], tmp_path, PYTHONPATH=f"{os.pathsep}{ROOT}")
    assert (done.returncode, done.stdout) == (64, "")
    assert "PYTHONPATH" in done.stderr


WORKERS = """
import sys
from pathlib import Path
from labkit.spark.session import session_for_a_block

scratch = Path(sys.argv[1])
with (scratch / "log").open("wb") as log, session_for_a_block("local[1]", scratch, 1, log, sys.argv[2]) as spark:
    print(spark.sparkContext.parallelize([1]).mapPartitions(lambda _: sys.path).collect())
"""


@pytest.mark.slow
@pytest.mark.parametrize(("profile", "fast"), [("small", "zygote"), ("bulk", "archive")])
@pytest.mark.usefixtures("java")
def test_workers_of_spark_import_nothing_from_the_folder_of_their_driver(
    profile: str, fast: str, folder: Path, tmp_path: Path
) -> None:
    """The slow tests start a zygote in such a folder too, by the verb `demo`."""
    (tmp_path / "scratch").mkdir()
    words = ["-P", "-c", WORKERS, str(tmp_path / "scratch"), profile]
    done = _run([sys.executable, *words], folder, LABKIT_FAST=fast)
    assert done.returncode == 0, done.stderr
    assert str(folder) not in done.stdout
    assert _marks(folder) == set()


PROGRAM = ROOT / "labkit" / "host" / "processes" / "own_python.py"
MEANT_FOR_OTHERS = {
    "host/doctor.py": "names the interpreter in a message",
    "host/environments.py": "names the interpreter for uv, which makes environments of it",
    "spark/fast/zygote.py": "names the interpreter for the launcher, which adds -P",
    "spark/jvm.py": "the interpreter of a session in a notebook, whose workers run the learner's code",
    "spark/session.py": "PySpark's own settings, to compare with; its driver works in a folder of its own",
    "teach/engine_kills.py": "a sample pipeline, by its path, with its parts beside it",
    "grading/sandbox/root_layout.py": "follows the links to the interpreter, to show them to a sandbox",
    "grading/sandbox/sandbox.py": "names the folder of the interpreter for the sandbox's PATH",
}
"""The modules that name the interpreter without `own_python`, each with its reason."""


def test_every_other_module_starts_python_by_one_function() -> None:
    named = set()
    for path in {*(ROOT / "labkit").rglob("*.py")} - {PROGRAM}:
        text = path.read_text()
        for node in ast.walk(ast.parse(text)) if ".executable" in text else ():
            if isinstance(node, ast.Attribute) and node.attr == "executable":
                named.add(path.relative_to(ROOT / "labkit").as_posix())
    assert named == set(MEANT_FOR_OTHERS)
