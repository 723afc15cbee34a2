"""Measure rows per second against rows per transaction, in the lab's own stores.

The same rows are appended in transactions of different sizes. Whether a commit waits for the disk depends on the store:
SQLite syncs every commit.
"""

import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from labkit.core.arguments import takes
from labkit.core.errors import InvalidInput
from labkit.core.records import Observation
from labkit.stores import open_store
from labkit.stores.contract import Appendable, ServerBacked
from labkit.teach.price.place import scratch
from labkit.view.card import Tabled

SIZES = (1, 10, 100)
ROWS = 300
"""The default number of rows that are written in transactions of each size."""
MOST_ROWS = 10_000


class Rate(NamedTuple):
    """The measurement for one transaction size: rows and transactions written, and the total time in seconds."""

    rows: int
    transactions: int
    seconds: float

    @property
    def a_second(self) -> float:
        """The number of rows written per second."""
        return self.rows / self.seconds


class Rates(Tabled, dict[int, Rate]):
    """The results of `lab.measure_rows`, displayed as a card: a dict from rows per transaction to the measurement."""

    title = "The same rows in transactions of different sizes, on this machine"

    def _head(self) -> Sequence[str]:
        return "rows a transaction", "transactions", "took", "each", "rows a second"

    def _rows(self) -> Iterator[tuple[str, ...]]:
        for size, rate in self.items():
            yield (
                f"{size:,}",
                f"{rate.transactions:,}",
                f"{rate.seconds:.2f} s",
                f"{1000 * rate.seconds / rate.transactions:.1f} ms",
                f"{rate.a_second:,.0f}",
            )


@takes("lab.measure_rows([1, 10, 100])")
def measure_rows(sizes: Sequence[int] = SIZES, *, rows: int = ROWS, store: str = "sqlite") -> Rates:
    """Write the same rows once for each transaction size, and measure how many rows per second this achieves.

    `sizes` are numbers of rows per transaction, and `store` is a kind of store, such as `"sqlite"`. Raises
    `InvalidInput` for a size or store that cannot be measured, and `ServiceUnavailable` if a server is missing.
    """
    if not sizes or not all(1 <= each <= rows for each in sizes):
        raise InvalidInput(
            f"lab.measure_rows(): sizes must be from 1 to {rows} rows per transaction, as in "
            "lab.measure_rows([1, 10, 100])."
        )
    if rows > MOST_ROWS:
        raise InvalidInput(f"lab.measure_rows(): rows={rows} is too large; use at most {MOST_ROWS:,}.")
    with scratch() as folder:
        return Rates((size, _rate(folder / f"{size}", store, size, rows)) for size in sorted(set(sizes)))


def _rate(place: Path, kind: str, size: int, count: int) -> Rate:
    every = [Observation(number, "pen", 1, 0, 1) for number in range(count + 1)]
    with closing(open_store(kind, place)) as store:
        if not isinstance(store, Appendable):
            raise InvalidInput(f"the store {kind} cannot write single rows; choose files, sqlite, postgres or kafka.")
        try:
            store.append(every[-1])  # the first row creates the store, so it is not measured
            begun = time.perf_counter()
            starts = range(0, count, size)
            for start in starts:
                store.append(*every[start : min(start + size, count)])
            return Rate(count, len(starts), time.perf_counter() - begun)
        finally:
            if isinstance(store, ServerBacked):
                store.destroy()
