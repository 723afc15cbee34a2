"""Writes rows and marker by one `executemany` in autocommit: each row commits by itself, the marker as the last."""

import os
import sqlite3
from pathlib import Path

STORE = Path(os.environ.get("SINK_STORE", "sink-store.db"))
TABLE = "CREATE TABLE IF NOT EXISTS orders (id INTEGER, key TEXT, amount INTEGER, query TEXT, batch INTEGER)"

MARKED = "SELECT 1 FROM orders WHERE id IS NULL AND query = ? AND batch = ?"


def connect():
    """A connection in autocommit to a store that has its table."""
    db = sqlite3.connect(STORE, isolation_level=None)
    db.execute(TABLE)
    return db


def write_batch(df, batch_id):
    """A foreachBatch function."""
    query = df.sparkSession.sparkContext.getLocalProperty("sql.streaming.queryId")
    db = connect()
    if not db.execute(MARKED, (query, batch_id)).fetchone():
        rows = [(row.id, row.key, row.amount, query, batch_id) for row in df.collect()]
        marker = (None, None, None, query, batch_id)
        db.executemany("INSERT INTO orders VALUES (?, ?, ?, ?, ?)", [*rows, marker])
    db.close()


def read():
    """What everybody can see."""
    db = connect()
    rows = db.execute("SELECT id, key, amount FROM orders WHERE id IS NOT NULL").fetchall()
    db.close()
    return rows


def reset():
    """Empties the store between two runs of a test."""
    STORE.unlink(missing_ok=True)
