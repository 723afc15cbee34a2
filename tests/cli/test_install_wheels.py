"""Build both wheels, install each combination into a fresh environment of its own, and run its main verb there.

This needs a package index. What has been fetched is kept, so only the first environment waits for the large packages.
"""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

import pytest
from choosing import variant_but

from labkit import __version__
from labkit.host.syscalls.support import supported

ROOT = Path(__file__).parents[2]
UV = Path(sys.executable).with_name("uv")
MOST_DISTRIBUTIONS, MOST_BYTES = 16, 20_000_000
"""What the base may bring, labkit itself and no byte code among it."""

SUBMISSION = "05_two_phase_commit.ipynb"


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with both wheels."""
    folder = tmp_path_factory.mktemp("wheels")
    for source in (ROOT, ROOT / "packages" / "grading"):
        build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder]
        subprocess.run(build, cwd=source, check=True, capture_output=True)
    # PySpark is published as source only. pip has kept the wheel that it built for the tests' own environment.
    spark = f"pyspark=={version('pyspark')}"
    build = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation", "-w", folder, spark]
    subprocess.run(build, check=True, capture_output=True)
    return folder


class Installed:
    """A fresh environment, and a working folder for its verbs."""

    def __init__(self, folder: Path, wheels: Path) -> None:
        self.place, self.work, self.wheels = folder / "venv", folder / "work", wheels
        self.work.mkdir()
        subprocess.run([UV, "venv", "-q", "--python", sys.executable, self.place], check=True)
        lines = (ROOT / "requirements.lock").read_text().replace("\\\n", "").splitlines()
        self.locked = folder / "constraints.txt"
        self.locked.write_text("\n".join(line.partition("--hash")[0] for line in lines if not line.startswith("#")))

    def install(self, requirement: str) -> None:
        """Install a requirement in the versions of the lock."""
        # Else uv takes from its cache the wheel of the same name and version that an earlier run has built.
        anew = [word for name in ("labkit", "labkit-grading") for word in ("--refresh-package", name)]
        there = ["--python", self.place, "-c", self.locked, "--find-links", self.wheels]
        command = [UV, "pip", "install", "-q", *anew, *there, requirement]
        done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=self.work)
        assert done.returncode == 0, done.stderr[-2000:]

    def run(self, program: str, *words: str, code: int = 0) -> str:
        """Run a program of the environment outside of the checkout, and return what it printed."""
        clean = {name: each for name, each in os.environ.items() if not name.startswith(("PYTHON", "VIRTUAL_ENV"))}
        clean["PATH"] = f"{self.place / 'bin'}{os.pathsep}{clean['PATH']}"
        command = [self.place / "bin" / program, *words]
        done = subprocess.run(command, cwd=self.work, env=clean, capture_output=True, text=True, check=False)
        assert done.returncode == code, done.stdout[-1000:] + done.stderr[-2000:]
        return done.stdout + done.stderr

    def sizes(self) -> tuple[int, int]:
        """The number of distributions, and the bytes of their files, without byte code."""
        (packages,) = self.place.glob("lib/python*/site-packages")
        files = [path for path in packages.rglob("*") if path.is_file() and path.suffix != ".pyc"]
        return sum(path.name == "METADATA" for path in files), sum(path.stat().st_size for path in files)


def base(there: Installed) -> None:
    """A crash test of a pipeline; what needs an extra or the grader names it."""
    count, size = there.sizes()
    assert count <= MOST_DISTRIBUTIONS
    assert size <= MOST_BYTES
    assert __version__ in there.run("labkit", "--version")
    there.run("labkit", "explore", "two_phase_commit")
    assert "labkit[spark]" in there.run("labkit", "run", code=69)
    assert "labkit-grading" in there.run("labkit", "grade", ".", "--out", "grades", code=69)
    if not supported():
        (there.work / "job.sh").write_text("echo '{\"id\": 1}' > .out; mv .out out\n")
        words = ["--command", "sh job.sh", "--read-command", "cat out 2>/dev/null || true", "--reset", "rm -f out .out"]
        there.run("labkit", "crashtest", *words, "--quick", "--expect", "not-refuted")


def spark(there: Installed) -> None:
    """A run of the word count, killed and judged."""
    there.run("labkit", "run", "--sink", "append", "--crash", "sink.after_pre_commit@0", "--out", "run")
    assert "labkit[lab]" in there.run("labkit", "lab", str(ROOT / "notebooks"), code=69)


def lab(there: Installed) -> None:
    """The names of notebooks, all of them, and JupyterLab."""
    there.run("labkit", "course", "course")
    there.run("python", "-c", "from labkit import lab; [getattr(lab, name) for name in lab.__all__]")
    there.run("jupyter-lab", "--version")


def grading(there: Installed) -> None:
    """A submission without answers is graded."""
    there.run("labkit", "course", "course")
    handed_in = there.work / "submissions" / "ada" / SUBMISSION
    handed_in.parent.mkdir(parents=True)
    shutil.copyfile(there.work / "course" / "notebooks" / SUBMISSION, handed_in)
    words = ["--out", "grades", "--seed", "1", "--trust", "--json"]
    lines = there.run("labkit", "grade", "submissions", *words).strip().splitlines()
    counts = next(json.loads(line) for line in lines if line.startswith("{"))
    assert (counts["graded"], counts["not_graded"]) == (1, 0)


def everything(there: Installed) -> None:
    """All of that, and programs that run notebooks without a browser."""
    there.run("labkit", "run", "--sink", "append", "--crash", "sink.after_pre_commit@0", "--out", "run")
    lab(there)
    there.run("papermill", "--version")
    there.run("python", "-c", "import nbval")


COMBINATIONS: dict[str, Callable[[Installed], None]] = {
    "labkit": base,
    "labkit[spark]": spark,
    "labkit[lab]": lab,
    "labkit[all]": everything,
    "labkit-grading": grading,
}


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.parametrize(
    "requirement", variant_but(COMBINATIONS.keys() - {"labkit[spark]", "labkit[all]"}, COMBINATIONS)
)
def test_a_combination_can_be_installed_and_does_its_main_work(tmp_path: Path, wheels: Path, requirement: str) -> None:
    there = Installed(tmp_path, wheels)
    try:
        there.install(f"{requirement}=={__version__}")
        count, size = there.sizes()
        print(f"{requirement}: {count} distributions, {size / 1e6:.1f} MB")
        COMBINATIONS[requirement](there)
    finally:
        shutil.rmtree(there.place)  # pytest would keep a gigabyte
