"""Writes rows and marker by one `executescript` without BEGIN: each statement commits by itself."""

import os
import sqlite3
from pathlib import Path

STORE = Path(os.environ.get("SINK_STORE", "sink-store.db"))
TABLES = """
CREATE TABLE IF NOT EXISTS orders (id INTEGER, key TEXT, amount INTEGER);
CREATE TABLE IF NOT EXISTS batches (query TEXT, batch INTEGER, PRIMARY KEY (query, batch));
"""
SCRIPT = """
INSERT INTO orders VALUES {rows};
INSERT INTO batches VALUES ('{query}', {batch});
"""


def connect():
    """A connection to a store that has its tables."""
    db = sqlite3.connect(STORE)
    if not db.execute("SELECT 1 FROM sqlite_master WHERE name = 'batches'").fetchone():
        db.executescript(TABLES)
    return db


def write_batch(df, batch_id):
    """A foreachBatch function."""
    query = df.sparkSession.sparkContext.getLocalProperty("sql.streaming.queryId")
    db = connect()
    if not db.execute("SELECT 1 FROM batches WHERE query = ? AND batch = ?", (query, batch_id)).fetchone():
        rows = ", ".join(f"({row.id}, '{row.key}', {row.amount})" for row in df.collect())
        db.executescript(SCRIPT.format(rows=rows, query=query, batch=batch_id))
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
