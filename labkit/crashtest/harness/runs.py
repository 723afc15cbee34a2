"""Runs a user's sink through crashes: a driver, its death at a crash point, the next driver, and readings meanwhile.

A run counts only with evidence: the job reached the crash point, the driver died by signal 9, no process of its session
is left, and Spark's logs agree with the crash point.
"""

import shutil
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from labkit.core.errors import InvalidInput, JobFailed
from labkit.crashtest.harness.drivers import Driver, DriverPool, last_words
from labkit.crashtest.harness.evidence import check_point_logs, read_evidence
from labkit.crashtest.harness.outcomes import Finished, Outcome, follow
from labkit.crashtest.harness.reader import Reader, ReaderFailed
from labkit.crashtest.harness.tasks import QueryTask
from labkit.crashtest.harness.watching import Watcher
from labkit.crashtest.instrument.effects import Effect, Kind, Point
from labkit.crashtest.instrument.ticket import Ticket
from labkit.crashtest.jobs import NEVER_REACHED
from labkit.crashtest.points import read_log, unfinished
from labkit.crashtest.rows import SCHEMA, Rows, Seen, generate, generate_large, read_rows
from labkit.crashtest.samples import SETTLED
from labkit.crashtest.settings import Settings
from labkit.crashtest.subject import Adapter
from labkit.host.processes.events import Died, Ending, Killed, Unwanted
from labkit.spark.checkpoint import Checkpoint
from labkit.spark.crash_proof import Reached, check_death

SPAN = 100_000
"""The number of row ids reserved for each run, so that rows of different runs in one store can be distinguished."""


@dataclass
class Run:
    """The record of one run, while it goes on and when it is over."""

    id: str
    title: str
    folder: Path
    rows: Rows
    watcher: Watcher
    crashes: list[dict[str, Any]] = field(default_factory=list)
    stuck: str = ""
    """The reason why the job did not continue after a crash; empty if it continued."""
    unknown: str = ""
    """The reason why the run proves nothing; empty if it counts."""
    raised: str = ""
    """The error that the sink raised in a run without a crash; empty if there was none."""
    notes: list[str] = field(default_factory=list)
    usual: Sequence[Effect] = ()
    """The effects of a run without a crash over the same rows; empty if those of the test's first run apply."""
    seconds: float = 0.0

    @property
    def checkpoint(self) -> Path:
        """The checkpoint folder of the run's first query."""
        return self.folder / "checkpoint"

    @property
    def log(self) -> Path:
        """The path of the log to which every driver of the run appends its effects."""
        return self.folder / "effects.jsonl"

    def seen(self) -> list[Seen]:
        """Return the rows of the latest reading that belong to this run or have no id."""
        ids = {row["id"] for batch in self.rows.batches for row in batch.rows}
        last = self.watcher.samples[-1].seen if self.watcher.samples else ()
        return [row for row in last if row.id is None or row.id in ids]

    def effects(self) -> list[Effect]:
        """Return the effects that the drivers have logged so far."""
        return read_log(self.log)


class Harness:
    """Runs one user's sink for a test, with its drivers, its reader and its store.

    `run` prepares one run, and `close` ends the drivers.
    """

    def __init__(self, settings: Settings, adapter: Adapter, reader: Reader, pool: DriverPool, folder: Path) -> None:
        self.settings, self.reader = settings, reader
        self._adapter, self._pool, self._folder = adapter, pool, folder
        self._idle: Driver | None = None
        self._used: list[Driver] = []
        self._count = 0
        self.rows_read = 0.0
        """The number of rows that the reader returned for each expected row in the run without a crash."""
        self.healthy_log: list[Effect] = []
        """The effects of the run without a crash; empty until that run is over."""
        self.leftover_notes: list[str] = []
        self.lines = settings.lines
        """Whether the test can also crash the job before a source line of the user's project."""

    def close(self) -> None:
        """End every driver of the test."""
        self.retire()
        self._pool.close()

    def expect_drivers(self, count: int) -> None:
        """Set the estimated number of drivers that the test still needs, so that no more are started in advance."""
        self._pool.wanted = count

    def retire(self) -> None:
        """End the idle driver, and all drivers that are still in use by a run."""
        idle, self._idle = self._idle, None
        for driver in [*([idle] if idle else []), *self._used]:
            self.end(driver)

    def end(self, driver: Driver) -> None:
        """End one driver, and record how many processes its sink left outside of its session."""
        if driver in self._used:
            self._used.remove(driver)
        left = driver.close()
        if left:
            self.leftover_notes.append(
                f"the sink left {len(left)} process(es) outside its driver's session; the test ended them"
            )

    def large_rows(self) -> Rows:
        """Return new input rows in one large batch."""
        return generate_large(0 if self.reader.resets else self._count * SPAN)

    def rows(self, first: int = 0) -> Rows:
        """Return new input rows for a query: the user's rows, or generated ones.

        `first` is the number of batches that earlier queries have written into the same store.
        """
        if self.settings.rows is not None:
            return read_rows(self.settings.rows, self.settings.batches).moved(first)
        base = 0 if self.reader.resets else self._count * SPAN
        return generate(self.settings.batches, base, first)

    @contextmanager
    def run(self, name: str, title: str, rows: Rows | None = None) -> Iterator[Run]:
        """Empty the store, and provide a run within a `with` block, during which the store is read continually.

        If the job or the reader fails in the block, the run becomes unknown. `rows` are the input, by default those of
        the method `rows`; call that just before, because the ids of its rows belong to the next run.
        """
        rows = rows or self.rows()
        self._count += 1
        if self.reader.resets:
            self.reader.reset()
        folder = self._folder / name
        rows.write(folder / "input")
        begun = time.monotonic()
        asks = None if self.healthy_log else folder / "asks"
        with Watcher(self.reader, asks=asks) as watcher:
            run = Run(name, title, folder, rows, watcher)
            try:
                yield run
            except (JobFailed, ReaderFailed) as error:
                run.unknown = str(error)
                self.retire()
        for driver in list(self._used):
            self.end(driver)
        run.seconds = time.monotonic() - begun
        for used in ("input", "input-2"):
            shutil.rmtree(folder / used, ignore_errors=True)

    def settle(self, run: Run) -> None:
        """Read the store after the job's end, for a longer time while rows are missing, then take the last reading.

        This does nothing if the run is already unknown, because no later reading can change that.
        """
        if run.unknown:
            return
        end = time.monotonic() + SETTLED
        time.sleep(self.settings.settle if self.healthy_log else SETTLED / 2)
        while len(run.seen()) < self.rows_read * len(run.rows.expected()) and time.monotonic() < end:
            time.sleep(0.1)
        run.watcher.look("end")
        if not self.healthy_log:
            self.rows_read = len(run.seen()) / len(run.rows.expected())

    def driver(self) -> Driver:
        """Return the idle driver, or a new one, and record that a run uses it."""
        idle, self._idle = self._idle, None
        driver = idle or self._pool.take()
        self._used.append(driver)
        return driver

    def keep_idle(self, driver: Driver, outcome: Outcome) -> None:
        """Keep a driver for the next run, unless its sink left something open; such a driver ends with the
        current run.
        """
        if isinstance(outcome, Finished) and not outcome.left:
            self._used.remove(driver)
            self._idle = driver

    def execute(self, run: Run, crashes: Sequence[Point] = (), then: str = "crash") -> None:
        """Run the job to its end, with a crash at each of these crash points and a new driver after each crash.

        `then` says what happens at a crash point (`Ticket.then`).
        """
        driver, dead = self.driver(), None
        for number, point in enumerate([*crashes, None], start=1):
            run.watcher.driver = number
            query = self.query(run, number, point, then)
            outcome = follow(driver.give([query], dead))
            if isinstance(outcome, Killed):
                self.end(driver)
                assert point is not None
                self.record_crash(run, number, point, outcome)
                dead, driver = outcome, self.driver()
                continue
            if isinstance(outcome, Finished) and outcome.failed and run.crashes:
                driver, outcome = self._try_again(run, driver, query, outcome)
            self._conclude(run, driver, outcome, point if then == "crash" else None)
            if then == "task":
                self.record_task_crash(run, crashes[0])
                run.stuck = run.raised
            return

    def _try_again(self, run: Run, driver: Driver, query: QueryTask, failed: Finished) -> tuple[Driver, Outcome]:
        """Start a job once more that failed after a crash, as an operator would, and return the driver and the outcome.

        If the job fails again, the run is stuck.
        """
        run.notes.append(f"after the crash the sink raised {failed.failed}, so the job was restarted once")
        if failed.left:
            self.end(driver)
            driver = self.driver()
        again = follow(driver.give([replace(query, name=f"{query.name}-again")]))
        if isinstance(again, Finished) and again.failed:
            run.stuck = again.failed
        return driver, again

    def _conclude(self, run: Run, driver: Driver, outcome: Outcome, point: Point | None) -> None:
        if isinstance(outcome, Died | Unwanted):
            self.end(driver)
            raise JobFailed(f"the sink ended its driver's process; {last_words(driver.log)}")
        self.keep_idle(driver, outcome)
        failed = outcome.failed if isinstance(outcome, Finished) else ""
        if failed and not run.crashes:
            run.raised = failed
            if point is not None:
                raise JobFailed(f"the sink raised an error before it reached the point: {failed}")
        elif point is not None and not run.stuck:
            raise JobFailed(f"{NEVER_REACHED}: the run ended before the job came to this point")

    def query(self, run: Run, number: int, point: Point | None, then: str = "crash", query: int = 1) -> QueryTask:
        """Return the order that makes a driver run one query of a run.

        `number` is the driver's number in the run and `query` the query's, both from 1. The driver crashes at `point`,
        or nowhere if it is None.
        """
        suffix = "" if query == 1 else f"-{query}"
        evidence = str(run.folder / f"reached-{number}.json") if point else ""
        ticket = Ticket(
            self.settings.subject.file,
            str(run.log),
            number,
            point,
            evidence,
            then,
            *self.settings.project[1:],
            asks="" if self.healthy_log else str(run.folder / "asks"),
            lines=self.lines and self._needs_lines(point),
        )
        return QueryTask(
            name=f"{run.id}-{number}{suffix}",
            ticket=ticket,
            checkpoint=str(run.checkpoint) + suffix,
            input=str(run.folder / "input") + suffix,
            schema=SCHEMA if run.rows.generated else None,
            adapter=self._adapter,
            sink=self.settings.subject.name,
            options=self.settings.options,
            limit=self.settings.limit,
        )

    def _needs_lines(self, point: Point | None) -> bool:
        """Return whether the query must record source lines: in the run without a crash, or with a crash point at a
        line.
        """
        return not self.healthy_log or (point is not None and point.kind is Kind.LINE)

    def record_crash(self, run: Run, number: int, point: Point, ending: Ending) -> None:
        """Check the proof of one crash, add the crash to the run, and take a reading.

        `ending` says how the driver with this number ended. Raises `JobFailed` if the crash is not proven.
        """
        evidence = read_evidence(run.folder / f"reached-{number}.json", point)
        reached = Reached(evidence["pid"], evidence["session"])
        proof = check_death(point.id, ending, reached)
        checkpoint = Checkpoint(run.checkpoint)
        check_point_logs(point, run.crashes, checkpoint)
        run.crashes.append(
            {
                "point": point.id,
                "signal": proof.signal,
                "killed": proof.killed,
                "reached_by": reached.pid,
                "offsets": checkpoint.offset_log(),
                "commits": checkpoint.commit_log(),
                "at": proof.begun,
            }
        )
        batches = (point.batch,) if number == 1 and unfinished(point, run.usual or self.healthy_log) else ()
        try:
            run.watcher.look(f"crash {number}", batches)
        except ReaderFailed as error:  # what becomes of the job is still worth knowing
            run.unknown = str(error)

    def record_task_crash(self, run: Run, point: Point) -> None:
        """Check that a single task died at its crash point, and add that crash to the run. Raises `JobFailed` if none
        died.
        """
        reached = read_evidence(run.folder / "reached-1.json", point)
        run.crashes.append({"point": point.id, "signal": 9, "killed": [reached["pid"]], "reached_by": reached["pid"]})


def check_rows(settings: Settings, reader: Reader) -> None:
    """Raise `InvalidInput` if the user supplies the rows, but no `reset` to empty the store between two runs.

    Every run gives the sink rows with the same ids, so a row of an earlier run would count as a duplicate, or hide a
    loss.
    """
    if settings.rows is not None and not reader.resets:
        raise InvalidInput(
            f"--rows {settings.rows}: every run uses the same ids, so rows of two runs cannot be distinguished; add a "
            f"function reset() next to {settings.rows_reader} that empties the store."
        )


def check_store(reader: Reader) -> int:
    """Empty the store, and return the number of rows that it contained before.

    The number is 0 if the store cannot be read yet, like a table that `reset` creates. Raises `InvalidInput` if the
    store is not empty afterwards, or cannot be read.
    """
    try:
        rows: list[Seen] = reader.read_surely(2.0)
    except ReaderFailed as error:
        if not reader.resets:
            raise InvalidInput(str(error)) from None
        rows = []
    if reader.resets:
        try:
            reader.reset()
            left = reader.read_surely(2.0)
        except ReaderFailed as error:
            raise InvalidInput(str(error)) from None
        if left:
            raise InvalidInput(
                f"after reset() the reader still finds {len(left)} row(s); reset() must empty the store."
            )
    elif rows:
        raise InvalidInput(
            f"the store is not empty: before the test the reader finds {len(rows)} row(s); empty it, or add a "
            "function reset() to the file that does. Nothing was deleted."
        )
    return len(rows)


def forget(folder: Path) -> None:
    """Remove a run's checkpoints, but keep its log and its evidence."""
    for path in folder.glob("checkpoint*"):
        with suppress(OSError):
            shutil.rmtree(path)
