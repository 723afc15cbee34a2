"""From `lab.crash` in a notebook to the verdict: with warm drivers, without them, and with PySpark's own settings.

A warm driver is one that was started in advance. A first run may begin at the moment when the notebook is opened, so
that its driver is still starting, or after a learner has read for some seconds. Later runs begin when the drivers of
the run before have been replaced. Each round runs every way once.
"""

import tempfile
import time
from pathlib import Path

from bench.crash import Times, Way, allowed, once, table_of
from bench.rows import Rows
from labkit.core.errors import JobFailed
from labkit.host.fast_start import FastStart
from labkit.runs.conduct import Setup
from labkit.runs.warm_drivers import WarmDrivers
from labkit.spark.fast.archive import make_archive

STOCK = Way(Setup(profile="stock"))
READING = 15.0
"""The seconds that a learner reads between opening a notebook and the first crash."""
LONGEST = 120.0
"""The seconds within which drivers must be warm."""


def measure(rounds: int) -> Rows:
    """Return a row for each way: medians, and ratios to the stock settings within the same round."""
    make_archive()
    at_once, later = (f"warm drivers, first run {when}" for when in ("at once", f"after {READING:.0f} s"))
    warm = "warm drivers, a later run"
    taken: dict[str, list[Times]] = {name: [] for name in (at_once, later, warm, "cold", "stock")}
    # A warm driver is taken only in the environment in which it has started.
    with tempfile.TemporaryDirectory(prefix="labkit-bench-") as base, allowed(FastStart()):
        for number in range(rounds):
            folder = Path(base) / str(number)
            for name, seconds in ((at_once, 0.0), (later, READING)):
                pool = WarmDrivers()
                try:
                    pool.want()
                    time.sleep(seconds)
                    taken[name].append(once(folder / f"first-{seconds:.0f}", Way(Setup(warm=pool))))
                    _await_warm(pool)
                    if seconds:
                        taken[warm].append(once(folder / "warm", Way(Setup(warm=pool))))
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
