"""Writes rows, and then a marker (query, batch) in a transaction of its own, in WAL mode."""

import os
import sqlite3
from pathlib import Path

STORE = Path(os.environ.get("SINK_STORE", "sink-store.db"))
TABLES = """
CREATE TABLE IF NOT EXISTS orders (id INTEGER, key TEXT, amount INTEGER);
CREATE TABLE IF NOT EXISTS batches (query TEXT, batch INTEGER, PRIMARY KEY (query, batch));
"""


def write_batch(df, batch_id):
    """A foreachBatch function."""
    query = df.sparkSession.sparkContext.getLocalProperty("sql.streaming.queryId")
    db = sqlite3.connect(STORE)
    db.execute("PRAGMA journal_mode = WAL")
    db.executescript(TABLES)
    if not db.execute("SELECT 1 FROM batches WHERE query = ? AND batch = ?", (query, batch_id)).fetchone():
        rows = [(row.id, row.key, row.amount) for row in df.collect()]
        with db:
            db.executemany("INSERT INTO orders VALUES (?, ?, ?)", rows)
        with db:
            db.execute("INSERT INTO batches VALUES (?, ?)", (query, batch_id))
    db.close()


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
    for end in ("", "-wal", "-shm", "-journal"):
        Path(f"{STORE}{end}").unlink(missing_ok=True)
