"""Define the rows that a measurement returns, and compute medians, and ratios of times in the same round."""

import statistics
from collections.abc import Mapping, Sequence
from typing import Any

Rows = list[dict[str, Any]]
"""The lines of a table, each a dictionary: what was measured, then its figures with their units in the names."""


def median(values: Sequence[float], digits: int = 2) -> float:
    """Return the median, rounded to `digits` decimals."""
    return round(statistics.median(values), digits)


def percentile(values: Sequence[float], hundredths: int, digits: int = 2) -> float:
    """Return a percentile (`hundredths` from 1 to 99), rounded to `digits` decimals; for one value, that value."""
    if len(values) < 2:
        return round(max(values), digits)
    return round(statistics.quantiles(values, n=100, method="inclusive")[hundredths - 1], digits)


def spread(values: Sequence[float], digits: int = 2) -> str:
    """Return the smallest and the largest value as text, such as `1.20-1.45`."""
    return f"{min(values):.{digits}f}-{max(values):.{digits}f}"


def ratio(these: Sequence[float], those: Sequence[float], digits: int = 2) -> float:
    """Return the median of the ratios these/those, each pair measured in the same round."""
    return median([this / that for this, that in zip(these, those, strict=True)], digits)


def by_key(rows: Sequence[Mapping[str, Any]], key: str) -> dict[Any, Mapping[str, Any]]:
    """Return a dict from the value in the column `key` to the row."""
    return {row[key]: row for row in rows}
