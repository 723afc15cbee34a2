"""Judges what a reader saw during one run, and explains the verdict."""

from collections.abc import Sequence

from labkit.core.explanation import Explanation, explain
from labkit.core.judge import Verdict, judge
from labkit.core.records import Record
from labkit.crashtest.rows import Rows, Shape, named
from labkit.crashtest.samples import Readings, Sample, history


def explained(readings: Readings, shape: Shape, due: Sequence[Record]) -> Explanation:
    """Return how the readings of a run differ from every failure-free run over the records `due`."""
    return explain([named(each, shape) for each in due], readings.history(due))


def verdict_of(samples: Sequence[Sample], rows: Rows, shape: Shape, due: Sequence[Record]) -> Verdict:
    """Return the judge's verdict on the readings of a run with these input rows.

    `due` are the records that the store must hold in the end, `shape` the form of the reader's rows.
    """
    observed = history(samples, rows, shape, due)
    return judge([named(each, shape) for each in due], observed)
