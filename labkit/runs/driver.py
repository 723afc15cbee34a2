"""Run the queries of several scenarios in one driver process and one Spark session, a few at a time.

A message (`DriverTask`) lists the queries, and the driver reports events (`labkit.host.processes.events`) to its
supervisor. After every query has ended, failed or stopped at its failpoint, the supervisor kills the driver.
"""

import json
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from labkit.core.errors import LabError
from labkit.host.processes import events, wire
from labkit.host.processes.protocol import Launch
from labkit.host.processes.supervised import orders, report, serve
from labkit.runs.driver_task import DriverTask, QueryTask
from labkit.runs.kafka_source import GroupCommits, source_options
from labkit.runs.layout import RunFolder
from labkit.runs.scenario import Scenario
from labkit.runs.socket_source import Plans, SocketProgress
from labkit.spark.master import is_local
from labkit.spark.options import PARTITIONS, Job
from labkit.spark.reach import Armed, Reaction

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from labkit.spark.start import LabQuery, OpenCheckpoint

_POLL = 0.02
_WARM_UPS = 2
"""The number of trial queries of a standby driver; the second compiles more of the JVM's code and makes runs faster."""

Stop = events.Parked | events.Ended
"""The event of a query that stopped without an error: parked at its failpoint, or at its end."""


class Background:
    """A thread for one step of a query, such as its recovery, which may wait forever at a failpoint."""

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
        """Whether the step has returned or raised an error."""
        return not self._thread.is_alive()


class Work(NamedTuple):
    """One query that this driver has to execute, with its run's options, and its planned crash or None."""

    task: QueryTask
    scenario: Scenario
    armed: Armed | None

    @classmethod
    def decoded(cls, task: QueryTask) -> "Work":
        """Return the query that a message from the supervisor describes, with its JSON parts decoded."""
        return cls(task, Scenario.from_json(task.scenario), Armed.from_json(task.armed))


class ScenarioQuery:
    """The query of one run in this driver: it recovers, then runs until it stops at its failpoint, ends or fails."""

    def __init__(self, spark: "SparkSession", work: Work) -> None:
        self._task, self._scenario, self._armed = work
        self.name = self._task.name
        self._driver = self._task.driver
        self._spark = spark
        self._folder = RunFolder(Path(self._task.folder))
        self._tasks = self._scenario.tasks(self._driver)
        self._phase: Callable[[], Stop | None] = self._recovering
        self._opened = self._open()
        self._plans = Plans.of_driver(spark, self._opened.checkpoint) if self._task.socket else None
        self._step = Background(self._recover)
        self._query: LabQuery | None = None
        self._struck = False
        self._group = GroupCommits(self._folder) if self._scenario.commit_group else None

    def poll(self) -> Stop | None:
        """Start the query's next phase if its current phase is over; return an event if the query has stopped.

        Raises the query's error.
        """
        if self._group is not None:
            self._group.follow()
        # The evidence is checked before the phase, because the thread of a parked query never returns, so waiting for
        # its phase would never end.
        if self._armed is not None and self._armed.evidence.exists():
            if self._armed.then is Reaction.WAIT_FOR_THE_DRIVERS_DEATH:
                return events.Parked(self.name)
            self._report_executor(self._armed.evidence)
        return self._phase()

    def _report_executor(self, evidence: Path) -> None:
        """Report once to the supervisor which executor has reached the failpoint and must be killed."""
        if not self._struck:
            self._struck = True
            content = json.loads(evidence.read_text(encoding="utf-8"))
            report(events.Struck(self.name, content["executor"]))

    def _open(self) -> "OpenCheckpoint":
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
            print(f"labkit: {self.name}: recovery {sentence}", file=sys.stderr, flush=True)
        # With the driver's own time, because the query may have written rows before a busy runner reads this event.
        report(events.Recovered(self.name, steps, time.time()))

    def _recovering(self) -> Stop | None:
        if self._settled() and (self._plans is None or self._plans.has_just_passed()):
            from labkit.spark.jobs import JOBS, keep_state, rescaled, shuffle_into
            from labkit.spark.queries import register
            from labkit.spark.start import launch

            # Only after the recovery, because a transaction in doubt may hold locks for which the replay would wait.
            plan = JOBS[self._scenario.job]
            # These settings belong to the session; a query copies them when it starts, so queries of one session may
            # differ.
            keep_state(self._spark, self._scenario.state)
            shuffle_into(self._spark, self._tasks)
            if plan.source is not None:
                register(self._spark, plan.source)
                lines = self._lines(plan.source.name())
            else:
                lines = self._topic() if self._scenario.job is Job.KAFKA else self._socket()
            rows = plan.compute(lines, self._folder.outside)
            # The state keeps the checkpoint's number of partitions; a shuffle after it changes the number of tasks.
            if self._tasks != self._scenario.partitions:
                rows = rescaled(rows, self._tasks)
            self._query = launch(rows, self._opened, plan.output_mode, every=self._plans.every if self._plans else None)
            self._phase = self._draining if self._plans else self._running
        return None

    def _topic(self) -> "DataFrame":
        options = source_options(self._folder, self._scenario.batch_size(self._driver))
        return self._spark.readStream.format("kafka").options(**options).load()

    def _socket(self) -> "DataFrame":
        socket = self._task.socket
        assert socket is not None
        assert self._plans is not None
        self._drained = SocketProgress(socket.lines, self._opened.checkpoint, self._plans)
        reader = self._spark.readStream.format("socket").option("host", "127.0.0.1")
        return reader.option("port", socket.port).load()

    def _draining(self) -> Stop | None:
        """Stop the query once it has read every line of its socket, because a socket source never ends by itself."""
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
            "tasks": self._spark.sparkContext.defaultParallelism if self._scenario.job is Job.TOTALS else 1,
        }
        reader = self._spark.readStream.format(source)
        return reader.options(**{name: str(value) for name, value in options.items()}).load()

    def _running(self) -> Stop | None:
        assert self._query is not None
        if not self._query.query.isActive:
            error = self._query.query.exception()
            if error is not None:
                raise error
            # In its own thread, because the last commit may reach the armed failpoint and park.
            self._step = Background(self._query.finish)
            self._phase = self._finishing
        return None

    def _finishing(self) -> Stop | None:
        return events.Ended(self.name) if self._settled() else None

    def _settled(self) -> bool:
        if self._step.error is not None:
            raise self._step.error
        return self._step.done


def run(launch: Launch) -> None:
    """Execute all queries in `launch.task`, report how each stopped, and wait to be killed by the supervisor."""
    from labkit.spark.cluster import await_executors
    from labkit.spark.session import start_session
    from labkit.spark.start import notifier

    task = wire.decode(launch.task, DriverTask)
    queries = list(map(Work.decoded, task.queries))
    scratch, log = Path(launch.scratch), sys.stderr.buffer
    spark = start_session(task.master, scratch, PARTITIONS, log, task.profile, archive=task.archive)
    notifier(spark)
    if not is_local(task.master):
        report(events.Application(spark.sparkContext.applicationId))
        await_executors(spark, *demands(queries))
    report(events.SessionUp())
    if task.standby is not None:
        work_off(spark, stand_by(spark, task.standby, scratch), task.active)
    else:
        work_off(spark, queries, task.active)
    report(events.AwaitsKill())


def demands(queries: Sequence[Work]) -> tuple[int, set[str]]:
    """Return how many task slots these queries need at once, and the names of the stores that they write to.

    A task that waits at a failpoint keeps its slot; all queries without such a task share one slot.
    """
    in_task = [
        scenario.tasks(task.driver)
        for task, scenario, armed in queries
        if scenario.job is Job.RUNNING and armed is not None and armed.crash.point.in_task
    ]
    free = 1 if len(in_task) < len(queries) else 0
    return sum(in_task) + free, {query.scenario.store for query in queries}


def stand_by(spark: "SparkSession", job: Job, scratch: Path) -> list[Work]:
    """Run trial queries to warm up for the job `job`, then wait for queries from the supervisor, and return them.

    A standby driver gets its queries when the driver that was running them has been killed; a driver that a notebook
    keeps warm gets them when a run begins. `scratch` is the folder for the files of the trial queries.
    """
    from labkit.spark.fast.warm import warm_up

    for nth in range(_WARM_UPS):
        folder = scratch / f"warm-up-{nth}"
        folder.mkdir()
        warm_up(spark, job, folder)
    report(events.Ready())
    return [Work.decoded(wire.decode(query, QueryTask)) for query in orders.get().queries]


def work_off(spark: "SparkSession", queries: Sequence[Work], most: int) -> None:
    """Execute the queries, at most `most` at a time, until each has stopped at its failpoint, ended or failed."""
    waiting, active = list(queries), list[ScenarioQuery]()
    while waiting or active:
        while waiting and len(active) < most:
            begin(spark, waiting.pop(0), active)
        # A copy, because a query leaves the list when it stops.
        for query in list(active):
            watch(query, active)
        time.sleep(_POLL)


def begin(spark: "SparkSession", work: Work, active: list[ScenarioQuery]) -> None:
    """Begin to execute a query and add it to `active`; if that fails, report the error to the supervisor."""
    name = work.task.name
    # Reported first, because the protocol allows `Failed` only after `Begun`, even for a query that cannot be opened.
    report(events.Begun(name))
    try:
        active.append(ScenarioQuery(spark, work))
    except Exception as error:
        fail(name, error)


def watch(query: ScenarioQuery, active: list[ScenarioQuery]) -> None:
    """Poll one query. If it has stopped or failed, report this to the supervisor and remove the query from `active`."""
    try:
        stop = query.poll()
    except Exception as error:
        active.remove(query)
        fail(query.name, error)
        return
    if stop is not None:
        active.remove(query)
        report(stop)


def fail(name: str, error: Exception) -> None:
    """Report to the supervisor in one sentence that the query `name` failed, and print the full error to the log."""
    from labkit.spark.queries import reason

    print(f"labkit: {name}: {error}", file=sys.stderr, flush=True)
    code = error.exit_code if isinstance(error, LabError) else 1
    report(events.Failed(name, reason(error), code))


if __name__ == "__main__":
    serve(run)
