"""Stubs and solutions of the exercises, as the notebooks' sources have them."""

from functools import cache
from pathlib import Path

import build_notebooks
from kill_rate import run

__all__ = ["ROOT", "all_sources", "run"]

ROOT = Path(__file__).parent.parent.parent


@cache
def all_sources() -> dict[str, tuple[str, str]]:
    """Stub and solution of every exercise."""
    found: dict[str, tuple[str, str]] = {}
    for source in build_notebooks.sources(ROOT):
        found |= build_notebooks.exercises(source)
    return found
