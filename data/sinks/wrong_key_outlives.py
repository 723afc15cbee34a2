"""Writes rows and a marker in one transaction; the marker is the batch id alone, and so outlives its query."""

import os
import sqlite3
from pathlib import Path

STORE = Path(os.environ.get("SINK_STORE", "sink-store.db"))
TABLES = """
CREATE TABLE IF NOT EXISTS orders (id INTEGER, key TEXT, amount INTEGER);
CREATE TABLE IF NOT EXISTS batches (batch INTEGER PRIMARY KEY);
"""


def connect():
    """A connection to a store that has its tables."""
    db = sqlite3.connect(STORE)
    if not db.execute("SELECT 1 FROM sqlite_master WHERE name = 'batches'").fetchone():
        db.executescript(TABLES)
    return db


def write_batch(df, batch_id):
    """A foreachBatch function."""
    db = connect()
    if not db.execute("SELECT 1 FROM batches WHERE batch = ?", (batch_id,)).fetchone():
        rows = [(row.id, row.key, row.amount) for row in df.collect()]
        with db:
            db.executemany("INSERT INTO orders VALUES (?, ?, ?)", rows)
            db.execute("INSERT INTO batches VALUES (?)", (batch_id,))
    db.close()


def read():
    """What everybody can see."""
    db = connect()
    rows = db.execute("SELECT id, key, amount FROM orders").fetchall()
    db.close()
    return rows


def reset():
    """Empties the store between two runs of a test."""
    STORE.unlink(missing_ok=True)
