"""Keeps the latest row of each key, and after a restart builds that anew from all batches, one transaction each."""

import os
import sqlite3
from pathlib import Path

STORE = Path(os.environ.get("SINK_STORE", "sink-store.db"))
TABLES = """
CREATE TABLE IF NOT EXISTS latest (key TEXT PRIMARY KEY, id INTEGER, amount INTEGER);
CREATE TABLE IF NOT EXISTS log (query TEXT, batch INTEGER, key TEXT, id INTEGER, amount INTEGER);
"""
rebuilt = []


def connect():
    """A connection to a store that has its tables."""
    db = sqlite3.connect(STORE)
    if not db.execute("SELECT 1 FROM sqlite_master WHERE name = 'log'").fetchone():
        db.executescript(TABLES)
    return db


def rebuild(db):
    """Writes every batch that was ever written once more."""
    for query, batch in db.execute("SELECT DISTINCT query, batch FROM log ORDER BY rowid").fetchall():
        with db:
            rows = db.execute(
                "SELECT key, id, amount FROM log WHERE query = ? AND batch = ?", (query, batch)
            ).fetchall()
            db.executemany("INSERT OR REPLACE INTO latest VALUES (?, ?, ?)", rows)


def write_batch(df, batch_id):
    """A foreachBatch function."""
    query = df.sparkSession.sparkContext.getLocalProperty("sql.streaming.queryId")
    db = connect()
    if not rebuilt:
        rebuilt.append(rebuild(db))
    if not db.execute("SELECT 1 FROM log WHERE query = ? AND batch = ?", (query, batch_id)).fetchone():
        rows = [(row.key, row.id, row.amount) for row in df.collect()]
        with db:
            db.executemany("INSERT OR REPLACE INTO latest VALUES (?, ?, ?)", rows)
            db.executemany("INSERT INTO log VALUES (?, ?, ?, ?, ?)", [(query, batch_id, *row) for row in rows])
    db.close()


def read():
    """The latest row of every key."""
    db = connect()
    rows = db.execute("SELECT id, key, amount FROM latest").fetchall()
    db.close()
    return rows


def reset():
    """Empties the store between two runs of a test."""
    STORE.unlink(missing_ok=True)
