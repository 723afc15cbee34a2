"""Judges one run of a sink: selects its rows and the records that the store must hold, and passes both to the judge."""

from collections.abc import Sequence
from dataclasses import replace

from labkit.core.explanation import Explanation
from labkit.core.exposure import Span, exposure
from labkit.core.records import Record
from labkit.crashtest.harness.runs import Run
from labkit.crashtest.instrument.effects import Kind
from labkit.crashtest.jobs import Job
from labkit.crashtest.judging import explained, verdict_of
from labkit.crashtest.rows import FEWEST, Shape, named
from labkit.crashtest.samples import Readings, Sample
from labkit.crashtest.seeing import PointReading
from labkit.crashtest.sink_timeline import timed_effects
from labkit.crashtest.verdict import Result
from labkit.spark.checkpoint import Checkpoint


def judged(job: Job, run: Run, shape: Shape, *, resets: bool) -> Result:
    """Return the judged result of a finished run.

    `shape` is the form of the reader's rows; `resets` says whether the store was emptied before the run.
    """
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
        few = "too few rows in a batch to distinguish a part of it from all of it"
        return replace(result, unknown=few)
    samples = ours(run, run.watcher.samples, resets)
    due = _delivered(run, samples)
    readings = Readings(samples, run.rows, shape)
    begun = _begun(run, samples)
    return replace(
        result,
        verdict=verdict_of(samples, run.rows, shape, due),
        explanation=_explained(readings, shape, due, begun),
        exposure=exposure(
            [named(each, shape) for each in due],
            readings.sights(),
            readings.end(),
            keyed=readings.is_keyed,
            ready=_handed(run),
        ),
    )


def _explained(readings: Readings, shape: Shape, due: Sequence[Record], begun: float) -> Explanation:
    """Return how the readings differ from every failure-free run, with the time of the first row that differs, if any.

    The time is in seconds since `begun`.
    """
    explanation = explained(readings, shape, due)
    at = readings.born(explanation.rows) if explanation.row is not None else None
    if at is None:
        return explanation
    least, most = (f"{moment - begun:.2f}" for moment in at)
    when = f"at {least} s" if least == most else f"between {least} and {most} s"
    return replace(explanation, at=when)


def _begun(run: Run, samples: Sequence[Sample]) -> float:
    """Return the Unix time from which a run's timeline counts seconds: that of its first reading or effect."""
    return min([sample.at for sample in samples] + [at for _, at in timed_effects(run.log)])


def _handed(run: Run) -> dict[int, Span]:
    """Return when the sink first got each row, by row id, since no reader can see the row before."""
    first: dict[int, float] = {}
    for effect, at in timed_effects(run.log):
        if effect.kind is Kind.BEGIN:
            first[effect.batch] = min(at, first.get(effect.batch, at))
    return {
        row["id"]: Span.exactly(first[batch.number])
        for batch in run.rows.batches
        if batch.number in first
        for row in batch.rows
    }


def ours(run: Run, samples: Sequence[Sample], resets: bool) -> list[Sample]:
    """Return the readings with the rows of this run only.

    Without a `reset` the store also has rows of earlier runs, whose ids differ.
    """
    if resets:
        return list(samples)
    ids = {row["id"] for batch in run.rows.batches for row in batch.rows}
    return [each._replace(seen=tuple(row for row in each.seen if row.id is None or row.id in ids)) for each in samples]


def _delivered(run: Run, samples: Sequence[Sample]) -> list[Record]:
    """Return the records that the store must hold in the end: all records of the run's input.

    For a stuck job, only those of finished batches and those that readers saw are due.
    """
    expected = run.rows.expected()
    if not run.stuck:
        return expected
    finished = {
        row["id"]
        for number in Checkpoint(run.checkpoint).commit_log()
        if number < len(run.rows.batches)
        for row in run.rows.batches[number].rows
    }
    read = {row.id for row in samples[-1].seen}
    return [record for record in expected if record.offset in finished or record.offset in read]


def point_readings(run: Run) -> list[PointReading]:
    """Return the readings at the crash points of the run without a crash, between an empty store and the
    last reading.
    """
    size = run.log.stat().st_size if run.log.exists() else 0
    end = PointReading("the end of the run", size, run.watcher.samples[-1].seen)
    return [PointReading("the start", 0, ()), *run.watcher.readings, end]
