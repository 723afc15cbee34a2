"""Measure how long the first class takes on an empty machine: a fresh clone, an empty home, the seconds of every step.

    python3 tools/first_class.py [--java] [--keep]

Clones this checkout, sets it up as the README says, writes the course and opens its first notebook, has a class hand in
by Moodle, grades that, and checks the files for Moodle. Exit 1 if a step fails, a student has other points than the
answers deserve, a process is left running, or everything takes longer than `MOST`. Uncommitted changes are left out.
Standard library only: it runs before anything is installed.
"""

import argparse
import csv
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import uuid
import zipfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MOST = 600.0
"""The seconds that docs/first_class.md promises."""
LEARNERS = 25
NOTEBOOK = "05_two_phase_commit"
EXERCISE = "05-recovery"
WRONG = "tests/grading/wrong/05-recovery/yes_means_commit.py"
DESERVED = {"right": 8, "wrong": 4, "as released": 0}
"""By kind of submission, the points that it deserves; `wrong` has a right and a wrong answer of 4 points each."""
MARK = "LABKIT_FIRST_CLASS"
KEPT = ("PATH", "LANG", "TERM", "USER", "PIP_*", "SSL_*", "*_proxy", "*_PROXY")
"""The environment variables that an empty machine also has: how to reach packages, but no settings of this user."""


class Wrong(Exception):
    """The error that a step failed; the message gives the reason."""


def main() -> int:
    """Run all steps, print a line for each, and return the exit code."""
    options = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    options.add_argument("--java", action="store_true", help="as on a machine that has no Java")
    options.add_argument("--keep", action="store_true", help="keep all files")
    asked = options.parse_args()
    place = Path(tempfile.mkdtemp(prefix="labkit-first-class-"))
    for name in ("home", "tmp"):
        (place / name).mkdir()
    there = environment(place, without_java=asked.java)
    begun, failed = time.monotonic(), ""
    try:
        for title, step in steps(place, there):
            before, used = time.monotonic(), processor()
            step()
            line(time.monotonic() - before, processor() - used, title)
        if left := survivors(there[MARK]):
            failed = f"still running: {', '.join(left)}"
    except Wrong as error:
        failed = str(error)
    finally:
        if not asked.keep:
            shutil.rmtree(place, ignore_errors=True)
    seconds = time.monotonic() - begun
    load = os.getloadavg()[0]
    line(seconds, processor(), f"in all, on {os.cpu_count()} cores at load {load:.1f}")
    if not failed and seconds > MOST:
        failed = f"it took longer than {MOST:.0f} s"
    if failed:
        print(f"failed: {failed}")
    if asked.keep:
        print(f"kept: {place}")
    return 1 if failed else 0


def line(seconds: float, used: float, title: str) -> None:
    """Print how long a step took: by the clock, and in processor seconds, which do not depend on other programs."""
    print(f"{seconds:7.1f} s {used:7.1f} s of processors  {title}", flush=True)


def processor() -> float:
    """Return the processor seconds of all ended child processes."""
    used = os.times()
    return used.children_user + used.children_system


def steps(place: Path, there: Mapping[str, str]) -> Sequence[tuple[str, Callable[[], None]]]:
    """Return the steps in order, each a title and a function that raises `Wrong` on failure."""
    clone, labkit = place / "clone", ".venv/bin/labkit"
    course, notes = place / "course", place / "notes"

    def do(*command: str | Path, at: Path = clone) -> Callable[[], None]:
        return lambda: run([str(word) for word in command], at, there)

    grade: list[str | Path] = [labkit, "grade", place / "moodle.zip"]
    grade += ["--out", place / "grades", "--deadline", "2027-01-31T18:00"]
    first = course / "notebooks" / "00_start.ipynb"
    return (
        ("git clone", do("git", "clone", "-q", str(ROOT), str(clone), at=place)),
        ("make demo: install, and crash a real Spark job", do("make", "demo")),
        ("labkit course", do(labkit, "course", course)),
        ("00_start from end to end", do(".venv/bin/jupyter", "execute", first)),
        ("labkit release --instructor", do(labkit, "release", "--instructor", notes)),
        (f"{LEARNERS} learners hand in", lambda: hand_in(place)),
        (f"labkit grade, {LEARNERS} submissions", do(*grade)),
        ("the right points and pages are exported", lambda: exported(place)),
    )


def environment(place: Path, *, without_java: bool) -> dict[str, str]:
    """Return the environment of an empty machine; `without_java` leaves out the folders of PATH that contain Java."""
    kept = {name: value for name, value in os.environ.items() if any(Path(name).match(pattern) for pattern in KEPT)}
    if without_java:
        folders = kept["PATH"].split(os.pathsep)
        kept["PATH"] = os.pathsep.join(_without_java(folders, place / "bin"))
    kept |= {"HOME": str(place / "home"), "TMPDIR": str(place / "tmp")}
    return kept | {MARK: uuid.uuid4().hex}


def _without_java(folders: Sequence[str], links: Path) -> list[str]:
    """Return the folders, but replace one that contains Java by `links`, a folder with links to its other programs."""
    links.mkdir()
    results = []
    for folder in map(Path, folders):
        if not (folder / "java").exists():
            results.append(str(folder))
            continue
        for program in folder.iterdir():
            if program.name not in {"java", "javac", "jshell", "keytool"}:
                with suppress(FileExistsError):
                    (links / program.name).symlink_to(program)
        results.append(str(links))
    return results


def run(command: Sequence[str], at: Path, there: Mapping[str, str]) -> None:
    """Run a command to its end in the folder `at`. Raises `Wrong` with its last lines if it fails."""
    done = subprocess.run(
        command,
        cwd=at,
        env=dict(there),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if done.returncode:
        last = "\n".join(done.stdout.splitlines()[-15:])
        raise Wrong(f"{' '.join(command)} ended with {done.returncode}:\n{last}")


def kind_of(number: int) -> str:
    """Return the kind of submission of the learner with this number, a key of `DESERVED`."""
    return list(DESERVED)[number % len(DESERVED)]


def hand_in(place: Path) -> None:
    """Write the class's submissions as a ZIP download of Moodle. Two learners share each name."""
    texts = {
        "right": _text(place / "notes"),
        "wrong": _with(place / "notes", (place / "clone" / WRONG).read_text("utf-8")),
        "as released": _text(place / "course"),
    }
    with zipfile.ZipFile(place / "moodle.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        for number in range(LEARNERS):
            folder = f"Max Muster {number // 2}_{1001 + number}_assignsubmission_file_"
            notebook = json.loads(texts[kind_of(number)])
            notebook["metadata"]["number"] = number
            entry = zipfile.ZipInfo(f"{folder}/{NOTEBOOK}.ipynb", (2027, 1, 30, 12, 0, 0))
            archive.writestr(entry, json.dumps(notebook))


def _text(folder: Path) -> str:
    return (folder / "notebooks" / f"{NOTEBOOK}.ipynb").read_text("utf-8")


def _with(folder: Path, answer: str) -> str:
    """Return the JSON of the instructor's notebook with another answer to `EXERCISE`."""
    notebook, mark = json.loads(_text(folder)), f"# exercise {EXERCISE}\n"
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code" and "".join(cell["source"]).startswith(mark):
            cell["source"] = (mark + answer).splitlines(keepends=True)
    return json.dumps(notebook)


def exported(place: Path) -> None:
    """Raise `Wrong` if points or pages exported for Moodle are not those that the submissions deserve."""
    folder = place / "grades" / "exports"
    with (folder / "moodle.csv").open(encoding="utf-8-sig", newline="") as file:
        given = {row["Identifier"]: float(row["Grade"]) for row in csv.DictReader(file)}
    deserved = {f"Participant {1001 + number}": float(DESERVED[kind_of(number)]) for number in range(LEARNERS)}
    if given != deserved:
        raise Wrong(f"moodle.csv has the points {given}, but {deserved} are deserved")
    with zipfile.ZipFile(folder / "moodle-feedback.zip") as archive:
        pages = [name for name in archive.namelist() if name.endswith("feedback.html")]
    if len(pages) != LEARNERS:
        raise Wrong(f"moodle-feedback.zip has {len(pages)} pages, but there are {LEARNERS} learners")


def survivors(mark: str) -> list[str]:
    """Return the processes started by this script that still run after five seconds; empty except on Linux."""
    deadline = time.monotonic() + 5
    while (result := list(_marked(mark.encode()))) and time.monotonic() < deadline:
        time.sleep(0.2)
    return result


def _marked(mark: bytes) -> Sequence[str]:
    results = []
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if mark in (process / "environ").read_bytes():
                words = (process / "cmdline").read_bytes().split(b"\0")
                results.append(f"{process.name} {words[0].decode(errors='replace')}")
    return results


if __name__ == "__main__":
    sys.exit(main())
