"""Functions for any streaming query, whatever its sink: register a data source, and shorten an error."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.datasource import DataSource


def register(spark: "SparkSession", source: "type[DataSource]") -> None:
    """Register a data source with the session; call this again before every query.

    Spark gives the registered format to every query that names it, with one unsynchronised HashMap of environment
    variables in it, and fills that map when a query first runs. Two queries that do so at once can damage it, and then
    every task of the session fails with an OptionalDataException. A separate registration gives each query its own map.
    """
    spark.dataSource.register(source)


def reason(error: BaseException) -> str:
    """Return one line of a query's error: the message of a `LabError` that it contains, or else its first line."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    own = [line for line in lines if line.startswith("labkit.core.errors.")]
    return own[-1].partition(": ")[2] if own else (lines[0] if lines else type(error).__name__)
