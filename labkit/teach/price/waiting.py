"""Measure how long a record waits until a reader sees it, and how long another program waits for the database's lock.

Both waits depend on the interval between two commits. Three real jobs (`labkit.teach.price.writer`) write side by side,
each in its own way into its own database. An outside reader polls each database. Another program updates a row of the
same database now and then, and records how long it waited for the lock. All use the machine's monotonic clock.
"""

import sqlite3
import statistics
import subprocess
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager, suppress
from functools import cached_property
from pathlib import Path
from threading import Event
from typing import NamedTuple

from labkit.core.arguments import takes
from labkit.core.errors import InvalidInput, JobFailed
from labkit.host.processes.own_python import own_python
from labkit.teach.price import writer
from labkit.teach.price.expected import noted
from labkit.teach.price.place import scratch
from labkit.teach.price.writer import ROUNDS, SCHEMA, WAYS, connect, records
from labkit.view.card import Html, Tabled
from labkit.view.front_end import is_watched, line
from labkit.view.prices import Dots, wait_chart

INTERVALS = (0.5, 1.0, 2.0)
"""The default numbers of seconds between two commits."""
SHORTEST, LONGEST, MOST = 0.1, 10.0, 5
"""The shortest and longest interval in seconds, and the largest number of intervals."""
LOOKS = 0.005
"""The number of seconds between two polls of a reader, and between two attempts to get the lock."""
PATIENCE = 60.0
"""The number of seconds that the measurement waits for a job after its expected end, before it fails."""


class Measured(NamedTuple):
    """The waits that were measured for one way of writing, such as a transaction per record, at one commit interval."""

    records: Sequence[float]
    """The wait of each record, from its arrival until the reader had it, in seconds."""
    others: Sequence[float]
    """The waits of another program for the database's lock, in seconds."""
    commits: int
    """The number of transactions that the job committed."""

    @property
    def typical(self) -> float:
        """A record's typical wait, in seconds.

        The job ran for `ROUNDS` commit intervals. Each has a median wait, and this is the smallest of these medians.
        """
        # The smallest, because other programs on this machine can only make a wait longer.
        size = len(self.records) // ROUNDS
        starts = range(0, size * ROUNDS, size)
        return min(statistics.median(self.records[at : at + size]) for at in starts)

    @property
    def worst(self) -> float:
        """The longest wait of a record, in seconds."""
        return max(self.records)

    @property
    def other(self) -> float:
        """How long another program that updates the same database waited for the lock: the median, in seconds."""
        return statistics.median(self.others)


class Waits(Tabled):
    """The results of `lab.measure_waits`: how long records waited to become visible, displayed as a chart.

    `waits[way][interval]` is the measurement for one way of writing and one commit interval in seconds.
    """

    title = "How long a record waits until a reader has it, on this machine"

    def __init__(self, measured: Mapping[str, Mapping[float, Measured]], predicted: float | None = None) -> None:
        self.measured, self.predicted = measured, predicted

    def __getitem__(self, way: str) -> Mapping[float, Measured]:
        return self.measured[way]

    @cached_property
    def intervals(self) -> list[float]:
        """The measured commit intervals, in seconds, ascending."""
        return sorted(next(iter(self.measured.values())))

    def slope(self, way: str) -> float:
        """Return how much a record's typical wait grows with the commit interval (s/s), by least squares."""
        waits = [self.measured[way][each].typical for each in self.intervals]
        return statistics.linear_regression(self.intervals, waits).slope

    def commits(self, way: str) -> list[int]:
        """Return how many transactions `way` committed, as a list with one number for each commit interval."""
        return [self.measured[way][each].commits for each in self.intervals]

    @property
    def others(self) -> "Others":
        """How long another program that updates the same database typically waited for the database's lock."""
        return Others(self.measured)

    def _head(self) -> Sequence[str]:
        return "way", "interval", "typical wait", "longest", "transactions"

    def _rows(self) -> Iterator[tuple[str, ...]]:
        for way, by_interval in self.measured.items():
            for interval in self.intervals:
                each = by_interval[interval]
                yield (way, f"{interval:g} s", f"{each.typical:.2f} s", f"{each.worst:.2f} s", f"{each.commits}")

    def svg(self) -> str:
        """Return the chart as SVG text."""
        dots = [Dots(way, [(each, of[each].typical) for each in self.intervals]) for way, of in self.measured.items()]
        return wait_chart(dots, self.intervals[-1], self.predicted)

    def _parts(self) -> Iterable[str]:
        return [Html(self.svg()), *super()._parts()]


class Others(Tabled, dict[str, dict[float, float]]):
    """How long another program waited for the database's lock, displayed as a card.

    A dict from way of writing to a dict from commit interval to the median wait; all times are in seconds.
    """

    title = "How long another program typically waited for the database's lock"

    def __init__(self, measured: Mapping[str, Mapping[float, Measured]]) -> None:
        super().__init__({way: {interval: each.other for interval, each in of.items()} for way, of in measured.items()})

    @property
    def slowest(self) -> str:
        """The way of writing that made another program wait longest for the lock, at the longest commit interval."""
        return max(self, key=lambda way: self[way][max(self[way])])

    def _rows(self) -> list[tuple[str, ...]]:
        return [(way, *(f"{wait:.2f} s" for wait in of.values())) for way, of in self.items()]

    def _head(self) -> tuple[str, ...]:
        intervals = next(iter(self.values()))
        return ("way", *(f"interval {each:g} s" for each in intervals))


@takes("lab.measure_waits([0.5, 1, 2])")
def measure_waits(intervals: Sequence[float] = INTERVALS, *, question: str = "") -> Waits:
    """Measure how long a record waits until a reader sees it, for each way of writing and commit interval.

    `intervals` are in seconds; the measurement takes about four times their sum. If you name a `question` for which you
    predicted a line, such as `"13-slope"`, the chart also shows this line. Raises `InvalidInput` for intervals out of
    range.
    """
    if not 2 <= len(set(intervals)) <= MOST or not all(SHORTEST <= each <= LONGEST for each in intervals):
        raise InvalidInput(
            f"lab.measure_waits(): give 2 to {MOST} different intervals of {SHORTEST:g} to {LONGEST:g} seconds, as in "
            "lab.measure_waits([0.5, 1, 2])."
        )
    predicted = noted(question) if question else None
    measured: dict[str, dict[float, Measured]] = {way: {} for way in WAYS}
    with ExitStack() as until_then:
        folder = until_then.enter_context(scratch())
        jobs = {way: until_then.enter_context(_writer(way)) for way in WAYS}
        pool = until_then.enter_context(ThreadPoolExecutor(3 * len(WAYS)))
        for number, interval in enumerate(sorted(set(intervals))):
            with _progress_line(interval):
                running = {
                    way: pool.submit(_measure, job, folder / f"{way}-{number}.db", interval, pool)
                    for way, job in jobs.items()
                }
                for way, each in running.items():
                    measured[way][interval] = each.result()
    return Waits(measured, predicted)


@contextmanager
def _progress_line(interval: float) -> Iterator[None]:
    if not is_watched():
        yield
        return
    shown = line()
    shown.show(f"an interval of {interval:g} s: about {ROUNDS * interval:.0f} s", 0, 1)
    yield
    shown.end("")


@contextmanager
def _writer(way: str) -> Iterator["subprocess.Popen[str]"]:
    """Start a writer process for a `with` block, and kill it after the block.

    For each line on its standard input the process runs one job, which writes in the given `way`.
    """
    # The process starts quickly, because it is started by the path of its program and does not import labkit.
    command = own_python(writer.__file__, way)
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            if _line(process) != "ready":
                raise JobFailed(
                    f"The job for the way of writing {way!r} did not start; call lab.measure_waits() again."
                )
            yield process
        finally:
            process.kill()


def _line(process: "subprocess.Popen[str]") -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def _measure(job: "subprocess.Popen[str]", path: Path, interval: float, pool: ThreadPoolExecutor) -> Measured:
    database = str(path)
    with closing(sqlite3.connect(database)) as connection:
        connection.executescript(SCHEMA)
    ended = Event()
    count = ROUNDS * records(interval)
    reader = pool.submit(_read, database, count, ROUNDS * interval + PATIENCE)
    other = pool.submit(_change, database, interval, ended)
    try:
        assert job.stdin is not None
        job.stdin.write(f"{interval} {database}\n")
        job.stdin.flush()
        commits = _line(job)
        waits = reader.result()
    finally:
        ended.set()
    if not commits.isdigit():
        raise JobFailed("A job died during the measurement; call lab.measure_waits() again.")
    return Measured(waits, other.result(), int(commits))


def _read(database: str, count: int, patience: float) -> list[float]:
    """Read rows until `count` records have become visible, and return how long each had to wait, in seconds.

    Raises `JobFailed` if this takes longer than `patience` seconds.
    """
    waits: list[float] = []
    last, end = 0, time.monotonic() + patience
    with closing(connect(database, writer.PATIENCE)) as connection:
        while len(waits) < count:
            rows = connection.execute("SELECT id, due FROM rows WHERE id > ? ORDER BY id", [last]).fetchall()
            now = time.monotonic()
            waits += [now - due for _, due in rows]
            last = rows[-1][0] if rows else last
            if now > end:
                raise JobFailed(
                    f"The reader saw only {len(waits)} of {count} records within {patience:.0f} s; call "
                    "lab.measure_waits() again."
                )
            time.sleep(LOOKS)
    return waits


def _change(database: str, interval: float, ended: Event) -> list[float]:
    """Update one row now and then until `ended` is set; return how many seconds each update waited for the lock."""
    waits: list[float] = []
    with closing(connect(database, 0)) as connection:
        # Not a simple fraction of the interval, so that the updates fall on different moments of it.
        while not ended.wait(interval * 0.23):
            begun = time.monotonic()
            while not _changed(connection):
                time.sleep(LOOKS)
            waits.append(time.monotonic() - begun)
    return waits or [0.0]


def _changed(connection: sqlite3.Connection) -> bool:
    with suppress(sqlite3.OperationalError):
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("UPDATE stock SET pieces = pieces - 1")
        connection.execute("COMMIT")
        return True
    if connection.in_transaction:
        connection.execute("ROLLBACK")
    return False
