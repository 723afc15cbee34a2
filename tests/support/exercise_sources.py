"""Stubs, solutions and wrong solutions of the exercises, as code that can be asked."""

import contextlib
import io
from pathlib import Path
from typing import Any

import build_notebooks

ROOT = Path(__file__).parent.parent.parent
WRONG = ROOT / "tests" / "grading" / "wrong"


def all_sources() -> dict[str, tuple[str, str]]:
    """Stub and solution of every exercise, as the notebooks' sources have them."""
    return {
        name: cells
        for source in build_notebooks.sources(ROOT)
        for name, cells in build_notebooks.exercises(source).items()
    }


def run(code: str) -> dict[str, Any]:
    """The names that a cell leaves, in a namespace of its own; what it prints is not shown."""
    namespace: dict[str, Any] = {"__name__": "__main__"}
    with contextlib.redirect_stdout(io.StringIO()):
        exec(compile(code, "<cell>", "exec"), namespace)
    return namespace


def wrong_files() -> list[Path]:
    """Every wrong solution: `NN-word/name.py`."""
    return sorted(WRONG.glob("*/*.py"))


def said_of(path: Path) -> tuple[str, str]:
    """The misconception of a wrong solution, and the part of a message that is its own."""
    first, second, *_ = path.read_text(encoding="utf-8").splitlines()
    assert first.startswith("# misconception: "), path
    assert second.startswith("# says: "), path
    return first.removeprefix("# misconception: "), second.removeprefix("# says: ")
