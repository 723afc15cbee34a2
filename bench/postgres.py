"""What a batch costs in PostgreSQL: two_phase compared with one plain transaction of the same rows, without Spark.

Every batch is written as the foreachBatch adapter does it: two participants, each with its own connection to the store,
write in parallel, the driver commits, and the stores are closed. The ways alternate, and take turns to begin, so that a
busy machine slows all of them; processor time is measured as well, since it excludes waiting.
"""

import tempfile
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import closing, suppress
from pathlib import Path
from typing import NamedTuple

import psutil

from bench import servers
from bench.rows import Rows, median, percentile
from labkit.core.failpoints import Order
from labkit.core.records import Observation
from labkit.core.strategies import Strategy
from labkit.sinks import Coordinator, Vote, coordinate
from labkit.stores import open_store
from labkit.stores.contract import Handle, ServerBacked

SIZES = {3: 20, 100: 20, 10_000: 4}
"""By number of rows in a batch, the number of such batches that each way writes in a round."""

PLAIN, TWO_PHASE = Strategy.BATCH_MARKER, Strategy.TWO_PHASE
WAYS = (Strategy.APPEND, PLAIN, TWO_PHASE)
"""The measured sinks: append has a transaction for each chunk of rows, batch_marker one for each batch."""

PARTICIPANTS = 2

AT_MOST = 5.0
"""The milliseconds per batch that two_phase may take longer than one plain transaction."""


class Spent(NamedTuple):
    """The elapsed seconds of one batch, and the processor seconds in this process and in the server."""

    clock: float
    here: float
    server: float


def measure(rounds: int) -> Rows:
    """Return a row for every size of a batch and every way."""
    with tempfile.TemporaryDirectory(prefix="labkit-bench-") as folder, servers.postgres() as server:
        taken = {rows: _taken(Path(folder) / str(rows), server, rows, rounds * SIZES[rows]) for rows in SIZES}
    return [row for rows, ways in taken.items() for row in table_of(rows, ways)]


def _taken(place: Path, server: int | None, rows: int, batches: int) -> dict[Strategy, list[Spent]]:
    """Return the times of each way for all batches but the first, which is slower because it opens the connections."""
    taken: dict[Strategy, list[Spent]] = {way: [] for way in WAYS}
    with ThreadPoolExecutor(PARTICIPANTS) as tasks:
        for batch in range(batches + 1):
            for way in WAYS if batch % 2 else reversed(WAYS):
                taken[way].append(once(way, place, batch, rows, server, tasks))
    with closing(open_store("postgres", place / "store")) as store:
        if isinstance(store, ServerBacked):
            store.destroy()
    return {way: spent[1:] for way, spent in taken.items()}


def once(way: Strategy, place: Path, batch: int, rows: int, server: int | None, tasks: Executor) -> Spent:
    """Write and commit one batch with two participants, one for each half of the rows; return the times."""
    all_rows = [Observation(number, f"w{number}", number, batch, 1) for number in range(rows)]
    parts = [all_rows[: rows // 2], all_rows[rows // 2 :]]
    order = Order.ENGINE if way is TWO_PHASE else Order.NONE
    handles = [Handle(str(way), batch, number, 1, 0) for number in range(len(parts))]

    def opened() -> Coordinator:
        location, log = place / "store", place / "log"
        return coordinate(way, order, store="postgres", location=location, query=str(way), incarnation=1, log=log)

    def pre_commit(handle: Handle, part: Sequence[Observation]) -> Vote | None:
        sink = opened().sink
        with closing(sink.store):
            return sink.pre_commit(handle, iter(part))

    before = _processor_times(server)
    begun = time.perf_counter(), time.process_time()
    coordinator = opened()
    with closing(coordinator.sink.store):
        votes = list(tasks.map(pre_commit, handles, parts))
        coordinator.commit(batch, [vote for vote in votes if vote is not None])
    clock, here = time.perf_counter() - begun[0], time.process_time() - begun[1]
    after = _processor_times(server)
    return Spent(clock, here, sum(after[pid] - before.get(pid, 0.0) for pid in after))


def _processor_times(server: int | None) -> dict[int, float]:
    """Return the processor seconds of each process of the server, by id; connections stay open between calls."""
    results = {}
    for each in [] if server is None else psutil.Process(server).children():
        with suppress(psutil.NoSuchProcess):
            times = each.cpu_times()
            results[each.pid] = times.user + times.system
    return results


def table_of(rows: int, taken: Mapping[Strategy, Sequence[Spent]]) -> Rows:
    """Return rows of medians. Each way is compared with one plain transaction for the same batch."""
    return [_row(rows, way, spent, taken[PLAIN]) for way, spent in taken.items()]


def _row(rows: int, way: Strategy, spent: Sequence[Spent], plain: Sequence[Spent]) -> dict[str, object]:
    clock = [1000 * one.clock for one in spent]
    more = median([1000 * (one.clock - other.clock) for one, other in zip(spent, plain, strict=True)])
    row: dict[str, object] = {
        "postgres": f"{way}, {rows:,} rows",
        "ms": median(clock),
        "fastest ms": round(min(clock), 2),
        "p95 ms": percentile(clock, 95),
        "CPU ms here": _mean([one.here for one in spent]),
        "CPU ms in the server": _mean([one.server for one in spent]),
        "more than a plain transaction, ms": more,
        "more of the fastest, ms": round(min(clock) - 1000 * min(one.clock for one in plain), 2),
    }
    if way is TWO_PHASE:
        row[f"at most {AT_MOST:g} ms more"] = more <= AT_MOST
    return row


def _mean(seconds: Sequence[float]) -> float:
    """Return the mean in milliseconds; a median would be coarse, as Linux reports a server's time in steps of 10 ms."""
    return round(1000 * sum(seconds) / len(seconds), 2)
