"""A Python Data Source: tasks stage files where nobody reads, and commit publishes those of the batch by one rename."""

import json
import os
import shutil
import uuid
from dataclasses import dataclass
from pathlib import Path

from pyspark import TaskContext
from pyspark.sql.datasource import DataSource, DataSourceStreamWriter, WriterCommitMessage

STORE = Path(os.environ.get("SINK_STORE", "sink-store"))


@dataclass
class Staged(WriterCommitMessage):
    """What a task has staged."""

    query: str
    path: str


class StagingWriter(DataSourceStreamWriter):
    """Stages in tasks, publishes on the driver."""

    def write(self, iterator):
        """Runs in a task."""
        query = TaskContext.get().getLocalProperty("sql.streaming.queryId")
        path = STORE / "staged" / f"{uuid.uuid4().hex}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        with open(path, "w") as file:
            for row in iterator:
                file.write(json.dumps(row.asDict()) + "\n")
            file.flush()
            os.fsync(file.fileno())
        return Staged(query, str(path))

    def commit(self, messages, batchId):
        """Runs on the driver: gathers the files of the tasks that succeeded, and publishes them at once."""
        told = [message for message in messages if message is not None]
        final = STORE / "published" / f"{told[0].query}-{batchId:05}"
        if final.exists():
            return
        draft = STORE / "staged" / f"batch-{uuid.uuid4().hex}"
        draft.mkdir()
        for message in told:
            os.link(message.path, draft / Path(message.path).name)
        final.parent.mkdir(exist_ok=True)
        draft.rename(final)

    def abort(self, messages, batchId):
        """Nothing was published."""


class StagedFiles(DataSource):
    """`df.writeStream.format("staged_files")`."""

    @classmethod
    def name(cls):
        """Its short name."""
        return "staged_files"

    def streamWriter(self, schema, overwrite):
        """Its writer."""
        return StagingWriter()


def read():
    """The rows of every published batch."""
    paths = sorted((STORE / "published").glob("*/*.json"))
    return [json.loads(line) for path in paths for line in path.read_text().splitlines()]


def reset():
    """Empties the store between two runs of a test."""
    shutil.rmtree(STORE, ignore_errors=True)
