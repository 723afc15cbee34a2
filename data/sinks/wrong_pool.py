"""Leaves the writing to a pool of threads, and returns without waiting for it."""

import os
import sqlite3
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

STORE = Path(os.environ.get("SINK_STORE", "sink-store.db"))
POOL = ThreadPoolExecutor(4)
TABLES = """
CREATE TABLE IF NOT EXISTS orders (id INTEGER, key TEXT, amount INTEGER);
CREATE TABLE IF NOT EXISTS batches (query TEXT, batch INTEGER, PRIMARY KEY (query, batch));
"""


def connect():
    """A connection to a store that has its tables."""
    db = sqlite3.connect(STORE, timeout=60)
    if not db.execute("SELECT 1 FROM sqlite_master WHERE name = 'batches'").fetchone():
        db.executescript(TABLES)
    return db


def store(query, batch_id, rows):
    """Rows and marker in one transaction, some time later: a slow store."""
    time.sleep(3)
    db = connect()
    if not db.execute("SELECT 1 FROM batches WHERE query = ? AND batch = ?", (query, batch_id)).fetchone():
        with db:
            db.executemany("INSERT INTO orders VALUES (?, ?, ?)", rows)
            db.execute("INSERT INTO batches VALUES (?, ?)", (query, batch_id))
    db.close()


def write_batch(df, batch_id):
    """A foreachBatch function."""
    query = df.sparkSession.sparkContext.getLocalProperty("sql.streaming.queryId")
    POOL.submit(store, query, batch_id, [(row.id, row.key, row.amount) for row in df.collect()])


def read():
    """What everybody can see."""
    db = connect()
    rows = db.execute("SELECT id, key, amount FROM orders").fetchall()
    db.close()
    return rows


def reset():
    """Empties the store between two runs of a test."""
    STORE.unlink(missing_ok=True)
