"""One driver process: runs the queries of several scenarios in one Spark session, a few at a time.

It is told what to run by a JSON file and reports events as JSON lines on standard output. When every query has
either ended or is parked at its failpoint it says `idle` and waits: the supervisor decides what happens then.
This module must not judge anything, and must not kill, except its own session when the supervisor is gone.
"""

import json
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from labkit.core.errors import LabError
from labkit.host.processes.supervised import die_with_supervisor, orders, report
from labkit.runs.kafka_source import GroupCommits, source_options
from labkit.runs.layout import RunFolder
from labkit.runs.memory import MemoryCell
from labkit.runs.scenario import Scenario
from labkit.spark.master import is_local
from labkit.spark.options import PARTITIONS, Job
from labkit.spark.reach import Armed, Then, park

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from labkit.spark.checkpoint import Checkpoint
    from labkit.spark.start import LabQuery, Opened

_POLL = 0.02


class Background:
    """A step that may park for ever, off the main loop; it keeps its error for whoever asks."""

    def __init__(self, step: Callable[[], object]) -> None:
        self._step = step
        self.error: Exception | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            self._step()
        except Exception as error:  # reported by the main loop as this query's failure
            self.error = error

    @property
    def done(self) -> bool:
        """Whether the step has returned or raised."""
        return not self._thread.is_alive()


class Drained:
    """Whether a query on a socket has taken in the lines that this connection sends; their offsets begin at 0.

    A batch that an earlier driver planned says nothing about them. Lines under offsets that are taken already make no
    batch, so a query that does nothing for `QUIET` seconds has nothing left to do either.
    """

    QUIET = 5.0

    def __init__(self, lines: int, checkpoint: "Checkpoint") -> None:
        self._last_offset, self._planned = (
            lines - 1,
            max(checkpoint.offset_log(), default=-1),
        )
        self._seen, self._since = -2, time.monotonic()

    def by(self, query: "StreamingQuery") -> bool:
        """Looks at the query's progress."""
        progress = query.lastProgress
        batch = -1 if progress is None else progress["batchId"]
        if batch != self._seen:
            self._seen, self._since = batch, time.monotonic()
        if progress is not None and batch > self._planned:
            return int(progress["sources"][0]["endOffset"]) >= self._last_offset
        return batch >= 0 and time.monotonic() - self._since > self.QUIET


class Cell:
    """One scenario on its way through this driver: recovering, running, finishing; then parked, ended or failed."""

    def __init__(self, spark: "SparkSession", spec: dict[str, Any]) -> None:
        self.name: str = spec["name"]
        self._driver: int = spec["driver"]
        self._spark = spark
        self._spec = spec
        self._folder = RunFolder(Path(spec["folder"]))
        self._scenario = Scenario.from_json(spec["scenario"])
        self._tasks = self._scenario.tasks(self._driver)
        self._armed = Armed.from_json(spec["armed"])
        self._phase: Callable[[], str | None] = self._recovering
        self._opened = self._open()
        self._step = Background(self._recover)
        self._query: LabQuery | None = None
        self._struck = False
        self._group = (
            GroupCommits(self._folder) if self._scenario.commit_group else None
        )

    def poll(self) -> str | None:
        """`parked`, `ended`, or None while it is under way. Raises what the query failed with."""
        if self._group is not None:
            self._group.follow()
        if self._armed is not None and self._armed.evidence.exists():
            if self._armed.then is Then.WAIT_FOR_THE_DRIVERS_DEATH:
                return "parked"
            self._point_out_executor(self._armed.evidence)
        return self._phase()

    def _point_out_executor(self, evidence: Path) -> None:
        """Tells the supervisor, once, which executor is to be killed; the query goes on."""
        if not self._struck:
            self._struck = True
            report(
                "struck",
                cell=self.name,
                executor=json.loads(evidence.read_text(encoding="utf-8"))["executor"],
            )

    def _open(self) -> "Opened":
        from labkit.spark.start import open_checkpoint

        scenario, folder = self._scenario, self._folder
        return open_checkpoint(
            folder.checkpoint,
            sink=scenario.strategy,
            order=scenario.order,
            store=scenario.store,
            location=folder.store(scenario.store),
            source=f"{scenario.job} {scenario.input}",
            partitions=self._tasks,
            armed=self._armed,
            query=scenario.query,
        )

    def _recover(self) -> None:
        steps = self._opened.recover()
        for sentence in steps:
            print(
                f"labkit: {self.name}: recovery {sentence}", file=sys.stderr, flush=True
            )
        report("recovered", cell=self.name, steps=steps)

    def _recovering(self) -> str | None:
        if self._settled():
            from labkit.spark.jobs import JOBS, keep_state, rescaled, shuffle_into
            from labkit.spark.start import launch, register

            plan = JOBS[self._scenario.job]
            keep_state(self._spark, self._scenario.state)
            shuffle_into(self._spark, self._tasks)
            if plan.source is not None:
                register(self._spark, plan.source)
                lines = self._lines(plan.source.name())
            else:
                lines = (
                    self._topic() if self._scenario.job is Job.KAFKA else self._socket()
                )
            rows = plan.compute(lines)
            if self._tasks != self._scenario.partitions:
                rows = rescaled(rows, self._tasks)
            self._query = launch(
                rows, self._opened, plan.output_mode, endless=plan.endless
            )
            self._phase = self._draining if plan.endless else self._running
        return None

    def _topic(self) -> "DataFrame":
        """Spark's own Kafka source. Its offsets lie in the checkpoint; `startingOffsets` is for the first batch."""
        options = source_options(self._folder, self._scenario.batch_size(self._driver))
        return self._spark.readStream.format("kafka").options(**options).load()

    def _socket(self) -> "DataFrame":
        self._drained = Drained(self._spec["socket"]["lines"], self._opened.checkpoint)
        reader = self._spark.readStream.format("socket").option("host", "127.0.0.1")
        return reader.option("port", self._spec["socket"]["port"]).load()

    def _draining(self) -> str | None:
        """A query on a socket has no end of its own: it is stopped once it has taken in what was sent to it."""
        assert self._query is not None
        if self._query.query.isActive and self._drained.by(self._query.query):
            self._query.query.stop()
        return self._running()

    def _lines(self, source: str) -> "DataFrame":
        options = {
            "path": self._scenario.input,
            "records_per_batch": self._scenario.batch_size(self._driver),
            "commits": self._folder.checkpoint / "commits",
            "armed": json.dumps(self._armed and self._armed.to_json()),
            "tasks": self._spark.sparkContext.defaultParallelism
            if self._scenario.job is Job.TOTALS
            else 1,
        }
        reader = self._spark.readStream.format(source)
        return reader.options(
            **{name: str(value) for name, value in options.items()}
        ).load()

    def _running(self) -> str | None:
        assert self._query is not None
        if not self._query.query.isActive:
            error = self._query.query.exception()
            if error is not None:
                raise error
            self._step = Background(self._query.finish)
            self._phase = self._finishing
        return None

    def _finishing(self) -> str | None:
        return "ended" if self._settled() else None

    def _settled(self) -> bool:
        if self._step.error is not None:
            raise self._step.error
        return self._step.done


class Query(Protocol):
    """What the driver's loop looks at."""

    name: str

    def poll(self) -> str | None:
        """How it stopped, or None while it is under way. Raises what it failed with."""


def run(spec: dict[str, Any]) -> None:
    """Runs every cell of the specification and reports how each of them stopped."""
    from labkit.spark.cluster import await_executors
    from labkit.spark.session import start_session
    from labkit.spark.start import notifier

    scratch = Path(spec["scratch"])
    log, archive = sys.stderr.buffer, spec["archive"]
    spark = start_session(
        spec["master"], scratch, PARTITIONS, log, spec["profile"], archive=archive
    )
    notifier(spark)
    if not is_local(spec["master"]):
        report("application", id=spark.sparkContext.applicationId)
        await_executors(spark, *demands(spec["cells"]))
    report("session")
    waiting, active = (
        list(stand_by(spark, spec) if spec.get("standby") else spec["cells"]),
        list[Query](),
    )
    while waiting or active:
        while waiting and len(active) < spec["active"]:
            begin(spark, waiting.pop(0), active)
        for cell in list(active):
            watch(cell, active)
        time.sleep(_POLL)
    report("idle")


def demands(cells: Sequence[dict[str, Any]]) -> tuple[int, set[str]]:
    """How many tasks of these cells must be able to run at once, and the stores that they write to."""
    in_task = []
    for cell in cells:
        scenario, armed = (
            Scenario.from_json(cell["scenario"]),
            Armed.from_json(cell["armed"]),
        )
        if (
            scenario.job is Job.RUNNING
            and armed is not None
            and armed.crash.point.in_task
        ):
            in_task.append(scenario.tasks(cell["driver"]))
    free = 1 if len(in_task) < len(cells) else 0
    return sum(in_task) + free, {cell["scenario"]["store"] for cell in cells}


def stand_by(spark: "SparkSession", spec: dict[str, Any]) -> list[dict[str, Any]]:
    """Gets warm in a scratch query of its own, says so, and waits for the cells of a driver that is dead by then."""
    from labkit.spark.fast.warm import warm_up

    warm_up(spark, Job(spec["standby"]), Path(spec["scratch"]))
    report("ready")
    cells: list[dict[str, Any]] = orders.get()["cells"]
    return cells


def begin(spark: "SparkSession", spec: dict[str, Any], active: list[Query]) -> None:
    """Opens one cell; a cell that cannot be opened has failed, and the others go on."""
    report("begun", cell=spec["name"])
    try:
        active.append(
            MemoryCell(spark, report) if "memory" in spec else Cell(spark, spec)
        )
    except Exception as error:
        fail(spec["name"], error)


def watch(cell: Query, active: list[Query]) -> None:
    """Reports a cell that stopped since the last look."""
    try:
        outcome = cell.poll()
    except Exception as error:
        active.remove(cell)
        fail(cell.name, error)
        return
    if outcome is not None:
        active.remove(cell)
        report(outcome, cell=cell.name)


def fail(name: str, error: Exception) -> None:
    """One cell's failure, in one sentence; the whole of it goes to the driver's log."""
    from labkit.spark.start import reason

    print(f"labkit: {name}: {error}", file=sys.stderr, flush=True)
    code = error.exit_code if isinstance(error, LabError) else 1
    report("failed", cell=name, because=reason(error), code=code)


def main() -> None:
    """`python -m labkit.runs.driver SPEC`, started by the supervisor only."""
    threading.Thread(target=die_with_supervisor, daemon=True).start()
    spec = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    try:
        run(spec)
    except LabError as error:
        report("failed", cell=None, because=str(error), code=error.exit_code)
    park()


if __name__ == "__main__":
    main()
