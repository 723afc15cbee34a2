"""A driver under test: gets warm without touching the user's file, then runs one query after another, as it is told.

It is started by `labkit.host.processes.supervisor` and speaks its language: events as JSON lines, `idle` when
there is nothing left to wait for but the kill. What the user's code prints goes to the log. This module must
not judge, and must not kill anything but its own session, when the supervisor is gone.
"""

import contextlib
import json
import os
import re
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from labkit.core.errors import InvalidInput, LabError
from labkit.crashtest.harness.leftovers import opened
from labkit.crashtest.harness.subject import Door, load
from labkit.crashtest.instrument.effects import RECOVER, Kind
from labkit.crashtest.instrument.recorder import PROPERTY, Ticket, recorder, testify
from labkit.crashtest.rows import FILES, SCHEMA, generate
from labkit.host.processes.supervised import die_with_supervisor, orders
from labkit.spark.checkpoint import Checkpoint
from labkit.spark.reach import park
from labkit.spark.start import reason, register

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

_POLL = 0.01
_STOPPED = 2.0
"""Seconds between two looks after which this process must have been stopped; the sink could do nothing either."""

MASTER = "local[1,2]"
"""One task at a time, so that tasks write in partition order; a task that fails is tried a second time."""

_RAISED = re.compile(r"(?P<name>[A-Za-z_][\w.]*): (?P<text>.*)")
"""The last line of a traceback, at its margin."""

_channel = [1]
"""Where events go: standard output, until what the user's code prints is kept out of it."""


def report(event: str, **details: Any) -> None:
    """One event for the supervisor, also from a thread that is about to stop this process."""
    os.write(_channel[0], json.dumps({"event": event, **details}).encode() + b"\n")


class Hung(LabError):
    """A query that did nothing for too long. It cannot be stopped, since that would wait for the sink."""


hung: list[str] = []
"""The queries that hang in this driver."""


class Cell:
    """One query on its way: the user's sink behind its door, over the rows of one folder."""

    def __init__(self, spark: "SparkSession", spec: dict[str, Any]) -> None:
        self.name: str = spec["name"]
        self._spec, self._ticket = spec, Ticket.from_json(spec["ticket"])
        self._commits = Path(spec["checkpoint"]) / "commits"
        self._progress, self._since = (0, 0), time.monotonic()
        self._looked = self._since
        self._told = False
        self._query = self._start(spark)

    def _start(self, spark: "SparkSession") -> "StreamingQuery":
        spark.sparkContext.setLocalProperty(
            PROPERTY, json.dumps(self._ticket.to_json())
        )
        recover(self._ticket, self._spec["checkpoint"])
        schema = self._spec["schema"] or spark.read.json(self._spec["input"]).schema
        rows = (
            spark.readStream.schema(schema)
            .option("maxFilesPerTrigger", FILES)
            .json(self._spec["input"])
        )
        writer = rows.writeStream.trigger(availableNow=True).option(
            "checkpointLocation", self._spec["checkpoint"]
        )
        return enter(
            spark,
            writer,
            Door(self._spec["door"]),
            self._ticket,
            name=self._spec["sink"],
            options=self._spec["options"],
        )

    def poll(self) -> str | None:
        """`parked`, `stopped` or `ended`, or None while it is under way. Raises what the query failed with."""
        self._look_for_commits()
        if self._ticket.evidence and Path(self._ticket.evidence).exists():
            if self._ticket.then == "crash":
                return "parked"
            self._say_stopped()
        if self._query.isActive:
            self._check_hung()
            return None
        error = self._query.exception()
        if error is not None:
            raise error
        return "ended"

    def _say_stopped(self) -> None:
        if self._ticket.then == "stop" and not self._told:
            self._told = True
            idle(self._ticket)

    def _look_for_commits(self) -> None:
        armed = self._ticket.armed
        if (
            armed is not None
            and armed.kind is Kind.COMMITS
            and (self._commits / str(armed.batch)).exists()
        ):
            testify(self._ticket, Kind.COMMITS)

    def _check_hung(self) -> None:
        done = len(list(self._commits.glob("[0-9]*"))) if self._commits.is_dir() else 0
        log = Path(self._ticket.log)
        progress = done, log.stat().st_size if log.exists() else 0
        now = time.monotonic()
        if progress != self._progress or now - self._looked > _STOPPED:
            self._progress, self._since = progress, now
        self._looked = now
        if now - self._since > self._spec["limit"]:
            hung.append(f"the query {self.name}")
            raise Hung(
                f"the sink did nothing for {self._spec['limit']:.0f} s in batch {done}: it hangs or waits"
            )


def enter(
    spark: "SparkSession",
    writer: Any,
    door: Door,
    ticket: Ticket,
    *,
    name: str,
    options: dict[str, str],
) -> "StreamingQuery":
    """Starts a query on a sink behind its door."""
    from labkit.crashtest.instrument import adapters

    if door is Door.BATCH:
        return writer.foreachBatch(adapters.BatchDoor(ticket, name)).start()
    if door is Door.WRITER:
        return writer.foreach(adapters.WriterDoor(ticket, name)).start()
    register(spark, adapters.SourceDoor)
    ours = {adapters.TICKET: adapters.as_option(ticket), adapters.NAME: name}
    return writer.format(adapters.FORMAT).options(**options, **ours).start()


def recover(ticket: Ticket, checkpoint: str) -> None:
    """Calls the file's own `recover(checkpoint)`, if it has one, as its job would before it starts the query."""
    from labkit.crashtest.instrument import adapters

    adapters.ready(ticket)
    module = load(ticket.file, anew=True)
    if callable(getattr(module, "recover", None)):
        planned = Checkpoint(Path(checkpoint)).offset_log()
        with recorder.call(ticket, max(planned, default=0), RECOVER):
            module.recover(checkpoint)


def warm_up(spark: "SparkSession", door: Door, scratch: Path) -> None:
    """A scratch query of the same shape on a sink that keeps nothing."""
    folder = scratch / "warm"
    generate(1).write(folder / "input")
    ticket = Ticket(
        str(Path(__file__).with_name("harmless.py")), str(folder / "log"), 0
    )
    rows = (
        spark.readStream.schema(SCHEMA)
        .option("maxFilesPerTrigger", FILES)
        .json(str(folder / "input"))
    )
    writer = rows.writeStream.trigger(availableNow=True).option(
        "checkpointLocation", str(folder / "checkpoint")
    )
    enter(
        spark, writer, door, ticket, name=door.name.lower(), options={}
    ).awaitTermination()


def run(spec: dict[str, Any]) -> None:
    """Gets warm, then runs what it is told to, for as long as somebody tells it."""
    from labkit.spark.session import start_session

    scratch = Path(spec["scratch"])
    spark = start_session(MASTER, scratch, FILES, sys.stderr.buffer, "crashtest")
    warm_up(spark, Door(spec["door"]), scratch)
    report("ready")
    usual = opened(scratch)
    while True:
        cells = run_cells(spark, orders.get()["cells"])
        left = [*hung, *([] if cells else opened(scratch).beyond(usual))]
        if left:
            print(
                f"labkit: the sink left open {', '.join(left)}",
                file=sys.stderr,
                flush=True,
            )
        report("rested", left=left)


def run_cells(spark: "SparkSession", specs: list[dict[str, Any]]) -> list[Cell]:
    """Runs queries side by side until each has stopped; those that did not end by themselves are returned."""
    active: list[Cell] = []
    for spec in specs:
        report("begun", cell=spec["name"])
        with _failing(spec["name"]):
            active.append(Cell(spark, spec))
    parked: list[Cell] = []
    while active:
        for cell in list(active):
            outcome: str | None = "failed"
            with _failing(cell.name):
                outcome = cell.poll()
            if outcome is not None:
                active.remove(cell)
                if outcome == "parked":
                    parked.append(cell)
                    idle(cell._ticket)  # noqa: SLF001  # of this module
                elif outcome == "ended":
                    report("ended", cell=cell.name)
        time.sleep(_POLL)
    return parked


@contextlib.contextmanager
def _failing(name: str) -> Iterator[None]:
    """One query's failure, in one sentence; the whole of it goes to the log."""
    try:
        yield
    except Exception as error:
        print(f"labkit: {name}: {error}", file=sys.stderr, flush=True)
        ours = isinstance(error, Hung | InvalidInput)
        report(
            "failed",
            cell=name,
            because=str(error) if ours else told(error),
            code=64 if ours else 1,
        )


def told(error: Exception) -> str:
    """What the user's code raised, out of the many lines in which Spark wraps it."""
    _, traceback, text = str(error).partition("Traceback (most recent call last)")
    for line in text.splitlines() if traceback else []:
        if found := _RAISED.fullmatch(line):
            return f"{found['name'].rpartition('.')[2]}: {found['text']}"[:300]
    return reason(error)[:300]


def idle(ticket: Ticket) -> None:
    """A point was reached: there is nothing left to wait for but the kill, or the signal that stops it all."""
    report(
        "idle" if ticket.then == "crash" else "stopped",
        cell="",
        evidence=ticket.evidence,
    )


def main() -> None:
    """`python -m labkit.crashtest.harness.driver SPEC`, started by the supervisor only."""
    _channel[0] = os.dup(1)
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    recorder.told = idle
    threading.Thread(target=die_with_supervisor, daemon=True).start()
    spec = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    os.chdir(spec["cwd"])
    try:
        run(spec)
    except LabError as error:
        report("failed", cell=None, because=str(error), code=error.exit_code)
    park()


if __name__ == "__main__":
    main()
