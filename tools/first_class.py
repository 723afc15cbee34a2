"""How long the first class takes on an empty machine: a fresh clone, an empty home, every step with its seconds.

    python3 tools/first_class.py [--java] [--keep]

Clones this checkout, sets it up as the README says, writes the course and opens its first notebook, has a class hand in
by Moodle, grades that, and looks at what would be uploaded again. Exit 1 where a step fails, somebody has other points
than their answers deserve, something is left running, or everything takes longer than `MOST`. Uncommitted changes are
no part of it. Standard library only: it runs before anything is installed.
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
"""Seconds, which is what docs/first_class.md promises."""
LEARNERS = 25
NOTEBOOK = "05_two_phase_commit"
EXERCISE = "05-recovery"
WRONG = "tests/grading/wrong/05-recovery/yes_means_commit.py"
DESERVED = {"right": 8, "wrong": 4, "as released": 0}
"""Points of the notebook by what is handed in; `wrong` is one answer of 4 points."""
MARK = "LABKIT_FIRST_CLASS"
KEPT = ("PATH", "LANG", "TERM", "USER", "PIP_*", "SSL_*", "*_proxy", "*_PROXY")
"""What of the environment an empty machine has, too: how it reaches packages, and nothing of this user's settings."""


class Wrong(Exception):
    """A step failed; the message says how."""


def main() -> int:
    """Prints a line for each step; the exit code."""
    options = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    options.add_argument("--java", action="store_true", help="as on a machine that has no Java")
    options.add_argument("--keep", action="store_true", help="leave everything for a look")
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
    """What a step took: by the clock, and of all processors together, which depends on no other program."""
    print(f"{seconds:7.1f} s {used:7.1f} s of processors  {title}", flush=True)


def processor() -> float:
    """Processor seconds of everything that was started here and has ended."""
    used = os.times()
    return used.children_user + used.children_system


def steps(place: Path, there: Mapping[str, str]) -> Sequence[tuple[str, Callable[[], None]]]:
    """What is done, in order, each with its title."""
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
    """The environment of an empty machine. `without_java` leaves out the folders of PATH that have one."""
    kept = {name: value for name, value in os.environ.items() if any(Path(name).match(pattern) for pattern in KEPT)}
    if without_java:
        folders = kept["PATH"].split(os.pathsep)
        kept["PATH"] = os.pathsep.join(_without_java(folders, place / "bin"))
    kept |= {"HOME": str(place / "home"), "TMPDIR": str(place / "tmp")}
    return kept | {MARK: uuid.uuid4().hex}


def _without_java(folders: Sequence[str], links: Path) -> list[str]:
    """The same programs but for Java's, where a folder has both as links in another folder."""
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
    """Runs a command to its end. Raises `Wrong` with its last lines."""
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
    """What the learner with this number hands in."""
    return list(DESERVED)[number % len(DESERVED)]


def hand_in(place: Path) -> None:
    """Moodle's download of the class; every two learners have one name."""
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
    """The notebook with another answer to the exercise."""
    notebook, mark = json.loads(_text(folder)), f"# exercise {EXERCISE}\n"
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code" and "".join(cell["source"]).startswith(mark):
            cell["source"] = (mark + answer).splitlines(keepends=True)
    return json.dumps(notebook)


def exported(place: Path) -> None:
    """Raises `Wrong` where what Moodle would take is not what was handed in deserves."""
    folder = place / "grades" / "exports"
    with (folder / "moodle.csv").open(encoding="utf-8-sig", newline="") as file:
        given = {row["Identifier"]: float(row["Grade"]) for row in csv.DictReader(file)}
    deserved = {f"Participant {1001 + number}": float(DESERVED[kind_of(number)]) for number in range(LEARNERS)}
    if given != deserved:
        raise Wrong(f"moodle.csv gives {given}, and deserved is {deserved}")
    with zipfile.ZipFile(folder / "moodle-feedback.zip") as archive:
        pages = [name for name in archive.namelist() if name.endswith("feedback.html")]
    if len(pages) != LEARNERS:
        raise Wrong(f"moodle-feedback.zip holds {len(pages)} pages")


def survivors(mark: str) -> list[str]:
    """Processes that were started here and are there five seconds later; known on Linux only."""
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
