"""The interpreter that Spark starts: forks what is named, is plain Python for the rest, and ends with its driver."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from labkit.host.java import Java
from labkit.spark import jvm, session
from labkit.spark.fast import zygote

FORKED = "import os, sys; print(os.getppid(), os.environ['WORD'], sys.stdin.read()); sys.exit(3)"
WHERE = "import os; print(os.getcwd())"
DRAWN = "import sys, random, numpy; print(sys.argv[1:], hash('hello'), random.random(), numpy.random.random())"
PATIENCE = 120.0


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, str]]:
    """A zygote of the test's own, asked for a module that says who started it."""
    (tmp_path / "told.py").write_text(FORKED)
    (tmp_path / "drawn.py").write_text(DRAWN)
    (tmp_path / "where.py").write_text(WHERE)
    monkeypatch.setattr(zygote, "FORKED", ("told", "drawn", "where"))
    monkeypatch.delenv("PYTHONHASHSEED", raising=False)
    monkeypatch.setenv("PYTHONPATH", f"{Path(zygote.__file__).parents[2]}{os.pathsep}{tmp_path}")
    yield zygote.interpreter(tmp_path)
    for process in zygote._kept:
        process.communicate()
    zygote._kept.clear()


def asked(settings: dict[str, str], *words: str) -> list[str]:
    command = [settings["PYSPARK_PYTHON"], *words]
    done = subprocess.run(
        command,
        env={**os.environ, **settings, "WORD": "passed on"},
        input="read",
        text=True,
        capture_output=True,
        timeout=PATIENCE,
        check=False,
    )
    assert done.stderr == ""
    return done.stdout.split(maxsplit=1)


def test_what_is_named_is_forked_with_environment_and_streams(settings: dict[str, str]):
    parent, rest = asked(settings, "-m", "told")
    assert int(parent) == zygote._kept[0].pid
    assert rest.strip() == "passed on read"


def test_what_is_forked_works_in_the_folder_of_whoever_asked(
    settings: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """As a worker that plain Spark starts: the driver's folder, so that relative paths mean the same in both."""
    here = tmp_path / "job"
    here.mkdir()
    monkeypatch.chdir(here)
    assert asked(settings, "-m", "where") == [str(here)]


def test_hashes_are_as_spark_sets_them_and_random_numbers_are_not_those_of_another_process(settings: dict[str, str]):
    draw = "import numpy; print(hash('hello'))"
    seeded = {**os.environ, "PYTHONHASHSEED": "0"}
    expected = subprocess.run([sys.executable, "-c", draw], env=seeded, text=True, capture_output=True, check=True)
    first, second = (asked(settings, "-m", "drawn", "word") for _ in range(2))
    words, (hashed, drawn, drawn_by_numpy) = first[0], first[1].split()
    assert words == "['word']"
    assert hashed == expected.stdout.strip() == second[1].split()[0]
    assert drawn != second[1].split()[1]
    assert drawn_by_numpy != second[1].split()[2]


def test_everything_else_is_plain_python(settings: dict[str, str]):
    assert asked(settings, "-c", "import sys; print('as', sys.executable)") == ["as", f"{sys.executable}\n"]


def test_without_its_zygote_it_is_plain_python_too(settings: dict[str, str]):
    zygote._kept[0].kill()
    zygote._kept[0].wait()
    parent, rest = asked(settings, "-m", "told")
    assert int(parent) == os.getpid()
    assert rest.strip() == "passed on read"


def test_it_ends_when_the_driver_is_gone(settings: dict[str, str]):
    pipe = zygote._kept[0].stdin
    pipe.close()
    assert zygote._kept[0].wait(PATIENCE) == 0


def test_what_was_forked_ends_with_the_session(settings: dict[str, str]):
    assert os.getsid(zygote._kept[0].pid) == os.getsid(0)


def test_a_name_too_long_for_a_socket_is_no_obstacle(tmp_path: Path):
    deep = tmp_path / ("long" * 20) / "scratch"
    deep.mkdir(parents=True)
    assert zygote.interpreter(deep) == {}
    assert zygote._kept == []


@pytest.mark.parametrize(
    ("profile", "master", "forks"),
    [("small", "local[1]", True), ("bulk", "local[2]", False), ("small", "spark://127.0.0.1:1", False)],
)
def test_only_small_runs_on_this_machine_get_one(
    profile: str, master: str, forks: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    asked_for: list[Path] = []
    given: list[object] = []
    monkeypatch.setattr(session, "find_java", lambda: Java(Path("/jdk/bin/java"), 17, "PATH", "17.0.15"))
    monkeypatch.setattr(jvm, "find_archive", lambda _: None)
    monkeypatch.setattr(session, "interpreter", lambda scratch: asked_for.append(scratch) or {"PYSPARK_PYTHON": "it"})
    monkeypatch.setattr(session, "start_jvm", lambda *_, python, apart: given.append(dict(python)))
    monkeypatch.setattr(session, "connect", lambda *rest: given.append(dict(rest[-1])))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "environ", dict(os.environ))
        session.start_session(master, tmp_path, 3, sys.stderr.buffer, profile)
    assert bool(asked_for) == forks
    alone = jvm.own_interpreter(tmp_path) if not master.startswith("spark:") else {}
    assert given == [{"PYSPARK_PYTHON": "it"} if forks else alone] * 2
