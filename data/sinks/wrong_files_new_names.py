"""Writes each batch to a file with a new name, straight to where it is read."""

import json
import os
import shutil
import uuid
from pathlib import Path

STORE = Path(os.environ.get("SINK_STORE", "sink-store"))


def write_batch(df, batch_id):
    """A foreachBatch function."""
    STORE.mkdir(parents=True, exist_ok=True)
    with open(STORE / f"part-{uuid.uuid4().hex}.json", "w") as file:
        for row in df.collect():
            file.write(json.dumps(row.asDict()) + "\n")


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
