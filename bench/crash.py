"""Start, crash, restart, verdict of the three-record scenario: the lab's drivers beside PySpark's own settings.

The same query, source, sink, store and judge, killed at the same point in the same way. Only how the sessions are
started differs, and each round runs every way once, so that a busy machine slows all of them.
"""

import os
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

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
    """How the drivers of one and the same scenario are started."""

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
    """Seconds of one run."""

    to_crash: float
    """From the first driver's start, or the standby's, to the failpoint."""
    to_committed: float
    """From the first SIGKILL until the next driver has renamed `commits/0` into its place."""
    to_verdict: float
    """From the beginning until the judge has spoken and the report is written."""


def measure(rounds: int) -> Rows:
    """Medians by way, and ratios to the stock settings within the same round."""
    make_archive()
    taken: dict[str, list[Times]] = {way: [] for way in WAYS}
    with tempfile.TemporaryDirectory(prefix="labkit-bench-") as folder:
        for round_ in range(rounds):
            for number, (name, way) in enumerate(WAYS.items()):
                taken[name].append(once(Path(folder) / f"{round_}-{number}", way))
    return table_of(taken)


def once(folder: Path, way: Way) -> Times:
    """One run. Raises `JobFailed` when its verdict is not the one that the sink promises."""
    parked = [0.0]

    def tell(event: AnyEvent) -> None:
        if isinstance(event, Parked):
            parked[0] = time.monotonic()

    begun = time.monotonic()
    with environment(way.fast):
        outcome = finish(prepare(SCENARIO, folder), tell, setup=way.setup)
    ended = time.monotonic()
    if outcome.verdict.guarantee != "exactly-once":
        raise JobFailed(f"the measured run gave {outcome.verdict.guarantee} and not exactly-once; {folder} says why.")
    return Times(parked[0] - begun, outcome.record.seconds["crash_1_to_committed"], ended - begun)


@contextmanager
def environment(fast: FastStart) -> Iterator[None]:
    """Allow these ways of starting faster during the block."""
    before = os.environ.get(VARIABLE)
    os.environ[VARIABLE] = str(fast)
    try:
        yield
    finally:
        if before is None:
            del os.environ[VARIABLE]
        else:
            os.environ[VARIABLE] = before


def table_of(taken: Mapping[str, Sequence[Times]], stock_way: str = STOCK) -> Rows:
    """A row for every way."""
    stock = taken[stock_way]
    rows: Rows = []
    for way, times in taken.items():
        rows.append(
            {
                "crash": way,
                "start to crash s": median([one.to_crash for one in times]),
                "SIGKILL to committed s": median([one.to_committed for one in times]),
                "range of it": spread([one.to_committed for one in times]),
                "start to verdict s": median([one.to_verdict for one in times]),
                "start to verdict, of stock": ratio(
                    [one.to_verdict for one in times], [one.to_verdict for one in stock]
                ),
                "SIGKILL to committed, of stock": ratio(
                    [one.to_committed for one in times], [one.to_committed for one in stock]
                ),
            }
        )
    return rows
