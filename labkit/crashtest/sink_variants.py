"""Further runs that only the test of a sink makes: two queries, other or new rows, the death of a task, a large batch.

Each function performs one run with the harness of the test; the store was emptied before it.
"""

import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from msgspec.structs import replace as changed

from labkit.core.errors import JobFailed
from labkit.crashtest.batch_expectation import BatchExpectation
from labkit.crashtest.blackbox.campaign import Further
from labkit.crashtest.blackbox.effects import Effect
from labkit.crashtest.blackbox.execution import NEVER_REACHED
from labkit.crashtest.blackbox.healthy import Glances, Healthy
from labkit.crashtest.blackbox.jobs import NEW_INPUT
from labkit.crashtest.blackbox.lines import Lines
from labkit.crashtest.blackbox.points import EXIT, Extent, Point, choose
from labkit.crashtest.blackbox.runs import Harness, PipelineRun, counted
from labkit.crashtest.blackbox.seeing import Glance, showing
from labkit.crashtest.blackbox.story import ALONE
from labkit.crashtest.harness.leftovers import end
from labkit.crashtest.harness.plain_job import DAEMON, PlainJob, Query
from labkit.crashtest.ledger import Job
from labkit.crashtest.rows import LARGE, Rows, generate, generate_large
from labkit.crashtest.verdict import Group
from labkit.host.processes import wire
from labkit.host.syscalls.calls import CallKind

COMMIT = "rename checkpoint/commits/<n> #"
"""The beginning of the name of the effect by which Spark records that a batch is finished."""

NO_TASK = "pyspark.sql."
"""The beginning of the names of modules whose workers serve the driver, for example to commit for a data source."""

_DEAD_SECONDS = 10.0

_ASKING_SECONDS = 20.0
"""The maximum seconds that all readings at the effects of a large batch may take together."""


@dataclass
class SinkVariants(Further):
    """The runs that only the test of a Spark sink makes, such as one with a second query or with a large batch."""

    job: PlainJob
    rows: Rows
    most: Extent
    words: Callable[[Path], str]
    """Returns the command of a plain job, from the file that describes the job."""
    by_lines: bool = False
    """Whether the test observes only lines of Python in the driver, so neither the engine's commits nor its workers."""
    before_last: Callable[[], None] = lambda: None
    """Called before the last run with a large batch, which is the last run of the test."""
    _large: list[Point] = field(default_factory=list)
    """The crash points in a large batch, which its run without a crash shows."""

    def jobs(self, healthy: Healthy) -> Sequence[Job]:
        in_turn, together = (partial(self._two_queries, together=each) for each in (False, True))
        jobs = [
            Job("fresh_checkpoint", "a second query with a fresh checkpoint and new rows", Group.IDENTITY, in_turn),
            Job("two_queries", "two queries with rows of their own at the same time", Group.IDENTITY, together),
        ]
        if self.most.conditions and len(self.rows.batches) > 1 and not self.by_lines:  # else there are no other rows
            title = "the same batch id with other rows, as from a source that is not deterministic"
            # A condition of the guarantee, since no sink withstands this alone.
            jobs.append(Job("other_rows", title, Group.CONDITION, self._other_rows))
        if not self.by_lines:
            jobs.append(Job(NEW_INPUT, "new rows after the recovery from a crash", Group.IDENTITY, self._new_input))
        dying = of_tasks(healthy.effects)
        if dying:
            title = f"a task dies alone, before {dying[-1].name}, and is tried again"
            jobs.append(Job("retry", title, Group.RETRY, partial(_kill_one, name=dying[-1].name)))
        return jobs

    def last_jobs(self) -> Iterator[Job]:
        """Yield a run with one large batch, then runs that crash within this batch; none if the user gave `--rows`."""
        if not self.last_names():
            return
        title = f"a batch of {LARGE} rows"
        yield Job("large", f"{title}, no crash", Group.LARGE, self._large_batch)
        for point in self._large:
            if point is self._large[-1]:
                self.before_last()
            perform = partial(self._crash_large, point=point)
            yield Job(f"large.{point.name}", f"{title}: {point}", Group.LARGE, perform)

    def last_names(self) -> list[str]:
        return ["large"] if self.rows.generated and not self.by_lines else []

    def _two_queries(self, harness: Harness, run: PipelineRun, *, together: bool) -> None:
        """Run two queries, each with its own rows and checkpoint, at the same time or one after the other."""
        half = len(self.rows.batches)
        second = generate(half, first=half) if self.rows.generated else self.rows.moved()
        both = self.rows.divided([batch.rows for batch in (*self.rows.batches, *second.batches)])
        queries = []
        for number, batches in enumerate((both.batches[:half], both.batches[half:]), start=1):
            rows = both.divided([batch.rows for batch in batches])
            # Inside the usual checkpoint, because that folder is watched, and emptied before each run.
            queries.append(self._query(f"query-{number}", rows, self.job.checkpoint / f"query-{number}"))
        with _expecting(harness, run, both):
            for several in [queries] if together else [[query] for query in queries]:
                with self._running(harness, several):
                    start = harness.start(run)
                if harness.failed(start):
                    break
            _end(harness, run)

    def _other_rows(self, harness: Harness, run: PipelineRun) -> None:
        """Crash before Spark's commit of a batch, and let Spark repeat the batch with other rows (from `_moved`)."""
        batch = min(1, len(self.rows.batches) - 1)
        try:
            harness.crash(run, Point(f"{COMMIT}{batch + 1}", 0))
            _moved(self.rows, batch).write(Path(self.job.input))
            harness.recover(run)
        finally:
            self.rows.write(Path(self.job.input))

    def _new_input(self, harness: Harness, run: PipelineRun) -> None:
        """Crash after the sink's last write and before Spark's commit, recover, and process a batch of new rows."""
        count = len(self.rows.batches)
        parts = [batch.rows for batch in self.rows.batches]
        # Rows with the usual keys and the next ids.
        more = generate(count + 1) if self.rows.generated else self.rows.moved()
        longer = self.rows.divided([*parts, more.batches[count if self.rows.generated else 0].rows])
        try:
            harness.crash(run, Point(f"{COMMIT}{count}", 0))
            harness.recover(run)
            with _expecting(harness, run, longer):
                if not run.stuck:
                    run.notes.append("a batch of new rows came after the recovery")
                    longer.write(Path(self.job.input))
                    harness.recover(run)
        finally:
            shutil.rmtree(self.job.input)
            self.rows.write(Path(self.job.input))

    def _large_batch(self, harness: Harness, run: PipelineRun) -> None:
        glances = Glances(harness.helpers, 0.0, harness.settings.watched, seconds=_ASKING_SECONDS)
        with self._with_large(harness, run):
            start = harness.start(run, ask=glances)
            _end(harness, run)
        run.notes += glances.note()
        effects = start.effects
        taken = [*glances.taken, Glance(len(effects), counted(run.values))]
        shown = showing(taken, effects, harness.settings.minor(effects))
        first = next((number for number, each in enumerate(effects) if each.name == f"{COMMIT}1"), len(effects))
        # Other runs already crash before Spark's own effects, such as the commit of a batch. So only points within the
        # sink's own work are chosen here.
        ours = [each for each in effects[:first] if not Path(each.call.path).is_relative_to(self.job.checkpoint)]
        most = self.most.large
        self._large = [point for point in choose(ours, shown, most + 1) if point.name != EXIT][:most]

    def _crash_large(self, harness: Harness, run: PipelineRun, *, point: Point) -> None:
        with self._with_large(harness, run):
            harness.crash(run, point)
            harness.recover(run)

    @contextmanager
    def _with_large(self, harness: Harness, run: PipelineRun) -> Iterator[None]:
        usual, rows = harness.lines, generate_large()
        query = self._query("large", rows, self.job.checkpoint)
        # There may be thousands of effects and files, and a look at each file before each effect would take hours.
        run.files, harness.lines = None, Lines(is_large=True)
        try:
            with _expecting(harness, run, rows), self._running(harness, [query]):
                yield
        finally:
            harness.lines = usual

    def _query(self, name: str, rows: Rows, checkpoint: Path) -> Query:
        folder = Path(self.job.folder, f"input-{name}")
        rows.write(folder)
        return Query(str(folder), str(checkpoint))

    @contextmanager
    def _running(self, harness: Harness, queries: list[Query]) -> Iterator[None]:
        usual = harness.settings
        path = Path(self.job.folder, "variant.json")
        path.write_bytes(wire.encode(changed(self.job, queries=queries)))
        harness.settings = replace(usual, pipeline=self.words(path))
        try:
            yield
        finally:
            harness.settings = usual


def of_tasks(effects: Sequence[Effect]) -> list[Effect]:
    """Return the effects of Python workers in tasks of Spark. If a worker dies, Spark repeats the whole task.

    Syncs are left out, because they change no file. The calls in the `commit` of a data source are left out as well:
    the driver runs them in a Python process, but Spark does not repeat a commit.
    """
    of_workers = [each for each in effects if DAEMON in each.call.words and each.kind is not CallKind.SYNC]
    return [each for each in of_workers if not each.call.words[-1].startswith(NO_TASK)]


def _kill_one(harness: Harness, run: PipelineRun, *, name: str) -> None:
    """Kill only the worker process that is about to make the system call `name`, so that Spark repeats the task."""
    killed: list[int] = []
    times: list[float] = []

    def ask(effect: Effect) -> bool:
        if effect.name != name or killed:
            return True
        killed.append(effect.call.process)
        times.append(time.time())
        if end(killed, _DEAD_SECONDS).left:
            raise JobFailed(
                f"process {killed[0]} still exists {_DEAD_SECONDS:.0f} s after SIGKILL, so this run proves nothing; "
                "repeat the test"
            )
        return False

    start = harness.start(run, ask=ask)
    if not killed:
        raise JobFailed(f"{NEVER_REACHED}, so no worker process was killed: {harness.ending_of(start)}")
    run.crashes.append({"point": name, "signal": 9, "killed": killed, "at": times[0], ALONE: True})
    _end(harness, run)


def _end(harness: Harness, run: PipelineRun) -> None:
    """Read the rows at the end of a run without a crash of the driver. If the last start failed, the run is stuck."""
    if harness.failed(run.last):
        run.stuck = harness.ending_of(run.last)
    harness.settle()
    harness.look(run, "end")


def _moved(rows: Rows, batch: int) -> Rows:
    """Return the rows in other batches, as if Spark repeated the batch number `batch` with other rows.

    Half of the next batch moves into `batch`. If `batch` is the last one, half of `batch` moves into the batch before.
    """
    parts = [list(each.rows) for each in rows.batches]
    source = min(batch + 1, len(parts) - 1)
    half = len(parts[source]) // 2
    parts[source - 1] += parts[source][:half]
    parts[source] = parts[source][half:]
    return rows.divided(parts)


@contextmanager
def _expecting(harness: Harness, run: PipelineRun, rows: Rows) -> Iterator[None]:
    usual = harness.expectation
    assert isinstance(usual, BatchExpectation)
    run.expectation = harness.expectation = BatchExpectation(rows.all, usual.shape, rows)
    try:
        yield
    finally:
        harness.expectation = usual
