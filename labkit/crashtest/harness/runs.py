"""Runs of a user's sink: one driver, its death at a point, the next driver, and what a reader saw of it all.

A run counts only with evidence: the point was reached, the driver died by signal 9, its session is empty, and the
engine's logs say what the point says. This module must not judge, and must not choose the points.
"""

import json
import shutil
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from labkit.core.errors import InvalidInput, JobFailed, ServiceUnavailable
from labkit.crashtest.harness.drivers import Driver, Stable
from labkit.crashtest.harness.reader import Reader, ReaderFailed
from labkit.crashtest.harness.subject import Door
from labkit.crashtest.harness.watching import Watcher
from labkit.crashtest.instrument.effects import RECOVER, Effect, Kind, Point, Side
from labkit.crashtest.instrument.recorder import Ticket
from labkit.crashtest.points import read_log, unfinished
from labkit.crashtest.rows import SCHEMA, Rows, Seen, generate, read_rows
from labkit.crashtest.settings import Settings
from labkit.spark.checkpoint import Checkpoint

NEVER_REACHED = "the point was never reached"

SETTLED = 4.0
"""Seconds after which rows that are missing are taken to be lost."""

SPAN = 100_000
"""Identities that one run may use, where runs are told apart by them."""


@dataclass
class Trial:
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


class Workshop:
    """The drivers, the reader and the store of one test, for a block; `trial` gives one run of it."""

    def __init__(
        self,
        settings: Settings,
        door: Door,
        reader: Reader,
        stable: Stable,
        folder: Path,
    ) -> None:
        self.settings, self.reader = settings, reader
        self._door, self._stable, self._folder = door, stable, folder
        self._rested: Driver | None = None
        self._used: list[Driver] = []
        self._count = 0
        self.rows_read = 0.0
        """How many rows the reader returned for each batch of the healthy run."""
        self.healthy_log: list[Effect] = []
        """What a run without a crash did; set as soon as it is known."""
        self.strays: list[str] = []

    def close(self) -> None:
        """Ends the drivers."""
        self.retire()
        self._stable.close()

    def retire(self) -> None:
        """Ends the driver that would begin the next run, and those that a run has left as they were."""
        rested, self._rested = self._rested, None
        for driver in [*([rested] if rested else []), *self._used]:
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

    def rows(self, first: int = 0) -> Rows:
        """Fresh rows for a query; `first` batches of other queries go to the same store."""
        if self.settings.rows is not None:
            return read_rows(self.settings.rows, self.settings.batches).moved(first)
        base = 0 if self.reader.resets else self._count * SPAN
        return generate(self.settings.batches, base, first)

    @contextmanager
    def trial(self, name: str, title: str, rows: Rows | None = None) -> Iterator[Trial]:
        """An empty store, and a reader that watches it, for one run."""
        self._count += 1
        if self.reader.resets:
            self.reader.reset()
        folder = self._folder / name
        rows = rows or self.rows()
        rows.write(folder / "input")
        begun = time.monotonic()
        with Watcher(self.reader) as watcher:
            trial = Trial(name, title, folder, rows, watcher)
            try:
                yield trial
            except (JobFailed, ReaderFailed) as error:
                trial.unknown = str(error)
                self.retire()
        for driver in list(self._used):
            self.end(driver)
        trial.seconds = time.monotonic() - begun
        for used in ("input", "input-2"):
            shutil.rmtree(folder / used, ignore_errors=True)

    def settle(self, trial: Trial) -> None:
        """Watches the store for a while after the end, longer while rows are missing, then looks for the last time."""
        end = time.monotonic() + SETTLED
        time.sleep(self.settings.settle if self.healthy_log else SETTLED / 2)
        while (
            len(trial.seen()) < self.rows_read * len(trial.rows.batches)
            and time.monotonic() < end
        ):
            time.sleep(0.1)
        trial.watcher.look("end")
        if not self.healthy_log:
            self.rows_read = len(trial.seen()) / len(trial.rows.batches)

    def driver(self) -> Driver:
        """The driver that has just ended a run, or a new one."""
        rested, self._rested = self._rested, None
        driver = rested or self._stable.take()
        self._used.append(driver)
        return driver

    def rest(self, driver: Driver, ending: dict[str, Any]) -> None:
        """Keeps a driver for the next run. One in which the sink left something open lives to the end of this one."""
        if ending.get("left") == []:
            self._used.remove(driver)
            self._rested = driver

    def play(
        self, trial: Trial, crashes: Sequence[Point] = (), then: str = "crash"
    ) -> None:
        """Runs the job to its end, through its crashes."""
        driver, dead = self.driver(), None
        for number, point in enumerate([*crashes, None], start=1):
            trial.watcher.driver = number
            cell = self.cell(trial, number, point, then)
            ending = follow(driver.give([cell], dead))
            if ending["event"] == "killed":
                self.end(driver)
                assert point is not None
                self.note(trial, number, point, ending)
                dead, driver = ending, self.driver()
                continue
            if ending["event"] == "failed" and trial.crashes:
                driver, ending = self._try_again(trial, driver, cell, ending)
            self._conclude(trial, driver, ending, point if then == "crash" else None)
            if then == "task":
                self.note_task(trial, crashes[0])
                trial.stuck = trial.raised
            return

    def _try_again(
        self, trial: Trial, driver: Driver, cell: dict[str, Any], ending: dict[str, Any]
    ) -> tuple[Driver, dict[str, Any]]:
        """A job that fails after a crash is started once more, as whoever runs it would; then it is stuck."""
        trial.notes.append(
            f"after the crash the sink raised {ending['because']}; the job was started once more"
        )
        if ending["left"]:
            self.end(driver)
            driver = self.driver()
        again = follow(driver.give([{**cell, "name": f"{cell['name']}-again"}]))
        if again["event"] == "failed":
            trial.stuck = again["because"]
        return driver, again

    def _conclude(
        self, trial: Trial, driver: Driver, ending: dict[str, Any], point: Point | None
    ) -> None:
        if ending["event"] in ("died", "unwanted"):
            self.end(driver)
            raise JobFailed(
                f"the sink ended its driver's process; {driver.log.name} says how."
            )
        self.rest(driver, ending)
        if ending["event"] == "failed" and not trial.crashes:
            trial.raised = ending["because"]
            if point is not None:
                raise JobFailed(
                    f"before the point was reached the sink raised {ending['because']}"
                )
        elif point is not None and not trial.stuck:
            raise JobFailed(f"{NEVER_REACHED}: the run ended without this crash")

    def cell(
        self,
        trial: Trial,
        number: int,
        point: Point | None,
        then: str = "crash",
        query: int = 1,
    ) -> dict[str, Any]:
        """What a driver must know of one query."""
        suffix = "" if query == 1 else f"-{query}"
        evidence = str(trial.folder / f"reached-{number}.json") if point else ""
        ticket = Ticket(
            self.settings.subject.file, str(trial.log), number, point, evidence, then
        )
        return {
            "name": f"{trial.id}-{number}{suffix}",
            "ticket": ticket.to_json(),
            "checkpoint": str(trial.checkpoint) + suffix,
            "input": str(trial.folder / "input") + suffix,
            "schema": SCHEMA if trial.rows.generated else None,
            "door": self._door.value,
            "sink": self.settings.subject.name,
            "options": self.settings.options,
            "limit": self.settings.limit,
        }

    def note(
        self, trial: Trial, number: int, point: Point, proof: dict[str, Any]
    ) -> None:
        """Checks the evidence of one crash and keeps it, then looks. Raises `JobFailed` when anything does not hold."""
        reached = testimony(trial.folder / f"reached-{number}.json", point)
        if (
            proof.get("signal") != 9
            or proof.get("left")
            or reached["session"] != proof["session"]
        ):
            raise JobFailed(
                f"the driver did not die at the point by SIGKILL alone (proof: {proof})"
            )
        checkpoint = Checkpoint(trial.checkpoint)
        planned, finished = checkpoint.offset_log(), checkpoint.commit_log()
        right = point.where == RECOVER or (point.batch in finished) == (
            point.kind is Kind.COMMITS
        )
        if point.batch not in planned or not right:
            raise JobFailed(
                f"the engine's logs (offsets {planned}, commits {finished}) are not those of this point"
            )
        evidence = {
            "point": point.id,
            "signal": 9,
            "killed": proof["killed"],
            "reached_by": reached["pid"],
        }
        trial.crashes.append(
            {**evidence, "offsets": planned, "commits": finished, "at": proof["begun"]}
        )
        batches = (
            (point.batch,)
            if number == 1 and unfinished(point, self.healthy_log)
            else ()
        )
        trial.watcher.look(f"crash {number}", batches)

    def note_task(self, trial: Trial, point: Point) -> None:
        """Checks that a task died alone at its point. Raises `JobFailed` if it did not."""
        reached = testimony(trial.folder / "reached-1.json", point)
        trial.crashes.append(
            {
                "point": point.id,
                "signal": 9,
                "killed": [reached["pid"]],
                "reached_by": reached["pid"],
            }
        )


def testimony(path: Path, point: Point) -> dict[str, Any]:
    """The evidence that a point was reached. Raises `JobFailed` if there is none, or it is of something else."""
    try:
        seen: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        named, kind = seen["point"], seen["kind"]
    except (OSError, ValueError, KeyError):
        raise JobFailed("there is no evidence that the point was reached") from None
    if named != point.id or (point.side is Side.AFTER and kind != point.kind.value):
        raise JobFailed(
            f"the evidence is of {named} ({kind}), not of {point.id} ({point.kind})"
        )
    return seen


def follow(events: Iterator[dict[str, Any]]) -> dict[str, Any]:
    """What becomes of the queries that a driver was given: `ended`, `failed`, `stopped`, `killed` (with proof), `died`.

    Raises what the driver failed with if it was not a query's failure.
    """
    outcome: dict[str, Any] = {"event": "ended"}
    for event in events:
        kind = event["event"]
        if kind == "failed" and event.get("cell") is None:
            raise (ServiceUnavailable if event["code"] == 69 else JobFailed)(
                event["because"]
            )
        if kind == "failed":
            outcome = event
        elif kind == "rested":
            return {**outcome, "left": event["left"]}
        elif kind in ("killed", "died", "unwanted", "stopped"):
            return event
    raise JobFailed("the driver's supervisor ended without a word")


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
