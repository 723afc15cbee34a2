"""What a measurement gives, and the arithmetic that all of them share: medians, and ratios within one round."""

import statistics
from collections.abc import Mapping, Sequence
from typing import Any

Rows = list[dict[str, Any]]
"""One dictionary a line of the table: what was measured, then its figures with their units in the names."""


def median(values: Sequence[float], digits: int = 2) -> float:
    """The median, rounded for reading."""
    return round(statistics.median(values), digits)


def percentile(values: Sequence[float], hundredths: int, digits: int = 2) -> float:
    """The value that so many of a hundred do not exceed; the largest where there are too few to say."""
    if len(values) < 2:
        return round(max(values), digits)
    return round(statistics.quantiles(values, n=100, method="inclusive")[hundredths - 1], digits)


def spread(values: Sequence[float], digits: int = 2) -> str:
    """The smallest and the largest value: how far a median is to be believed."""
    return f"{min(values):.{digits}f}-{max(values):.{digits}f}"


def ratio(these: Sequence[float], those: Sequence[float], digits: int = 2) -> float:
    """The median over all rounds of these by those, each pair measured in the same round."""
    return median([this / that for this, that in zip(these, those, strict=True)], digits)


def by_key(rows: Sequence[Mapping[str, Any]], key: str) -> dict[Any, Mapping[str, Any]]:
    """The rows by one of their columns."""
    return {row[key]: row for row in rows}
