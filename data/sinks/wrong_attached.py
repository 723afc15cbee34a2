"""Writes rows and marker into two attached databases in WAL mode: their one COMMIT is atomic in each file only."""

import os
import sqlite3
from pathlib import Path

STORE = Path(os.environ.get("SINK_STORE", "sink-store.db"))
MARKERS = STORE.with_name(f"{STORE.name}-markers")


def connect():
    """A connection to both databases, which have their tables."""
    db = sqlite3.connect(STORE)
    db.execute("ATTACH ? AS markers", (str(MARKERS),))
    for schema in ("main", "markers"):
        db.execute(f"PRAGMA {schema}.journal_mode = WAL")
    if not db.execute("SELECT 1 FROM markers.sqlite_master").fetchone():
        db.execute("CREATE TABLE IF NOT EXISTS main.orders (id INTEGER, key TEXT, amount INTEGER)")
        db.execute("CREATE TABLE IF NOT EXISTS markers.batches (query TEXT, batch INTEGER)")
    return db


def write_batch(df, batch_id):
    """A foreachBatch function."""
    query = df.sparkSession.sparkContext.getLocalProperty("sql.streaming.queryId")
    db = connect()
    if not db.execute("SELECT 1 FROM batches WHERE query = ? AND batch = ?", (query, batch_id)).fetchone():
        rows = [(row.id, row.key, row.amount) for row in df.collect()]
        with db:
            db.executemany("INSERT INTO orders VALUES (?, ?, ?)", rows)
            db.execute("INSERT INTO batches VALUES (?, ?)", (query, batch_id))
    db.close()


def read():
    """What everybody can see."""
    db = connect()
    rows = db.execute("SELECT id, key, amount FROM orders").fetchall()
    db.close()
    return rows


def reset():
    """Empties the store between two runs of a test."""
    for path in STORE.parent.glob(f"{STORE.name}*"):
        path.unlink()
