"""What the streaming queries compute. A job must not know its sink, nor where it will be killed."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.sql import Row
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from labkit.scenario import Scenario
from labkit.spark.reach import Armed

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SCHEMA = "offset long, key string, value long"


class RunningCount(StatefulProcessor):
    """Counts one word; emits (offset, word, count so far) for every record.

    Rows are sorted by offset first: the order within a batch is not fixed, and a replay must count alike.
    """

    def init(self, handle: StatefulProcessorHandle) -> None:
        """The word's count, in the state store."""
        self._count = handle.getValueState("count", "count long")

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:
        """All rows of this word in this batch."""
        state = self._count.get()
        count = 0 if state is None else state[0]
        for row in sorted(rows, key=lambda row: row.offset):
            count += 1
            yield Row(offset=row.offset, key=key[0], value=count)
        self._count.update((count,))

    def close(self) -> None:
        """Nothing is held open."""


def running(spark: "SparkSession", scenario: Scenario, checkpoint: Path, armed: Armed | None) -> "DataFrame":
    """One row (offset, word, running count) for every record of the scenario's input."""
    reader = spark.readStream.format("labkit_log").option("path", str(scenario.input))
    reader = reader.option("records_per_batch", str(scenario.records_per_batch))
    reader = reader.option("commits", str(checkpoint / "commits"))
    if armed is not None:
        reader = reader.option("armed", json.dumps(armed.to_json()))
    return reader.load().groupBy("word").transformWithState(RunningCount(), SCHEMA, "append", "none")
