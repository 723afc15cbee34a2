"""The computations of the streaming queries.

A job does not know its sink, nor the failpoint at which it will be killed.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.sql import Row
from pyspark.sql import functions as f
from pyspark.sql.datasource import DataSource
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from labkit.spark.options import PARTITIONS, Job, State
from labkit.spark.outside import Mail, Outside
from labkit.spark.source import LogSource, TextSource

if TYPE_CHECKING:
    from pyarrow import RecordBatch
    from pyspark.sql import DataFrame, SparkSession

SCHEMA = "offset long, key string, value long"


class RunningCount(StatefulProcessor):
    """A stateful operator that counts one word, and emits (offset, word, count so far) for every record.

    Rows are sorted by offset first, because their order within a batch may vary, but a replay must count alike.
    """

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Prepare access to the word's count in the state store."""
        self._count = handle.getValueState("count", "count long")

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:
        """Yield the running count for each of this word's rows in this batch, and store the last count."""
        state = self._count.get()
        count = 0 if state is None else state[0]
        for row in sorted(rows, key=lambda row: row.offset):
            count += 1
            yield Row(offset=row.offset, key=key[0], value=count)
        self._count.update((count,))

    def close(self) -> None:
        """Do nothing, because the processor holds nothing open."""


_STATE = "org.apache.spark.sql.execution.streaming.state"
PROVIDERS = {State.ROCKSDB: f"{_STATE}.RocksDBStateStoreProvider", State.HDFS: f"{_STATE}.HDFSBackedStateStoreProvider"}
"""The Java class of each state store provider."""


def keep_state(spark: "SparkSession", state: State) -> None:
    """Set the state store provider for every query that this session starts from now on."""
    spark.conf.set("spark.sql.streaming.stateStore.providerClass", PROVIDERS[state])


def shuffle_into(spark: "SparkSession", tasks: int) -> None:
    """Set the number of shuffle tasks for every query that this session starts from now on."""
    spark.conf.set("spark.sql.shuffle.partitions", str(tasks))


def rescaled(rows: "DataFrame", tasks: int) -> "DataFrame":
    """Distribute the rows over this number of writing tasks.

    A restart cannot repartition the state: Spark takes the number of partitions from the checkpoint
    (OffsetSeqMetadata), whatever the session says.
    """
    return rows.repartition(tasks, "key")


def running(lines: "DataFrame") -> "DataFrame":
    """Return one row (offset, word, running count) for every record."""
    return lines.groupBy("word").transformWithState(RunningCount(), SCHEMA, "append", "none")


def running_on_topic(records: "DataFrame") -> "DataFrame":
    """Return running counts of a topic's records. Each record carries its line number, so Kafka's offsets do not
    matter.
    """
    record = f.from_json(f.col("value").cast("string"), "offset long, word string").alias("record")
    return running(records.select(record).select("record.*"))


WORD = r"[\p{L}\p{N}']+"
"""The regular expression (of the JVM) for a word: the longest run of letters, numbers and apostrophes."""


def totals(lines: "DataFrame") -> "DataFrame":
    """Return, for every batch, one row (last line, word, total) for each word that occurs in it."""
    word = f.explode(f.regexp_extract_all("line", f.lit(WORD), f.lit(0)))
    counted = lines.select("offset", word.alias("word")).groupBy(f.lower("word").alias("key"))
    return counted.agg(f.max("offset").alias("offset"), f.count("*").alias("value")).select("offset", "key", "value")


def each(lines: "DataFrame") -> "DataFrame":
    """Return one row (offset, word, 1) for every line, which is an object with offset and word.

    Spark splits what it read from a socket into one task per thread; a sink with an armed failpoint relies on
    fewer tasks.
    """
    record = f.from_json("value", "offset long, word string").alias("record")
    row = "record.offset", f.col("record.word").alias("key"), f.lit(1).alias("value")
    return lines.coalesce(PARTITIONS).select(record).select(*row)


def shop(orders: "DataFrame", outside: Path) -> "DataFrame":
    """Return one row (offset, item, price) for every order; the task that handles the order also sends a mail."""
    served = partial(serve, Outside(outside))
    return orders.repartition(PARTITIONS, "word").mapInArrow(served, SCHEMA)


def serve(outside: Outside, orders: "Iterator[RecordBatch]") -> "Iterator[RecordBatch]":
    """Handle the orders of one task of the shop: for each, look up its price, send a mail, yield a row."""
    import pyarrow as pa

    for batch in orders:
        rows = sorted(
            Mail(order["offset"], order["word"], outside.read()[order["word"]]) for order in batch.to_pylist()
        )
        for mail in rows:
            outside.send(mail)
        columns = zip(*rows, strict=True) if rows else ((), (), ())
        types = pa.int64(), pa.string(), pa.int64()
        arrays = [pa.array(*each) for each in zip(columns, types, strict=True)]
        yield pa.RecordBatch.from_arrays(arrays, ["offset", "key", "value"])


@dataclass(frozen=True)
class Plan:
    """The definition of one job: the source of its lines, its computation, and the output mode of its rows."""

    source: type[DataSource] | None
    """The lab's own source class; None if the job reads with a source of Spark."""
    compute: "Callable[[DataFrame, Path], DataFrame]"
    """Computes the result from the lines and the folder with prices and mails (`labkit.spark.outside`)."""
    output_mode: str


def _alone(compute: "Callable[[DataFrame], DataFrame]") -> "Callable[[DataFrame, Path], DataFrame]":
    """Turn a computation that uses only its lines into one that also accepts the outside folder."""
    return lambda lines, _outside: compute(lines)


JOBS = {
    Job.RUNNING: Plan(LogSource, _alone(running), "append"),
    Job.SOCKET: Plan(None, _alone(each), "append"),
    Job.KAFKA: Plan(None, _alone(running_on_topic), "append"),
    Job.TOTALS: Plan(TextSource, _alone(totals), "update"),
    Job.SHOP: Plan(LogSource, shop, "append"),
}
