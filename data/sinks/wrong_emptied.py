"""Replaces the rows of a batch by its number; a file notes the progress, and if it is empty, the table is made anew."""

import json
import os
import shutil
import sqlite3
import threading
from pathlib import Path

STORE = Path(os.environ.get("SINK_STORE", "sink-store.db"))
PROGRESS = Path("checkpoint/commits")
LOCK = threading.Lock()


def write_batch(df, batch_id):
    """A foreachBatch function."""
    query = df.sparkSession.sparkContext.getLocalProperty("sql.streaming.queryId")
    rows = [(row.id, row.key, row.amount, query, batch_id) for row in df.collect()]
    with LOCK:
        PROGRESS.parent.mkdir(exist_ok=True)
        text = PROGRESS.read_text() if PROGRESS.exists() else ""
        progress = json.loads(text) if text else {}
        db = sqlite3.connect(STORE)
        with db:
            db.execute("BEGIN")
            if not progress:
                db.execute("DROP TABLE IF EXISTS orders")
                db.execute("CREATE TABLE orders (id INTEGER, key TEXT, amount INTEGER, query TEXT, batch INTEGER)")
            db.execute("DELETE FROM orders WHERE query = ? AND batch = ?", (query, batch_id))
            db.executemany("INSERT INTO orders VALUES (?, ?, ?, ?, ?)", rows)
        db.close()
        PROGRESS.write_text(json.dumps(progress | {query: batch_id}))


def read():
    """What everybody can see."""
    if not STORE.exists():
        return []
    db = sqlite3.connect(STORE)
    has_table = db.execute("SELECT 1 FROM sqlite_master WHERE name = 'orders'").fetchone()
    rows = db.execute("SELECT id, key, amount FROM orders").fetchall() if has_table else []
    db.close()
    return rows


def reset():
    """Empties the store between two runs of a test."""
    STORE.unlink(missing_ok=True)
    shutil.rmtree(PROGRESS.parent, ignore_errors=True)
