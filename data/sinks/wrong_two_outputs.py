"""Splits each batch by chance and writes one half here and one there; every action throws the dice anew."""

import os
import sqlite3
from pathlib import Path

from pyspark.sql import functions as f

STORE = Path(os.environ.get("SINK_STORE", "sink-store.db"))
TABLES = """
CREATE TABLE IF NOT EXISTS sampled (id INTEGER PRIMARY KEY, key TEXT, amount INTEGER);
CREATE TABLE IF NOT EXISTS rest (id INTEGER PRIMARY KEY, key TEXT, amount INTEGER);
"""


def connect():
    """A connection to a store that has its tables."""
    db = sqlite3.connect(STORE)
    if not db.execute("SELECT 1 FROM sqlite_master WHERE name = 'rest'").fetchone():
        db.executescript(TABLES)
    return db


def write_batch(df, batch_id):
    """A foreachBatch function."""
    throw = f.udf(lambda: os.urandom(1)[0] / 256, "double").asNondeterministic()
    thrown = df.withColumn("dice", throw())
    db = connect()
    for table, half in (("sampled", thrown.where("dice < 0.5")), ("rest", thrown.where("dice >= 0.5"))):
        rows = [(row.id, row.key, row.amount) for row in half.collect()]
        with db:
            db.executemany(f"INSERT OR REPLACE INTO {table} VALUES (?, ?, ?)", rows)
    db.close()


def read():
    """The rows of both tables."""
    db = connect()
    rows = db.execute("SELECT id, key, amount FROM sampled UNION ALL SELECT id, key, amount FROM rest").fetchall()
    db.close()
    return rows


def reset():
    """Empties the store between two runs of a test."""
    STORE.unlink(missing_ok=True)
