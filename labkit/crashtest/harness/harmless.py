"""Sinks of every kind that throw their rows away, for the warm-up of a driver."""

from collections.abc import Iterator
from typing import Any

from pyspark.sql.datasource import DataSource, DataSourceStreamWriter, WriterCommitMessage


def batch(frame: Any, _number: int) -> None:
    """Read all rows of a batch and discard them; the warm-up uses this in place of a user's foreachBatch function."""
    frame.collect()


def writer(_row: Any) -> None:
    """Discard a row; the warm-up uses this in place of a user's foreach function."""


def stream(rows: Any) -> Any:
    """Return a writer of `rows` into Spark's `noop` format, which discards them.

    The warm-up uses this in place of a user's function that returns a writer.
    """
    return rows.writeStream.format("noop")


class Nowhere(DataSourceStreamWriter):
    """The writer of a Python data source; it discards all rows."""

    def write(self, iterator: Iterator[Any]) -> WriterCommitMessage:
        for _ in iterator:
            pass
        return WriterCommitMessage()

    def commit(self, messages: Any, batchId: int) -> None:
        """Do nothing, because nothing was written."""

    def abort(self, messages: Any, batchId: int) -> None:
        """Do nothing, because nothing was written."""


class source(DataSource):  # noqa: N801  # `warm_up` finds each sink of this file by its adapter's name
    """A Python data source for Spark whose stream writer discards every row."""

    @classmethod
    def name(cls) -> str:
        return "labkit_harmless"

    def streamWriter(self, schema: Any, overwrite: bool) -> DataSourceStreamWriter:
        return Nowhere()
