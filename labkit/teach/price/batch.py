"""Write batches into folders of files with one of the lab's own sinks, while `labkit.teach.price.effects` watches.

It is a separate command without Spark, because Spark's own writes must not be counted.
"""

import sys
from contextlib import closing
from pathlib import Path

from labkit.core.failpoints import Order
from labkit.core.records import Observation
from labkit.core.strategies import Strategy, orders
from labkit.sinks import Coordinator, coordinate
from labkit.stores.contract import Handle

TASKS = 2
"""The number of tasks that write a batch; each writes an equal part of its rows."""
BEGIN, END = "begin", "end"
"""The names of empty files that are created before and after the measured batch, to find its system calls."""


def write(folder: Path, sink: str, rows: int) -> None:
    """Write and commit two batches of `rows` rows with one of labkit's sinks.

    The function creates the empty files `BEGIN` before and `END` after the second batch. The caller counts only the
    disk operations between them, and not those of the first batch, which also creates folders. If the sink supports the
    commit order `decision`, the decision to commit a batch is logged before the commit.
    """
    strategy = Strategy(sink)
    coordinator = coordinate(
        strategy,
        Order.DECISION if Order.DECISION in orders(strategy) else Order.NONE,
        store="files",
        location=folder / "store",
        query="price",
        incarnation=1,
        log=folder / "log",
    )
    with closing(coordinator.sink.store):
        _write(coordinator, 0, rows)
        (folder / BEGIN).touch()
        _write(coordinator, 1, rows)
        (folder / END).touch()


def _write(coordinator: Coordinator, batch: int, rows: int) -> None:
    every = [Observation(number, "pen", 1, batch, 1) for number in range(rows)]
    votes = [
        coordinator.sink.pre_commit(Handle("price", batch, task, 1, 0), iter(every[task::TASKS]))
        for task in range(TASKS)
    ]
    coordinator.commit(batch, [vote for vote in votes if vote is not None])
    coordinator.commit_log_durable(batch)


def main(place: str, *cases: str) -> None:
    """Write the batches of each case (a sink and a number of rows, such as `wal-400`) into a subfolder of `place`."""
    for case in cases:
        sink, _, rows = case.rpartition("-")
        folder = Path(place) / case
        folder.mkdir()
        write(folder, sink, int(rows))


if __name__ == "__main__":
    main(*sys.argv[1:])
