"""Test the course's files for devcontainer, Binder and GitHub, by running their commands in an empty home.

    .venv/bin/python tools/places.py [--python python3.12] [--keep]

Writes the course with a wheel of this checkout in it. Then, with a Python of the version that the files name and no
Java, runs `postCreateCommand` of the devcontainer, which is what Binder does with `requirements.txt`, and every step of
the workflow; a solved notebook must pass, released ones must not, and a real Spark job must be killed and recover. No
image is built and nothing of GitHub, Binder or an editor is started, so their own part remains untested. Uncommitted
changes are left out.
"""

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import yaml
from first_class import MARK, ROOT, Wrong, environment, line, processor, run, survivors

SOLVED = "05_two_phase_commit"
LABKIT = ROOT / ".venv" / "bin" / "labkit"


def main() -> int:
    """Run all steps, print a line for each, and return the exit code."""
    options = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    options.add_argument("--python", help="default: the one that the course names")
    options.add_argument("--keep", action="store_true", help="keep all files")
    asked = options.parse_args()
    place = Path(tempfile.mkdtemp(prefix="labkit-places-"))
    for name in ("home", "tmp"):
        (place / name).mkdir()
    there = environment(place, without_java=True)
    failed = ""
    try:
        try_all(place, there, asked.python)
        if left := survivors(there[MARK]):
            failed = f"still running: {', '.join(left)}"
    except Wrong as error:
        failed = str(error)
    finally:
        if not asked.keep:
            shutil.rmtree(place, ignore_errors=True)
    print(f"failed: {failed}" if failed else "every command did what it should")
    return 1 if failed else 0


@contextmanager
def step(title: str) -> Iterator[None]:
    """Print the title of a step and how long its `with` block took."""
    begun, used = time.monotonic(), processor()
    yield
    line(time.monotonic() - begun, processor() - used, title)


def try_all(place: Path, there: dict[str, str], python: str | None) -> None:
    """Run every step. Raises `Wrong` if one fails."""
    course = place / "course"
    with step("the course, with a wheel in it"):
        wheel = build(place, there)
        run([str(LABKIT), "course", str(course), "--package", f"./{wheel.name}"], place, there)
        shutil.copy(wheel, course)
        notes = place / "notes"
        run([str(LABKIT), "release", "--instructor", str(notes)], place, there)
    version = (course / "runtime.txt").read_text().strip().removeprefix("python-")
    interpreter = shutil.which(python or f"python{version}", path=there["PATH"])
    if interpreter is None:
        raise Wrong(f"there is no python{version} here; name one with --python")
    with step(f"an environment of {interpreter}"):
        run([interpreter, "-m", "venv", str(place / "venv")], place, there)
    there["PATH"] = f"{place / 'venv' / 'bin'}:{there['PATH']}"
    container = json.loads((course / ".devcontainer/devcontainer.json").read_text())
    install = container["postCreateCommand"]
    with step(f"devcontainer: {install}"):
        run(["sh", "-c", install], course, there)
    with step("labkit doctor: everything that is required is there"):
        run(["labkit", "doctor"], course, there)
    workflow = yaml.safe_load((course / ".github/workflows/check.yml").read_text())
    [job] = workflow["jobs"].values()
    *before, last = [each["run"] for each in job["steps"] if "run" in each]
    for command in before:
        with step(f"workflow: {command}"):
            run(["sh", "-c", command], course, there)
    with step(f"workflow: {last}: fails, for nobody has answered"):
        nobody_passes(last, course, there)
    notebook = f"notebooks/{SOLVED}.ipynb"
    shutil.copy(notes / notebook, course / notebook)
    with step(f"labkit check of a solved {SOLVED}: passes"):
        run(["labkit", "check", notebook], course, there)
    with step("labkit run: a real crash, with the Java that came along"):
        crash = ["--sink", "two_phase", "--crash", "sink.after_pre_commit@0"]
        run(["labkit", "run", *crash, "--expect", "exactly-once"], course, there)


def build(place: Path, there: Mapping[str, str]) -> Path:
    """Build a wheel of the committed state, and return its path."""
    run(["git", "clone", "-q", str(ROOT), "clone"], place, there)
    command = ["-m", "hatchling", "build", "-t", "wheel", "-d", str(place / "wheel")]
    run([sys.executable, *command], place / "clone", there)
    [wheel] = (place / "wheel").glob("*.whl")
    return wheel


def nobody_passes(command: str, course: Path, there: Mapping[str, str]) -> None:
    """Raise `Wrong` unless the command ends with exit code 1 and its last line says that no exercise passes."""
    done = subprocess.run(
        ["sh", "-c", command], cwd=course, env=dict(there), capture_output=True, text=True, check=False
    )
    last_line = done.stdout.splitlines()[-1:] or done.stderr.splitlines()[-1:]
    if done.returncode != 1 or not "".join(last_line).startswith("0 of "):
        raise Wrong(f"{command} should end with 1 and '0 of', but ended with {done.returncode} and {last_line}")


if __name__ == "__main__":
    sys.exit(main())
