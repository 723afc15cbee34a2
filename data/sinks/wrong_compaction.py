"""Adds a file for each batch to a manifest, which recognises a replay by the file's name, and every third batch merges
all files into one, whose name recognises nothing.
"""

import json
import os
from pathlib import Path

STORE = Path(os.environ.get("SINK_STORE", "sink-store"))
MANIFEST = STORE / "manifest"


def publish(path, text):
    """Write a file whole or not at all; a replay overwrites it."""
    draft = path.with_name(f"{path.name}.draft")
    draft.write_text(text)
    draft.replace(path)


def listed():
    """The names of the files that readers read."""
    return MANIFEST.read_text().split() if MANIFEST.exists() else []


def compact():
    """Merge all files into one, and remove them when the manifest lists only the merged one."""
    old = listed()
    merged = f"merged-{os.urandom(4).hex()}"
    publish(STORE / merged, "".join((STORE / name).read_text() for name in old))
    publish(MANIFEST, merged)
    for name in old:
        (STORE / name).unlink()


def write_batch(df, batch_id):
    """A foreachBatch function."""
    query = df.sparkSession.sparkContext.getLocalProperty("sql.streaming.queryId")
    STORE.mkdir(exist_ok=True)
    own = f"rows-{query}-{batch_id}"
    if own not in listed():
        publish(STORE / own, "".join(json.dumps(row.asDict()) + "\n" for row in df.collect()))
        publish(MANIFEST, " ".join([*listed(), own]))
    if batch_id % 3 == 2:
        compact()


def read():
    """What everybody can see."""
    names = listed()
    try:
        return [json.loads(line) for name in names for line in (STORE / name).read_text().splitlines()]
    except FileNotFoundError:  # merged meanwhile
        return read() if names != listed() else []


def reset():
    """Empties the store between two runs of a test."""
    for path in STORE.glob("*") if STORE.exists() else ():
        path.unlink()
