"""Adds each batch's amounts to a total of every key."""

import os
import sqlite3
from pathlib import Path

STORE = Path(os.environ.get("SINK_STORE", "sink-store.db"))
TABLE = "CREATE TABLE IF NOT EXISTS totals (key TEXT PRIMARY KEY, amount INTEGER)"
ADD = "INSERT INTO totals VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET amount = amount + excluded.amount"


def write_batch(df, batch_id):
    """A foreachBatch function."""
    totals = df.groupBy("key").sum("amount").collect()
    db = sqlite3.connect(STORE)
    with db:
        db.execute(TABLE)
        db.executemany(ADD, [tuple(row) for row in totals])
    db.close()


def read():
    """The total of every key."""
    db = sqlite3.connect(STORE)
    db.execute(TABLE)
    rows = db.execute("SELECT key, amount FROM totals").fetchall()
    db.close()
    return rows


def reset():
    """Empties the store between two runs of a test."""
    STORE.unlink(missing_ok=True)
