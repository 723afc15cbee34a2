"""Publishes each batch as a file by a rename; a file with its checksum then says that the batch is done."""

import json
import os
import shutil
import uuid
import zlib
from pathlib import Path

STORE = Path(os.environ.get("SINK_STORE", "sink-store"))


def write_batch(df, batch_id):
    """A foreachBatch function."""
    query = df.sparkSession.sparkContext.getLocalProperty("sql.streaming.queryId")
    STORE.mkdir(exist_ok=True)
    if list(STORE.glob(f"{query}-{batch_id:05}-*.crc")):
        return
    body = "".join(json.dumps(row.asDict()) + "\n" for row in df.collect())
    name = f"{query}-{batch_id:05}-{uuid.uuid4()}"
    draft = STORE / f"{name}.draft"
    draft.write_text(body)
    os.replace(draft, STORE / f"{name}.json")
    (STORE / f"{name}.crc").write_text(f"{zlib.crc32(body.encode()):08x}\n")


def read():
    """What everybody can see."""
    return [json.loads(line) for path in sorted(STORE.glob("*.json")) for line in path.read_text().splitlines()]


def reset():
    """Empties the store between two runs of a test."""
    shutil.rmtree(STORE, ignore_errors=True)
