"""Writes each batch to a folder named by query and batch, which a replay overwrites; its manifest makes it count."""

import json
import os
import shutil
from pathlib import Path

STORE = Path(os.environ.get("SINK_STORE", "sink-store"))


def write_batch(df, batch_id):
    """A foreachBatch function."""
    query = df.sparkSession.sparkContext.getLocalProperty("sql.streaming.queryId")
    folder = STORE / f"{query}-{batch_id:05}"
    if (folder / "manifest.json").exists():
        return
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / "rows.json", "w") as file:
        for row in df.collect():
            file.write(json.dumps(row.asDict()) + "\n")
        file.flush()
        os.fsync(file.fileno())
    draft = folder / "manifest.json.draft"
    draft.write_text(json.dumps(["rows.json"]))
    draft.replace(folder / "manifest.json")


def read():
    """The files that the manifests name."""
    manifests = sorted(STORE.glob("*/manifest.json"))
    files = [manifest.parent / name for manifest in manifests for name in json.loads(manifest.read_text())]
    return [json.loads(line) for path in files for line in path.read_text().splitlines()]


def reset():
    """Empties the store between two runs of a test."""
    shutil.rmtree(STORE, ignore_errors=True)
