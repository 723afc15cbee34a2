"""The Spark driver process under test: it warms up without the user's file, then runs queries on the supervisor's
orders.

`labkit.host.processes.supervisor` starts the driver. The driver reports events (`labkit.host.processes.events`) to the
supervisor. Output of the user's code goes to the log.
"""

import contextlib
import json
import os
import re
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from labkit.core.errors import InvalidInput, LabError
from labkit.crashtest.harness.leftovers import Before
from labkit.crashtest.harness.tasks import DriverTask, QueryTask
from labkit.crashtest.instrument.effects import RECOVER, Kind
from labkit.crashtest.instrument.recorder import PROPERTY, record_hit, recorder
from labkit.crashtest.instrument.ticket import Ticket
from labkit.crashtest.rows import FILES, SCHEMA, generate
from labkit.crashtest.spark_options import SparkOptions
from labkit.crashtest.subject import IN_JVM, Adapter, Subject, find, load
from labkit.host.processes import wire
from labkit.host.processes.events import AwaitsKill, Begun, Ended, Failed, Idle, Parked, Ready, Stopped
from labkit.host.processes.parking import park
from labkit.host.processes.protocol import Launch
from labkit.host.processes.supervised import orders, report, serve
from labkit.spark.checkpoint import Checkpoint
from labkit.spark.queries import reason, register

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from labkit.crashtest.instrument.streams import Starter

_POLL = 0.01
_STOPPED = 2.0
"""The seconds between two checks of a query after which this process must have been stopped, and the sink with it.

Such a gap does not count as time in which the sink hangs.
"""

_LATER = 5.0
"""The number of seconds that the user's code may go on after the end of the query that it started."""

MASTER = "local[1,2]"
"""One task at a time, so that tasks write in the order of the partitions; a task that fails is tried a second time."""

_RAISED = re.compile(r"(?P<name>[A-Za-z_][\w.]*): (?P<text>.*)")
"""A pattern for the last line of a Python traceback, which has the error's name and text and is not indented."""


class Hung(LabError):
    """Raised because a query made no progress for too long.

    The query is not stopped, because stopping it would wait for the sink.
    """


hung: list[str] = []
"""Descriptions of the queries, and of the user code that started one, that hang in this driver."""

armed: dict[str, str] = {}
"""The names of queries by the paths of their evidence files, so that a process at its crash point can
report its query.
"""


class SinkQuery:
    """A running query that reads the rows of one folder and calls the user's sink through its adapter."""

    def __init__(self, spark: "SparkSession", task: QueryTask) -> None:
        self.name = task.name
        self._task, self._ticket = task, task.ticket
        self._commits = Path(task.checkpoint) / "commits"
        self._progress, self._since = (0, 0), time.monotonic()
        self._looked = self._since
        self._reported = False
        self._starter: Starter | None = None
        self._query = self._start(spark)

    def _start(self, spark: "SparkSession") -> "StreamingQuery | None":
        task = self._task
        spark.sparkContext.setLocalProperty(PROPERTY, json.dumps(self._ticket.to_json()))
        recover(self._ticket, task.checkpoint)
        schema = task.schema or spark.read.json(task.input).schema
        rows = spark.readStream.schema(schema).option("maxFilesPerTrigger", FILES).json(task.input)
        entry = Entry(task.adapter, self._ticket, task.sink, task.options)
        if task.adapter in IN_JVM:
            self._starter = entry.starter(rows, task.checkpoint)
            return None
        return entry.start(spark, rows, task.checkpoint)

    def poll(self) -> bool:
        """Return whether the query is over.

        Raises the query's own error, or `Hung`. It does not return at the crash point, because the process is killed
        there.
        """
        self._look_for_commits()
        if self._ticket.evidence and Path(self._ticket.evidence).exists():
            if self._ticket.then == "crash":
                say_reached(self._ticket)
                park()
            self._say_stopped()
        if self._query is None and self._starter is not None:
            self._query = self._starter.query()
        if self._query is None or self._query.isActive:
            self._check_hung()
            return False
        if self._starter is not None and not self._starter.end(_LATER):
            hung.append(f"the code that started the query {self.name}")
        error = self._query.exception()
        if error is not None:
            raise error
        report(Ended(self.name))
        return True

    def _say_stopped(self) -> None:
        if self._ticket.then == "stop" and not self._reported:
            self._reported = True
            say_reached(self._ticket)

    def _look_for_commits(self) -> None:
        armed = self._ticket.armed
        if armed is not None and armed.kind is Kind.COMMITS and (self._commits / str(armed.batch)).exists():
            record_hit(self._ticket, Kind.COMMITS)

    def _check_hung(self) -> None:
        finished = len(list(self._commits.glob("[0-9]*"))) if self._commits.is_dir() else 0
        log = Path(self._ticket.log)
        progress = finished, log.stat().st_size if log.exists() else 0
        now = time.monotonic()
        if progress != self._progress or now - self._looked > _STOPPED:
            self._progress, self._since = progress, now
        self._looked = now
        if now - self._since > self._task.limit:
            hung.append(f"the query {self.name}")
            raise Hung(f"the sink made no progress for {self._task.limit:.0f} s in batch {finished}; it hangs or waits")


class Entry(NamedTuple):
    """Connects the rows of a query with the user's sink, in the way in which Spark calls a sink of that kind."""

    adapter: Adapter
    ticket: Ticket
    name: str
    """The sink's name in the user's file; for a format or a table, the name that Spark uses."""
    options: dict[str, str]

    def start(self, spark: "SparkSession", rows: "DataFrame", checkpoint: str) -> "StreamingQuery":
        """Start a query that writes these rows into the sink, with the recorder around the user's object, and return
        the query.
        """
        from labkit.crashtest.instrument import adapters

        writer = rows.writeStream.trigger(availableNow=True).option("checkpointLocation", checkpoint)
        if self.adapter is Adapter.BATCH:
            adapter = adapters.ForeachBatchAdapter(self.ticket, self.name)
            return writer.foreachBatch(adapter).start()
        if self.adapter is Adapter.WRITER:
            return writer.foreach(adapters.ForeachWriterAdapter(self.ticket, self.name)).start()
        register(spark, adapters.DataSourceAdapter)
        ours = {adapters.TICKET: adapters.as_option(self.ticket), adapters.NAME: self.name}
        more = {**self.options, **ours}
        return writer.format(adapters.FORMAT).options(**more).start()

    def starter(self, rows: "DataFrame", checkpoint: str) -> "Starter":
        """Return a thread that starts a query: it runs the user's code, or names a format or table that Spark knows."""
        from labkit.crashtest.instrument import adapters
        from labkit.crashtest.instrument.streams import Start, Starter, wants_writer

        adapters.ready(self.ticket)
        context = rows.sparkSession.sparkContext
        suffix = Path(checkpoint).name.removeprefix("checkpoint")

        def run() -> object:
            # Local properties belong to a thread; this is one that Python has started.
            context.setLocalProperty(PROPERTY, json.dumps(self.ticket.to_json()))
            if self.adapter is Adapter.FORMAT:
                return rows.writeStream.format(self.name).options(**self.options)
            if self.adapter is Adapter.TABLE:
                return rows.writeStream.options(**self.options).toTable(self.name)
            function = find(Subject(self.ticket.file, self.name))
            return function(rows.writeStream if wants_writer(function) else rows)

        return Starter(run, Start(self.ticket, checkpoint, suffix, []))


def recover(ticket: Ticket, checkpoint: str) -> None:
    """Call `recover(checkpoint)` of the user's file, if the file defines it, as the user's job would before
    its query.
    """
    from labkit.crashtest.instrument import adapters

    adapters.ready(ticket)
    module = load(ticket.file, reload=True)
    if callable(getattr(module, "recover", None)):
        planned = Checkpoint(Path(checkpoint)).offset_log()
        with recorder.call(ticket, max(planned, default=0), RECOVER):
            module.recover(checkpoint)


def warm_up(spark: "SparkSession", adapter: Adapter, scratch: Path) -> None:
    """Run a query on a harmless sink of the same kind, so that later queries start fast."""
    folder = scratch / "warm"
    generate(1).write(folder / "input")
    ticket = Ticket(str(Path(__file__).with_name("harmless.py")), str(folder / "log"), 0)
    rows = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", FILES).json(str(folder / "input"))
    wanted = Adapter.STREAM if adapter in IN_JVM else adapter
    entry = Entry(wanted, ticket, wanted.name.lower(), {})
    checkpoint = str(folder / "checkpoint")
    if wanted in IN_JVM:
        starter = entry.starter(rows, checkpoint)
        while (query := starter.query()) is None:
            time.sleep(_POLL)
    else:
        query = entry.start(spark, rows, checkpoint)
    query.awaitTermination()


def run(launch: Launch) -> None:
    """Warm up the Spark session, then run the queries of each order from the supervisor until this process
    is killed.
    """
    from labkit.spark.session import start_session

    recorder.on_reach = say_reached
    task = wire.decode(launch.task, DriverTask)
    os.chdir(task.cwd)
    scratch = Path(launch.scratch)
    profile = SparkOptions(task.conf, tuple(task.jars)).profile()
    spark = start_session(MASTER, scratch, FILES, sys.stderr.buffer, profile)
    warm_up(spark, task.adapter, scratch)
    report(Ready())
    before = Before(spark, scratch)
    while True:
        queries = [wire.decode(query, QueryTask) for query in orders.get().queries]
        run_queries(spark, queries)
        left = [*hung, *before.left()]
        if left:
            print(f"labkit: the sink left {', '.join(left)}", file=sys.stderr, flush=True)
        report(Idle(left))


def run_queries(spark: "SparkSession", tasks: Sequence[QueryTask]) -> None:
    """Run queries in parallel, and return when each of them has ended or failed."""
    active: list[SinkQuery] = []
    for task in tasks:
        if task.ticket.evidence:
            armed[task.ticket.evidence] = task.name
        report(Begun(task.name))
        with _failing(task.name):
            active.append(SinkQuery(spark, task))
    while active:
        for query in list(active):
            is_over = True
            with _failing(query.name):
                is_over = query.poll()
            if is_over:
                active.remove(query)
        time.sleep(_POLL)


@contextlib.contextmanager
def _failing(name: str) -> Iterator[None]:
    """Report an error of a query in the `with` block to the supervisor, in one sentence, and print it to the log."""
    try:
        yield
    except Exception as error:
        print(f"labkit: {name}: {error}", file=sys.stderr, flush=True)
        ours = isinstance(error, Hung | InvalidInput)
        because = str(error) if ours else sentence_of(error)
        report(Failed(name, because, 64 if ours else 1))


def sentence_of(error: Exception) -> str:
    """Return the error of the user's code in one sentence, without the many lines that Spark adds to it."""
    _, traceback, text = str(error).partition("Traceback (most recent call last)")
    for line in text.splitlines() if traceback else []:
        if raised := _RAISED.fullmatch(line):
            sentence = f"{raised['name'].rpartition('.')[2]}: {raised['text']}"
            return (sentence + _cause_in_java(text.partition(line)[2]))[:400]
    return reason(error)[:300]


def _cause_in_java(text: str) -> str:
    """Return the exception of the JVM and its root cause, for the end of a sentence; empty if the JVM raised nothing.

    `text` are the lines that follow Py4J's own error.
    """
    raised = [line[2:] for line in text.splitlines() if line.startswith(": ")][:1]
    causes = [
        line.strip().removeprefix("Caused by: ")
        for line in text.splitlines()
        if line.lstrip().startswith("Caused by: ") and raised
    ]
    sentence = "; caused by ".join(dict.fromkeys([*raised, *causes[-1:]]))
    return f" {sentence}" if sentence else ""


def say_reached(ticket: Ticket) -> None:
    """Report that a query reached its crash point, where it waits for the kill, or until it may continue."""
    if ticket.then == "crash":
        report(Parked(armed[ticket.evidence]), AwaitsKill())
    else:
        report(Stopped())


if __name__ == "__main__":
    serve(run)
