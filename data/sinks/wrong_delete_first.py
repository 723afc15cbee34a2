"""Deletes what an earlier attempt at the batch has left, then inserts, in two transactions."""

import os
import sqlite3
from pathlib import Path

STORE = Path(os.environ.get("SINK_STORE", "sink-store.db"))
TABLE = "CREATE TABLE IF NOT EXISTS orders (query TEXT, batch INTEGER, id INTEGER, key TEXT, amount INTEGER)"


def write_batch(df, batch_id):
    """A foreachBatch function."""
    query = df.sparkSession.sparkContext.getLocalProperty("sql.streaming.queryId")
    rows = [(query, batch_id, row.id, row.key, row.amount) for row in df.collect()]
    db = sqlite3.connect(STORE)
    with db:
        db.execute(TABLE)
        db.execute("DELETE FROM orders WHERE query = ? AND batch = ?", (query, batch_id))
    with db:
        db.executemany("INSERT INTO orders VALUES (?, ?, ?, ?, ?)", rows)
    db.close()


def read():
    """What everybody can see."""
    db = sqlite3.connect(STORE)
    db.execute(TABLE)
    rows = db.execute("SELECT id, key, amount FROM orders").fetchall()
    db.close()
    return rows


def reset():
    """Empties the store between two runs of a test."""
    STORE.unlink(missing_ok=True)
