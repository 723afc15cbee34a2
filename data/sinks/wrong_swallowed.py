"""Inserts row by row; the error of a row that is there already is caught, and the rest of its batch with it."""

import os
import sqlite3
from pathlib import Path

STORE = Path(os.environ.get("SINK_STORE", "sink-store.db"))
TABLE = "CREATE TABLE IF NOT EXISTS orders (id INTEGER PRIMARY KEY, key TEXT, amount INTEGER)"


def write_batch(df, batch_id):
    """A foreachBatch function."""
    db = sqlite3.connect(STORE, isolation_level=None)
    db.execute(TABLE)
    try:
        for row in df.collect():
            db.execute("INSERT INTO orders VALUES (?, ?, ?)", (row.id, row.key, row.amount))
    except sqlite3.IntegrityError as error:
        print("already there:", error)
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
