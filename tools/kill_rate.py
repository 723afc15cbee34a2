"""How many of the known wrong solutions fail, exercise by exercise: the checks of the exercises are checked themselves.

A wrong solution is `tests/grading/wrong/NN-word/name.py`, with the misconception in its first line and in its second a
part of the message that only it gets. It is killed when the public variants fail it, and the hidden ones of every
seed. `python tools/kill_rate.py` prints the rate and exits 1 where it is not complete.
"""

import contextlib
import io
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from labkit.grading.hidden import variants
from labkit.teach.exercises.check import judged
from labkit.teach.exercises.contract import AnswerFailed, Finding
from labkit.teach.exercises.namespace import InNotebook
from labkit.teach.exercises.registry import find

ROOT = Path(__file__).parent.parent
WRONG = ROOT / "tests" / "grading" / "wrong"
SEEDS = range(3)


def run(code: str) -> dict[str, Any]:
    """The names that a cell leaves, in a namespace of its own; what it prints is not shown."""
    namespace: dict[str, Any] = {"__name__": "__main__"}
    with contextlib.redirect_stdout(io.StringIO()):
        exec(compile(code, "<cell>", "exec"), namespace)  # noqa: S102  # files of this project
    return namespace


def wrong_files() -> list[Path]:
    """Every wrong solution."""
    return sorted(WRONG.glob("*/*.py"))


def public(path: Path) -> Finding:
    """What the visible check finds last. Raises `ValueError` for a solution that counts as not attempted."""
    with contextlib.redirect_stdout(io.StringIO()):
        found = judged(find(path.parent.name), run(path.read_text(encoding="utf-8")))
    if found is None:
        raise ValueError(f"{path}: it counts as not attempted.")
    return found[-1]


def hidden(path: Path, seed: int) -> Finding | None:
    """The first finding of the hidden variants of a seed that does not pass; None where all do."""
    exercise, namespace = find(path.parent.name), run(path.read_text(encoding="utf-8"))
    answer = InNotebook(exercise.answer, namespace)
    with contextlib.redirect_stdout(io.StringIO()):
        try:
            found = (
                exercise.judge(answer, variant)
                for variant in variants(exercise.name, seed)
            )
            return next((each for each in found if not each.passed), None)
        except AnswerFailed as error:
            return Finding(False, str(error), general="The answer failed.")  # noqa: FBT003  # it begins with that


def is_killed(path: Path) -> bool:
    """Whether a wrong solution fails publicly and by the hidden variants of every seed."""
    return not public(path).passed and all(hidden(path, seed) for seed in SEEDS)


def main() -> int:
    """Print the rate, exercise by exercise; 1 where a wrong solution survives."""
    files = wrong_files()
    survivors = [path for path in files if not is_killed(path)]
    counts, alive = (
        Counter(path.parent.name for path in files),
        Counter(path.parent.name for path in survivors),
    )
    for name, count in counts.items():
        print(f"{name:12} {count - alive[name]} of {count}")
    for path in survivors:
        print(f"SURVIVES {path.relative_to(ROOT)}")
    killed = len(files) - len(survivors)
    print(
        f"kill rate: {killed} of {len(files)} wrong solutions, {100 * killed / len(files):.0f} %, {len(SEEDS)} seeds"
    )
    return 1 if survivors else 0


if __name__ == "__main__":
    sys.exit(main())
