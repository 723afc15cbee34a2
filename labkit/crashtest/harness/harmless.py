"""Sinks of every kind that keep nothing, to warm a driver up."""

from collections.abc import Iterator
from typing import Any

from pyspark.sql.datasource import DataSource, DataSourceStreamWriter, WriterCommitMessage


def batch(frame: Any, _number: int) -> None:
    """A foreachBatch function."""
    frame.collect()


def writer(_row: Any) -> None:
    """A function of a row."""


def stream(rows: Any) -> Any:
    """A function that starts a query."""
    return rows.writeStream.format("noop")


class Nowhere(DataSourceStreamWriter):
    """Reads its rows and forgets them."""

    def write(self, iterator: Iterator[Any]) -> WriterCommitMessage:
        for _ in iterator:
            pass
        return WriterCommitMessage()

    def commit(self, messages: Any, batchId: int) -> None:
        """Nothing to commit."""

    def abort(self, messages: Any, batchId: int) -> None:
        """Nothing to abort."""


class source(DataSource):  # noqa: N801  # the name by which it is asked for, as of the others
    """A Python Data Source."""

    @classmethod
    def name(cls) -> str:
        return "labkit_harmless"

    def streamWriter(self, schema: Any, overwrite: bool) -> DataSourceStreamWriter:
        return Nowhere()
