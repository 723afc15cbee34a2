"""The computations of the lab's streaming queries (jobs), each from a DataFrame of input to rows for a sink."""

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
    """Spark's stateful processor for the word count: it emits (offset, word, count so far) for every record.

    It sorts each batch by offset, because Spark may pass the rows in another order when it repeats the batch.
    """

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._count = handle.getValueState("count", "count long")

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:
        """Yield (offset, word, count so far) for each record of the word `key` in a batch, and save the last count."""
        state = self._count.get()
        count = 0 if state is None else state[0]
        for row in sorted(rows, key=lambda row: row.offset):
            count += 1
            yield Row(offset=row.offset, key=key[0], value=count)
        self._count.update((count,))

    def close(self) -> None:
        """Do nothing, because there is nothing to close."""


_STATE = "org.apache.spark.sql.execution.streaming.state"
PROVIDERS = {State.ROCKSDB: f"{_STATE}.RocksDBStateStoreProvider", State.HDFS: f"{_STATE}.HDFSBackedStateStoreProvider"}
"""For each state store provider, the name of its Java class."""


def keep_state(spark: "SparkSession", state: State) -> None:
    """Set the state store provider for all queries that this session starts from now on."""
    spark.conf.set("spark.sql.streaming.stateStore.providerClass", PROVIDERS[state])


def shuffle_into(spark: "SparkSession", tasks: int) -> None:
    """Set the number of shuffle tasks of all queries that this session starts from now on."""
    spark.conf.set("spark.sql.shuffle.partitions", str(tasks))


def rescaled(rows: "DataFrame", tasks: int) -> "DataFrame":
    """Repartition the rows by key, so that `tasks` tasks write them.

    The number of state partitions stays the same, because the first run of a checkpoint fixes it.
    """
    return rows.repartition(tasks, "key")


def running(lines: "DataFrame") -> "DataFrame":
    """Compute the running word count: a row (offset, word, count so far) for every record (offset, word)."""
    return lines.groupBy("word").transformWithState(RunningCount(), SCHEMA, "append", "none")


def running_on_topic(records: "DataFrame") -> "DataFrame":
    """Compute the running word count for records of a Kafka topic, whose values are JSON with offset and word."""
    record = f.from_json(f.col("value").cast("string"), "offset long, word string").alias("record")
    return running(records.select(record).select("record.*"))


WORD = r"[\p{L}\p{N}']+"
"""The regular expression (of the JVM) for a word: the longest run of letters, numbers and apostrophes."""


def totals(lines: "DataFrame") -> "DataFrame":
    """Count words with Spark's own aggregation; each batch emits a row for every word in it, with the total so far.

    `lines` has the columns offset (the line's number) and line. The rows have the columns offset (number of the last
    line with the word), key (the word in lower case) and value (the total).
    """
    word = f.explode(f.regexp_extract_all("line", f.lit(WORD), f.lit(0)))
    counted = lines.select("offset", word.alias("word")).groupBy(f.lower("word").alias("key"))
    return counted.agg(f.max("offset").alias("offset"), f.count("*").alias("value")).select("offset", "key", "value")


def each(lines: "DataFrame") -> "DataFrame":
    """Return a row (offset, word, 1) for every line of a socket source; a line is JSON with offset and word.

    At most `PARTITIONS` tasks compute the rows of a batch, because a crash inside a task requires that all tasks of the
    batch run at once. Without this limit a batch would have one task for every thread of the session, and some tasks
    would have to wait while another query uses threads.
    """
    record = f.from_json("value", "offset long, word string").alias("record")
    row = "record.offset", f.col("record.word").alias("key"), f.lit(1).alias("value")
    return lines.coalesce(PARTITIONS).select(record).select(*row)


def shop(orders: "DataFrame", outside: Path) -> "DataFrame":
    """Return a row (offset, item, price) for each order, and send a mail for each.

    `outside` is the directory of the price list and the mails.
    """
    served = partial(serve, Outside(outside))
    return orders.repartition(PARTITIONS, "word").mapInArrow(served, SCHEMA)


def serve(outside: Outside, orders: "Iterator[RecordBatch]") -> "Iterator[RecordBatch]":
    """Process the orders of one task of the job `shop`: look up each price, send each mail, and yield each row."""
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
    """The definition of a job as a Spark query: its source, its computation, and its output mode."""

    source: type[DataSource] | None
    """The lab's own source class; None if the job reads with a source of Spark."""
    compute: "Callable[[DataFrame, Path], DataFrame]"
    """Returns the result for the input and the directory with prices and mails (`labkit.spark.outside`)."""
    output_mode: str


def _without_outside(compute: "Callable[[DataFrame], DataFrame]") -> "Callable[[DataFrame, Path], DataFrame]":
    # The job has no prices and mails, so it ignores their directory, the second argument of `Plan.compute`.
    return lambda lines, _outside: compute(lines)


JOBS = {
    Job.RUNNING: Plan(LogSource, _without_outside(running), "append"),
    Job.SOCKET: Plan(None, _without_outside(each), "append"),
    Job.KAFKA: Plan(None, _without_outside(running_on_topic), "append"),
    Job.TOTALS: Plan(TextSource, _without_outside(totals), "update"),
    Job.SHOP: Plan(LogSource, shop, "append"),
}
