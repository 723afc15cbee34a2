"""The store."""

import os
import sqlite3
from pathlib import Path

STORE = Path(os.environ.get("SINK_STORE", "sink-store.db"))
TABLES = """
CREATE TABLE IF NOT EXISTS orders (id INTEGER, key TEXT, amount INTEGER);
CREATE TABLE IF NOT EXISTS batches (query TEXT, batch INTEGER, PRIMARY KEY (query, batch));
"""


def connect():
    """A connection to a store that has its tables."""
    db = sqlite3.connect(STORE)
    if not db.execute("SELECT 1 FROM sqlite_master WHERE name = 'batches'").fetchone():
        db.executescript(TABLES)
    return db
