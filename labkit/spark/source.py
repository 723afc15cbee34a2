"""Spark sources that read a file as a replayable log: JSON Lines or any text; a record's offset is its line number.

A batch has a fixed number of records, so a repeated batch has the same offsets. The source remembers no progress of its
own; Spark's offsets in the checkpoint decide where it reads.
"""

import itertools
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow

from labkit.host.logs import decode_line, decode_text, log_lines
from labkit.sinks.coordinator import pass_commit_log
from labkit.spark.reach import Armed

if TYPE_CHECKING:
    from pyarrow import RecordBatch

STRIDE = 1_000
"""The reader remembers the byte position of every 1000th line, so that it can start to read near any line."""


class LogSource(DataSource):
    """The Data Source `labkit_log`: the JSON lines of the file `path` as a log; columns offset (line number), word."""

    @classmethod
    def name(cls) -> str:
        return "labkit_log"

    def schema(self) -> str:
        return "offset long, word string"

    def streamReader(self, schema: object) -> "LogReader":
        """Return the reader for one query.

        The options of the data source are `path` (of the file), `records_per_batch` and `tasks`. A planned crash also
        needs `armed` (the crash as JSON) and `commits` (the path of the checkpoint's folder `commits`).
        """
        return LogReader(dict(self.options))


@dataclass
class Span(InputPartition):
    """The lines `start` to `end` - 1 of the file, which one task reads.

    The reader knows the byte positions only of every `STRIDE`th line. `position` is the byte position of the last such
    line that is not after `start`: the task seeks to this position, and skips the lines before `start`.
    """

    start: int
    end: int
    position: int


class LogReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Spark's reader of the format `labkit_log`: an offset is a line number, and a batch is a range of lines."""

    def __init__(self, options: dict[str, str]) -> None:
        self._path = Path(options["path"])
        self._records = int(options.get("records_per_batch", "1000"))
        self._armed = Armed.from_json(json.loads(options.get("armed", "null")))
        self._commits = Path(options["commits"]) if "commits" in options else None
        self._tasks = int(options.get("tasks", "1"))
        self._positions: list[int] = []
        self._lines = 0
        self._bytes = 0

    def initialOffset(self) -> dict[str, int]:
        return {"offset": 0}

    def prepareForTriggerAvailableNow(self) -> None:
        """Do nothing, because the file does not grow during a run."""

    def getDefaultReadLimit(self) -> ReadLimit:
        return ReadMaxRows(self._records)

    def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:
        """Return the offset at which the next batch ends; `start` is the offset at which the batch begins.

        Spark calls this method after it has written `commits/N` of the previous batch, so a crash that is planned right
        after that write happens here.
        """
        self._pass_commit_log()
        self._index()
        end = self._lines
        if isinstance(limit, ReadMaxRows):
            end = min(end, start["offset"] + limit.max_rows)
        return {"offset": max(end, start["offset"])}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[InputPartition]:
        """Split a batch into ranges of lines, one for each task; a small batch is a single range."""
        first, last = start["offset"], end["offset"]
        self._index()
        # Rounded up, so that a batch never has more ranges than `tasks` allows.
        step = max(STRIDE, -(-(last - first) // self._tasks))
        return [
            Span(begin, min(begin + step, last), self._positions[begin // STRIDE]) for begin in range(first, last, step)
        ]

    def read(self, partition: InputPartition) -> Iterator[tuple[int, str]]:
        """Yield (offset, word) for each line of the range that `partition` describes."""
        for offset, raw in self._raw(partition):
            yield offset, decode_line(raw, self._path, offset)

    def _raw(self, partition: InputPartition) -> Iterator[tuple[int, bytes]]:
        assert isinstance(partition, Span)
        number = STRIDE * (partition.start // STRIDE)
        with self._path.open("rb") as file:
            # The lines between the remembered line and the range are read and discarded: fewer than `STRIDE`.
            file.seek(partition.position)
            for offset in range(number, partition.end):
                raw = file.readline()
                if offset >= partition.start:
                    yield offset, raw.removesuffix(b"\n")

    def _index(self) -> None:
        # One pass is enough, because this process runs as long as the query, and a run's input does not grow.
        if self._lines:
            return
        for raw in log_lines(self._path):
            if self._lines % STRIDE == 0:
                self._positions.append(self._bytes)
            self._lines += 1
            self._bytes += len(raw) + 1

    def _pass_commit_log(self) -> None:
        if self._armed is None or self._commits is None:
            return
        batch = self._armed.crash.batch
        # Looks for the file, because Spark's notification of the batch may be late or lost.
        if (self._commits / str(batch)).exists():
            pass_commit_log(self._armed.reach, batch)


class TextSource(DataSource):
    """The Data Source `labkit_text`: a text file `path`, as a log with the columns offset (line number), line."""

    @classmethod
    def name(cls) -> str:
        return "labkit_text"

    def schema(self) -> str:
        return "offset long, line string"

    def streamReader(self, schema: object) -> "TextReader":
        """Return the reader for one query. The data source has the same options as `LogSource`."""
        return TextReader(dict(self.options))


class TextReader(LogReader):
    """Spark's reader of the format `labkit_text`. It yields Arrow batches, which Spark reads faster than rows."""

    def read(self, partition: InputPartition) -> "Iterator[RecordBatch]":
        """Yield the lines of the range that `partition` describes, as Arrow batches (columns offset, line)."""
        import pyarrow as pa

        lines = self._raw(partition)
        while some := list(itertools.islice(lines, STRIDE)):
            offsets = pa.array([offset for offset, _ in some], pa.int64())
            texts = [decode_text(raw, self._path, offset) for offset, raw in some]
            columns = [offsets, pa.array(texts, pa.string())]
            yield pa.RecordBatch.from_arrays(columns, ["offset", "line"])
