"""How long the package and the command line take to start: what a learner waits for before anything else."""

import os
import subprocess
import sys
import time

from bench.rows import Rows, median, spread

IMPORT = """
import sys, time
begun = time.perf_counter()
import labkit
print(time.perf_counter() - begun, *sorted(name for name in sys.modules if name in ("pyspark", "pandas", "typer")))
"""
LIMITS = {"import labkit": 0.15, "labkit --help": 0.5}
"""The seconds that each command may take."""


def measure(rounds: int) -> Rows:
    """Return rows with the seconds of `import labkit` in a fresh Python, and of a whole `labkit --help`."""
    loaded: set[str] = set()
    times: dict[str, list[float]] = {name: [] for name in LIMITS}
    for _ in range(rounds):
        seconds, *heavy = _output("-c", IMPORT).split()
        loaded.update(heavy)
        times["import labkit"].append(float(seconds))
        begun = time.perf_counter()
        _output("-m", "labkit", "--help")
        times["labkit --help"].append(time.perf_counter() - begun)
    rows: Rows = [_row(name, seconds) for name, seconds in times.items()]
    rows[0]["heavy modules loaded"] = ", ".join(sorted(loaded)) or "none"
    return rows


def _row(name: str, seconds: list[float]) -> dict[str, object]:
    at_most, middle = LIMITS[name], median(seconds, 4)
    return {
        "start": name,
        "seconds": middle,
        "range": spread(seconds, 4),
        "at most": at_most,
        "held": middle <= at_most,
    }


def _output(*arguments: str) -> str:
    command = [sys.executable, *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True, env=dict(os.environ)).stdout
