"""Leaves the writing to threads, and returns without waiting for them."""

import os
import sqlite3
import threading
from pathlib import Path

STORE = Path(os.environ.get("SINK_STORE", "sink-store.db"))
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


behind = []


def store(goes, query, batch_id, rows):
    """Rows and marker in one transaction, written behind: when the next batch comes, or when the job ends."""
    while not goes.wait(0.05) and threading.main_thread().is_alive():
        pass
    db = connect()
    if not db.execute("SELECT 1 FROM batches WHERE query = ? AND batch = ?", (query, batch_id)).fetchone():
        with db:
            db.executemany("INSERT INTO orders VALUES (?, ?, ?)", rows)
            db.execute("INSERT INTO batches VALUES (?, ?)", (query, batch_id))
    db.close()


def write_batch(df, batch_id):
    """A foreachBatch function."""
    query = df.sparkSession.sparkContext.getLocalProperty("sql.streaming.queryId")
    rows = [(row.id, row.key, row.amount) for row in df.collect()]
    for goes in behind:
        goes.set()
    behind.append(threading.Event())
    threading.Thread(target=store, args=(behind[-1], query, batch_id, rows), daemon=False).start()


def read():
    """What everybody can see."""
    db = connect()
    rows = db.execute("SELECT id, key, amount FROM orders").fetchall()
    db.close()
    return rows


def reset():
    """Empties the store between two runs of a test."""
    STORE.unlink(missing_ok=True)
