"""Functions for any streaming query, whatever its sink: register a data source, and shorten an error."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.datasource import DataSource


def register(spark: "SparkSession", source: "type[DataSource]") -> None:
    """Register a data source with the session. Call this again before every query that uses the source.

    All queries that use one registration share a HashMap in Spark that is not thread-safe. If two of these queries
    start at the same time, they may damage the map; then every task fails with an OptionalDataException.
    """
    spark.dataSource.register(source)


def reason(error: BaseException) -> str:
    """Return one line about a query's error: the message of a `LabError` that caused it, or the error's first line."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    own = [line for line in lines if line.startswith("labkit.core.errors.")]
    return own[-1].partition(": ")[2] if own else (lines[0] if lines else type(error).__name__)
