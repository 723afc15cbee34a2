"""Runs the whole test of a sink: a run without a crash, a run for each crash point that it shows, and the variants.

    from labkit.crashtest.campaign import crash_test
    report = crash_test("sink.py:write_batch", quick=True)

Variants are runs with another fault than a crash, such as an older copy of the checkpoint. This module chooses the runs
and their order; `labkit.crashtest.harness.runs` performs them, and `labkit.core.judge` judges the rows.
"""

import uuid
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from labkit.core.errors import InvalidInput
from labkit.crashtest.harness.drivers import DriverPool
from labkit.crashtest.harness.leftovers import own_folder
from labkit.crashtest.harness.reader import Reader, ReaderFailed
from labkit.crashtest.harness.runs import Harness, Run, check_rows, check_store, forget
from labkit.crashtest.harness.tasks import DriverTask
from labkit.crashtest.healthy import Healthy, healthy_run
from labkit.crashtest.instrument.effects import Effect, Point
from labkit.crashtest.jobs import NEVER_REACHED, Job, pair_job, unknown
from labkit.crashtest.ledger import Extent, Ledger, Tell, silent
from labkit.crashtest.points import (
    NEIGHBOURS,
    PAIRS,
    QUICK_PAIRS,
    Pair,
    Plan,
    choose,
    large_points,
    line_points,
    neighbours,
    pairs,
    points,
    retry_point,
    second_points,
    thin,
    with_lines,
)
from labkit.crashtest.report import Report
from labkit.crashtest.rows import LARGE, Rows, Shape
from labkit.crashtest.settings import Settings, settings
from labkit.crashtest.sink_judging import judged
from labkit.crashtest.sink_report import finished, sink_report
from labkit.crashtest.sink_timeline import lines
from labkit.crashtest.subject import Adapter, examine
from labkit.crashtest.timeline import Line, picture, text
from labkit.crashtest.variants import TWO, VARIANT_RUNS, both
from labkit.crashtest.verdict import DEMANDED, VARIANTS, Group, Result
from labkit.host.changed_lines import ChangedLines
from labkit.host.class_data import find_archive
from labkit.host.java import java_for_spark

SLOW_STARTS = (
    "every kill costs a start of Spark; run labkit doctor --prepare once to make each start some seconds faster"
)


class Campaign:
    """One crash test of a sink. Call `healthy` first; afterwards the jobs of `jobs` can run in any order."""

    def __init__(self, wanted: Settings, adapter: Adapter, harness: Harness, folder: Path, tell: Tell) -> None:
        self.settings, self.adapter, self.harness = wanted, adapter, harness
        self.shape = Shape.ROWS
        self.first: Healthy | None = None
        """The findings of the run without a crash; None until `healthy` has performed it."""
        self.log: list[Effect] = []
        self.points_total = 0
        self.pairs_total = 0
        self.directed: frozenset[str] = frozenset()
        """The ids of the pairs of crashes that a complete test must try."""
        self.recoveries: dict[Point, Sequence[Effect]] = {}
        self.ledger = Ledger(wanted.budget, tell)
        self._large_log: list[Effect] = []
        self._slow: list[str] = []
        self._folder = folder
        self._stories: dict[str, list[Line]] = {}

    @property
    def results(self) -> list[Result]:
        """The results of the runs so far."""
        return self.ledger.results

    def healthy(self) -> Result:
        """Perform the run without a crash, and return its judged result.

        Raises `InvalidInput` if the sink or the reader fails even without a crash.
        """
        self.settings.changed()  # a revision that does not exist is refused before anything runs
        first = healthy_run(self.settings, self.adapter, self.harness, self.ledger.tell)
        self.first, self.shape = first, first.shape
        self.log = self.harness.healthy_log = list(first.log)
        self._slow += first.slow
        job = Job("healthy", "no crash", Group.HEALTHY)
        healthy = self.ledger.keep(self._judged(job, first.run))
        if first.doubts:
            seeing = Job("seeing", "whether the test sees every write of the sink", Group.SEEING)
            self.ledger.keep(unknown(seeing, "; ".join(first.doubts)))
        return healthy

    def jobs(self) -> list[Job]:
        """Return the jobs that are known after the run without a crash: all except second crashes and large batches."""
        batches = self.settings.batches
        plan = choose(self.log, batches, quick=self.settings.quick)
        if self.harness.lines:
            plan = with_lines(plan, self._recorded(), self._lines(), batches)
        self.points_total = plan.total
        jobs = [Job(point.id, str(point), Group.CRASH, (point,)) for point in self._since(plan)]
        if self.settings.since and not self.settings.only:
            return jobs
        retry = retry_point(self.log)
        if retry is not None:
            jobs.append(Job("retry", f"a task dies alone: {retry}", Group.RETRY, (retry,)))
        for name, title in VARIANTS.items():
            jobs.append(Job(name, title, Group.IDENTITY if name in DEMANDED else Group.CONDITION))
        return jobs

    def _since(self, plan: Plan) -> Sequence[Point]:
        """With `--since`, return the points whose lines have changed, and the last point of the job; otherwise those of
        the plan.
        """
        changed = self.settings.changed()
        if changed is None:
            return plan.chosen
        every = points(self.log, range(self.settings.batches))
        few = thin([each for each in every if self._has_changed(each, changed)], neighbours(self.log))
        return [point for point in every if point in few or point == every[-1]]

    def _has_changed(self, point: Point, changed: ChangedLines) -> bool:
        return changed.include(point.file or self.settings.subject.file, point.line)

    def _lines(self) -> Sequence[Point]:
        """Return the crash points before source lines that the test tries."""
        beside = self.first.beside if self.first is not None else ()
        if self.settings.lines and not self.settings.only:
            return line_points(self._recorded(), beside)
        return beside[:NEIGHBOURS]

    def _recorded(self) -> Sequence[Effect]:
        return self.first.recorded if self.first is not None else self.log

    def second_crashes(self) -> list[Job]:
        """Return the jobs with two crashes, whose second crash point lies in the recovery from the first.

        Call this after the jobs with single crashes, because only their runs show the recoveries.
        """
        found = pairs(self.recoveries, self._recorded(), quick=self.settings.quick)
        self.pairs_total, self.directed = found.total, found.directed
        changed = self.settings.changed()
        chosen = [each for each in found.chosen if changed is None or self._has_changed(each.second, changed)]
        return [pair_job(pair) for pair in chosen]

    def run(self, job: Job) -> Result:
        """Run one job and return its result. A run that never reached its crash point is repeated once."""
        self.ledger.planned += 1
        if self.ledger.is_over():
            return self.ledger.skip(job)
        result = self._try(job)
        if NEVER_REACHED in result.unknown:  # a sink that works beside its calls does not do the same in every run
            result = replace(self._try(job), notes=("the first run did not reach its point, so it was repeated",))
        return self.ledger.keep(result)

    def _try(self, job: Job) -> Result:
        self.ledger.begin(job)
        with self.harness.run(job.id, job.title, self._rows_of(job)) as run:
            if job.group is Group.LARGE:
                run.usual = self._large_log
            if job.id in VARIANT_RUNS:
                VARIANT_RUNS[job.id](self.harness, run)
            else:
                self.harness.execute(run, job.points, "task" if job.group is Group.RETRY else "crash")
            self.harness.settle(run)
        if job.group is Group.CRASH and not run.unknown:
            self.recoveries[job.points[0]] = run.effects()
        if job.id == "large":
            self._large_log = run.effects()
            if run.raised:
                run.unknown = f"without any crash the sink raised {run.raised}"
        return self._judged(job, run)

    def _rows_of(self, job: Job) -> Rows | None:
        """Return the input rows of a job that needs its own; None if it uses the same rows as every run."""
        if job.group is Group.LARGE:
            return self.harness.large_rows()
        return both(self.harness) if job.id in TWO else None

    def last_jobs(self) -> Iterator[Job]:
        """Yield the job of a run with one large batch, then jobs with crashes at points that only the large batch has.

        Yield nothing if no time is left, with `--since`, or with `--rows`, because the user's own rows are used as they
        are.
        """
        if self.settings.rows is not None or self.settings.since or self.ledger.is_over():
            return
        title = f"a batch of {LARGE} rows"
        yield Job("large", f"{title}, no crash", Group.LARGE)
        for point in large_points(self._large_log, self.log):
            yield Job(f"large.{point.id}", f"{title}: {point}", Group.LARGE, (point,))

    def _largest(self) -> int:
        """Return the number of rows in the largest batch of any run."""
        if any(each.id == "large" and not each.unknown for each in self.results):
            return LARGE
        return max(len(batch.rows) for batch in self.harness.rows().batches)

    def _judged(self, job: Job, run: Run) -> Result:
        resets = self.harness.reader.resets
        result = judged(job, run, self.shape, resets=resets)
        self._stories[job.id] = lines(run, resets=resets)
        forget(run.folder)
        return replace(result, story=text(self._stories[job.id]))

    def everything(self) -> Report:
        """Run the whole test as the settings ask, and return the report."""
        first = self.healthy()
        if not first.violated:
            jobs = self.jobs()
            self.ledger.total = 1 + self._count(jobs)
            self.harness.expect_drivers(self._drivers(jobs))
            for job in self._wanted(jobs):
                self.run(job)
        return self.report()

    def _count(self, jobs: Sequence[Job]) -> int:
        """Estimate the number of runs after the one without a crash, since pairs and large batches are not
        known yet.
        """
        only = self.settings.only
        if only:
            return sum(1 + ("+" in name) for name in only)
        pairs_tried = QUICK_PAIRS if self.settings.quick else PAIRS
        return len(jobs) + pairs_tried + (self.settings.rows is None)

    def _drivers(self, jobs: Sequence[Job]) -> int:
        """Estimate how many drivers all runs need: one for each kill, and one for each run that leaves no driver for
        the next.
        """
        only = self.settings.only
        if only:
            return sum(1 + 2 * ("+" in name) for name in only)
        pairs_tried = QUICK_PAIRS if self.settings.quick else PAIRS
        crashes = sum(job.group is not Group.IDENTITY for job in jobs)
        return crashes + 2 * pairs_tried + 1

    def _wanted(self, jobs: Sequence[Job]) -> Iterator[Job]:
        only = self.settings.only
        if not only:
            yield from (job for job in jobs if job.group is Group.CRASH)
            yield from self.last_jobs()
            yield from (job for job in jobs if job.group is Group.IDENTITY)
            yield from (job for job in jobs if job.group is Group.RETRY)
            yield from self.second_crashes()
            yield from (job for job in jobs if job.group is Group.CONDITION)
            yield from self._rest()
            return
        known = {point.id: point for point in points(self._recorded(), range(self.settings.batches), lines=True)}
        ids: set[str] = set()
        for name in only:
            for job in self._one(name, jobs, known):
                # The first crash of a pair may have been asked for by itself, too.
                if job.id not in ids:
                    ids.add(job.id)
                    yield job

    def _rest(self) -> Iterator[Job]:
        """Yield jobs for the crash points that a whole test first left out as repetitions, as long as there is time."""
        tried = {each.id for each in self.results}
        left_out = self.settings.quick or self.settings.since
        for point in () if left_out else points(self.log, range(self.settings.batches)):
            if self.ledger.is_over():
                return
            if point.id not in tried:
                yield Job(point.id, str(point), Group.CRASH, (point,))

    def _one(self, name: str, jobs: Sequence[Job], by_id: dict[str, Point]) -> Iterator[Job]:
        if name.startswith("large"):
            yield from self._one_large(name)
            return
        first, plus, second = name.partition("+")
        named = next((job for job in jobs if job.id == name), None)
        if named is not None:
            yield named
            return
        if first not in by_id:
            raise InvalidInput(
                f"--only {name}: the run without a crash has no such point; choose an id from a whole report."
            )
        point = by_id[first]
        yield Job(point.id, str(point), Group.CRASH, (point,))
        if plus:
            recovered = second_points(point, self.recoveries.get(point, ()))
            other = next((each for each in recovered if each.id == second), None)
            if other is None:
                raise InvalidInput(f"--only {name}: the recovery from {first} has no point {second}.")
            yield pair_job(Pair(point, other))

    def _one_large(self, name: str) -> Iterator[Job]:
        """Yield the job of the large batch without a crash, which shows its crash points, and then the job with the id
        `name`.
        """
        jobs = self.last_jobs()
        first = next(jobs, None)
        if first is None:
            raise InvalidInput(
                f"--only {name}: the test has no large batch, because --rows names your own input or the "
                "time is over; leave --rows out or raise --seconds."
            )
        yield first
        if name == first.id:
            return
        wanted = next((job for job in jobs if job.id == name), None)
        if wanted is None:
            raise InvalidInput(
                f"--only {name}: the run with a large batch does not pass this point; choose an id from a whole report."
            )
        yield wanted

    def report(self) -> Report:
        """Return the report on the runs so far."""
        extent = Extent(self.points_total, self.pairs_total, self.directed, self.settings.is_selection)
        summary = self.ledger.summary(extent)
        weakest = summary.weakest
        drawn = picture(self._stories[weakest.id], weakest.title) if weakest and weakest.id in self._stories else ""
        notes = tuple(dict.fromkeys([*self.harness.leftover_notes, *self._slow]))
        bare = sink_report(self.settings, self.adapter, self.shape, summary, self.log)
        return finished(bare, drawn, notes, self._largest(), self.settings.batches)


@contextmanager
def campaign(wanted: Settings, folder: Path | None = None, tell: Tell = silent) -> Iterator[Campaign]:
    """Prepare drivers, reader and store for the test of a sink within a `with` block, and end every process afterwards.

    Without a `folder` for the logs of the runs, a temporary one is used.
    """
    with ExitStack() as stack:
        place = folder or stack.enter_context(own_folder())
        place.mkdir(parents=True, exist_ok=True)
        place = place.resolve()
        java = java_for_spark()
        adapter = wanted.adapter or examine(wanted.subject)
        spark = wanted.spark.resolved(java)
        if find_archive(java) is None:
            tell("done", SLOW_STARTS)
        reader = stack.enter_context(Reader(wanted.rows_reader, place / "reader.log"))
        check_rows(wanted, reader)
        before = check_store(reader)
        if before:
            tell("done", f"the store contained {before} row(s), which reset() has removed")
        task = DriverTask(adapter, str(Path.cwd()), spark.conf, list(spark.jars))
        pool = DriverPool(task, place / "drivers", project=wanted.project.text(), mark=uuid.uuid4().hex)
        harness = Harness(wanted, adapter, reader, pool, place / "runs")
        stack.callback(_reset, reader)
        stack.callback(harness.close)
        (place / "drivers").mkdir(exist_ok=True)
        pool.fill(1)
        yield Campaign(wanted, adapter, harness, place, tell)


def _reset(reader: Reader) -> None:
    if reader.resets:
        try:
            reader.reset()
        except (ReaderFailed, InvalidInput):
            return


def crash_test(subject: str = "", *, folder: Path | None = None, tell: Tell = silent, **more: Any) -> Report:
    """Run the crash test of the sink `FILE:NAME`, and return the report.

    `more` are options by keyword, as in `labkit.crashtest.settings.settings`. Raises `InvalidInput` with one sentence
    if the file, the name, the reader or the store cannot be tested.
    """
    with campaign(settings(subject, **more), folder, tell) as running:
        return running.everything()
