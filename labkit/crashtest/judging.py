"""Applies the judge, and the explanation of its verdict, to what a reader saw during one run."""

from collections.abc import Sequence

from labkit.core.explanation import Explanation, explain
from labkit.core.judge import Verdict, judge
from labkit.core.records import Record
from labkit.crashtest.rows import Rows, Shape, named
from labkit.crashtest.samples import Readings, Sample, history


def explained(readings: Readings, shape: Shape, due: Sequence[Record]) -> Explanation:
    """Compare the readings with all failure-free runs over the records `due`, and return the result."""
    return explain([named(each, shape) for each in due], readings.history(due))


def verdict_of(samples: Sequence[Sample], rows: Rows, shape: Shape, due: Sequence[Record]) -> Verdict:
    """Return the judge's verdict on readings of `rows`, given the records `due` that the store must hold in the end."""
    observed = history(samples, rows, shape, due)
    return judge([named(each, shape) for each in due], observed)
