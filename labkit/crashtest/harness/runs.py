"""Runs of a user's sink: one driver, its death at a point, the next driver, and what a reader saw of it all.

A run counts only with evidence: the point was reached, the driver died by signal 9, its session is empty, and the
engine's logs say what the point says. This module must not judge, and must not choose the points.
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
from labkit.crashtest.harness.subject import Adapter
from labkit.crashtest.harness.tasks import QueryTask
from labkit.crashtest.harness.watching import Watcher
from labkit.crashtest.instrument.effects import Effect, Kind, Point
from labkit.crashtest.instrument.recorder import Ticket
from labkit.crashtest.points import read_log, unfinished
from labkit.crashtest.rows import (
    SCHEMA,
    Rows,
    Seen,
    generate,
    generate_large,
    read_rows,
)
from labkit.crashtest.settings import Settings
from labkit.host.processes.events import Died, Ending, Killed, Unwanted
from labkit.spark.checkpoint import Checkpoint
from labkit.spark.crash_proof import Reached, check_death

NEVER_REACHED = "the point was never reached"

SETTLED = 4.0
"""Seconds after which rows that are missing are taken to be lost."""

SPAN = 100_000
"""Identities that one run may use, where runs are told apart by them."""


@dataclass
class Run:
    """One run under way, or over."""

    id: str
    title: str
    folder: Path
    rows: Rows
    watcher: Watcher
    crashes: list[dict[str, Any]] = field(default_factory=list)
    stuck: str = ""
    """Why the job did not go on after a crash; empty if it did."""
    unknown: str = ""
    """Why the run proves nothing; empty if it does."""
    raised: str = ""
    """What the sink raised in a run without a crash."""
    notes: list[str] = field(default_factory=list)
    usual: Sequence[Effect] = ()
    """What a job over the same rows does without a crash; empty: what the healthy run did."""
    seconds: float = 0.0

    @property
    def checkpoint(self) -> Path:
        """Of its (first) query."""
        return self.folder / "checkpoint"

    @property
    def log(self) -> Path:
        """Every effect, of every driver."""
        return self.folder / "effects.jsonl"

    def seen(self) -> list[Seen]:
        """What was read last, of this run's own rows."""
        ids = {row["id"] for batch in self.rows.batches for row in batch.rows}
        last = self.watcher.samples[-1].seen if self.watcher.samples else ()
        return [row for row in last if row.id is None or row.id in ids]

    def effects(self) -> list[Effect]:
        """The log."""
        return read_log(self.log)


class Harness:
    """The drivers, the reader and the store of one test, for a block; `run` gives one run of it."""

    def __init__(
        self,
        settings: Settings,
        adapter: Adapter,
        reader: Reader,
        pool: DriverPool,
        folder: Path,
    ) -> None:
        self.settings, self.reader = settings, reader
        self._adapter, self._pool, self._folder = adapter, pool, folder
        self._idle: Driver | None = None
        self._used: list[Driver] = []
        self._count = 0
        self.rows_read = 0.0
        """How many rows the reader returned for each row of the healthy run's input."""
        self.healthy_log: list[Effect] = []
        """What a run without a crash did; set as soon as it is known."""
        self.strays: list[str] = []
        self.lines = settings.lines
        """Whether lines of the project are places, too."""

    def close(self) -> None:
        """Ends the drivers."""
        self.retire()
        self._pool.close()

    def expect_drivers(self, count: int) -> None:
        """About so many drivers will still be taken, so that none gets warm for nobody."""
        self._pool.wanted = count

    def retire(self) -> None:
        """Ends the driver that would begin the next run, and those that a run has left as they were."""
        idle, self._idle = self._idle, None
        for driver in [*([idle] if idle else []), *self._used]:
            self.end(driver)

    def end(self, driver: Driver) -> None:
        """Ends one driver, and what its sink has left outside of its session."""
        if driver in self._used:
            self._used.remove(driver)
        left = driver.close()
        if left:
            self.strays.append(
                f"the sink left {len(left)} process(es) outside of its driver's session; they were ended"
            )

    def large_rows(self) -> Rows:
        """Fresh rows with one large batch."""
        return generate_large(0 if self.reader.resets else self._count * SPAN)

    def rows(self, first: int = 0) -> Rows:
        """Fresh rows for a query; `first` batches of other queries go to the same store."""
        if self.settings.rows is not None:
            return read_rows(self.settings.rows, self.settings.batches).moved(first)
        base = 0 if self.reader.resets else self._count * SPAN
        return generate(self.settings.batches, base, first)

    @contextmanager
    def run(self, name: str, title: str, rows: Rows | None = None) -> Iterator[Run]:
        """An empty store, and a reader that watches it, for one run."""
        self._count += 1
        if self.reader.resets:
            self.reader.reset()
        folder = self._folder / name
        rows = rows or self.rows()
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
        """Watches the store for a while after the end, longer while rows are missing, then looks for the last time."""
        end = time.monotonic() + SETTLED
        time.sleep(self.settings.settle if self.healthy_log else SETTLED / 2)
        while (
            len(run.seen()) < self.rows_read * len(run.rows.expected())
            and time.monotonic() < end
        ):
            time.sleep(0.1)
        run.watcher.look("end")
        if not self.healthy_log:
            self.rows_read = len(run.seen()) / len(run.rows.expected())

    def driver(self) -> Driver:
        """The driver that has just ended a run, or a new one."""
        idle, self._idle = self._idle, None
        driver = idle or self._pool.take()
        self._used.append(driver)
        return driver

    def keep_idle(self, driver: Driver, outcome: Outcome) -> None:
        """Keeps a driver for the next run. One in which the sink left something open lives to the end of this one."""
        if isinstance(outcome, Finished) and not outcome.left:
            self._used.remove(driver)
            self._idle = driver

    def execute(
        self, run: Run, crashes: Sequence[Point] = (), then: str = "crash"
    ) -> None:
        """Runs the job to its end, through its crashes."""
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

    def _try_again(
        self, run: Run, driver: Driver, query: QueryTask, failed: Finished
    ) -> tuple[Driver, Outcome]:
        """A job that fails after a crash is started once more, as whoever runs it would; then it is stuck."""
        run.notes.append(
            f"after the crash the sink raised {failed.failed}; the job was started once more"
        )
        if failed.left:
            self.end(driver)
            driver = self.driver()
        again = follow(driver.give([replace(query, name=f"{query.name}-again")]))
        if isinstance(again, Finished) and again.failed:
            run.stuck = again.failed
        return driver, again

    def _conclude(
        self, run: Run, driver: Driver, outcome: Outcome, point: Point | None
    ) -> None:
        if isinstance(outcome, Died | Unwanted):
            self.end(driver)
            raise JobFailed(
                f"the sink ended its driver's process; {last_words(driver.log)}"
            )
        self.keep_idle(driver, outcome)
        failed = outcome.failed if isinstance(outcome, Finished) else ""
        if failed and not run.crashes:
            run.raised = failed
            if point is not None:
                raise JobFailed(
                    f"before the point was reached the sink raised {failed}"
                )
        elif point is not None and not run.stuck:
            raise JobFailed(f"{NEVER_REACHED}: the run ended without this crash")

    def query(
        self,
        run: Run,
        number: int,
        point: Point | None,
        then: str = "crash",
        query: int = 1,
    ) -> QueryTask:
        """What a driver must know of one query."""
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
        """Where lines are recorded: in the run without a crash, and in one that is to die at a line."""
        return not self.healthy_log or (point is not None and point.kind is Kind.LINE)

    def record_crash(self, run: Run, number: int, point: Point, ending: Ending) -> None:
        """Checks the evidence of one crash and keeps it, then looks. Raises `JobFailed` when anything does not hold."""
        seen = read_evidence(run.folder / f"reached-{number}.json", point)
        reached = Reached(seen["pid"], seen["session"])
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
        batches = (
            (point.batch,)
            if number == 1 and unfinished(point, run.usual or self.healthy_log)
            else ()
        )
        run.watcher.look(f"crash {number}", batches)

    def record_task_crash(self, run: Run, point: Point) -> None:
        """Checks that a task died alone at its point. Raises `JobFailed` if it did not."""
        reached = read_evidence(run.folder / "reached-1.json", point)
        run.crashes.append(
            {
                "point": point.id,
                "signal": 9,
                "killed": [reached["pid"]],
                "reached_by": reached["pid"],
            }
        )


def check_store(reader: Reader) -> int:
    """How many rows the store had before `reset`. Raises `InvalidInput` if it is not empty when the test begins."""
    seen: list[Seen] = reader.read_surely(2.0)
    if reader.resets:
        reader.reset()
        left = reader.read_surely(2.0)
        if left:
            raise InvalidInput(
                f"after reset() the reader still finds {len(left)} row(s); reset() must empty the store."
            )
    elif seen:
        raise InvalidInput(
            f"the store is not empty: the reader finds {len(seen)} row(s) of something else; empty it, or give the "
            "file a reset() that does. Nothing was deleted."
        )
    return len(seen)


def forget(folder: Path) -> None:
    """Removes what a run left, but not its log and its evidence."""
    for path in folder.glob("checkpoint*"):
        with suppress(OSError):
            shutil.rmtree(path)
