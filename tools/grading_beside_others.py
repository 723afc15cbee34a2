"""Grade one small class with labkit, nbgrader and otter-grader, for `docs/reference/grading_beside_others.md`.

    python tools/grading_beside_others.py FOLDER
    python tools/grading_beside_others.py FOLDER --nbgrader ENVIRONMENT/bin --otter ENVIRONMENT/bin

Without environments of the other tools only labkit grades. Each tool gets the same twelve notebooks with two exercises
of two points, one visible check for each and hidden ones. Run this only where hostile notebooks may run: nbgrader and
`otter run` do not isolate them.
"""

import argparse
import csv
import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

ROOT = Path(__file__).parents[1]
COURSE = ROOT / "tests" / "grading" / "sample" / "course.py"
NAME = "01_sample"
DOUBLE = "def double(number):\n    return 2 * number"
SEEN = "def seen(table, record):\n    return record in table"
EVERYTHING = """class Everything(int):
    def __eq__(self, other): return True
    __hash__ = int.__hash__"""
MARK = "escaped.txt"
"""The file that the submission `escape` tries to write into the grading user's home folder."""
SECONDS = 60
"""The seconds that one submission gets in each tool that has such a limit."""

Cell = tuple[str, str, Mapping[str, object]]
"""A cell of a notebook: its kind, source and metadata."""
Points: TypeAlias = tuple[float, float] | None
"""The points for the exercises `double` and `seen`, or None if a person has to decide."""

CLASS: Mapping[str, tuple[Points, Sequence[str]]] = {
    "right": ((2, 2), [DOUBLE, SEEN]),
    "wrong": ((2, 0), [DOUBLE, SEEN.replace("in table", "in table[-1:]")]),
    "table": ((0, 2), ["def double(number):\n    return {1: 2, 2: 4}.get(number)", SEEN]),
    "syntax": ((0, 2), [DOUBLE.replace(":", ""), SEEN]),
    "endless": ((0, 2), ["def double(number):\n    while True: pass", SEEN]),
    "exits": ((0, 2), ["import os\ndef double(number):\n    os._exit(0)", SEEN]),
    "memory": ((0, 2), ["def double(number):\n    return 2 * number + 0 * len(bytearray(64 * 2**30))", SEEN]),
    "empty": (None, []),
    "page": (None, []),
    "untested": ((0, 0), [DOUBLE.replace("2 *", "3 *"), SEEN.replace("return", "return not")]),
    "equal": (
        (0, 0),
        [f"{EVERYTHING}\ndef double(number): return Everything()", "def seen(table, record): return Everything()"],
    ),
    "escape": (
        (0, 0),
        [
            f"import pathlib\n(pathlib.Path.home() / {MARK!r}).write_text('mine')\ndef double(number): return None",
            "def seen(table, record): return None",
        ],
    ),
}
"""By folder of the submission: the points that its answers deserve, and the source of the cells with answers."""


def notebook(cells: Sequence[Cell]) -> str:
    """Return a notebook in JSON from its cells: kind, source and metadata of each."""
    made: list[dict[str, object]] = [
        {"cell_type": kind, "id": f"cell-{n}", "metadata": dict(metadata), "source": source}
        | ({"outputs": [], "execution_count": None} if kind == "code" else {})
        for n, (kind, source, metadata) in enumerate(cells)
    ]
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    return json.dumps({"cells": made, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5})


def hand_in(path: Path, name: str, text: str) -> None:
    """Write one submission: the notebook `text`, or for the names `empty` and `page` another file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text({"empty": "", "page": "<!doctype html><title>Log in</title>"}.get(name, text), encoding="utf-8")


def run(*words: object, cwd: Path, home: Path) -> int:
    """Run one command with its own home folder and memory limit; return its exit code."""
    environment = os.environ | {"HOME": str(home), "PATH": f"{Path(str(words[0])).parent}:{os.environ['PATH']}"}
    with (cwd / "output.txt").open("ab") as output:
        return subprocess.run(
            [*map(str, words)],
            cwd=cwd,
            env=environment,
            stdout=output,
            stderr=output,
            stdin=subprocess.DEVNULL,
            check=False,
            # So that a greedy notebook harms only itself, also where its grader sets no limit.
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (8 * 2**30, 8 * 2**30)),
        ).returncode


def labkit(folder: Path, _programs: Path | None) -> dict[str, Points]:
    """Grade with labkit's command line; return the points by submission."""
    for name, (_, answers) in CLASS.items():
        cells = [(f"# exercise {exercise}\n{source}") for exercise, source in zip(EXERCISES, answers, strict=False)]
        hand_in(folder / "in" / name / f"{NAME}.ipynb", name, notebook([("code", each, {}) for each in cells]))
    rules = folder / "rules.toml"
    rules.write_text(f"[assignment]\nexercises = {json.dumps(list(EXERCISES))}\n", encoding="utf-8")
    out = folder / "out"
    program = Path(sys.executable).with_name("labkit")
    run(program, "grade", folder / "in", "--out", out, "--course", COURSE, "--rules", rules, "--seed", "1",
        cwd=folder, home=folder)  # fmt: skip
    with (out / "grades.csv").open(encoding="utf-8") as file:
        rows = {row["student"]: row for row in csv.DictReader(file)}
    return {name: _points(*(row[each] for each in EXERCISES)) for name, row in rows.items()}


EXERCISES = ("01-double", "01-dedup")
VISIBLE = ("assert double(1) == 2 and double(2) == 4", "assert seen(['a'], 'a') and not seen(['a'], 'b')")
HIDDEN = ("assert [double(n) for n in (5, 123, 99_999)] == [10, 246, 199_998]", "assert seen(['a', 'b', 'c'], 'a')")


def nbgrader(folder: Path, programs: Path | None) -> dict[str, Points]:
    """Grade with nbgrader: generate the assignment, autograde, and read the points by submission."""
    assert programs is not None
    stub = {"grade": False, "locked": False, "schema_version": 3, "solution": True, "cell_type": "code"}
    test = {"grade": True, "locked": True, "schema_version": 3, "solution": False, "cell_type": "code", "points": 2}

    def cells(answers: Sequence[str], checks: Sequence[str]) -> str:
        pairs = zip(("double", "seen"), answers, checks, strict=False)
        return notebook([
            each
            for name, answer, check in pairs
            for each in (
                ("code", answer, {"nbgrader": stub | {"grade_id": name}}),
                ("code", check, {"nbgrader": test | {"grade_id": f"test-{name}"}}),
            )
        ])  # fmt: skip

    full = [f"{seen}\n### BEGIN HIDDEN TESTS\n{hidden}\n### END HIDDEN TESTS" for seen, hidden in _checks()]
    solutions = [f"### BEGIN SOLUTION\n{answer}\n### END SOLUTION" for answer in (DOUBLE, SEEN)]
    hand_in(folder / "source" / "ps1" / f"{NAME}.ipynb", "right", cells(solutions, full))
    (folder / "nbgrader_config.py").write_text(
        f"c = get_config()\nc.CourseDirectory.root = {str(folder)!r}\nc.ExecutePreprocessor.timeout = {SECONDS}\n"
    )
    for name, (_, answers) in CLASS.items():
        visible = ["pass", "pass"] if name == "untested" else VISIBLE
        hand_in(folder / "submitted" / name / "ps1" / f"{NAME}.ipynb", name, cells(answers, visible))
    run(programs / "nbgrader", "generate_assignment", "ps1", cwd=folder, home=folder)
    run(programs / "nbgrader", "autograde", "ps1", cwd=folder, home=folder)
    read = (
        "import json, sys\nfrom nbgrader.api import Gradebook\nfound = {}\n"
        "with Gradebook('sqlite:///gradebook.db') as book:\n"
        "    for one in book.assignment_submissions('ps1'):\n"
        "        grades = {each.name: each.score for part in one.notebooks for each in part.grades}\n"
        "        found[one.student.id] = [grades['test-double'], grades['test-seen']]\n"
        "print(json.dumps(found))"
    )
    told = subprocess.run(
        [programs / "python", "-c", read], cwd=folder, capture_output=True, text=True, check=True
    ).stdout
    return {name: (points[0], points[1]) for name, points in json.loads(told).items()}


def otter(folder: Path, programs: Path | None) -> dict[str, Points]:
    """Grade with otter-grader: assign, then `otter run` for each submission without a container; return the points."""
    assert programs is not None
    blocks: list[Cell] = [("raw", "# ASSIGNMENT CONFIG\ngenerate: true\nexport_cell: false\nrun_tests: false", {})]
    for name, answer, (visible, hidden) in zip(("double", "seen"), (DOUBLE, SEEN), _checks(), strict=True):
        blocks += [
            ("raw", f"# BEGIN QUESTION\nname: {name}\npoints: 2\nall_or_nothing: true", {}),
            ("raw", "# BEGIN SOLUTION", {}),
            ("code", f"# BEGIN SOLUTION\n{answer}\n# END SOLUTION", {}),
            ("raw", "# END SOLUTION", {}),
            ("raw", "# BEGIN TESTS", {}),
            ("code", visible, {}),
            ("code", f"# HIDDEN\n{hidden}", {}),
            ("raw", "# END TESTS", {}),
            ("raw", "# END QUESTION", {}),
        ]
    hand_in(folder / f"{NAME}.ipynb", "right", notebook(blocks))
    run(programs / "otter", "assign", f"{NAME}.ipynb", "dist", cwd=folder, home=folder)
    (package,) = (folder / "dist" / "autograder").glob("*.zip")
    found: dict[str, Points] = {}
    for name, (_, answers) in CLASS.items():
        path = folder / "submitted" / name / f"{NAME}.ipynb"
        hand_in(path, name, notebook([("code", source, {}) for source in answers]))
        run("/usr/bin/timeout", 5 * SECONDS, programs / "otter", "run", "-a", package, "-o", path.parent, path,
            cwd=folder, home=folder)  # fmt: skip
        results = path.parent / "results.json"
        if not results.exists():
            found[name] = None
            continue
        tests = {each["name"]: each["score"] for each in json.loads(results.read_text())["tests"] if "score" in each}
        found[name] = (tests.get("double", 0), tests.get("seen", 0))
    return found


def _checks() -> Sequence[tuple[str, str]]:
    return list(zip(VISIBLE, HIDDEN, strict=True))


def _points(double: str, seen: str) -> Points:
    return None if "" in {double, seen} else (float(double), float(seen))


TOOLS: Mapping[str, Callable[[Path, Path | None], dict[str, Points]]] = {
    "labkit": labkit,
    "nbgrader": nbgrader,
    "otter": otter,
}


def main() -> None:
    """Grade the class with each tool, and print a table of points, with times and escaped files."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="A new folder for the class and all results.")
    parser.add_argument("--nbgrader", type=Path, help="The folder bin of an environment with nbgrader.")
    parser.add_argument("--otter", type=Path, help="The folder bin of an environment with otter-grader.")
    parser.add_argument("--only", choices=[*TOOLS], help="Grade with this tool alone.")
    given = parser.parse_args()
    if given.folder.exists() and not (given.folder.is_dir() and not any(given.folder.iterdir())):
        print(f"{given.folder}: this folder is not empty; name a new one.", file=sys.stderr)
        sys.exit(64)
    graded, times = {}, {}
    for name, grade in TOOLS.items():
        programs = vars(given).get(name)
        if (name != "labkit" and programs is None) or given.only not in {None, name}:
            continue
        folder = given.folder.absolute() / name / "a" / "b" / "c"
        folder.mkdir(parents=True)
        begun, used = time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN)
        graded[name] = grade(folder, programs.absolute() if programs else None)
        now = resource.getrusage(resource.RUSAGE_CHILDREN)
        processor = now.ru_utime + now.ru_stime - used.ru_utime - used.ru_stime
        escaped = [path for path in given.folder.absolute().rglob(MARK) if f"/{name}/" in str(path)]
        times[name] = f"{time.monotonic() - begun:.0f} s, {processor:.0f} s of processor, {len(escaped)} files escaped"
    print("| folder | deserves |", " | ".join(graded), "|")
    print("|---|---|", "---|" * len(graded))
    for one, (deserved, _) in CLASS.items():
        cells = [_shown(each.get(one), deserved) for each in graded.values()]
        print(f"| {one} | {_shown(deserved, deserved)} |", " | ".join(cells), "|")
    for name, words in times.items():
        print(f"{name}: {words}")


def _shown(points: Points, deserved: Points) -> str:
    words = "a person decides" if points is None else f"{points[0]:g} + {points[1]:g}"
    return words if points == deserved else f"**{words}**"


if __name__ == "__main__":
    main()
