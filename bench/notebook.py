"""From `lab.crash` in a notebook to the verdict: with warm drivers, without them, and with PySpark's own settings.

A warm driver is one that was started in advance. The first run begins when the notebook is opened, so its driver is
still starting. Later runs begin when the drivers of the run before have been replaced, as they are while a learner
reads. Each round runs every way once.
"""

import tempfile
import time
from pathlib import Path

from bench.crash import Times, Way, environment, once, table_of
from bench.rows import Rows
from labkit.core.errors import JobFailed
from labkit.host.fast_start import FastStart
from labkit.runs.conduct import Setup
from labkit.runs.warm_drivers import WarmDrivers
from labkit.spark.fast.archive import make_archive

STOCK = Way(Setup(profile="stock"))
LONGEST = 120.0
"""The seconds within which drivers must be warm."""


def measure(rounds: int) -> Rows:
    """Return a row for each way: medians, and ratios to the stock settings within the same round."""
    make_archive()
    taken: dict[str, list[Times]] = {name: [] for name in ("warm drivers, first run", "warm drivers", "cold", "stock")}
    # A warm driver is taken only in the environment in which it has started.
    with tempfile.TemporaryDirectory(prefix="labkit-bench-") as base, environment(FastStart()):
        for number in range(rounds):
            folder = Path(base) / str(number)
            pool = WarmDrivers()
            ways = {"warm drivers, first run": Way(Setup(warm=pool)), "warm drivers": Way(Setup(warm=pool))}
            try:
                pool.want()
                for at, (name, way) in enumerate(ways.items()):
                    taken[name].append(once(folder / str(at), way))
                    _await_warm(pool)
            finally:
                pool.end()
            taken["cold"].append(once(folder / "cold", Way()))
            taken["stock"].append(once(folder / "stock", STOCK))
    return [{"notebook": row.pop("crash"), **row} for row in table_of(taken, "stock")]


def _await_warm(pool: WarmDrivers) -> None:
    """Wait until the drivers are warm, because the next run would otherwise be a cold one. Raises `JobFailed`."""
    end = time.monotonic() + LONGEST
    while not pool.are_warm:
        if time.monotonic() > end:
            raise JobFailed(f"the drivers were not ready after {LONGEST:.0f} s; measure on a less busy machine.")
        time.sleep(0.1)
