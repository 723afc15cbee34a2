"""A whole test of a pipeline: a run without a crash, the places that it shows, a run for each of them, second crashes.

    from labkit.crashtest.blackbox.campaign import crash_test_pipeline
    report = crash_test_pipeline("./job.sh", reader="rows.py:read", expected="rows.jsonl")

This module decides what is run and in which order; the runs are `labkit.crashtest.blackbox.runs`, the judge is
`labkit.core.judge`.
"""

import difflib
import tempfile
import uuid
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from labkit.core.errors import InvalidInput, JobFailed, ServiceUnavailable
from labkit.crashtest.blackbox.diagnosis import diagnose
from labkit.crashtest.blackbox.effects import Effect
from labkit.crashtest.blackbox.healthy import Healthy, healthy
from labkit.crashtest.blackbox.jobs import outage_job, pair_job, single_job
from labkit.crashtest.blackbox.logs import log_notes, without
from labkit.crashtest.blackbox.outage import (
    OUTAGES,
    POWER,
    QUICK_OUTAGES,
    STATE,
    outages,
)
from labkit.crashtest.blackbox.points import (
    PAIRS,
    POINTS,
    QUICK_PAIRS,
    QUICK_POINTS,
    THEN,
    Pair,
    Point,
    choose,
    families,
    pairs,
    points,
)
from labkit.crashtest.blackbox.reading import Aids
from labkit.crashtest.blackbox.report import UNJUDGED, late_notes, pipeline_report
from labkit.crashtest.blackbox.rollback import roll_back
from labkit.crashtest.blackbox.runs import Harness, PipelineRun, effects_of
from labkit.crashtest.blackbox.settings import (
    CHECKPOINT,
    PipelineSettings,
    pipeline_settings,
)
from labkit.crashtest.blackbox.story import lines
from labkit.crashtest.blackbox.words import because, in_their_rows
from labkit.crashtest.harness.leftovers import MARK
from labkit.crashtest.harness.reader import ReaderFailed
from labkit.crashtest.harness.runs import NEVER_REACHED
from labkit.crashtest.jobs import Job, unknown
from labkit.crashtest.judging import explained, verdict_of
from labkit.crashtest.ledger import Ledger, Tell, silent
from labkit.crashtest.report import Report
from labkit.crashtest.rows import Shape
from labkit.crashtest.samples import Readings, Sample
from labkit.crashtest.timeline import Line, text
from labkit.crashtest.verdict import Group, Result
from labkit.host.syscalls.support import supported

QUICK_SECONDS, WHOLE_SECONDS = 170.0, 900.0
"""What all runs may take, unless those that are planned need more."""

STARTS = 2.5
"""How many runs without a crash a run with one may take."""


class Campaign:
    """One test, for a block. `healthy` comes first; then each job of `jobs` may be run, in any order."""

    def __init__(
        self, settings: PipelineSettings, harness: Harness, tell: Tell
    ) -> None:
        self.settings, self.harness = settings, harness
        most = QUICK_SECONDS if settings.quick else WHOLE_SECONDS
        self.ledger = Ledger(settings.seconds or most, tell)
        self.points: dict[str, Point] = {}
        """Every place of the run without a crash, by name."""
        self.found = 0
        """How many places there are, those at logs apart."""
        self.pairs_found = 0
        self.recoveries: dict[Point, Sequence[Effect]] = {}
        self._healthy: Healthy | None = None
        self._stories: dict[str, list[Line]] = {}

    def healthy(self) -> Result:
        """The recorded run. Raises `InvalidInput` if pipeline or reader do not even do without a crash."""
        self.ledger.tell("run", "a run without a crash, to find the points")
        self._healthy = healthy(self.harness)
        run = self._healthy.run
        self.points = {each.name: each for each in points(self._healthy.effects)}
        job = Job("healthy", "no crash", Group.HEALTHY)
        result = self.ledger.keep(self._judged(job, run))
        if self._healthy.doubts:
            seeing = Job("seeing", "what the test sees of the pipeline", Group.SEEING)
            self.ledger.keep(unknown(seeing, "; ".join(self._healthy.doubts)))
        return result

    @property
    def _seen(self) -> Healthy:
        assert self._healthy is not None
        return self._healthy

    def jobs(self) -> list[Job]:
        """What there is to be run after the run without a crash, second crashes apart."""
        most = QUICK_POINTS if self.settings.quick else POINTS
        effects = without(self._seen.effects, self.harness.logs)
        plan = choose(effects, self._seen.showing, most)
        self.found = plan.found
        jobs = [single_job(self.points[point.name]) for point in plan.chosen]
        if self.settings.checkpoint is not None:
            title = "an older copy of the checkpoint, restored behind later rows"
            jobs.append(Job(CHECKPOINT, title, Group.IDENTITY))
        return jobs

    def second_crashes(self) -> list[Job]:
        """What the single crashes have shown: pairs, found in their recoveries, and places at files that are no logs."""
        most = QUICK_PAIRS if self.settings.quick else PAIRS
        showing = families(self._seen.effects, self._seen.showing)
        chosen, self.pairs_found = pairs(self.recoveries, most, showing)
        return [*self._recalled(), *map(pair_job, chosen)]

    def outages(self) -> list[Job]:
        """Places at which the power fails, if that was asked for."""
        if not self.settings.power_cut:
            return []
        most = QUICK_OUTAGES if self.settings.quick else OUTAGES
        plan = choose(self._seen.effects, self._seen.showing, most)
        return [outage_job(point) for point in plan.chosen]

    def cut_power(self, job: Job) -> list[Result]:
        """The runs from each state that a loss of power at a point may leave, judged; none where all was synced."""
        if self.ledger.is_over():
            self.ledger.planned += 1
            return [self.ledger.skip(job)]
        self.ledger.begin(job)
        at = self._place(job.id.removeprefix(POWER))
        kept = len(self.ledger.results)
        for _ in range(2):  # a point that was not reached is tried once more
            with self.harness.run(job.id, job.title) as run:
                for after in outages(self.harness, run, at):
                    each = Job(after.id, after.title, Group.POWER)
                    self.ledger.planned += 1
                    self.ledger.keep(self._judged(each, after))
            if NEVER_REACHED not in run.unknown:
                break
        if run.unknown:
            self.ledger.planned += 1
            self.ledger.keep(unknown(job, run.unknown))
        return self.ledger.results[kept:]

    def large_jobs(self) -> Iterator[Job]:
        """None: rows are the user's own, so no run has more of them than the others."""
        yield from ()

    @property
    def results(self) -> list[Result]:
        """What came out of the runs so far."""
        return self.ledger.results

    def run(self, job: Job) -> Result:
        """One run, judged."""
        self.ledger.planned += 1
        if self.ledger.is_over():
            return self.ledger.skip(job)
        result = self._try(job)
        if NEVER_REACHED in result.unknown:
            note = "the first run did not pass the point and was made once more"
            result = replace(self._try(job), notes=(note,))
        return self.ledger.keep(result)

    def _try(self, job: Job) -> Result:
        self.ledger.begin(job)
        with self.harness.run(job.id, job.title) as run:
            if job.id == CHECKPOINT:
                roll_back(self.harness, run, self._seen.effects)
            else:
                for name in job.id.split(THEN):
                    self.harness.crash(run, self._place(name))
                self.harness.recover(run)
        if job.group is Group.CRASH and not run.unknown:
            self.recoveries[self.points[job.id]] = effects_of(run, 2)
        return self._judged(job, run)

    def _place(self, name: str) -> Point:
        return self.points.get(name) or Point(name, 0)

    def _judged(self, job: Job, run: PipelineRun) -> Result:
        found = lines(run)
        self._stories[job.id] = found
        result = Result(
            job.id,
            job.title,
            job.group,
            stuck=run.stuck,
            unknown=run.unknown,
            evidence=run.crashes,
            notes=tuple(run.notes),
            story=text(found),
            seconds=run.seconds,
        )
        if result.unknown:
            return result
        expectation = self._seen.expectation
        samples = [
            Sample(each.at, each.start, expectation.seen(each.values), each.moment)
            for each in run.readings
        ]
        if self._seen.replaces and expectation.history_shape is Shape.ROWS:
            samples = samples[-1:]  # what it replaces by design was not read too early
        due = expectation.rows.expected()
        if run.stuck:
            there = {row.id for sample in samples for row in sample.seen}
            due = [record for record in due if record.offset in there]
        shape = expectation.history_shape
        verdict = verdict_of(samples, expectation.rows, shape, due)
        said = because(verdict, expectation.values, len(due))
        readings = Readings(samples, expectation.rows, shape)
        explanation = in_their_rows(explained(readings, shape, due), expectation.values)
        return replace(
            result, verdict=replace(verdict, because=said), explanation=explanation
        )

    def everything(self) -> Report:
        """Runs all that was asked for."""
        first = self.healthy()
        if not first.violated:
            jobs = self.jobs()
            more = QUICK_PAIRS if self.settings.quick else PAIRS
            only = self.settings.only
            more += len(self.outages())
            runs = sum(1 + (THEN in name) for name in only) or len(jobs) + more
            self.ledger.total = 1 + runs
            if not self.settings.seconds:
                needed = 2 * STARTS * first.seconds * runs
                self.ledger.budget = max(self.ledger.budget, needed)
            for job in self._wanted(jobs):
                if job.group is Group.POWER:
                    self.cut_power(job)
                else:
                    self.run(job)
        return self.report()

    def _wanted(self, jobs: Sequence[Job]) -> Iterator[Job]:
        if not self.settings.only:
            yield from jobs
            yield from self._recalled()
            yield from self.second_crashes()
            yield from self.outages()
        for name in self.settings.only:
            self._check(name, jobs)
        for name in self.settings.only:
            yield from self._one(name, jobs)

    def _check(self, name: str, jobs: Sequence[Job]) -> None:
        """Refuses a name before the first run is paid for. Raises `InvalidInput`."""
        if any(job.id == name for job in jobs):
            return
        place = name.partition(THEN)[0]
        if self.settings.power_cut:
            place = place.removeprefix(POWER).partition(STATE)[0]
        if place not in self.points:
            close = difflib.get_close_matches(place, self.points, n=1, cutoff=0.5)
            or_else = f"; did you mean {close[0]!r}?" if close else "."
            raise InvalidInput(
                f"--only {name}: the run without a crash has no such point{or_else}"
            )

    def _recalled(self) -> Iterator[Job]:
        """Places at files that were taken for logs, and that somebody read after all."""
        harness = self.harness
        harness.logs -= harness.recalled
        effects = without(self._seen.effects, harness.logs)
        tried = {each.id for each in self.ledger.results}
        most = QUICK_POINTS if self.settings.quick else POINTS
        plan = choose(effects, self._seen.showing, most)
        self.found = plan.found
        for point in plan.chosen if harness.recalled else ():
            if point.name not in tried:
                yield single_job(self.points[point.name])

    def _one(self, name: str, jobs: Sequence[Job]) -> Iterator[Job]:
        """What has to be run for one name: of a second crash the first one alone, too."""
        named = next((job for job in jobs if job.id == name), None)
        if named is not None:
            yield named
            return
        if name.startswith(POWER) and self.settings.power_cut:
            place = name.removeprefix(POWER).partition(STATE)[0]
            if place in self.points:
                yield outage_job(self.points[place])
                return
        first, then, second = name.partition(THEN)
        point = self.points[first]
        yield single_job(point)
        if then:
            recovered = {
                each.name: each for each in points(self.recoveries.get(point, ()))
            }
            if second not in recovered:
                raise InvalidInput(
                    f"--only {name}: the recovery from {first} has no point {second}."
                )
            yield pair_job(Pair(point, recovered[second]))

    def report(self) -> Report:
        """What is known so far."""
        unjudged = [*UNJUDGED, *(["aborted_read"] if self._seen.replaces else [])]
        summary = self.ledger.summary(self.found, self.pairs_found, unjudged)
        harness = self.harness
        known = log_notes(harness.logs - harness.recalled, harness.recalled)
        late = late_notes(self.ledger.results)
        notes = (*self._seen.notes, *known, *late, *harness.strays)
        return pipeline_report(
            self.settings,
            replace(self._seen, notes=notes),
            summary,
            diagnose(summary, self.points),
            self._stories,
        )


@contextmanager
def pipeline_campaign(
    settings: PipelineSettings, folder: Path | None = None, tell: Tell = silent
) -> Iterator[Campaign]:
    """Everything that a test needs, for a block; afterwards nothing of it runs any more."""
    if why := supported():
        raise ServiceUnavailable(why)
    with ExitStack() as stack:
        place = folder or Path(
            stack.enter_context(tempfile.TemporaryDirectory(prefix="labkit-crashtest-"))
        )
        place.mkdir(parents=True, exist_ok=True)
        place = place.resolve()
        mark = uuid.uuid4().hex
        aids = stack.enter_context(Aids(settings, place, {MARK: mark}))
        harness = Harness(settings, aids, place / "runs", mark)
        stack.callback(_empty, aids)
        yield Campaign(settings, harness, tell)


def _empty(aids: Aids) -> None:
    with suppress(ReaderFailed, InvalidInput, JobFailed):
        aids.reset()


def crash_test_pipeline(
    command: str, *, folder: Path | None = None, tell: Tell = silent, **more: Any
) -> Report:
    """Tests a pipeline; `more` is what `labkit.crashtest.blackbox.settings.pipeline_settings` takes.

    Raises `InvalidInput` for a command, a reader or a store that cannot be tested, in one sentence.
    """
    settings = pipeline_settings(command, **more)
    with pipeline_campaign(settings, folder, tell) as running:
        return running.everything()
