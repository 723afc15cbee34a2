"""Seconds of a run of three records, with a crash and a restart: labkit's ways to start drivers, and PySpark's own.

Query, source, sink, store, judge and crash point are the same. Only the start of the sessions differs, and each round
runs every way once, so that a busy machine slows all of them.
"""

import os
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import NamedTuple
from unittest.mock import patch

from bench.rows import Rows, median, ratio, spread
from labkit.core.errors import JobFailed
from labkit.host.fast_start import OFF, VARIABLE, FastStart
from labkit.host.processes.events import AnyEvent, Parked
from labkit.runs.conduct import Setup
from labkit.runs.crash import finish
from labkit.runs.prepare import prepare
from labkit.runs.scenario import plan
from labkit.spark.fast.archive import make_archive

STOCK = "stock PySpark settings"
STANDBY = "labkit, warm standby"


class Way(NamedTuple):
    """One way to start the drivers of the scenario."""

    setup: Setup = Setup()
    fast: FastStart = FastStart()


WAYS = {
    "labkit": Way(),
    "labkit without an archive": Way(fast=FastStart(archive=False)),
    "labkit without a zygote": Way(fast=FastStart(zygote=False)),
    "labkit with neither": Way(fast=OFF),
    STANDBY: Way(Setup(standby=True)),
    STOCK: Way(Setup(profile="stock")),
}

SCENARIO = plan(sink="two_phase", store="files", crashes=["sink.after_pre_commit@0"])


class Times(NamedTuple):
    """The seconds that one run took."""

    to_crash: float
    """From the start of the first driver, or of the standby driver, to the failpoint."""
    to_committed: float
    """From the first SIGKILL until the next driver has renamed `commits/0` to its final name."""
    to_verdict: float
    """From the beginning until the verdict and the report are written."""


def measure(rounds: int) -> Rows:
    """Return a row for each way: medians, and ratios to the stock settings within the same round."""
    make_archive()
    taken: dict[str, list[Times]] = {way: [] for way in WAYS}
    with tempfile.TemporaryDirectory(prefix="labkit-bench-") as folder:
        for round_ in range(rounds):
            for number, (name, way) in enumerate(WAYS.items()):
                taken[name].append(once(Path(folder) / f"{round_}-{number}", way))
    return table_of(taken)


def once(folder: Path, way: Way) -> Times:
    """Run the scenario once. Raises `JobFailed` if the verdict is not exactly-once, which the sink promises."""
    parked = [0.0]

    def tell(event: AnyEvent) -> None:
        if isinstance(event, Parked):
            parked[0] = time.monotonic()

    begun = time.monotonic()
    with allowed(way.fast):
        outcome = finish(prepare(SCENARIO, folder), tell, setup=way.setup)
    ended = time.monotonic()
    if outcome.verdict.guarantee != "exactly-once":
        raise JobFailed(f"the measured run was {outcome.verdict.guarantee}, not exactly-once; see {folder}.")
    return Times(parked[0] - begun, outcome.record.seconds["crash_1_to_committed"], ended - begun)


def allowed(fast: FastStart) -> AbstractContextManager[object]:
    """Return a context manager that allows these ways of starting faster."""
    return patch.dict(os.environ, {VARIABLE: str(fast)})


def table_of(taken: Mapping[str, Sequence[Times]], stock_way: str = STOCK) -> Rows:
    """Return a row for every way; `stock_way` is the one to which ratios refer."""
    stock = taken[stock_way]
    return [
        {
            "crash": way,
            "start to crash s": median([one.to_crash for one in times]),
            "SIGKILL to committed s": median([one.to_committed for one in times]),
            "range of it": spread([one.to_committed for one in times]),
            "start to verdict s": median([one.to_verdict for one in times]),
            "start to verdict, of stock": ratio([one.to_verdict for one in times], [one.to_verdict for one in stock]),
            "SIGKILL to committed, of stock": ratio(
                [one.to_committed for one in times], [one.to_committed for one in stock]
            ),
        }
        for way, times in taken.items()
    ]
