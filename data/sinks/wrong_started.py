"""Starts its query by itself, as a job does, and waits for it; its foreachBatch function appends a file."""

import json
import os
import shutil
import uuid
from pathlib import Path

STORE = Path(os.environ.get("SINK_STORE", "sink-store"))


def write_batch(df, batch_id):
    """A foreachBatch function."""
    STORE.mkdir(parents=True, exist_ok=True)
    text = "".join(json.dumps(row.asDict()) + "\n" for row in df.collect())
    (STORE / f"{uuid.uuid4()}.json").write_text(text)


def start(stream):
    """What the test is given."""
    query = stream.writeStream.queryName("orders").foreachBatch(write_batch)
    query.start(checkpointLocation=f"{STORE}.checkpoint").awaitTermination()


def read():
    """What everybody can see."""
    return [json.loads(line) for path in sorted(STORE.glob("*.json")) for line in path.read_text().splitlines()]


def reset():
    """Empties the store between two runs of a test."""
    shutil.rmtree(STORE, ignore_errors=True)
