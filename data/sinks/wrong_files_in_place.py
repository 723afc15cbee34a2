"""Writes each partition of a batch to a file named by query, batch and partition, straight to where it is read."""

import json
import os
import shutil
from pathlib import Path

from pyspark import TaskContext

STORE = Path(os.environ.get("SINK_STORE", "sink-store"))


class Writer:
    """One object a task."""

    def open(self, partition_id, epoch_id):
        """Opens the partition's file; a replay opens the same one."""
        query = TaskContext.get().getLocalProperty("sql.streaming.queryId")
        STORE.mkdir(parents=True, exist_ok=True)
        self.file = open(STORE / f"part-{query}-{epoch_id:05}-{partition_id}.json", "w", buffering=1)
        return True

    def process(self, row):
        """One row, one line, at once."""
        self.file.write(json.dumps(row.asDict()) + "\n")

    def close(self, error):
        """The file is complete."""
        self.file.close()


def read():
    """All rows of all files; a line that is not finished is no row."""
    rows = []
    for path in sorted(STORE.glob("part-*.json")):
        for line in path.read_text().splitlines():
            try:
                rows.append(json.loads(line))
            except ValueError:
                continue
    return rows


def reset():
    """Empties the store between two runs of a test."""
    shutil.rmtree(STORE, ignore_errors=True)
