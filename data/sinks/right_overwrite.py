"""Writes each batch to a folder named by query and batch, which a replay overwrites, then names it in a manifest."""

import json
import os
import shutil
from pathlib import Path

STORE = Path(os.environ.get("SINK_STORE", "sink-store"))
MANIFEST = STORE / "manifest.json"


def published():
    """The folders that count."""
    return json.loads(MANIFEST.read_text()) if MANIFEST.exists() else []


def write_batch(df, batch_id):
    """A foreachBatch function."""
    query = df.sparkSession.sparkContext.getLocalProperty("sql.streaming.queryId")
    name = f"{query}-{batch_id:05}"
    if name in published():
        return
    folder = STORE / name
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / "rows.json", "w") as file:
        for row in df.collect():
            file.write(json.dumps(row.asDict()) + "\n")
        file.flush()
        os.fsync(file.fileno())
    draft = STORE / f"manifest-{name}.json"
    draft.write_text(json.dumps([*published(), name]))
    draft.replace(MANIFEST)


def read():
    """The rows of every folder that the manifest names."""
    return [json.loads(line) for name in published() for line in (STORE / name / "rows.json").read_text().splitlines()]


def reset():
    """Empties the store between two runs of a test."""
    shutil.rmtree(STORE, ignore_errors=True)
