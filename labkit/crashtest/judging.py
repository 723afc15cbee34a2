"""Judges one run: selects the rows of the run, and those that were due, for the one judge.

This module must not count what came out: that is `labkit.core.judge`.
"""

from collections.abc import Sequence
from dataclasses import replace

from labkit.core.judge import Verdict, judge
from labkit.core.records import Record
from labkit.crashtest.harness.runs import Run
from labkit.crashtest.jobs import Job
from labkit.crashtest.rows import FEWEST, Rows, Shape, named
from labkit.crashtest.samples import Sample, history
from labkit.crashtest.seeing import PointReading
from labkit.crashtest.verdict import Result
from labkit.spark.checkpoint import Checkpoint


def judged(job: Job, run: Run, shape: Shape, *, resets: bool) -> Result:
    """The result of a run that is over. `resets`: whether the store was emptied before the run."""
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
    if result.unknown:
        return result
    if min(len(batch.rows) for batch in run.rows.batches) < FEWEST:
        few = "too few rows in a batch to tell a part of it from all of it"
        return replace(result, unknown=few)
    samples = ours(run, run.watcher.samples, resets)
    due = _delivered(run, samples)
    return replace(result, verdict=verdict_of(samples, run.rows, shape, due))


def verdict_of(
    samples: Sequence[Sample], rows: Rows, shape: Shape, due: Sequence[Record]
) -> Verdict:
    """The judge's verdict on readings of `rows`, where the records `due` should be there in the end."""
    seen = history(samples, rows, shape, due)
    return judge([named(each, shape) for each in due], seen)


def ours(run: Run, samples: Sequence[Sample], resets: bool) -> list[Sample]:
    """The samples with the run's own rows. Without a `reset` earlier rows stay, and identities tell them apart."""
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
    """The records that are due: all; for a stuck job those of finished batches, and those that came anyway."""
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


def point_readings(run: Run) -> list[PointReading]:
    """Readings at the points of the healthy run, between an empty store and the last reading."""
    size = run.log.stat().st_size if run.log.exists() else 0
    end = PointReading("the end of the run", size, run.watcher.samples[-1].seen)
    return [PointReading("the start", 0, ()), *run.watcher.readings, end]
