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
    """A stateful operator that counts each word, and emits (offset, word, count so far) for every record.

    It sorts a batch by offset first, because the order of its rows may vary, but a replay must give the same counts.
    """

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Get access to the current word's count in the state store."""
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
"""For each state store provider, the name of its Java class."""


def keep_state(spark: "SparkSession", state: State) -> None:
    """Set the state store provider for every query that this session starts from now on."""
    spark.conf.set("spark.sql.streaming.stateStore.providerClass", PROVIDERS[state])


def shuffle_into(spark: "SparkSession", tasks: int) -> None:
    """Set the number of shuffle tasks for every query that this session starts from now on."""
    spark.conf.set("spark.sql.shuffle.partitions", str(tasks))


def rescaled(rows: "DataFrame", tasks: int) -> "DataFrame":
    """Repartition the rows, so that this number of tasks writes them.

    The number of state partitions cannot change: Spark takes it from the checkpoint (OffsetSeqMetadata), not from the
    session.
    """
    return rows.repartition(tasks, "key")


def running(lines: "DataFrame") -> "DataFrame":
    """Return one row (offset, word, running count) for every record; `lines` has the columns offset and word."""
    return lines.groupBy("word").transformWithState(RunningCount(), SCHEMA, "append", "none")


def running_on_topic(records: "DataFrame") -> "DataFrame":
    """Return rows as `running` does, for the records of a Kafka topic, each a JSON object with offset and word."""
    record = f.from_json(f.col("value").cast("string"), "offset long, word string").alias("record")
    return running(records.select(record).select("record.*"))


WORD = r"[\p{L}\p{N}']+"
"""The regular expression (of the JVM) for a word: the longest run of letters, numbers and apostrophes."""


def totals(lines: "DataFrame") -> "DataFrame":
    """Return, for every batch, one row (last line number, word in lower case, total so far) for each word in it."""
    word = f.explode(f.regexp_extract_all("line", f.lit(WORD), f.lit(0)))
    counted = lines.select("offset", word.alias("word")).groupBy(f.lower("word").alias("key"))
    return counted.agg(f.max("offset").alias("offset"), f.count("*").alias("value")).select("offset", "key", "value")


def each(lines: "DataFrame") -> "DataFrame":
    """Return one row (offset, word, 1) for every line, which is a JSON object with offset and word.

    The rows are in at most `PARTITIONS` tasks, because an armed failpoint needs all tasks at once, and Spark makes one
    task per thread from a socket.
    """
    record = f.from_json("value", "offset long, word string").alias("record")
    row = "record.offset", f.col("record.word").alias("key"), f.lit(1).alias("value")
    return lines.coalesce(PARTITIONS).select(record).select(*row)


def shop(orders: "DataFrame", outside: Path) -> "DataFrame":
    """Return one row (offset, item, price) for every order; the task that handles the order also sends a mail.

    `outside` is the directory with prices and mails (`labkit.spark.outside`).
    """
    served = partial(serve, Outside(outside))
    return orders.repartition(PARTITIONS, "word").mapInArrow(served, SCHEMA)


def serve(outside: Outside, orders: "Iterator[RecordBatch]") -> "Iterator[RecordBatch]":
    """Handle the orders of one task of the shop: look up each price, send each mail, and yield the rows."""
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
    """The definition of one job: the source of its input, its computation, and its output mode in Spark."""

    source: type[DataSource] | None
    """The lab's own source class; None if the job reads with a source of Spark."""
    compute: "Callable[[DataFrame, Path], DataFrame]"
    """Returns the result for the input and the directory with prices and mails (`labkit.spark.outside`)."""
    output_mode: str


def _alone(compute: "Callable[[DataFrame], DataFrame]") -> "Callable[[DataFrame, Path], DataFrame]":
    """Turn a function of the input into one that also takes the directory with prices and mails, and ignores it."""
    return lambda lines, _outside: compute(lines)


JOBS = {
    Job.RUNNING: Plan(LogSource, _alone(running), "append"),
    Job.SOCKET: Plan(None, _alone(each), "append"),
    Job.KAFKA: Plan(None, _alone(running_on_topic), "append"),
    Job.TOTALS: Plan(TextSource, _alone(totals), "update"),
    Job.SHOP: Plan(LogSource, shop, "append"),
}
