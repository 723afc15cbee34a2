"""Spark's own Parquet sink, read as Spark reads it: by its log, which knows batches by their numbers alone."""

import json
import os
import shutil
from pathlib import Path
from urllib.parse import unquote, urlparse

import pyarrow.parquet

STORE = Path(os.environ.get("SINK_STORE", "sink-store"))


def start(stream):
    """Says what is to be started; the test starts it."""
    return stream.writeStream.format("parquet").option("path", str(STORE))


def listed():
    """The files of the log: one file of it for each batch, a version in its first line."""
    for log in sorted(STORE.glob("_spark_metadata/[0-9]*")):
        for line in log.read_text().splitlines()[1:]:
            yield unquote(urlparse(json.loads(line)["path"]).path)


def read():
    """What Spark shows to everybody."""
    return [row for path in listed() for row in pyarrow.parquet.read_table(path).to_pylist()]


def reset():
    """Empties the store between two runs of a test."""
    shutil.rmtree(STORE, ignore_errors=True)
