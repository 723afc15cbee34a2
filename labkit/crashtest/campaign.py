"""A whole test: a run without a crash, the points that it shows, a run for each of them, and the variants.

    from labkit.crashtest.campaign import crash_test
    report = crash_test("sink.py:write_batch", quick=True)

This module decides what is run and in which order; the runs are `labkit.crashtest.harness.runs`, the judge is
`labkit.core.judge`.
"""

import tempfile
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from labkit.core.errors import InvalidInput
from labkit.core.judge import judge
from labkit.core.records import Record
from labkit.crashtest.harness.drivers import DriverPool
from labkit.crashtest.harness.reader import Reader, ReaderFailed
from labkit.crashtest.harness.runs import (
    NEVER_REACHED,
    Harness,
    Run,
    check_store,
    forget,
)
from labkit.crashtest.harness.subject import Door, examine
from labkit.crashtest.instrument.effects import Effect, Point
from labkit.crashtest.points import Pair, choose, pairs, points, retry_point
from labkit.crashtest.report import Report
from labkit.crashtest.rows import FEWEST, Shape, named, shape_of
from labkit.crashtest.samples import Sample, history
from labkit.crashtest.settings import DEMANDED, VARIANTS, Settings, settings
from labkit.crashtest.timeline import Line, lines, picture, text
from labkit.crashtest.variants import TWO, VARIANT_RUNS, both
from labkit.crashtest.verdict import Coverage, Group, Result, summarise
from labkit.host.java import find_java
from labkit.spark.checkpoint import Checkpoint

Tell = Callable[[str, str], None]
"""Told the title of a run that begins, or what came out of it, for progress only."""


def silent(_what: str, _said: str) -> None:
    """Tells nobody."""


class Job(NamedTuple):
    """One run that is to be made."""

    id: str
    title: str
    group: Group
    points: tuple[Point, ...] = ()


class Campaign:
    """One test, for a block. `healthy` comes first; then each job of `jobs` may be run, in any order."""

    def __init__(
        self, wanted: Settings, door: Door, harness: Harness, folder: Path, tell: Tell
    ) -> None:
        self.settings, self.door, self.harness = wanted, door, harness
        self.shape = Shape.ROWS
        self.log: list[Effect] = []
        self.found = 0
        self.pairs_found = 0
        self.recoveries: dict[Point, Sequence[Effect]] = {}
        self.results: list[Result] = []
        self.planned = 0
        self._folder, self._tell = folder, tell
        self._stories: dict[str, list[Line]] = {}
        self._begun = time.monotonic()

    def healthy(self) -> Result:
        """The recorded run. Raises `InvalidInput` if the sink or the reader does not even do without a crash."""
        self._tell("run", "a run without a crash, to find the points")
        with self.harness.run("healthy", "no crash") as run:
            self.harness.execute(run)
            if not run.raised:
                self.harness.settle(run)
        sink = self.settings.subject
        if run.raised:
            raise InvalidInput(
                f"{sink}: without any crash the sink raised {run.raised}; make it run once by hand first."
            )
        if run.unknown:
            raise InvalidInput(
                f"{sink}: the run without a crash did not come to its end: {run.unknown}"
            )
        seen = run.watcher.samples[-1].seen
        if not seen:
            raise InvalidInput(
                f"{self.settings.reader}: the reader read nothing after the sink was given "
                f"{len(run.rows.expected())} rows and raised no error; one of the two looks elsewhere."
            )
        self.shape = shape_of(
            _ours(run, run.watcher.samples[-1:], self.harness.reader.resets)[0].seen,
            run.rows,
        )
        if self.shape is Shape.SUMS and not self.harness.reader.resets:
            raise InvalidInput(
                f"{self.settings.reader}: sums of several runs cannot be told apart; write a reset() too."
            )
        self.log = self.harness.healthy_log = run.effects()
        return self._keep(self._judged(Job("healthy", "no crash", Group.HEALTHY), run))

    def jobs(self) -> list[Job]:
        """What there is to be run after the healthy run, second crashes apart."""
        plan = choose(self.log, self.settings.batches, quick=self.settings.quick)
        self.found = plan.found
        jobs = [
            Job(point.id, str(point), Group.CRASH, (point,)) for point in plan.chosen
        ]
        retry = retry_point(self.log)
        if retry is not None:
            jobs.append(
                Job("retry", f"a task dies alone: {retry}", Group.RETRY, (retry,))
            )
        for name, said in VARIANTS.items():
            jobs.append(
                Job(name, said, Group.IDENTITY if name in DEMANDED else Group.CONDITION)
            )
        return jobs

    def second_crashes(self) -> list[Job]:
        """Pairs of crashes, found in the recoveries from the single ones that were run."""
        chosen, self.pairs_found = pairs(self.recoveries, quick=self.settings.quick)
        return [_pair_job(pair) for pair in chosen]

    def run(self, job: Job) -> Result:
        """One run, judged."""
        self.planned += 1
        if time.monotonic() - self._begun > self.settings.budget:
            return self._keep(
                Result(
                    job.id,
                    job.title,
                    job.group,
                    job.points,
                    unknown=f"not run: {self.settings.budget:.0f} s were over",
                )
            )
        result = self._try(job)
        if (
            NEVER_REACHED in result.unknown
        ):  # a sink that works beside its calls does not do the same in every run
            result = replace(
                self._try(job),
                notes=("the first run did not pass the point and was made once more",),
            )
        return self._keep(result)

    def _try(self, job: Job) -> Result:
        self._tell("run", job.title)
        rows = both(self.harness) if job.id in TWO else None
        with self.harness.run(job.id, job.title, rows) as run:
            if job.id in VARIANT_RUNS:
                VARIANT_RUNS[job.id](self.harness, run)
            else:
                self.harness.execute(
                    run, job.points, "task" if job.group is Group.RETRY else "crash"
                )
            self.harness.settle(run)
        if job.group is Group.CRASH and not run.unknown:
            self.recoveries[job.points[0]] = run.effects()
        return self._judged(job, run)

    def _judged(self, job: Job, run: Run) -> Result:
        resets = self.harness.reader.resets
        result = Result(
            job.id,
            job.title,
            job.group,
            job.points,
            stuck=run.stuck,
            unknown=run.unknown,
            evidence=run.crashes,
            notes=tuple(run.notes),
            seconds=run.seconds,
        )
        if (
            not run.unknown
            and min(len(batch.rows) for batch in run.rows.batches) < FEWEST
        ):
            result = replace(
                result,
                unknown="too few rows in a batch to tell a part of it from all of it",
            )
        if not result.unknown:
            samples = _ours(run, run.watcher.samples, resets)
            due = _delivered(run, samples)
            seen = history(samples, run.rows, self.shape, due)
            result = replace(
                result, verdict=judge([named(each, self.shape) for each in due], seen)
            )
        self._stories[job.id] = lines(run, resets=resets)
        forget(run.folder)
        return replace(result, story=text(self._stories[job.id]))

    def _keep(self, result: Result) -> Result:
        self.results.append(result)
        violated = ", ".join(result.violated)
        self._tell(
            "done",
            f"{result.guarantee}{f' ({violated})' if violated else ''}: {result.title}",
        )
        return result

    def everything(self) -> Report:
        """Runs all that was asked for."""
        first = self.healthy()
        if not first.violated:
            for job in self._wanted():
                self.run(job)
        return self.report()

    def _wanted(self) -> Iterator[Job]:
        jobs, only = self.jobs(), self.settings.only
        if not only:
            order = [
                Group.CRASH,
                Group.IDENTITY,
                Group.RETRY,
                Group.PAIR,
                Group.CONDITION,
            ]
            for group in order:
                yield from (
                    self.second_crashes()
                    if group is Group.PAIR
                    else (job for job in jobs if job.group is group)
                )
            return
        known = {
            point.id: point for point in points(self.log, range(self.settings.batches))
        }
        for name in only:
            yield from self._one(name, jobs, known)

    def _one(
        self, name: str, jobs: Sequence[Job], known: dict[str, Point]
    ) -> Iterator[Job]:
        first, plus, second = name.partition("+")
        named = next((job for job in jobs if job.id == name), None)
        if named is not None:
            yield named
            return
        if first not in known:
            raise InvalidInput(
                f"--only {name}: the run without a crash has no such point; a report lists those it has."
            )
        point = known[first]
        yield Job(point.id, str(point), Group.CRASH, (point,))
        if plus:
            recovered = points(self.recoveries.get(point, ()), [point.batch], driver=2)
            other = next((each for each in recovered if each.id == second), None)
            if other is None:
                raise InvalidInput(
                    f"--only {name}: the recovery from {first} has no point {second}."
                )
            yield _pair_job(Pair(point, other))

    def report(self) -> Report:
        """What is known so far."""
        hit = sum(
            not each.unknown for each in self.results if each.group is not Group.HEALTHY
        )
        coverage = Coverage(self.found, self.pairs_found, self.planned, hit)
        summary = summarise(self.results, coverage)
        weakest = summary.weakest
        drawn = (
            picture(self._stories[weakest.id], weakest.title)
            if weakest and weakest.id in self._stories
            else ""
        )
        notes = tuple(dict.fromkeys(self.harness.strays))
        return Report(
            self.settings, self.door, self.shape, summary, tuple(self.log), drawn, notes
        )


def _pair_job(pair: Pair) -> Job:
    return Job(
        pair.id,
        f"{pair.first}; then, in the recovery, {pair.second}",
        Group.PAIR,
        (pair.first, pair.second),
    )


def _ours(run: Run, samples: Sequence[Sample], resets: bool) -> list[Sample]:
    """Without a `reset`, the rows of earlier runs stay, and are told by their identities."""
    if resets:
        return list(samples)
    ids = {row["id"] for batch in run.rows.batches for row in batch.rows}
    return [
        each._replace(
            seen=tuple(row for row in each.seen if row.id is None or row.id in ids)
        )
        for each in samples
    ]


def _delivered(run: Run, samples: Sequence[Sample]) -> list[Record]:
    """What should be there: everything; of a job that is stuck, what the engine has finished and what came anyway."""
    expected = run.rows.expected()
    if not run.stuck:
        return expected
    finished = {
        row["id"]
        for number in Checkpoint(run.checkpoint).commit_log()
        if number < len(run.rows.batches)
        for row in run.rows.batches[number].rows
    }
    there = {row.id for row in samples[-1].seen}
    return [
        record
        for record in expected
        if record.offset in finished or record.offset in there
    ]


@contextmanager
def campaign(
    wanted: Settings, folder: Path | None = None, tell: Tell = silent
) -> Iterator[Campaign]:
    """Everything that a test needs, for a block; afterwards nothing of it runs any more."""
    with ExitStack() as stack:
        place = folder or Path(
            stack.enter_context(tempfile.TemporaryDirectory(prefix="labkit-crashtest-"))
        )
        place.mkdir(parents=True, exist_ok=True)
        place = place.resolve()
        find_java()
        door = examine(wanted.subject)
        reader = stack.enter_context(Reader(wanted.reader, place / "reader.log"))
        before = check_store(reader)
        if before:
            tell("done", f"the store had {before} row(s); reset() has removed them")
        pool = DriverPool(
            door, place / "drivers", file=wanted.subject.file, mark=uuid.uuid4().hex
        )
        harness = Harness(wanted, door, reader, pool, place / "runs")
        stack.callback(_reset, reader)
        stack.callback(harness.close)
        (place / "drivers").mkdir(exist_ok=True)
        pool.fill(1)
        yield Campaign(wanted, door, harness, place, tell)


def _reset(reader: Reader) -> None:
    if reader.resets:
        try:
            reader.reset()
        except (ReaderFailed, InvalidInput):
            return


def crash_test(
    subject: str, *, folder: Path | None = None, tell: Tell = silent, **more: Any
) -> Report:
    """Tests a sink, `FILE:NAME`; `more` is what `labkit.crashtest.settings.settings` takes.

    Raises `InvalidInput` for a file, a name, a reader or a store that cannot be tested, in one sentence.
    """
    with campaign(settings(subject, **more), folder, tell) as running:
        return running.everything()
