"""A ForeachWriter: every partition of a batch has a transaction of its own, and nothing remembers it."""

import os
import sqlite3
from pathlib import Path

STORE = Path(os.environ.get("SINK_STORE", "sink-store.db"))
TABLE = "CREATE TABLE IF NOT EXISTS orders (id INTEGER, key TEXT, amount INTEGER)"


class Writer:
    """One object a task."""

    def open(self, partition_id, epoch_id):
        """Begins the transaction of a partition."""
        self.db = sqlite3.connect(STORE)
        self.db.execute(TABLE)
        return True

    def process(self, row):
        """One row."""
        self.db.execute("INSERT INTO orders VALUES (?, ?, ?)", (row.id, row.key, row.amount))

    def close(self, error):
        """Ends the transaction of a partition."""
        if error is None:
            self.db.commit()
        self.db.close()


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
