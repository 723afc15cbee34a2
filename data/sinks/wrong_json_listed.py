"""Spark's own JSON sink, started by a function, and a reader that lists the folder instead of asking Spark's log."""

import json
import os
import shutil
from pathlib import Path

STORE = Path(os.environ.get("SINK_STORE", "sink-store"))


def start(stream):
    """Starts the query, as the job does; the test puts its own checkpoint and trigger in the place of the job's."""
    return (
        stream.writeStream.format("json")
        .option("path", str(STORE))
        .option("checkpointLocation", f"{STORE}.log")
        .start()
    )


def read():
    """What everybody finds in the folder."""
    return [json.loads(line) for path in sorted(STORE.glob("*.json")) for line in path.read_text().splitlines()]


def reset():
    """Empties the store between two runs of a test."""
    shutil.rmtree(STORE, ignore_errors=True)
