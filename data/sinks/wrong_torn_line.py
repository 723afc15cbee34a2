"""Appends JSON lines and skips rows that are in the file, but leaves an unfinished last line where it is."""

import json
import os
import threading
from pathlib import Path

STORE = Path(os.environ.get("SINK_STORE", "sink-store.jsonl"))
LOCK = threading.Lock()


def write_batch(df, batch_id):
    """A foreachBatch function."""
    query = df.sparkSession.sparkContext.getLocalProperty("sql.streaming.queryId")
    rows = [{"query": query, "batch": batch_id, **row.asDict()} for row in df.select("id", "key", "amount").collect()]
    with LOCK:
        done = {(row["query"], row["batch"], row["id"]) for row in whole_lines()}
        new = [row for row in rows if (query, batch_id, row["id"]) not in done]
        with STORE.open("a") as file:
            file.writelines(json.dumps(row) + "\n" for row in new)
            file.flush()
            os.fsync(file.fileno())


def whole_lines():
    """The rows in the file; a line that a crash left unfinished is skipped."""
    rows = []
    for line in STORE.read_text().splitlines() if STORE.exists() else []:
        try:
            rows.append(json.loads(line))
        except json.JSONDecodeError:
            continue
    return rows


def read():
    """What everybody can see."""
    return [{name: row[name] for name in ("id", "key", "amount")} for row in whole_lines()]


def reset():
    """Empties the store between two runs of a test."""
    STORE.unlink(missing_ok=True)
